"""Copies, waits and barriers: nodes of the model, and operations in MLIR."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from polyblocks import mlir
from polyblocks.affine.buffers.copies import Barrier, BoxCopy, Commit, CopyError, Wait
from polyblocks.affine.expr import Expr
from polyblocks.affine.mlir import reader
from polyblocks.affine.mlir.nest_cache import NestCache
from polyblocks.affine.mlir.verify import InvalidNestError, verify_nest
from polyblocks.affine.model import Buffer, For, Load, Nest, Node, Op, Sequence, Store, clone, walk
from polyblocks.affine.multiply import UnitSteps
from polyblocks.affine.ops import like
from polyblocks.affine.swizzles import Swizzle, doubling, no_bits, place_of

TEXT = """
func.func @main(%a: memref<64x64xf32>, %c: memref<64x64xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %t = 0 to 4 {
      %x = memref.alloca() {alignment = 64 : i64} : memref<16xf32, "registers">
      %s = memref.alloca() {alignment = 64 : i64, polyblocks.layout = [
        {into = 2 : i64, masks = [0, 8], of = 1 : i64}]} : memref<3x8x16xf16, "shared">
      "polyblocks.copy"(%a, %x, %i, %t) {
        kind = "registers", shape = array<i64: 64>, polyblocks.padding = array<i64: 3>,
        from = affine_map<(d0, d1)[s0] -> (d0, s0)>, to = affine_map<(d0, d1)[s0] -> (s0 mod 16)>,
        lower = [affine_map<(d0, d1)[s0] -> (d1 * 16)>],
        upper = [affine_map<(d0, d1)[s0] -> (d1 * 16 + 16)>],
        where = affine_map<(d0, d1)[s0] -> (s0 - 3)>
      } : (memref<64x64xf32>, memref<16xf32, "registers">, index, index) -> ()
      "polyblocks.copy"(%x, %s, %i) {
        kind = "registers", shape = array<i64: 16>,
        conversions = [
          {attributes = {polyblocks.free_rounding}, name = "arith.truncf", type = f16}],
        from = affine_map<(d0)[s0] -> (s0)>, to = affine_map<(d0)[s0] -> (1, d0 mod 8, s0)>
      } : (memref<16xf32, "registers">, memref<3x8x16xf16, "shared">, index) -> ()
      "polyblocks.commit"() : () -> ()
      "polyblocks.wait"() {pending = 1 : i64} : () -> ()
      "polyblocks.barrier"() {scope = "block"} : () -> ()
      %f = memref.alloca() {alignment = 64 : i64} : memref<16xf16, "registers">
      "polyblocks.copy"(%s, %f, %i) {
        kind = "fragments", shape = array<i64: 16>,
        from = affine_map<(d0)[s0] -> (1, d0 mod 8, s0)>, to = affine_map<(d0)[s0] -> (s0)>
      } : (memref<3x8x16xf16, "shared">, memref<16xf16, "registers">, index) -> ()
      %zero = arith.constant 0.0 : f32
      %r = affine.for %k = 0 to 16 iter_args(%sum = %zero) -> (f32) {
        %u = affine.load %f[%k] : memref<16xf16, "registers">
        %v = affine.load %f[-%k + 15] : memref<16xf16, "registers">
        %p = arith.mulf %u, %v : f16
        %w = arith.extf %p : f16 to f32
        %y = arith.addf %sum, %w : f32
        affine.yield %y : f32
      } {polyblocks.unit_steps = "mma"}
      affine.store %r, %c[%i, %t] : memref<64x64xf32>
    }
  }
  return
}
"""


def read() -> Sequence:
    module = mlir.parse(TEXT)
    with module.context, mlir.ir.Location.unknown():
        return reader.read(module)


def copies(nest: Nest) -> list[For]:
    return [n for n in walk(nest.body) if isinstance(n, For) and n.copy]


def test_they_are_read_as_loops_of_their_own_accesses() -> None:
    (nest,) = read().nests()
    verify_nest(nest)
    loaded, stored, fragments = map(BoxCopy.of, copies(nest))
    (loop,) = loaded.loops
    assert (loaded.kind, loop.var.extent) == ("registers", 64)
    assert [len(loop.lower), len(loop.upper), len(loaded.source.where)] == [1, 1, 1]
    assert loaded.source.padding == {3}
    assert loaded.destination.buffer.space == "registers"
    (conversion,) = stored.conversions
    assert conversion.name == "arith.truncf"
    assert list(conversion.attributes) == ["polyblocks.free_rounding"]
    assert stored.destination.buffer.layout == (Swizzle(1, 2, (0, 8)),)
    assert fragments.source.buffer is stored.destination.buffer
    waits = [n for n in walk(nest.body) if isinstance(n, (Commit, Wait, Barrier))]
    assert [type(n).__name__ for n in waits] == ["Commit", "Wait", "Barrier"]
    (steps,) = [UnitSteps.of(n) for n in walk(nest.body) if isinstance(n, For) and n.unit]
    assert (steps.loop.unit, len(steps.loads)) == ("mma", 2)


def test_they_are_written_as_they_were_read() -> None:
    module = mlir.parse(TEXT)
    before = str(module)
    nests = NestCache(module)
    (nest,) = nests.sequence.nests()
    nest.replace(clone(nest.body, {}, {}))
    assert nests.write()
    assert str(module) == before


def test_loops_of_a_copy_are_made_of_its_parts() -> None:
    (nest,) = read().nests()
    loop = copies(nest)[1]
    (body, made) = loop.body, BoxCopy.of(loop).loop()
    assert made.body == body
    assert (made.var, made.copy) == (loop.var, loop.copy)


def carry(loop: For) -> None:
    loop.level = "team"


def no_store(loop: For) -> None:
    loop.body.pop()


def two_operands(loop: For) -> None:
    load, op, _ = loop.body
    assert isinstance(load, Load)
    assert isinstance(op, Op)
    op.operands = [load.result, load.result]


def another_value(loop: For) -> None:
    load, _, store = loop.body
    assert isinstance(load, Load)
    assert isinstance(store, Store)
    store.value = load.result


def unknown_kind(loop: For) -> None:
    loop.copy = "grid"


def other_spaces(loop: For) -> None:
    loop.copy = "pack"


def to_nowhere(loop: For) -> None:
    store = loop.body[-1]
    assert isinstance(store, Store)
    store.index = (Expr(3), *store.index[1:])


def converting(loop: For) -> None:
    load = loop.body[0]
    assert isinstance(load, Load)
    loop.copy, load.buffer = "asynchronous", Buffer((16,), load.buffer.element, "input")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (carry, "expected loops that carry nothing and have no other meaning"),
        (no_store, "expected a load, what converts its result, and a store"),
        (two_operands, "expected that every operation converts the result of the other"),
        (another_value, "expected a store of what is loaded"),
        (
            unknown_kind,
            "expected a kind of pack, asynchronous, bulk, registers, fragments, got 'grid'",
        ),
        (
            other_spaces,
            "a copy of kind 'pack' is from the default space to the default space, not from "
            "registers to shared",
        ),
        (converting, "a copy of kind 'asynchronous' converts nothing"),
    ],
)
def test_loops_that_are_no_copy(change: Callable[[For], None], message: str) -> None:
    (nest,) = read().nests()
    loop = copies(nest)[1]
    change(loop)
    with pytest.raises(CopyError, match=message):
        BoxCopy.of(loop)
    with pytest.raises(InvalidNestError, match=message):
        verify_nest(nest)


def test_a_box_lies_in_its_buffer() -> None:
    (nest,) = read().nests()
    to_nowhere(copies(nest)[1])
    with pytest.raises(InvalidNestError, match="inside of 3 places along dimension 0, got .* 3 on"):
        verify_nest(nest)


def without(nest: Nest, kind: type) -> None:
    for loop in walk(nest.body):
        if isinstance(loop, For):
            loop.body = [n for n in loop.body if not isinstance(n, kind)]


def test_only_groups_that_were_formed_are_waited_for() -> None:
    (nest,) = read().nests()
    without(nest, Commit)
    with pytest.raises(InvalidNestError, match="expected a group of copies before it, .* no group"):
        verify_nest(nest)


def change_each(nest: Nest, kind: type, name: str, value: object) -> None:
    for node in walk(nest.body):
        if isinstance(node, kind):
            setattr(node, name, value)


def test_fewer_than_no_groups_cannot_be_waited_for() -> None:
    (nest,) = read().nests()
    change_each(nest, Wait, "pending", -1)
    with pytest.raises(InvalidNestError, match="at least 0 that are pending, got -1"):
        verify_nest(nest)


def test_a_barrier_has_a_scope() -> None:
    (nest,) = read().nests()
    change_each(nest, Barrier, "scope", "grid")
    with pytest.raises(InvalidNestError, match="expected a scope of block, consumers, got 'grid'"):
        verify_nest(nest)


def memory(nodes: list[Node]) -> None:
    for node in walk(nodes):
        if isinstance(node, Load) and node.buffer.shape == (16,):
            node.buffer.space = ""


def two_sums(loop: For) -> None:
    loop.inits, loop.arguments = loop.inits * 2, loop.arguments * 2


def one_operand(loop: For) -> None:
    loads = [n for n in loop.body if isinstance(n, Load)]
    loop.body.remove(loads[1])


def in_main_memory(loop: For) -> None:
    memory(loop.body)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (two_sums, "expected one sum that loads and operations of a step add to"),
        (one_operand, "expected two operands in registers"),
        (in_main_memory, "expected two operands in registers"),
    ],
)
def test_steps_of_a_unit_add_products_of_registers(
    change: Callable[[For], None], message: str
) -> None:
    (nest,) = read().nests()
    (loop,) = [n for n in walk(nest.body) if isinstance(n, For) and n.unit]
    change(loop)
    with pytest.raises(Exception, match=message):
        UnitSteps.of(loop)


def test_operations_of_a_copy_keep_their_class() -> None:
    (nest,) = read().nests()
    (conversion,) = BoxCopy.of(copies(nest)[1]).conversions
    assert type(like(conversion, conversion.operands)) is Op


@pytest.mark.parametrize(
    "layout",
    [
        (),
        (Swizzle(0, 1, doubling(4, 8)),),
        (Swizzle(0, 1, (*no_bits(2), *doubling(2, 4))), Swizzle(0, 0, (*no_bits(4), 1))),
    ],
)
def test_swizzled_elements_change_places_with_each_other(layout: tuple[Swizzle, ...]) -> None:
    places = {place_of(layout, index) for index in product(range(8), range(32))}
    assert places == set(product(range(8), range(32)))


def test_bits_of_a_swizzle_are_runs() -> None:
    swizzle = Swizzle(0, 1, (0, 8, 16, 4, 0, 1))
    assert list(swizzle.runs()) == [(1, 2, 8), (3, 1, 4), (5, 1, 1)]
    for number in range(64):
        digits = sum((number >> bit) % (1 << count) * mask for bit, count, mask in swizzle.runs())
        assert swizzle.flips(number) == digits


def test_rows_of_a_phase_meet_in_no_bank() -> None:
    """Eight rows of 64 halves: a warp reads the same eight steps of each."""
    layout = (Swizzle(0, 1, doubling(8, 8)),)
    for step in range(0, 64, 8):
        places = [place_of(layout, (row, step)) for row in range(8)]
        assert len({column // 8 for _, column in places}) == 8

"""A matrix unit's product of tiles: loops in the model, one operation in MLIR."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from polyblocks import mlir
from polyblocks.affine.expr import Expr
from polyblocks.affine.mlir import reader
from polyblocks.affine.mlir.nest_cache import NestCache
from polyblocks.affine.mlir.verify import InvalidNestError, verify_nest
from polyblocks.affine.model import For, Load, Op, Sequence, Store, clone, walk
from polyblocks.affine.multiply import Multiply, UnitTile, UnitTileError
from polyblocks.affine.rewrites.simplify import eliminate_common
from polyblocks.codegen.memory import written_operands

TEXT = """
func.func @main(%a: memref<128x64xi32>, %b: memref<64x32xi32>, %c: memref<128x32xf32>) {
  affine.for %t = 0 to 4 {
    "polyblocks.multiply"(%a, %b, %c, %t) {
      unit = "tdpbf16ps", shape = array<i64: 32, 16, 64>,
      accumulator = affine_map<(d0)[s0, s1] -> (d0 * 32 + s0, s1 + 16)>,
      a = affine_map<(d0)[s0, s1] -> (d0 * 32 + s0, s1)>,
      b = affine_map<(d0)[s0, s1] -> (s0, s1 + 16)>
    } : (memref<128x64xi32>, memref<64x32xi32>, memref<128x32xf32>, index) -> ()
  }
  return
}
"""


def read() -> tuple[Sequence, For]:
    """The program's model, and the loops that are the product."""
    module = mlir.parse(TEXT)
    with module.context, mlir.ir.Location.unknown():
        sequence = reader.read(module)
    (found,) = (n for n in walk(sequence.nests()[0].body) if isinstance(n, For) and n.unit)
    return sequence, found


def test_it_is_read_as_loops_of_its_own_accesses() -> None:
    sequence, loop = read()
    tile = UnitTile.of(loop)
    assert tile.shape == (32, 16, 64)
    assert tile.multiply.unit == "tdpbf16ps"
    assert [e.range() for e in tile.accumulator.index] == [(0, 127), (16, 31)]
    assert [e.range() for e in tile.a.index] == [(0, 127), (0, 63)]
    assert [e.range() for e in tile.b.index] == [(0, 63), (16, 31)]
    (nest,) = sequence.nests()
    verify_nest(nest)
    assert len(nest.effects()[0]) == 2
    assert len(nest.effects()[1]) == 1


def test_it_is_written_as_it_was_read() -> None:
    module = mlir.parse(TEXT)
    before = str(module)
    nests = NestCache(module)
    (nest,) = nests.sequence.nests()
    nest.replace(clone(nest.body, {}, {}))
    assert nests.write()
    assert str(module) == before


def test_common_code_is_not_taken_out_of_it() -> None:
    sequence, loop = read()
    (nest,) = sequence.nests()
    zero = UnitTile.of(loop).zero
    nest.body.insert(0, clone([zero], {}, {})[0])
    eliminate_common(nest.body)
    assert UnitTile.of(loop).zero is zero


def no_columns(loop: For) -> None:
    loop.body.append(loop.body[0])


def no_sum(loop: For) -> None:
    _, steps, _ = inside(loop)
    steps.yields = list(steps.arguments)


def other_start(loop: For) -> None:
    columns = loop.body[0]
    assert isinstance(columns, For)
    columns.body[0] = Op("arith.negf", [], {}, inside(loop)[0].results)


def another_number(loop: For) -> None:
    zero, _, _ = inside(loop)
    one = mlir.ir.FloatAttr.get(zero.attributes["value"].type, 1.0)
    zero.attributes = zero.attributes | {"value": one}


def bounded(loop: For) -> None:
    loop.upper = (Expr(3),)


def other_unit(loop: For) -> None:
    loop.unit = "tdpbssd"


def other_store(loop: For) -> None:
    zero, _, store = inside(loop)
    store.value = zero.results[0]


def other_operand(loop: For) -> None:
    _, steps, _ = inside(loop)
    multiply = steps.body[-1]
    assert isinstance(multiply, Multiply)
    multiply.operands[1] = multiply.b


def carried_by_columns(loop: For) -> None:
    zero, _, _ = inside(loop)
    columns = loop.body[0]
    assert isinstance(columns, For)
    columns.inits = zero.results


def no_operand_in_memory(loop: For) -> None:
    _, steps, _ = inside(loop)
    load = steps.body[0]
    assert isinstance(load, Load)
    steps.body[0] = Op("arith.constant", [], {}, [load.result])


def inside(loop: For) -> tuple[Op, For, Store]:
    (columns,) = loop.body
    assert isinstance(columns, For)
    zero, steps, store = columns.body
    assert isinstance(zero, Op)
    assert isinstance(steps, For)
    assert isinstance(store, Store)
    return zero, steps, store


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (no_columns, "expected a body of For, got For, For"),
        (no_sum, "expected that the sum is carried and stored"),
        (other_start, "expected a sum from a constant on, got arith.negf"),
        (another_number, "expected a sum from 0 on, got 1.0"),
        (bounded, "expected loops from 0 to constants"),
        (other_unit, "expected operands of the unit tdpbssd in memory"),
        (other_store, "expected that the sum is carried and stored"),
        (other_operand, "expected a multiplication of what is loaded, added to the sum"),
        (carried_by_columns, "expected a sum from a constant on, carried over steps alone"),
        (no_operand_in_memory, "expected a body of Load and Load and Multiply, got Op"),
    ],
)
def test_loops_that_are_no_product(change: Callable[[For], None], message: str) -> None:
    sequence, loop = read()
    with UnitTile.of(loop).zero.attributes["value"].context, mlir.ir.Location.unknown():
        change(loop)
    with pytest.raises(UnitTileError, match=message):
        UnitTile.of(loop)
    with pytest.raises(InvalidNestError, match=message):
        verify_nest(sequence.nests()[0])


def test_only_the_accumulator_is_written() -> None:
    module = mlir.parse(TEXT)
    (main,) = module.body.operations
    loop = main.regions[0].blocks[0].operations[0]
    multiply = loop.regions[0].blocks[0].operations[0].operation
    assert [v == multiply.operands[2] for v in written_operands(multiply)] == [True]

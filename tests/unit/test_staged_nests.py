"""Products whose copies are nodes: what they compute, and the way back to the plain nest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.gpu_target import gpu_target
from tests.support.nest_interpreter import Machine
from tests.support.schedules import edited, schedules
from tests.support.sweeps import sweep

from polyblocks import mlir
from polyblocks.affine.buffers.copies import Barrier, Wait
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.staged.errors import StagedError
from polyblocks.affine.gpu.staged.exchange import exchange_of
from polyblocks.affine.gpu.staged.nests import plain
from polyblocks.affine.gpu.staged.steps import number_of, values_at
from polyblocks.affine.likeness import likeness
from polyblocks.affine.mlir import reader
from polyblocks.affine.mlir.verify import verify_nest
from polyblocks.affine.model import Access, Alloca, For, Nest, Sequence, Store, walk
from polyblocks.affine.subnests import parallel_shell
from polyblocks.errors import UnsupportedError
from polyblocks.options import CompileOptions
from polyblocks.passes.map.emit_kernels import EmitKernelsPass
from polyblocks.passes.map.stage_operands import StageOperandsPass
from polyblocks.pipeline import PassContext
from polyblocks.target import TargetDescription

#: Copies go past the registers of the one, and through those of the other.
TARGET, SYNCHRONOUS = gpu_target(copying=True), gpu_target()
SCHEDULE = """{polyblocks.schedule = {
  kernel = "k", resident = 1, unit = "unit", register_tile = [16, 32],
  block_tile = [32, 32], k_block = 32, stages = STAGES}}"""


def product(rows: int, columns: int, steps: int, b: str, stages: int) -> str:
    """``c = a b``; ``b`` is stored with its steps in rows (``kj``) or in columns (``jk``)."""
    shape = {"k": steps, "j": columns}
    of_b = f"memref<{shape[b[0]]}x{shape[b[1]]}xf16>"
    return f"""
func.func @main(%a: memref<{rows}x{steps}xf16>, %b: {of_b}, %c: memref<{rows}x{columns}xf32>) {{
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to {rows} {{
    affine.for %j = 0 to {columns} {{
      %s = affine.for %k = 0 to {steps} iter_args(%t = %zero) -> (f32) {{
        %x = affine.load %a[%i, %k] : memref<{rows}x{steps}xf16>
        %y = affine.load %b[%{b[0]}, %{b[1]}] : {of_b}
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }}
      affine.store %s, %c[%i, %j] : memref<{rows}x{columns}xf32>
    }}
  }} {SCHEDULE.replace("STAGES", str(stages))}
  return
}}"""


#: A convolution of three places and two channels with padding, its weights in steps.
WINDOWS = """
func.func @main(%a: memref<9x16xf16>, %b: memref<8x48xf16>, %c: memref<9x8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 9 {
    affine.for %j = 0 to 8 {
      %s = affine.for %p = 0 to 3 iter_args(%r = %zero) -> (f32) {
        %q = affine.for %k = 0 to 16 iter_args(%t = %r) -> (f32) {
          %x = affine.if affine_set<(d0, d1) : (d0 + d1 - 1 >= 0, -d0 - d1 + 9 >= 0)>(%i, %p)
              -> f16 {
            %in = affine.load %a[%i + %p - 1, %k] : memref<9x16xf16>
            affine.yield %in : f16
          } else {
            %out = arith.constant 0.0 : f16
            affine.yield %out : f16
          }
          %y = affine.load %b[%j, %p * 16 + %k] : memref<8x48xf16>
          %u = arith.extf %x : f16 to f32
          %v = arith.extf %y : f16 to f32
          %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
          %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
          affine.yield %w : f32
        }
        affine.yield %q : f32
      }
      affine.store %s, %c[%i, %j] : memref<9x8xf32>
    }
  } SCHEDULE
  return
}""".replace("SCHEDULE", SCHEDULE.replace("STAGES", "3"))

CASES = {
    "both past the registers": product(3, 8, 144, "jk", 3),
    "one tile": product(3, 8, 16, "jk", 2),
    "fewer tiles than stages": product(3, 8, 64, "jk", 4),
    "a part of a tile": product(3, 8, 136, "jk", 3),
    "one through registers": product(3, 8, 144, "kj", 3),
    "a part of a tile through registers": product(3, 8, 72, "kj", 2),
    "windows": WINDOWS,
}

#: Through registers: units of a warp have their operands, and products, one after the other.
THROUGH = {
    "several units": product(20, 24, 128, "kj", 2),
    "units without elements": product(3, 8, 144, "jk", 2),
    "no loop": product(18, 20, 40, "jk", 2),
    "a part of a call": product(2, 18, 200, "jk", 3),
    "windows through registers": WINDOWS,
}
THROUGH = {
    name: text.replace("[16, 32]", "[32, 32]").replace("[32, 32], k", "[64, 32], k")
    for name, text in THROUGH.items()
}
THROUGH["one product"] = (
    product(3, 8, 80, "jk", 2)
    .replace("[32, 32], k", "[32, 16], k")
    .replace("[16, 32]", "[16, 16]")
    .replace("k_block = 32", "k_block = 16")
)
CASES |= THROUGH

#: The same by lanes: a tile in registers is on the way while another one is used.
LANES = """{polyblocks.schedule = {
  kernel = "k", resident = 1, register_tile = [2, 2], block_tile = [8, 8], k_block = DEPTH}}"""


def by_lanes(text: str, depth: int) -> str:
    """The same without a unit."""
    head, rest = text.split("{polyblocks.schedule", 1)
    return head + LANES.replace("DEPTH", str(depth)) + rest.split("}}", 1)[1]


#: By lanes, each with its tiles along the steps.
CASES |= {
    "lanes": by_lanes(product(3, 8, 24, "kj", 2), 8),
    "lanes, steps side by side": by_lanes(product(3, 8, 24, "jk", 2), 8),
    "lanes, one tile": by_lanes(product(3, 8, 8, "kj", 2), 8),
    "lanes, a part of a tile": by_lanes(product(3, 8, 22, "jk", 2), 8),
    "lanes, one tile and a part": by_lanes(product(3, 8, 11, "jk", 2), 8),
    "lanes, windows": by_lanes(WINDOWS, 16),
}


def nest_of(module: Any) -> Nest:
    with module.context, mlir.ir.Location.unknown():
        (nest,) = reader.read(module).nests()
    return nest


def staged(name: str) -> Any:
    """The module with the nodes of its product, written and read again."""
    module = mlir.parse(CASES[name])
    target = SYNCHRONOUS if name in THROUGH else TARGET
    StageOperandsPass().run(module, PassContext.create(target, CompileOptions()))
    return module


#: Of whole tiles and parts of one, through registers, with units and without.
SOME = (
    *("one tile", "a part of a tile", "a part of a tile through registers"),
    *("no loop", "lanes, a part of a tile", "lanes, windows"),
)


def result_of(nest: Nest) -> np.ndarray:
    """The product of operands that are the same for equal shapes."""
    numbers = np.random.default_rng(0)
    accessed = {n.buffer for n in walk(nest.body) if isinstance(n, Access)}
    given = sorted((b for b in accessed if b.kind != "local"), key=lambda b: b.shape)
    (output,) = [b for b in given if str(b.element) == "f32"]
    machine = Machine({b: numbers.integers(-3, 4, b.shape) for b in given if b is not output})
    machine.run(Sequence([nest], []))
    return machine.array(output)


@pytest.mark.parametrize(
    "name", sweep(CASES, *SOME, extended=[name for name in CASES if name not in SOME])
)
def test_the_nodes_compute_what_the_nest_does_and_lead_back_to_it(name: str) -> None:
    module = staged(name)
    before = nest_of(mlir.parse(CASES[name], module.context))
    after = nest_of(module)
    verify_nest(after)
    expected = result_of(before)
    assert not np.isnan(expected).any()
    assert np.array_equal(result_of(after), expected)
    assert any(isinstance(n, Barrier) for n in walk(after.body))
    waits = "lanes" not in name and name not in THROUGH
    assert any(isinstance(n, Wait) for n in walk(after.body)) == waits
    (schedule,) = schedules(str(module))
    body, pipeline = plain(after.body, schedule["steps"])
    outer, original = body[0], before.body[0]
    assert isinstance(outer, For)
    assert isinstance(original, For)
    outer.schedule = original.schedule
    assert likeness(body) == likeness(before.body)
    assert [b.space for b in pipeline.tiles] == ["shared", "shared"]
    # Whole pieces of the columns are stored together.
    exchanged = "lanes" not in name and name not in ("no loop", "a part of a call")
    assert (pipeline.exchange is not None) == exchanged


def test_numbers_of_steps_are_those_of_nested_loops() -> None:
    variables = [Var(4), Var(3), Var(5)]
    number = number_of(variables)
    assert number.range() == (0, 59)
    assert values_at(number, variables) == {v: Expr.of(v) for v in variables}


def emitted(module: Any, target: TargetDescription = TARGET) -> str:
    EmitKernelsPass().run(module, PassContext.create(target, CompileOptions()))
    return str(module)


def test_what_the_nodes_say_is_done() -> None:
    text = str(staged("both past the registers"))
    plainly = emitted(mlir.parse(text))
    # Nothing may be on its way, and everything is waited for twice.
    eager = text.replace("pending = 1 : i64", "pending = 0 : i64")
    eager = eager.replace(
        '"polyblocks.barrier"() {scope = "block"} : () -> ()',
        '"polyblocks.barrier"() {scope = "block"} : () -> ()\n' * 2,
    )
    changed = emitted(mlir.parse(eager))
    assert eager.count("polyblocks.barrier") == 2 * text.count("polyblocks.barrier")
    waits = text.count("polyblocks.wait")
    assert plainly.count("copy.wait") == changed.count("copy.wait") == waits
    # Two for the exchange of sums.
    assert changed.count("gpu.barrier") == plainly.count("gpu.barrier") + waits + 2


@pytest.mark.parametrize(
    ("name", "given", "instead", "message"),
    [
        ("both past the registers", "memref<3x", "memref<4x",
         r"expected tiles \[3, 32, 32\] .* in shared memory, got \[4, 32, 32\]"),
        ("both past the registers", "masks = [0, 8, 16]", "masks = [0, 16, 8]",
         r"expected tiles .* \(1 into 2 by \[0, 8, 16\]\) .* got .* 2 by \[0, 16, 8\]"),
        ("both past the registers", 'kind = "fragments"', 'kind = "asynchronous"',
         "a copy of kind 'asynchronous' is from the default space to shared, not from shared to"),
        ("both past the registers", 'polyblocks.unit_steps = "unit"', "other",
         "expected multiplications by a unit"),
        ("both past the registers", "memref<2x16x32xf32", "memref<4x16x32xf32",
         r"expected an exchange of sums through \[2, 16, 32\] .*, got \[4, 16, 32\]"),
        ("both past the registers", "masks = [16, 8, 4, 16]", "masks = [4, 8, 16, 4]",
         r".* through .* \(1 into 2 by \[16, 8, 4, 16\]\), got .* by \[4, 8, 16, 4\]"),
    ],
)  # fmt: skip
def test_nodes_of_another_plan_are_refused(
    name: str, given: str, instead: str, message: str
) -> None:
    text = str(staged(name))
    assert given in text
    with pytest.raises(UnsupportedError, match=f"invalid schedule for 'k': {message}"):
        emitted(mlir.parse(text.replace(given, instead)))


def test_a_nest_without_nodes_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no copies of its operands; run stage-op"):
        emitted(mlir.parse(CASES["one tile"]))
    text = edited(CASES["one tile"], 0, steps=[[0, 16]])
    with pytest.raises(UnsupportedError, match="expected buffers and multiplications behind each"):
        emitted(mlir.parse(text))


def test_nodes_are_for_the_chips_that_they_were_made_for() -> None:
    module = staged("one tile")
    message = r"copies are asynchronous \[False, False\], got \[True, True\]"
    with pytest.raises(UnsupportedError, match=message):
        emitted(module, SYNCHRONOUS)


def test_units_without_steps_or_elements_multiply_nothing() -> None:
    text = emitted(staged("units without elements"), SYNCHRONOUS)
    # One unit of four; five tiles of two calls, of which the last one has steps for one.
    in_loop, written_out = 2 * 2, 2 * 2 + 1
    assert text.count('"llvm.imaginary.multiply"') == in_loop + written_out


def test_what_the_nodes_say_is_done_in_their_order() -> None:
    text = str(staged("several units"))
    barrier = '"polyblocks.barrier"() {scope = "block"} : () -> ()\n'
    twice = text.replace(barrier, barrier * 2)
    given, changed = (emitted(mlir.parse(each), SYNCHRONOUS) for each in (text, twice))
    # Those of the exchange are for each of two rows of units.
    more = changed.count("gpu.barrier") - given.count("gpu.barrier")
    assert more == text.count(barrier) + 2 > 4


def test_a_pipeline_needs_a_copy_to_every_stage() -> None:
    nest = nest_of(staged("one tile"))
    copies = [n for n in walk(nest.body) if isinstance(n, For) and n.copy == "asynchronous"]
    for loop in copies:
        loop.copy = ""
    with pytest.raises(StagedError, match="expected a copy to local"):
        plain(nest.body, [[0, 16]])


def test_an_exchange_has_one_store_of_the_sum() -> None:
    nest = nest_of(staged("both past the registers"))
    _, inside = parallel_shell(nest.body)
    last = next(n for n in reversed(inside) if isinstance(n, (For, Store)))
    nodes = last.body if isinstance(last, For) else inside
    nodes.append(next(n for n in nodes if isinstance(n, Store)))
    with pytest.raises(StagedError, match="expected a store of a sum to local.*, and one load"):
        exchange_of(inside[max(i for i, n in enumerate(inside) if isinstance(n, Alloca)) :])


def test_no_sums_are_exchanged_whose_columns_are_not_stored_together() -> None:
    text = str(staged("both past the registers"))
    backwards = text.replace("%arg2[%arg3, %arg4]", "%arg2[%arg3, -%arg4 + 7]")
    assert backwards != text
    with pytest.raises(UnsupportedError, match="expected no exchange of sums"):
        emitted(mlir.parse(backwards))


def test_barriers_are_between_the_copies_and_what_reads_them() -> None:
    nest = nest_of(staged("both past the registers"))
    order = [
        n.copy if isinstance(n, For) else type(n).__name__
        for n in walk(nest.body)
        if isinstance(n, Barrier) or (isinstance(n, For) and n.copy)
    ]
    first = order.index("fragments")
    assert order[:first] == ["asynchronous"] * 6 + ["Barrier"]

"""Which contractions a matrix unit of vectors computes, and of what their steps are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.support.gpu_target import gpu_target

from polyblocks import mlir
from polyblocks.affine.analysis.contractions import contraction_of
from polyblocks.affine.contraction.products.flat_product import products_of
from polyblocks.affine.contraction.products.units import Grouped, in_groups
from polyblocks.affine.contraction.tilings.choice import choose_tiling
from polyblocks.affine.contraction.tilings.tiling_cost import TilingCost
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import Load, Op
from polyblocks.options import CompileOptions
from polyblocks.target import GroupUnit, MatrixUnit, TargetDescription, TileUnit, VectorDot
from polyblocks_cpu.describe import describe

PRODUCT = """
func.func @main(%a: memref<64x{k}x{e}{layout}>, %b: memref<{k}x96x{e}>, %c: memref<64x96x{t}>) {{
  %z = arith.constant {zero} : {t}
  affine.for %i = 0 to 64 {{ affine.for %j = 0 to 96 {{
    %r = affine.for %k = 0 to {k} iter_args(%s = %z) -> ({t}) {{
      %x = affine.load %a[%i, %k] : memref<64x{k}x{e}{layout}>
      %y = affine.load %b[%k, %j] : memref<{k}x96x{e}>
      %xw = {left} %x : {e} to {t}
      %yw = {right} %y : {e} to {t}
      %p = {multiply} %xw, %yw {flags} : {t}
      %u = {add} %s, %p {flags} : {t}
      affine.yield %u : {t}
    }}
    affine.store %r, %c[%i, %j] : memref<64x96x{t}>
  }} }}
  return
}}
"""
SIGNED, UNSIGNED = "arith.extsi", "arith.extui"


def integers(left: str, right: str, k: int = 64, layout: str = "") -> str:
    return PRODUCT.format(
        k=k, e="i8", t="i32", zero="0", left=left, right=right, layout=layout,
        multiply="arith.muli", add="arith.addi", flags="",
    )  # fmt: skip


def floats(element: str = "bf16", flags: str = "fastmath<reassoc,contract>", k: int = 64) -> str:
    return PRODUCT.format(
        k=k, e=element, t="f32", zero="0.0", left="arith.extf", right="arith.extf", layout="",
        multiply="arith.mulf", add="arith.addf", flags=flags,
    )  # fmt: skip


def unit(first: str, second: str = "", accumulator: str = "int32", k: int = 4) -> MatrixUnit:
    return VectorDot("dot", (1, 16, k), first, accumulator, 1e12, second, 4)


def chip(*units: MatrixUnit) -> TargetDescription:
    return replace(describe(CompileOptions(arch="x86-64-v4")), matrix_units=units)


def groups(text: str, target: TargetDescription) -> list[Grouped]:
    module = mlir.parse(text)
    with module.context:
        sequence = reader.read(module)
        contraction = contraction_of(sequence.nests()[0].body)
        assert contraction is not None
        return in_groups(contraction, FlatViews(sequence), target)


def dot_of(grouped: Grouped) -> Op:
    (dot,) = (
        n
        for n in grouped.contraction.reduction.body
        if isinstance(n, Op) and n.name == "llvm.call_intrinsic"
    )
    return dot


@pytest.mark.parametrize(
    ("left", "right", "offsets"),
    [
        (SIGNED, SIGNED, [True, True]),
        (UNSIGNED, SIGNED, [False, False]),
        (SIGNED, UNSIGNED, [False, False]),
        (UNSIGNED, UNSIGNED, [True, True]),
    ],
)
def test_a_unit_of_both_signs_computes_all(left: str, right: str, offsets: list[bool]) -> None:
    found = groups(integers(left, right), chip(unit("uint8", "int8")))
    assert [g.offset is not None for g in found] == offsets
    assert all(g.contraction.reduction.trips == 16 for g in found)


@pytest.mark.parametrize(
    ("left", "right", "offsets"),
    [
        (SIGNED, SIGNED, [False, False]),
        (UNSIGNED, UNSIGNED, []),
        # The rows have the other sign: those of the program, or its columns.
        (UNSIGNED, SIGNED, [True]),
        (SIGNED, UNSIGNED, [True]),
    ],
)
def test_a_unit_of_one_sign(left: str, right: str, offsets: list[bool]) -> None:
    found = groups(integers(left, right), chip(unit("int8")))
    assert [g.offset is not None for g in found] == offsets


def test_the_best_unit_is_taken() -> None:
    others = unit("bfloat16", accumulator="float32", k=2), unit("uint8", "int8")
    plain = replace(unit("int8"), name="plain")
    assert {g.unit.name for g in groups(integers(SIGNED, SIGNED), chip(plain, *others))} == {
        "plain"
    }


@pytest.mark.parametrize(
    "other",
    [
        unit("float16", accumulator="float32", k=2),
        unit("float8_e4m3", accumulator="float32", k=4),
        unit("int8"),
    ],
)
def test_units_of_other_types(other: MatrixUnit) -> None:
    assert not groups(floats(), chip(other))


def test_sums_in_an_order_have_no_unit() -> None:
    target = chip(unit("bfloat16", accumulator="float32", k=2))
    assert groups(floats(), target)
    assert not groups(floats(flags=""), target)
    assert not groups(floats("f16"), target)


def test_neighbouring_steps_are_words_of_memory() -> None:
    for grouped in groups(integers(UNSIGNED, SIGNED), chip(unit("uint8", "int8"))):
        loads = [n for n in grouped.contraction.reduction.body if isinstance(n, Load)]
        (word,) = (n for n in loads if str(n.result.type) == "i32")
        assert len(loads) == 5
        assert dot_of(grouped).operands[1] is word.result


@pytest.mark.parametrize(
    ("k", "layout"),
    [(65, ""), (66, ""), (64, ", strided<[65, 1]>"), (64, ", strided<[64, 1], offset: 2>")],
)
def test_words_that_memory_does_not_have_are_put_together(k: int, layout: str) -> None:
    for grouped in groups(integers(UNSIGNED, SIGNED, k, layout), chip(unit("uint8", "int8"))):
        loads = [n for n in grouped.contraction.reduction.body if isinstance(n, Load)]
        assert all(str(n.result.type) == "i8" for n in loads)
        assert grouped.contraction.reduction.trips == -(-k // 4)
        # Nothing outside of memory is read: the last group has the last step several times.
        places = {n.index[1].range()[1] for n in loads if len(n.index) == 2}
        assert max(places, default=0) < 2 * k


def test_a_unit_has_its_own_rate() -> None:
    """Twice the operations in a call, begun as often as multiply-adds: half the time."""
    plain = chip()
    rate = plain.flops["float32"]
    seconds = []
    for target in (
        plain,
        chip(replace(unit("bfloat16", accumulator="float32", k=2), flops=2 * rate)),
    ):
        module = mlir.parse(floats(k=2048))
        with module.context:
            sequence = reader.read(module)
            contraction = contraction_of(sequence.nests()[0].body)
            assert contraction is not None
            costs = [
                TilingCost(p, target, 16)
                for p in products_of(contraction, FlatViews(sequence), target)
            ]
        best = [(cost, choose_tiling(cost)) for cost in costs]
        seconds.append(min(c.seconds(c.time(t)) or 0.0 for c, t in best if t is not None))
    assert 0.35 < seconds[1] / seconds[0] < 0.75


WARPS = gpu_target().matrix_units[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: unit("float7"), "expected a dtype, one of float8_e4m3, .*, got 'float7'"),
        (lambda: unit("bfloat16", accumulator="float32", k=4),
         r"expected 1 row and the 2 steps of a word for 'shape', got \(1, 16, 4\)"),
        (lambda: VectorDot("dot", (2, 16, 4), "int8", "int32"),
         r"expected 1 row and the 4 steps of a word for 'shape', got \(2, 16, 4\)"),
        (lambda: unit("int8", "bfloat16"),
         r"operands of fewer than 32 bits, as many of both, got \('int8', 'bfloat16'\)"),
        (lambda: unit("float32", accumulator="float32", k=1), "operands of fewer than 32 bits"),
        (lambda: unit("int8", accumulator="float16"), "int32 or float32 for 'acc.*got 'float16'"),
        (lambda: TileUnit("tile", (16, 16, 30), "int8", "int32", registers=8),
         r"expected steps in words of 4 for 'shape', got \(16, 16, 30\)"),
        (lambda: TileUnit("tile", (16, 16, 32), "int8", "int32", registers=2),
         "expected 3 'registers' at least, of two operands and sums, got 2"),
        # Units of warps, with fragments and without.
        (lambda: MatrixUnit("warp", (16, 0, 16), "float16", "float32"),
         r"matrix unit 'warp': expected rows, columns and steps .* got \(16, 0, 16\)"),
        (lambda: MatrixUnit("warp", (16, 8), "float16", "float32"), "1 of each at least, got"),
        (lambda: MatrixUnit("warp", (16, 8, 16), "half", "float32"), "a dtype, .*got 'half'"),
        (lambda: MatrixUnit("warp", (16, 8, 16), "float16", "single"), "a dtype.*got 'single'"),
        (lambda: GroupUnit("group", (64, 64, 16), "float16", "float32", group=0),
         "expected 1 warp at least for 'group', got 0"),
        (lambda: GroupUnit("group", (64, 64, 16), "float16", "float32", group=4,
                           accumulator_fragment=WARPS.sums),
         r"expected a fragment of the shape's \(64, 64\) elements, got \(16, 16\)"),
        (lambda: replace(WARPS, shape=(16, 16, 32)),
         r"expected fragments of the shape's \(16, 32\) elements, got \(16, 16\)"),
    ],
)  # fmt: skip
def test_units_of_no_such_shape_or_dtype_are_refused(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_unit_that_the_kind_of_target_does_not_use_is_refused() -> None:
    gpu = MatrixUnit("warp8", (8, 8, 4), "float16", "float32", 1e12)
    message = (
        "target 'cpu': matrix unit 'warp8' is a MatrixUnit; expected VectorDot or TileUnit, as the "
        "target is described without a multiprocessor"
    )
    with pytest.raises(ValueError, match=message):
        chip(gpu)

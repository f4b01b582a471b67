"""Contractions from accesses alone: their parts, what is none, and who asks for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
import torch
from tests.support.captured import captured
from tests.support.gpu_target import gpu_target
from torch.nn import functional

from polyblocks import mlir
from polyblocks.affine.analysis.contractions import Contraction, contraction_of
from polyblocks.affine.gpu.tiles.lane_plans import lane_plans, refusal
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import Nest, Sequence
from polyblocks.affine.naming.kinds import kind
from polyblocks.options import CompileOptions
from polyblocks.passes.base import NestPass
from polyblocks.passes.fuse import fuse_tiles
from polyblocks.passes.rules import steps as rule_steps
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import PassContext, Pipeline

r = torch.randn

#: Extents of the variables of the batch, of the rows and of the columns.
Sides = tuple[list[int], list[int], list[int]]
Inputs = Callable[[], list[torch.Tensor]]


def sides(parts: Contraction) -> Sides:
    """What the variables of a contraction are called here: by their extents."""
    batch, rows, columns = (
        sorted(v.extent for v in side) for side in (parts.batch, parts.rows, parts.columns)
    )
    return batch, rows, columns


# Programs of a framework


@dataclass(frozen=True)
class Look(NestPass):
    """Shows the nests to ``see`` where it stands in the pipeline."""

    see: Callable[[Nest], None] = field(compare=False)
    name: ClassVar[str] = "look"

    def transform(self, sequence: Sequence, context: object) -> None:
        """Look at all nests."""
        for nest in sequence.nests():
            self.see(nest)


def look(
    function: Callable[..., Any],
    inputs: list[torch.Tensor],
    before: str,
    see: Callable[[Nest], None],
    without: tuple[str, ...] = (),
) -> None:
    """Compile a program for a GPU up to a pass, some left out, and look at its nests then."""
    target, options = gpu_target(), CompileOptions()
    stages = standard_pipeline(target, options).stages
    passes = list(rule_steps(stages["S3"]))
    end = next(i for i, p in enumerate(passes) if p.name == before)
    kept = [p for p in passes[:end] if p.name not in without]
    Pipeline({**stages, "S3": [*kept, Look(see)]}).run(
        captured(function, inputs).module, PassContext.create(target, options)
    )


def contractions(
    function: Callable[..., Any], inputs: list[torch.Tensor], without: tuple[str, ...] = ()
) -> list[Contraction]:
    """The contractions of a program when its producers have been inlined, in program order."""
    found: list[Contraction | None] = []
    look(
        function,
        inputs,
        "fuse-tiles",
        lambda nest: found.append(contraction_of(nest.body)),
        without,
    )
    return [parts for parts in found if parts is not None]


def distances(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Squared distances of all rows of both."""
    return ((a[:, None] - b[None]) ** 2).sum(-1)


PROGRAMS: dict[str, tuple[Callable[..., Any], Inputs, list[Sides]]] = {
    "matmul": (torch.matmul, lambda: [r(65, 97), r(97, 43)], [([], [65], [43])]),
    "rows of both": (lambda a, b: a @ b.t(), lambda: [r(33, 88), r(61, 88)], [([], [33], [61])]),
    "few steps": (torch.matmul, lambda: [r(64, 16), r(16, 47)], [([], [64], [47])]),
    "two steps": (torch.matmul, lambda: [r(64, 2), r(2, 47)], [([], [64], [47])]),
    "batched matmul": (
        torch.bmm,
        lambda: [r(3, 40, 81), r(3, 81, 65)],
        [([3], [40], [65])],
    ),
    "integers": (
        lambda a, b: (a[:, :, None] * b[None]).sum(1),
        lambda: [torch.randint(0, 9, (41, 70)), torch.randint(0, 9, (70, 50))],
        [([], [41], [50])],
    ),
    "halves": (torch.matmul, lambda: [r(63, 96).half(), r(96, 65).half()], [([], [63], [65])]),
    "linear and relu": (
        lambda x, w, b: torch.relu(functional.linear(x, w, b)),
        lambda: [r(33, 96), r(49, 96), r(49)],
        [([], [33], [49])],
    ),
    "gated input": (
        lambda x, w: (x * torch.sigmoid(x)) @ w,
        lambda: [r(33, 96), r(96, 49)],
        [([], [33], [49])],
    ),
    # Channels are rows: what comes out is in the order of pixels.
    "conv2d 3x3": (
        functional.conv2d,
        lambda: [r(2, 40, 13, 15), r(21, 40, 3, 3)],
        [([], [21], [2, 11, 13])],
    ),
    "conv2d 3x3 of three channels": (
        functional.conv2d,
        lambda: [r(2, 3, 13, 15), r(21, 3, 3, 3)],
        [([], [21], [2, 11, 13])],
    ),
    "conv2d 3x3, padded": (
        lambda x, w: functional.conv2d(x, w, padding=1),
        lambda: [r(2, 40, 13, 15), r(21, 40, 3, 3)],
        [([], [21], [2, 13, 15])],
    ),
    "conv2d 7x7, strided": (
        lambda x, w: functional.conv2d(x, w, stride=2),
        lambda: [r(2, 3, 33, 37), r(21, 3, 7, 7)],
        [([], [21], [2, 14, 16])],
    ),
    "conv2d 1x1": (
        functional.conv2d,
        lambda: [r(2, 40, 13, 15), r(21, 40, 1, 1)],
        [([], [21], [2, 13, 15])],
    ),
    "distances": (distances, lambda: [r(41, 70), r(53, 70)], [([], [41], [53])]),
    "distances in the plane": (distances, lambda: [r(41, 2), r(53, 2)], [([], [41], [53])]),
    "k-means": (
        lambda a, b: distances(a, b).argmin(1),
        lambda: [r(41, 70), r(53, 70)],
        [([], [41], [53])],
    ),
    "min-plus": (
        lambda a, b: (a[:, :, None] + b[None]).amin(1),
        lambda: [r(41, 70), r(70, 53)],
        [([], [41], [53])],
    ),
    "attention": (
        functional.scaled_dot_product_attention,
        lambda: [r(2, 3, 51, 64), r(2, 3, 53, 64), r(2, 3, 53, 65)],
        [([6], [51], [53]), ([2, 3], [51], [65])],
    ),
    "matvec": (torch.mv, lambda: [r(64, 96), r(96)], []),
    "dot": (lambda a, b: (a * b).sum(), lambda: [r(999), r(999)], []),
    "dots of rows": (lambda a, b: (a * b).sum(1), lambda: [r(40, 97), r(40, 97)], []),
    "outer product": (lambda a, b: a[:, None] * b[None], lambda: [r(65), r(43)], []),
    "two outer products": (
        lambda a, b, c, d: a[:, None] * b[None] + c[:, None] * d[None],
        lambda: [r(65), r(43), r(65), r(43)],
        [],
    ),
    "depthwise convolution": (
        lambda x, w: functional.conv2d(x, w, groups=20),
        lambda: [r(2, 20, 13, 15), r(20, 1, 3, 3)],
        [],
    ),
    "sum": (lambda a: a.sum(-1), lambda: [r(40, 50, 97)], []),
    "softmax": (lambda a: torch.softmax(a, -1), lambda: [r(40, 97)], []),
    "stencil": (lambda a: a[:-2, 1:] + a[1:-1, :-1] + a[2:, 1:], lambda: [r(41, 70)], []),
    "three operands, two at a time": (
        lambda a, b, c: (a[:, None, None] * b[None, :, None] * c[None, None]).sum(-1),
        lambda: [r(11, 70), r(13, 70), r(17, 70)],
        [([], [11, 13], [17])],
    ),
}


#: Programs whose contractions become parts of other nests: of a tile with the padding, and a
#: product of three. With what is made of them, distances would be 41 tiles: the chip would idle.
FUSED = {"conv2d 3x3, padded", "three operands, two at a time"}


@pytest.mark.parametrize("rolled", [False, True], ids=["as compiled", "before unrolling"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, rolled: bool) -> None:
    function, inputs, expected = PROGRAMS[name]
    without = ("unroll-reductions",) if rolled else ()
    found = contractions(function, inputs(), without)
    assert [sides(parts) for parts in found] == expected
    for parts in found:
        assert {o.of_rows for o in parts.operands} == {True, False}
        assert bool(parts.reduction.loops) or not rolled


# Nests by hand

_ARGUMENTS = ", ".join(
    [
        *(f"%{name}: memref<64x64xf32>" for name in "abcd"),
        *(f"%{name}: memref<64xf32>" for name in "xyz"),
        "%t: memref<8x64x64xf32>",
        "%u: memref<8x64x64xf32>",
        "%v: memref<8x64x64xf32>",
        "%p: memref<64xindex>",
    ]
)
_TYPES = dict.fromkeys("abcd", "memref<64x64xf32>")
_TYPES |= dict.fromkeys("xyz", "memref<64xf32>") | dict.fromkeys("tuv", "memref<8x64x64xf32>")


def load(name: str, place: str) -> str:
    """``%name`` of the element ``place`` of the buffer that the name begins with."""
    return f"%{name} = affine.load %{name[0]}[{place}] : {_TYPES[name[0]]}"


def store(value: str, buffer: str, place: str) -> str:
    return f"affine.store %{value}, %{buffer}[{place}] : {_TYPES[buffer]}"


def op(name: str, result: str, *operands: str) -> str:
    return f"%{result} = arith.{name} {', '.join('%' + o for o in operands)} : f32"


def loop(var: str, extent: int, lines: list[str], to: str = "") -> list[str]:
    return [f"affine.for %{var} = 0 to {to or extent} {{", *lines, "}"]


def total(extent: int, lines: list[str], name: str = "s", to: str = "") -> list[str]:
    """``%s``: a loop over k that carries ``%acc`` on to what ``%next`` is at its end."""
    head = f"%{name} = affine.for %k = 0 to {to or extent} iter_args(%acc = %zero) -> (f32) {{"
    return [head, *lines, "affine.yield %next : f32", "}"]


def around(lines: list[str], **extents: int) -> list[str]:
    for var, extent in reversed(extents.items()):
        lines = loop(var, extent, lines)
    return lines


def read(lines: list[str]) -> Nest:
    """The nest of a program that has one."""
    body = "\n".join(["%zero = arith.constant 0.0 : f32", *lines, "return"])
    module = mlir.parse(f"func.func @main({_ARGUMENTS}) {{\n{body}\n}}")
    with module.context:
        (nest,) = reader.read(module).nests()
    return nest


def steps(first: str, second: str) -> list[str]:
    """A step that adds the product of an element of ``%a`` and one of ``%b``."""
    product = [op("mulf", "m", "a0", "b0"), op("addf", "next", "acc", "m")]
    return [load("a0", first), load("b0", second), *product]


PRODUCT = [*total(33, steps("%i, %k", "%k, %j")), store("s", "c", "%i, %j")]
SQUARES = [
    *(load("a0", "%i, %k"), load("b0", "%j, %k"), op("subf", "e", "a0", "b0")),
    *(op("mulf", "m", "e", "e"), op("addf", "next", "acc", "m")),
]
#: Two taps of a window, added one after the other to what the loop carries.
TAPS = [
    *(load("a0", "%i, %k"), load("b0", "%k, %j"), op("mulf", "m", "a0", "b0")),
    *(load("a1", "%i, %k + 1"), load("b1", "%k + 1, %j"), op("mulf", "n", "a1", "b1")),
    *(op("addf", "o", "acc", "m"), op("addf", "next", "o", "n")),
]
#: Three steps of a product, unrolled; a bias comes first, and the last sum has its operands
#: exchanged.
UNROLLED = [
    load("x0", "%j"),
    *(line for k in range(3) for line in (
        load(f"a{k}", f"%i, {k}"), load(f"b{k}", f"{k}, %j"), op("mulf", f"m{k}", f"a{k}", f"b{k}")
    )),
    *(op("addf", "r", "x0", "m0"), op("addf", "q", "r", "m1"), op("addf", "s", "m2", "q")),
]  # fmt: skip
BATCHED = [
    *(load("t0", "%h, %i, %k"), load("u0", "%h, %k, %j"), load("x0", "%j")),
    *(op("mulf", "e", "t0", "u0"), op("mulf", "m", "e", "x0"), op("addf", "next", "acc", "m")),
]
LATEST = [
    *(load("a0", "%i, %k"), load("b0", "%j, %k"), op("mulf", "m", "a0", "b0")),
    *("%more = arith.cmpf ogt, %m, %acc : f32", "%next = arith.select %more, %m, %acc : f32"),
]

#: Name -> nest, its sides, its combiners.
POSITIVE: dict[str, tuple[list[str], Sides, list[str] | None]] = {
    "product": (around(PRODUCT, i=35, j=37), ([], [35], [37]), ["arith.addf"]),
    "columns outside": (around(PRODUCT, j=37, i=35), ([], [35], [37]), ["arith.addf"]),
    "squares": (
        around([*total(33, SQUARES), store("s", "c", "%i, %j")], i=35, j=37),
        ([], [35], [37]),
        ["arith.addf"],
    ),
    "window": (
        around([*total(33, TAPS), store("s", "c", "%i, %j")], i=35, j=37),
        ([], [35], [37]),
        ["arith.addf"],
    ),
    "unrolled": (
        around([*UNROLLED, store("s", "c", "%i, %j")], i=35, j=37),
        ([], [35], [37]),
        ["arith.addf"],
    ),
    # The scale knows nothing of the batch; it goes with the columns all the same.
    "batch": (
        around([*total(33, BATCHED), store("s", "v", "%h, %i, %j")], h=5, i=35, j=37),
        ([5], [35], [37]),
        ["arith.addf"],
    ),
    # The batch is what both are moved by; a variable that moves none belongs to it.
    "repeated": (
        around([*total(33, steps("%i, %k", "%k, %j")), store("s", "v", "%h, %i, %j")],
               h=5, i=35, j=37),
        ([5], [35], [37]),
        ["arith.addf"],
    ),
    "no combiner": (
        around([*total(33, LATEST), store("s", "c", "%i, %j")], i=35, j=37),
        ([], [35], [37]),
        None,
    ),
    "gathered bias": (
        around([
            *total(33, steps("%i, %k", "%k, %j")),
            *("%at = affine.load %p[%j] : memref<64xindex>",
              "%bias = memref.load %x[%at] : memref<64xf32>"),
            *(op("addf", "biased", "s", "bias"), store("biased", "c", "%i, %j")),
        ], i=35, j=37),
        ([], [35], [37]),
        ["arith.addf"],
    ),
}  # fmt: skip


def unlike(second: list[str]) -> list[str]:
    """Two unrolled steps of a product, the second one of which is given."""
    first = [load("a0", "%i, 0"), load("b0", "0, %j"), op("mulf", "m", "a0", "b0")]
    return around(
        [*first, *second, op("addf", "s", "m", "n"), store("s", "c", "%i, %j")], i=35, j=37
    )


def summed(lines: list[str], to: str = "") -> list[str]:
    """All of what a loop over k adds up, for rows and columns."""
    return around([*total(33, lines, to=to), store("s", "c", "%i, %j")], i=35, j=37)


_BOTH = [load("a1", "%i, 1"), load("b1", "1, %j")]
_EXP = ["%e = math.exp %d0 : f32", op("addf", "next", "acc", "e")]
NEGATIVE = {
    "stencil": around(
        [load("a0", "%i, %j"), load("a1", "%i, %j + 1"), load("a2", "%i + 1, %j"),
         load("a3", "%i + 1, %j + 1"), op("addf", "e", "a0", "a1"), op("addf", "f", "e", "a2"),
         op("addf", "s", "f", "a3"), store("s", "c", "%i, %j")],
        i=35, j=37,
    ),
    "sum of one array": around(
        [*total(33, [load("t0", "%i, %j, %k"), op("addf", "next", "acc", "t0")]),
         store("s", "c", "%i, %j")],
        i=5, j=37,
    ),
    "softmax sum": around(
        [*total(33, [load("t0", "%h, %i, %k"), load("c0", "%h, %i"), op("subf", "d0", "t0", "c0"),
                     *_EXP]),
         store("s", "d", "%h, %i")],
        h=5, i=35,
    ),
    "matrix and vector": around(
        [*total(33, [load("a0", "%i, %k"), load("x0", "%k"), op("mulf", "m", "a0", "x0"),
                     op("addf", "next", "acc", "m")]),
         store("s", "y", "%i")],
        i=35,
    ),
    "elements of a batch": summed(
        [load("t0", "0, %i, %j"), load("u0", "%k mod 8, %i, %j"), op("mulf", "m", "t0", "u0"),
         op("addf", "next", "acc", "m")]
    ),
    "three sides": around(
        [*total(33, [load("a0", "%h, %k"), load("b0", "%i, %k"), load("d0", "%j, %k"),
                     op("mulf", "e", "a0", "b0"), op("mulf", "m", "e", "d0"),
                     op("addf", "next", "acc", "m")]),
         store("s", "v", "%h, %i, %j")],
        h=5, i=35, j=37,
    ),
    "columns that steps do not move": summed(steps("%i, %k", "0, %j")),
    "rows that steps do not move": summed(steps("%i, 0", "%k, %j")),
    "a store inside": summed([*steps("%i, %k", "%k, %j"), store("m", "v", "0, %i, %j")]),
    "bounded steps": summed(
        steps("%i, %k", "%k, %j"), to="affine_map<(d0) -> (d0)>(%i)"
    ),
    "bounded columns": loop(
        "i", 35, loop("j", 37, PRODUCT, to="affine_map<(d0) -> (d0)>(%i)")
    ),
    "a loop that is not independent": around(
        [*total(33, steps("%i, %k", "%k, %j")), store("s", "x", "%j")], i=35, j=37
    ),
    "operands that are stored": around(
        [*total(33, steps("%i, %k", "%k, %j")), store("s", "a", "%i, %j")], i=35, j=37
    ),
    "operands at run-time places": summed(
        ["%at = affine.load %p[%k] : memref<64xindex>", load("a0", "%i, %k"),
         "%b0 = memref.load %b[%at, %j] : memref<64x64xf32>", op("mulf", "m", "a0", "b0"),
         op("addf", "next", "acc", "m")]
    ),
    "stored at run-time places": around(
        [*total(33, steps("%i, %k", "%k, %j")), "%at = affine.load %p[%j] : memref<64xindex>",
         "memref.store %s, %c[%i, %at] : memref<64x64xf32>"],
        i=35, j=37,
    ),
    "two reductions": around(
        [*total(33, steps("%i, %k", "%k, %j")),
         *total(31, steps("%i, %k", "%k, %j"), name="r"), op("addf", "q", "s", "r"),
         store("q", "c", "%i, %j")],
        i=35, j=37,
    ),
    "terms of other operations": unlike([*_BOTH, op("divf", "n", "a1", "b1")]),
    "terms of other arrays": unlike(
        [load("d1", "%i, 1"), load("b1", "1, %j"), op("mulf", "n", "d1", "b1")]
    ),
    "terms that share their rows": unlike([load("b1", "1, %j"), op("mulf", "n", "a0", "b1")]),
}  # fmt: skip


@pytest.mark.parametrize("name", POSITIVE)
def test_nests_that_are(name: str) -> None:
    lines, expected, combiners = POSITIVE[name]
    parts = contraction_of(read(lines).body)
    assert parts is not None
    assert sides(parts) == expected
    found = parts.combiners
    assert (None if found is None else [o.name for o in found]) == combiners


@pytest.mark.parametrize("name", NEGATIVE)
def test_nests_that_are_not(name: str) -> None:
    nest = read(NEGATIVE[name])
    assert contraction_of(nest.body) is None
    assert kind(nest) != "contraction"


#: Of each operand whether rows move it, and whether steps of a loop are neighbours in memory.
OPERANDS = {
    "product": [(True, True), (False, False)],
    "columns outside": [(True, True), (False, False)],
    "squares": [(True, True), (False, True)],
    "window": [(True, True), (False, False)] * 2,
    "unrolled": [(True, False), (False, False)] * 3,
    "batch": [(True, True), (False, False), (False, False)],
}


@pytest.mark.parametrize("name", OPERANDS)
def test_operands(name: str) -> None:
    parts = contraction_of(read(POSITIVE[name][0]).body)
    assert parts is not None
    looped = bool(parts.reduction.loops)
    found = [(o.of_rows, looped and parts.steps_first(o)) for o in parts.operands]
    assert found == OPERANDS[name]


def test_steps_and_what_is_around_them() -> None:
    lines = [load("d0", "%i, %j"), op("mulf", "f", "d0", "d0"), *PRODUCT[:-1]]
    lines += [op("divf", "q", "s", "f"), store("q", "c", "%i, %j")]
    nest = read(around(lines, i=35, j=37))
    parts = contraction_of(nest.body)
    assert parts is not None
    assert parts.reduction.trips == 33
    assert [v.extent for v in parts.reduction.order] == [33]
    assert {type(n).__name__ for n in parts.before} == {"Load", "Op"}
    assert [type(n).__name__ for n in parts.reduction.body] == ["Load", "Load", "Op", "Op"]
    assert [type(n).__name__ for n in parts.after] == ["Op", "Store"]
    # What is loaded once for an element is no operand.
    assert len(parts.operands) == 2


def test_an_unrolled_reduction_ends_with_its_last_term() -> None:
    lines = [*UNROLLED, op("mulf", "q2", "s", "s"), store("q2", "c", "%i, %j")]
    parts = contraction_of(read(around(lines, i=35, j=37)).body)
    assert parts is not None
    assert (parts.reduction.loops, parts.before) == ([], [])
    assert parts.combiners == [parts.reduction.body[-1]]
    assert [type(n).__name__ for n in parts.after] == ["Op", "Store"]
    # The bias is no term that steps make.
    assert len(parts.operands) == 6


@pytest.mark.parametrize(
    ("name", "expected"),
    [("product", True), ("squares", True), ("window", False), ("no combiner", True),
     ("batch", False), ("unrolled", False)],
)  # fmt: skip
def test_steps_that_multiply_once(name: str, expected: bool) -> None:
    parts = contraction_of(read(POSITIVE[name][0]).body)
    assert parts is not None
    assert parts.multiplies_once == expected


# Who asks


def answers(nest: Nest) -> tuple[str, str]:
    """What classify-nests and the mapping to blocks of threads say of a nest."""
    chip = gpu_target().multiprocessor
    assert chip is not None
    tiled = any(lane_plans(nest, chip))
    parts = contraction_of(nest.body)
    refused = None if parts is None else refusal(parts)
    assert not (tiled and refused)
    return kind(nest), "contraction" if tiled or refused else "none"


@pytest.mark.parametrize("name", [*POSITIVE, *NEGATIVE])
def test_the_kind_and_the_mapping_agree_on_nests_by_hand(name: str) -> None:
    given = POSITIVE[name][0] if name in POSITIVE else NEGATIVE[name]
    named, mapped = answers(read(given))
    assert (named == "contraction") == (mapped == "contraction") == (name in POSITIVE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kind_and_the_mapping_agree_on_programs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the mapping asks, many passes after the kind was set."""
    # Of small operands tiles would have whole copies.
    monkeypatch.setattr(fuse_tiles, "worth_copies", lambda stages: [])
    function, inputs, expected = PROGRAMS[name]
    found: list[tuple[str, str, str]] = []
    look(
        function, inputs(), "choose-kernels", lambda nest: found.append((nest.kind, *answers(nest)))
    )
    assert all(early == late for early, late, _ in found if "contraction" in {early, late})
    assert all((late == "contraction") == (mapped == "contraction") for _, late, mapped in found)
    left = [] if name in FUSED else expected
    assert sum(late == "contraction" for _, late, _ in found) == len(left)


_VARIABLE = ["%w = arith.index_cast %j : index to i32", "%f = arith.sitofp %w : i32 to f32"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (POSITIVE["product"][0], None),
        (POSITIVE["gathered bias"][0], None),
        (POSITIVE["unrolled"][0], "its reduction is unrolled"),
        (
            summed([*steps("%i, %k", "%k, %j")[:-1], *_VARIABLE, op("mulf", "g", "m", "f"),
                    op("addf", "next", "acc", "g")]),
            "it computes with loop variables",
        ),
        (
            around([*PRODUCT[:-1], *_VARIABLE, op("mulf", "g", "s", "f"),
                    store("g", "c", "%i, %j")], i=35, j=37),
            None,
        ),
    ],
    ids=["product", "gathered bias", "unrolled", "variable in a step", "variable afterwards"],
)  # fmt: skip
def test_what_has_no_tiles(lines: list[str], expected: str | None) -> None:
    parts = contraction_of(read(lines).body)
    assert parts is not None
    reason = refusal(parts)
    assert reason is None if expected is None else (reason or "").startswith(expected)

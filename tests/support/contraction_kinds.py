"""Random sums of products: matrix products, einsums and convolutions, each with its extents."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

Array = torch.Tensor
Shape = tuple[int, ...]

PRIMES = (2, 3, 5, 7, 11, 13, 17, 31, 61, 97, 127, 193, 257, 293)
POWERS = (2, 4, 8, 16, 32, 64, 128, 256)
MOST = 300
#: Floating-point operations of one contraction.
MOST_FLOPS = 200_000_000
#: Elements of its operands and its result together.
MOST_ELEMENTS = 4_000_000


@dataclass(frozen=True)
class Contraction:
    """A sum of products of two operands.

    Attributes:
        kind: ``matmul``, ``conv2d`` and the like.
        shapes: of the two operands, and of what is added to the result if ``run`` takes a third.
        result: shape of the result.
        text: the call, with ``{0}`` for the first operand.
        run: what makes the result.
        terms: products that are summed for one element; for transposed convolutions the most.
        flops: two for each product of the whole.
        convolution: whether the first operand is an image and the second its filters.
    """

    kind: str
    shapes: tuple[Shape, ...]
    result: Shape
    text: str
    run: Callable[..., Array]
    terms: int
    flops: int
    convolution: bool = False


class Extents:
    """Extents of dimensions: log-uniform, and often one, a prime or a power of two."""

    def __init__(self, rng: random.Random, empty: bool, integers: bool) -> None:
        self.rng = rng
        #: Whether one of the extents that are still to be drawn may be 0.
        self.empty = empty
        #: Of those eager mode has no dilated convolutions.
        self.dilations = (1,) if integers else (1, 1, 2, 3)

    def __call__(self, most: int = MOST) -> int:
        """An extent from 1 to ``most``."""
        rng = self.rng
        if self.empty and rng.random() < 0.3:
            self.empty = False
            return 0
        draw = rng.random()
        if draw < 0.08:
            return 1
        if draw < 0.35:
            listed = PRIMES if draw < 0.2 else POWERS
            return rng.choice([n for n in listed if n <= most] or [1])
        return round(math.exp(rng.uniform(0.0, math.log(most))))


def draw(rng: random.Random, kind: str, empty: bool, integers: bool) -> Contraction:
    """A contraction of a kind, within the bounds; some are the largest of a number of draws.

    Args:
        rng: what it is drawn with.
        kind: one of ``KINDS``.
        empty: whether one extent may be 0.
        integers: whether it is one that eager mode has for integers.
    """
    tries = rng.choice([1, 2, 8, 32])
    drawn: list[Contraction] = []
    while len(drawn) < tries:
        try:
            new = KINDS[kind](Extents(rng, empty, integers))
        except (RuntimeError, ValueError):
            # The window does not fit in what is left of the image.
            continue
        elements = sum(map(math.prod, (*new.shapes, new.result)))
        if new.flops <= MOST_FLOPS and elements <= MOST_ELEMENTS:
            drawn.append(new)
    return max(drawn, key=lambda contraction: contraction.flops)


def _made(
    kind: str,
    shapes: Sequence[Shape],
    text: str,
    run: Callable[..., Array],
    terms: int,
    *,
    flops: int | None = None,
    convolution: bool = False,
) -> Contraction:
    result = tuple(run(*[torch.empty(shape, device="meta") for shape in shapes]).shape)
    if flops is None:
        flops = 2 * terms * math.prod(result)
    return Contraction(kind, tuple(shapes), result, text, run, terms, flops, convolution)


def _matmul(extent: Extents) -> Contraction:
    m, k, n = extent(), extent(), extent()
    form = extent.rng.choice(["@", "@", "linear", "linear and bias"])
    if form == "@":
        return _made("matmul", [(m, k), (k, n)], "{0} @ {1}", torch.matmul, k)
    shapes = [(m, k), (n, k), (n,)][: 3 if "bias" in form else 2]
    names = ", ".join(f"{{{i}}}" for i in range(len(shapes)))
    return _made("matmul", shapes, f"F.linear({names})", F.linear, k)


def _batched(extent: Extents) -> Contraction:
    rng = extent.rng
    m, k, n = extent(), extent(), extent()
    batch = tuple(extent(24) for _ in range(rng.choice([1, 1, 2])))
    left, right = (_broadcast(rng, batch) for _ in range(2))
    shapes = [(*left, m, k), (*right, k, n)]
    return _made("batched matmul", shapes, "{0} @ {1}", torch.matmul, k)


def _broadcast(rng: random.Random, batch: Shape) -> Shape:
    """The batch, now and then without its first dimensions or with one element in their place."""
    draw = rng.random()
    if draw < 0.15:
        return batch[rng.randrange(1, len(batch) + 1) :]
    if draw < 0.3:
        return tuple(rng.choice([1, n]) for n in batch)
    return batch


def _matvec(extent: Extents) -> Contraction:
    m, k = extent(), extent()
    batch = (extent(24),)
    shapes: list[Shape] = extent.rng.choice(
        [[(m, k), (k,)], [(k,), (k, m)], [(k,), (k,)], [(*batch, m, k), (k,)]]
    )
    return _made("matvec", shapes, "{0} @ {1}", torch.matmul, k)


def _outer(extent: Extents) -> Contraction:
    m, n = extent(), extent()
    if extent.rng.random() < 0.5:
        return _made("outer", [(m,), (n,)], "torch.outer({0}, {1})", torch.outer, 1)
    return _made("outer", [(m, 1), (1, n)], "{0} @ {1}", torch.matmul, 1)


def _einsum(extent: Extents) -> Contraction:
    rng = extent.rng
    counts = {
        "batch": rng.choice([0, 0, 1, 2]),
        "rows": rng.choice([0, 1, 1, 2]),
        "columns": rng.choice([0, 1, 1, 2]),
        "reduction": rng.choice([0, 1, 1, 1, 2]),
    }
    letters = iter(rng.sample("abcdefghijklmnopqrstuvwxyz", 8))
    sizes: dict[str, int] = {}
    groups: dict[str, list[str]] = {}
    for name, count in counts.items():
        groups[name] = list(itertools.islice(letters, count))
        most = 24 if name == "batch" or count > 1 else MOST
        sizes.update({letter: extent(most) for letter in groups[name]})
    operands = [
        _shuffled(rng, groups["batch"] + groups[side] + groups["reduction"])
        for side in ("rows", "columns")
    ]
    result = _shuffled(rng, groups["batch"] + groups["rows"] + groups["columns"])
    equation = ",".join(operands) + "->" + result
    return _made(
        "einsum",
        [tuple(sizes[letter] for letter in operand) for operand in operands],
        f"torch.einsum({equation!r}, {{0}}, {{1}})",
        lambda a, b: torch.einsum(equation, a, b),
        math.prod(sizes[letter] for letter in groups["reduction"]),
    )


def _shuffled(rng: random.Random, letters: list[str]) -> str:
    return "".join(rng.sample(letters, len(letters)))


def _convolution(extent: Extents, rank: int, transposed: bool) -> Contraction:
    rng = extent.rng
    batch = extent(8)
    groups, inner, outer = _channels(extent)
    image = tuple(extent((MOST, 100, 24)[rank - 1]) for _ in range(rank))
    window = tuple(rng.choice([1, 2, 3, 3, 4, 5, 7][: 8 - rank]) for _ in range(rank))
    plain = rng.random() < 0.4
    stride = tuple(1 if plain else rng.choice([1, 1, 2, 3]) for _ in range(rank))
    dilation = tuple(1 if plain else rng.choice(extent.dilations) for _ in range(rank))
    padding = tuple(
        rng.choice([0, d * (k - 1) // 2, rng.randrange(d * (k - 1) + 1)])
        for k, d in zip(window, dilation, strict=True)
    )
    filters = (groups * inner, outer) if transposed else (groups * outer, inner)
    bias = [(groups * outer,)] if rng.random() < 0.3 else []
    shapes = [(batch, groups * inner, *image), (*filters, *window), *bias]
    name = f"conv{'_transpose' if transposed else ''}{rank}d"
    function = getattr(F, name)
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    taps = math.prod(window)
    flops = None
    if transposed:
        # As much is cut off at the borders as padding says, and counted here.
        flops = 2 * math.prod(shapes[0]) * outer * taps
        taps = math.prod(math.ceil(k / s) for k, s in zip(window, stride, strict=True))
        more = tuple(
            rng.randrange(max(s, d)) for s, d in zip(stride, dilation, strict=True)
        )  # fmt: skip
        settings["output_padding"] = more if rng.random() < 0.3 else (0,) * rank
    names = ", ".join(f"{{{i}}}" for i in range(len(shapes)))
    given = ", ".join(f"{key}={value}" for key, value in settings.items())
    return _made(
        name,
        shapes,
        f"F.{name}({names}, {given})",
        lambda x, w, b=None: function(x, w, b, **settings),
        inner * taps,
        flops=flops,
        convolution=True,
    )


def _channels(extent: Extents) -> tuple[int, int, int]:
    """Groups, and channels of a group in the image and in the result."""
    rng = extent.rng
    draw = rng.random()
    if draw < 0.55:
        return 1, extent(128), extent(128)
    if draw < 0.8:  # depthwise
        return extent(128), 1, rng.choice([1, 1, 1, 2, 3])
    return rng.choice([2, 3, 4, 8]), extent(32), extent(32)


def _convolutions(rank: int, transposed: bool) -> Callable[[Extents], Contraction]:
    return lambda extent: _convolution(extent, rank, transposed)


KINDS: dict[str, Callable[[Extents], Contraction]] = {
    "matmul": _matmul,
    "batched matmul": _batched,
    "matvec": _matvec,
    "outer": _outer,
    "einsum": _einsum,
    "conv1d": _convolutions(1, False),
    "conv2d": _convolutions(2, False),
    "conv3d": _convolutions(3, False),
    "conv_transpose1d": _convolutions(1, True),
    "conv_transpose2d": _convolutions(2, True),
    "conv_transpose3d": _convolutions(3, True),
}

#: How often each kind is drawn.
WEIGHTS = {
    "matmul": 18,
    "batched matmul": 11,
    "matvec": 8,
    "outer": 4,
    "einsum": 22,
    "conv1d": 8,
    "conv2d": 14,
    "conv3d": 5,
    "conv_transpose1d": 3,
    "conv_transpose2d": 5,
    "conv_transpose3d": 2,
}

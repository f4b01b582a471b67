"""The cases, each large for timing and small for checking. NumPy only."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.table import TOLERANCE, Arrays, Case, elements, halves, normal, uniform

#: Bytes of the largest second-level cache that the sizes are made for: inputs and outputs are
#: several times as large, so that hardly anything of a call is left there for the next one.
L2_BYTES = 50 << 20

Shape = tuple[int, ...]
#: Rows, columns and steps of a product.
Extents = tuple[int, int, int]


@dataclass(frozen=True)
class Pair:
    """One function at two sizes.

    Attributes:
        large: what is timed.
        small: what is checked and simulated; its sizes are no multiples of anything.
        shapes: of the arguments by size, ``large`` and ``small``; none if only the arguments
            themselves tell.
        dtype: of all arguments.
        group: what the names for files begin with.
        peers: those that compute it; none: PyTorch and its compiler.
    """

    large: Case
    small: Case
    shapes: dict[str, tuple[Shape, ...]] = field(default_factory=dict)
    dtype: str = "float32"
    group: str = ""
    peers: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """The name for files."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.group} {self.large.name}".lower()).strip("-")


def _pair(
    operation: str,
    program: str,
    large: Shape,
    small: Shape,
    more: Callable[[Shape], tuple[Shape, ...]] = lambda shape: (),
    result: Callable[[Shape], Shape] = lambda shape: shape,
    make: Callable[..., Callable[[], Arrays]] = normal,
    tolerance: float = TOLERANCE,
) -> Pair:
    """A function of an array, and of others whose shapes follow from the first one's."""

    def case(shape: Shape) -> Case:
        arguments = (shape, *more(shape))
        return Case(
            f"{operation} {'x'.join(map(str, shape))}",
            program,
            make(*arguments),
            elements(*arguments, result(shape)),
            tolerance=tolerance,
        )

    shapes = {"large": (large, *more(large)), "small": (small, *more(small))}
    return Pair(case(large), case(small), shapes)


def product(program: str, large: Extents, small: Extents) -> Pair:
    """A product of matrices of halves, ``a @ b`` or ``a @ b.T``; rows, columns, steps."""
    by_rows = program == "product_of_rows"

    def shapes(extents: Extents) -> tuple[Shape, Shape]:
        m, n, k = extents
        return (m, k), (n, k) if by_rows else (k, n)

    def case(extents: Extents) -> Case:
        arguments = shapes(extents)
        return Case(
            f"{'a @ b.T' if by_rows else 'a @ b'} float16 {'x'.join(map(str, extents))}",
            program,
            halves(*arguments),
            elements(*arguments, extents[:2]) // 2,
            tolerance=1e-3,
            flops=2 * math.prod(extents),
            operands="float16",
        )

    sizes = {"large": shapes(large), "small": shapes(small)}
    return Pair(case(large), case(small), sizes, "float16")


def _row(shape: Shape) -> tuple[Shape, ...]:
    return ((shape[-1],), (shape[-1],))


def _channels(shape: Shape) -> tuple[Shape, ...]:
    return ((shape[1],), (shape[1],))


def _blurred(shape: Shape) -> Shape:
    return (shape[0], shape[1] - 4, shape[2] - 4)


PAIRS: tuple[Pair, ...] = (
    _pair("blur", "blur_x_blur_y", (3, 2048, 2048), (3, 70, 75), result=_blurred, make=uniform),
    _pair("blur", "blur_x_blur_y", (3, 8192, 8192), (2, 133, 41), result=_blurred, make=uniform),
    _pair("softmax", "softmax", (32768, 4096), (33, 1000)),
    _pair("layer norm", "layer_norm", (32768, 4096), (40, 1024), _row),
    _pair("group norm", "group_norm", (64, 64, 112, 112), (3, 32, 14, 14), _channels),
    _pair("elementwise chain", "elementwise_chain", (1 << 26,), (1961,), lambda shape: (shape,)),
    # Sums in another order differ in the last bits of a float32, relative to what was added.
    _pair(
        "column sum",
        "column_sums",
        (16384, 8192),
        (100, 777),
        result=lambda shape: shape[1:],
        tolerance=1e-4,
    ),
    _pair("cumsum over rows", "row_cumsum", (16384, 8192), (5, 700), tolerance=1e-4),
    _pair("transpose", "transpose", (16384, 8192), (100, 77), tolerance=0.0),
    _pair("heat, 10 steps", "heat", (8192, 8192), (70, 70), make=uniform),
    product("product", (8192, 8192, 8192), (70, 72, 83)),
    product("product_of_rows", (8192, 8192, 8192), (65, 33, 88)),
    product("product", (4096, 4096, 4096), (64, 128, 96)),
    product("product_of_rows", (4096, 4096, 1024), (96, 64, 264)),
    product("product", (1000, 1000, 1000), (33, 40, 40)),
)

#: Its rate is the copy bandwidth.
COPY = _pair("copy", "copy", (1 << 27,), (1961,), tolerance=0.0)
#: So small that a call is what the host does.
TINY = _pair("overhead", "elementwise_chain", (16,), (16,), lambda shape: (shape,))

EVERYTHING = (*PAIRS, COPY, TINY)


def named(text: str, pairs: Sequence[Pair] = PAIRS) -> tuple[Pair, ...]:
    """The cases whose names or functions contain one of the comma-separated parts of ``text``.

    Args:
        text: the parts.
        pairs: the cases to choose from.

    Raises:
        ValueError: a part fits no case; lists them all.
    """
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not any(_fits(pair, part) for pair in pairs):
            names = ", ".join(pair.large.name for pair in pairs)
            raise ValueError(f"no case contains '{part}'; the cases are {names}")
    return tuple(pair for pair in pairs if any(_fits(pair, part) for part in parts))


def _fits(pair: Pair, part: str) -> bool:
    return part in pair.large.name or part in pair.large.program

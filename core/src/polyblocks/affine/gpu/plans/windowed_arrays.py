"""Operands whose rows are windows of images, as arrays for bulk copies of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from polyblocks.affine.access import strides
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.plans.sizes import extent
from polyblocks.affine.gpu.plans.unit_access import begins_inside
from polyblocks.affine.model import Load
from polyblocks.target import BulkCopies, WindowCopies


@dataclass(frozen=True)
class Pixels:
    """A dimension along which windows move, and an element in them.

    Attributes:
        extent: places.
        bytes: between neighbours.
        window: counts windows; None if there is one.
        step: places from one window to the next.
        tap: counts a window's elements; None if there is one.
        apart: places from one of these to the next.
        low: the place of the first one's first element, which may be outside.
    """

    extent: int
    bytes: int
    window: Var | None
    step: int
    tap: Var | None
    apart: int
    low: int

    @property
    def windows(self) -> int:
        """How many there are."""
        return 1 if self.window is None else self.window.extent

    @property
    def corner(self) -> int:
        """The place of the last window's first element, from the last place on."""
        return self.low + (self.windows - 1) * self.step - (self.extent - 1)

    @property
    def offset(self) -> int:
        """The last element of a window, from its first one on."""
        return 0 if self.tap is None else (self.tap.extent - 1) * self.apart


@dataclass(frozen=True, eq=False)
class WindowedArray:
    """An operand with channels, pixels and images, whose rows are windows one after the other.

    Attributes:
        channel: counts steps that are neighbours in memory.
        steps: all loops over steps, in the order in which these are counted.
        pixels: dimensions, the innermost one first.
        image: counts images; None if there is one.
        images: how many there are.
        image_bytes: between them.
    """

    channel: Var
    steps: tuple[Var, ...]
    pixels: tuple[Pixels, ...]
    image: Var | None
    images: int
    image_bytes: int

    @property
    def extents(self) -> tuple[int, ...]:
        """Of the dimensions, the innermost one first."""
        return (self.channel.extent, *(each.extent for each in self.pixels), self.images)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours along each of them but the innermost one."""
        return (*(each.bytes for each in self.pixels), self.image_bytes)


def windowed(
    load: Load, rows: Sequence[Var], steps: Sequence[Var], copies: BulkCopies
) -> WindowedArray | None:
    """The array of an operand; None if it has no such dimensions, or no copies can be of it.

    It is ``x[n, s * i + d * k - p, ..., c]``: for each dimension of pixels there are at most one
    loop over rows and one over steps. Conditions are those of places inside of the array, so that
    padding is zeros. A line of steps is of one element of a window.

    Args:
        load: of an element.
        rows: the loops over rows, the innermost one last.
        steps: the loops over steps, the innermost one last.
        copies: how they are copied.
    """
    able, size = copies.windows, load.buffer.bytes_per_element
    if able is None or load.buffer.base.kind == "global" or not steps:
        return None
    if begins_inside(load.buffer):
        return None
    channel = steps[-1]
    if channel.extent * size % copies.line or copies.line > able.channels * size:
        return None
    found = _array(load, channel, tuple(steps))
    if found is None or not _counts(found, rows, steps[:-1]) or not _is_padded(load):
        return None
    return found if _has_room(found, copies, able) else None


def _array(load: Load, channel: Var, steps: tuple[Var, ...]) -> WindowedArray | None:
    size, shape = load.buffer.bytes_per_element, load.buffer.shape
    # Channels may come before pixels in the index, as long as they are neighbours in memory.
    apart = strides(load.buffer)
    order = sorted(range(len(shape)), key=lambda k: (-apart[k], load.index[k].is_constant))
    *outer, last = order
    if load.index[last] != Expr.of(channel) or apart[last] != 1 or not outer:
        return None
    pixels = [_pixels(load.index[k], shape[k], apart[k] * size, set(steps[:-1])) for k in outer]
    first = pixels[0]
    if len(outer) > 1 and first is not None and _is_image(first):
        image, images, image_bytes = first.window, first.extent, first.bytes
        pixels = pixels[1:]
    else:
        # A dimension of one element may have any stride.
        image, images, image_bytes = None, 1, apart[outer[0]] * shape[outer[0]] * size
    inner = tuple(each for each in reversed(pixels) if each is not None)
    if len(inner) < len(pixels) or not inner:
        return None
    return WindowedArray(channel, steps, inner, image, images, image_bytes)


def _pixels(expr: Expr, count: int, bytes_: int, steps: set[Var]) -> Pixels | None:
    """The dimension whose place is an expression; None if windows do not move along it so."""
    window: tuple[Var | None, int] = (None, 1)
    tap: tuple[Var | None, int] = (None, 1)
    for atom, factor in expr.terms:
        if not isinstance(atom, Var) or factor <= 0:
            return None
        if atom in steps:
            if tap[0] is not None:
                return None
            tap = (atom, factor)
        else:
            if window[0] is not None:
                return None
            window = (atom, factor)
    return Pixels(count, bytes_, *window, *tap, expr.const)


def _is_image(found: Pixels) -> bool:
    return found.step == 1 and found.tap is None and found.low == 0


def _counts(array: WindowedArray, rows: Sequence[Var], taps: Sequence[Var]) -> bool:
    """Whether rows count windows in the order of copies, and steps nothing but their elements."""
    given = [array.image, *(each.window for each in reversed(array.pixels))]
    ordered = [var for var in given if var is not None and var.extent > 1]
    known = {each.tap for each in array.pixels}
    alone = all(var in known for var in taps if var.extent > 1)
    return alone and ordered == [var for var in rows if var.extent > 1]


def _is_padded(load: Load) -> bool:
    """Whether all conditions are those of places inside of the array."""
    known = set()
    for expr, count in zip(load.index, load.buffer.shape, strict=True):
        known |= {_reduced(expr), _reduced(Expr(count - 1) - expr)}
    return all(_reduced(expr) in known for expr in load.where)


def _reduced(expr: Expr) -> Expr:
    """An expression that is negative for the same numbers."""
    common = gcd(*(factor for _, factor in expr.terms)) or 1
    return Expr(expr.const // common, {atom: factor // common for atom, factor in expr.terms})


def _has_room(array: WindowedArray, copies: BulkCopies, able: WindowCopies) -> bool:
    dimensions = len(array.pixels)
    if dimensions > len(able.corners) or dimensions + 2 > copies.dimensions:
        return False
    least, most = able.corners[dimensions - 1]
    for each in array.pixels:
        corners = all(least <= corner <= most for corner in (each.low, each.corner))
        inside = each.offset <= able.offsets[dimensions - 1] and each.step <= able.step
        if not corners or not inside:
            return False
    return copies.describes(array.extents, array.strides) and able.pixels >= copies.rows


def windows_before(array: WindowedArray) -> tuple[int, ...]:
    """Rows from one window to the next along each dimension of pixels, and from image to image."""
    counts = [each.windows for each in array.pixels]
    return tuple(prod(counts[:k]) for k in range(len(counts) + 1))


def steps_before(array: WindowedArray, tap: Var) -> int:
    """Steps from one of a window's elements to the next one along a dimension."""
    return extent(list(array.steps[array.steps.index(tap) + 1 :]))

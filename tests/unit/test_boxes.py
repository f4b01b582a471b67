"""Boxes of array elements against sets of points."""

from __future__ import annotations

import itertools
import random

from polyblocks.affine.analysis.boxes import (
    Box,
    covered,
    difference,
    hull,
    intersection,
    overlap,
    touched,
    volume,
)
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import For


def points(box: Box) -> set[tuple[int, ...]]:
    return set(itertools.product(*(range(low, high) for low, high in box)))


def some_box(rank: int) -> Box:
    ranges = []
    for _ in range(rank):
        low = random.randrange(6)
        ranges.append((low, low + random.randrange(4)))
    return tuple(ranges)


def test_difference_is_exact_and_disjoint() -> None:
    random.seed(3)
    for _ in range(300):
        rank = random.randrange(1, 4)
        box, others = some_box(rank), [some_box(rank) for _ in range(random.randrange(4))]
        pieces = difference(box, others)
        left = points(box).difference(*map(points, others))
        assert set().union(*map(points, pieces)) == left
        assert sum(map(volume, pieces)) == len(left)


def test_intersection_and_overlap() -> None:
    random.seed(4)
    for _ in range(300):
        rank = random.randrange(1, 4)
        a, b = some_box(rank), some_box(rank)
        assert points(intersection(a, b)) == points(a) & points(b)
        assert overlap(a, b) == bool(points(a) & points(b))
        around = hull(a, b)
        assert points(a) | points(b) <= points(around)
        assert all(
            {low, high} <= {*first, *second}
            for (low, high), first, second in zip(around, a, b, strict=True)
        )


def test_first_pieces_are_long_in_memory() -> None:
    border = difference(((0, 6), (0, 9)), [((1, 5), (1, 8))])
    assert border == [((0, 1), (0, 9)), ((5, 6), (0, 9)), ((1, 5), (0, 1)), ((1, 5), (8, 9))]


def test_boxes_of_accesses() -> None:
    i, j = Var(4), Var(5)
    loops = [For(i, []), For(j, [])]
    assert covered((Expr.of(i) + 2, Expr(7), Expr.of(j)), loops) == ((2, 6), (7, 8), (0, 5))
    # A loop that is not used, used twice, or strided; bounds that depend on another loop.
    assert covered((Expr.of(i),), loops) is None
    assert covered((Expr.of(i), Expr.of(i), Expr.of(j)), loops) is None
    assert covered((Expr.of(i), Expr.of(j) * 2), loops) is None
    assert covered((Expr.of(i), Expr.of(j)), [loops[0], For(j, [], upper=(Expr.of(i),))]) is None
    assert touched((Expr.of(i) * 2 + j, Expr(3) - Expr.of(j))) == ((0, 11), (-1, 4))

"""Maxima that share pairs: fewer operations, the same values, NaN and infinity as well."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from tests.support.nests import buffer

from polyblocks.affine.expr import Expr
from polyblocks.affine.model import Load, Node, Op, Store, Value
from polyblocks.affine.rewrites.shared_sums import share_extremes

NSZ = {"fastmath": "#arith.fastmath<nsz>"}
FUNCTIONS = {
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.negf": np.negative,
}


class Windows:
    """The largest, or smallest, of each of some windows of a row of numbers."""

    def __init__(
        self, windows: list[list[int]], name: str = "arith.maximumf", marks: dict[str, str] = NSZ
    ) -> None:
        kind = "i32" if name.endswith("si") else "f32"
        self.source, self.out = buffer(32), buffer(len(windows))
        self.nodes: list[Node] = []
        loaded: dict[int, Value] = {}
        for number, window in enumerate(windows):
            for place in window:
                if place not in loaded:
                    loaded[place] = Value(kind)
                    self.nodes.append(Load(loaded[place], self.source, (Expr(place),)))
            total = loaded[window[0]]
            for place in window[1:]:
                new = Value(kind)
                self.nodes.append(Op(name, [total, loaded[place]], dict(marks), [new]))
                total = new
            self.nodes.append(Store(total, self.out, (Expr(number),)))
        self.windows, self.name = windows, name

    def count(self) -> int:
        return sum(isinstance(n, Op) for n in self.nodes)

    def run(self, numbers: np.ndarray) -> np.ndarray:
        values: dict[Value, np.generic] = {}
        found = np.zeros(len(self.windows), numbers.dtype)
        for node in self.nodes:
            if isinstance(node, Load):
                values[node.result] = numbers[node.index[0].const]
            elif isinstance(node, Op):
                operands = [values[v] for v in node.operands]
                values[node.results[0]] = FUNCTIONS[node.name](*operands)
            elif isinstance(node, Store):
                found[node.index[0].const] = values[node.value]
        return found

    def check(self) -> None:
        rng = np.random.default_rng(len(self.windows))
        numbers = rng.standard_normal(32).astype(np.float32)
        if self.name.endswith("si"):
            numbers = (100 * numbers).astype(np.int32)
        else:
            numbers[rng.integers(0, 32, 3)] = [np.nan, np.inf, -np.inf]
        function = FUNCTIONS[self.name]
        expected = [reduce(function, numbers[window]) for window in self.windows]
        np.testing.assert_array_equal(self.run(numbers), expected)


def rows_of_three(count: int) -> list[list[int]]:
    """Windows of 3 x 3 of neighbouring rows, of six numbers each."""
    return [[6 * (y + dy) + dx for dy in range(3) for dx in range(3)] for y in range(count)]


@pytest.mark.parametrize("name", ["arith.maximumf", "arith.minimumf", "arith.maxsi"])
def test_windows_of_neighbouring_rows_share_rows(name: str) -> None:
    windows = Windows(rows_of_three(3), name, NSZ if name.endswith("f") else {})
    assert windows.count() == 24
    assert share_extremes(windows.nodes)
    # Two for each of three rows that are shared, four and four and two for what is left.
    assert windows.count() <= 15
    windows.check()


def test_windows_that_share_nothing_stay() -> None:
    windows = Windows([[0, 1, 2], [2, 3, 4]])
    nodes = list(windows.nodes)
    assert not share_extremes(windows.nodes)
    assert windows.nodes == nodes


def test_where_the_sign_of_zero_matters_the_order_stays() -> None:
    assert not share_extremes(Windows(rows_of_three(2), marks={}).nodes)


def test_a_window_may_be_all_of_what_is_shared() -> None:
    windows = Windows([[0, 1], [1, 0, 2], [3, 0, 1]])
    assert share_extremes(windows.nodes)
    windows.check()


@pytest.mark.parametrize("seed", range(20))
def test_any_windows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, rng.integers(1, 7))
    windows = Windows([list(rng.choice(12, size, replace=False)) for size in sizes])
    before = windows.count()
    share_extremes(windows.nodes)
    assert windows.count() <= before + len(sizes)
    windows.check()

"""What is called: functions of arrays of 16 elements, and what they return. NumPy only."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

Arrays = list[np.ndarray[Any, Any]]

ELEMENTS = 16

#: Kinds of cases: arrays one after another; NumPy's arrays in another framework; a dict of arrays
#: in and out; keyword arguments; one array and weights that the program holds; variables that it
#: assigns; launches of kernels, see :mod:`bench.host_launches`.
ARRAYS, HOST, TREE, KEYWORDS, WEIGHTS, UPDATES, LAUNCHES = (
    "arrays", "host arrays", "tree", "keywords", "weights", "updates", "launches",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One row of a framework's table.

    Attributes:
        name: in tables.
        kind: one of the above.
        count: of arrays, or of weights beside the one array.
        only_in: the framework that alone has it; empty: all of them.
    """

    name: str
    kind: str
    count: int
    only_in: str = ""

    @property
    def inputs(self) -> Arrays:
        """What it is called with, float32[16] each."""
        return _vectors(1 if self.kind in (WEIGHTS, UPDATES) else self.count)

    @property
    def weights(self) -> Arrays:
        """What the program holds, float32[16] each."""
        return _vectors(self.count)[::-1] if self.kind in (WEIGHTS, UPDATES) else []

    @property
    def expected(self) -> Arrays:
        """What the first call returns."""
        if self.kind == TREE:
            return [2 * x for x in self.inputs]
        if self.kind == UPDATES:
            return [self.weights[-1] + 2 * self.inputs[0]]
        return [total(*self.inputs, *self.weights)]


CASES = (
    *(Case(f"{count} arrays", ARRAYS, count) for count in (2, 8, 20, 200, 1000)),
    Case("2 NumPy arrays", HOST, 2, only_in="JAX"),
    Case("a tree of 8 arrays, in and out", TREE, 8),
    Case("a tree of 200 arrays, in and out", TREE, 200, only_in="JAX"),
    Case("8 keyword arguments", KEYWORDS, 8),
    *(Case(f"{count} weights", WEIGHTS, count) for count in (20, 200, 1000)),
    Case("200 variables assigned", UPDATES, 200, only_in="TensorFlow"),
    Case("a program like BERT-base", LAUNCHES, 200, only_in="GPU"),
)


def total(*arrays: Any) -> Any:
    """Their sum."""
    return reduce(operator.add, arrays)


def total_of_keywords(**arrays: Any) -> Any:
    """The same, by keywords."""
    return reduce(operator.add, arrays.values())


def doubled(tree: dict[str, Any]) -> dict[str, Any]:
    """A tree of arrays in, one out."""
    return {name: value * 2 for name, value in tree.items()}


def doubled_in_a_row(*arrays: Any) -> tuple[Any, ...]:
    """The same for programs that are loaded, whose arrays come one after another."""
    return tuple(value * 2 for value in arrays)


def named(values: list[Any]) -> dict[str, Any]:
    """``a000``, ``a001`` and so on: JAX sorts the names."""
    return {f"a{number:03d}": value for number, value in enumerate(values)}


def function_of(kind: str) -> Callable[..., Any]:
    """Of a case without weights, in any framework."""
    return {TREE: doubled, KEYWORDS: total_of_keywords}.get(kind, total)


def arguments_of(kind: str, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """How :func:`function_of` is called."""
    if kind == TREE:
        return (named(values),), {}
    if kind == KEYWORDS:
        return (), named(values)
    return tuple(values), {}


def _vectors(count: int) -> Arrays:
    ramp = np.arange(ELEMENTS, dtype=np.float32) / ELEMENTS
    # All differ, so that a weight is known by its values where a framework has copied it.
    return [ramp + np.float32(number / 64) for number in range(count)]

"""Scans that choose: of what a loop carries and a new element, the one that wins is carried on.

A running maximum and its place, for one::

    %take = arith.cmpf uge, %x, %best
    %b = arith.select %take, %x, %best
    %p = arith.select %take, %k, %place

Values are only compared, so who wins follows from how they are ordered and from which of them are
no numbers. Few numbers show every such case of three elements, so trying them all proves that parts
of a scan may be joined in the order in which they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf, isnan, nan
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from polyblocks.affine.analysis.dataflow import makers_of, slice_of
from polyblocks.affine.analysis.outcomes import float_relation, integer_relation
from polyblocks.affine.element import dtype_of
from polyblocks.affine.model import For, Node, Op, Value, clone, walk

_LOGIC: dict[str, Callable[[bool, bool], bool]] = {
    "arith.andi": lambda x, y: x and y,
    "arith.ori": lambda x, y: x or y,
    "arith.xori": lambda x, y: x != y,
}
_EXTREMA: dict[str, Callable[[int, int], int]] = {"arith.maxsi": max, "arith.minsi": min}
_CHOOSING = ("arith.select", *_EXTREMA)
_SIGNS = {"=": eq, "≠": ne, "<": lt, "≤": le, ">": gt, "≥": ge}
#: Conditions of more values are not tried out.
_MOST_COMPARED = 2

#: A number and the element that it is of; of integers, which are the same if they are equal, 0.
Tried = tuple[float, int]


@dataclass(eq=False)
class Choice:
    """A step that takes all of the new element or keeps all of what was carried.

    Attributes:
        arguments: what is carried.
        terms: the new element, a value for each of these.
        nodes: compute the results from both alone.
        results: what is carried on.
    """

    arguments: list[Value]
    terms: list[Value]
    nodes: list[Op]
    results: list[Value]

    @classmethod
    def of(cls, loop: For) -> Choice | None:
        """The step of a loop; None if it is another one, or parts of it may not be joined."""
        if any(dtype_of(v.type).bits == 1 for v in loop.arguments):
            return None
        makers = makers_of(loop.body)
        terms = []
        for argument, value in zip(loop.arguments, loop.yields, strict=True):
            op = makers.get(value)
            if not isinstance(op, Op) or op.name not in _CHOOSING:
                return None
            others = [v for v in op.operands[-2:] if v is not argument]
            if len(others) != 1:
                return None
            terms += others
        outside = {v: n for v, n in makers.items() if v not in terms}
        needed = slice_of(loop.yields, outside)
        nodes = [n for n in loop.body if n in needed and isinstance(n, Op)]
        known = {*loop.arguments, *terms, *(v for n in nodes for v in n.defines)}
        if len(nodes) < len(needed) or not all(known.issuperset(n.uses) for n in nodes):
            return None
        found = cls(loop.arguments, terms, nodes, loop.yields)
        return found if found._alone(loop) and found._associative() else None

    @property
    def selections(self) -> list[Op]:
        """The operation that makes each result."""
        makers = {op.results[0]: op for op in self.nodes}
        return [makers[value] for value in self.results]

    def join(self, first: list[Value], second: list[Value], out: list[Node]) -> list[Value]:
        """Two neighbouring parts in one, by code that is put behind ``out``."""
        values = dict(zip((*self.arguments, *self.terms), (*first, *second), strict=True))
        out.extend(clone(self.nodes, values, {}))
        return [values[v] for v in self.results]

    def begins_with(self, starts: list[float]) -> bool:
        """Whether the step takes every element when it carries these numbers."""
        compared = self._compared
        if compared is None:
            return False
        elements = product(
            *(
                (*_ends(v.type), *_samples(v.type), starts[i]) if i in compared else (0,)
                for i, v in enumerate(self.terms)
            )
        )
        tried = [self._numbered(list(numbers), 1) for numbers in elements]
        start = self._numbered(starts, 2)
        return all(_same(self._joined(start, each), each) for each in tried)

    def _alone(self, loop: For) -> bool:
        """Whether nothing else sees what is carried, nor how the winner is found."""
        inner = {*self.arguments, *(v for n in self.nodes for v in n.defines)}
        own, hidden = set(self.nodes), inner - set(self.results)
        if any(hidden.intersection(n.uses) for n in walk(loop.body) if n not in own):
            return False
        needed = slice_of(self.terms, makers_of(loop.body))
        return not any(inner.intersection(n.uses) for n in needed)

    def _associative(self) -> bool:
        compared = self._compared
        if compared is None:
            return False
        some = [_samples(v.type) if i in compared else (0,) for i, v in enumerate(self.terms)]
        for numbers in product(product(*some), repeat=3):
            x, y, z = (self._numbered(list(each), n) for n, each in enumerate(numbers, 1))
            left = self._joined(self._joined(x, y), z)
            if not _same(left, self._joined(x, self._joined(y, z))):
                return False
        return True

    @cached_property
    def _compared(self) -> list[int] | None:
        """The numbers of the carried values that decide.

        None if there are too many or none, or there are operations that cannot be tried out.
        """
        if not all(_is_known(op) for op in self.nodes):
            return None
        used = {v for n in self.nodes for v in n.operands if n.name != "arith.select"}
        found = [
            i
            for i, pair in enumerate(zip(self.arguments, self.terms, strict=True))
            if used.intersection(pair)
        ]
        return found if 0 < len(found) <= _MOST_COMPARED else None

    def _numbered(self, numbers: list[float], element: int) -> list[Tried]:
        """The values of an element. Values that nothing compares differ by ``element``."""
        compared = self._compared or ()
        return [
            (number, 0 if i in compared and dtype_of(v.type).is_whole else element)
            for i, (number, v) in enumerate(zip(numbers, self.terms, strict=True))
        ]

    def _joined(self, first: list[Tried], second: list[Tried]) -> list[Tried]:
        """Two elements in one."""
        pairs = zip((*self.arguments, *self.terms), (*first, *second), strict=True)
        values: dict[Value, Any] = dict(pairs)
        for op in self.nodes:
            x, y = (values[v] for v in op.operands[-2:])
            if op.name == "arith.select":
                found = x if values[op.operands[0]] else y
            elif op.name in _LOGIC:
                found = _LOGIC[op.name](x, y)
            elif op.name in _EXTREMA:
                found = (_EXTREMA[op.name](x[0], y[0]), 0)
            else:
                found = _outcome(op, x[0], y[0])
            values[op.results[0]] = found
        return [values[v] for v in self.results]


def _is_known(op: Op) -> bool:
    """Whether an operation does nothing but compare, and choose by that."""
    if op.name == "arith.cmpf":
        return float_relation(op) is not None
    if op.name == "arith.cmpi":
        return not integer_relation(op).unsigned
    if op.name in _LOGIC:
        return dtype_of(op.results[0].type).bits == 1
    return op.name in _CHOOSING


def _outcome(op: Op, x: float, y: float) -> bool:
    relation = float_relation(op) if op.name == "arith.cmpf" else integer_relation(op)
    assert relation is not None
    if isnan(x) or isnan(y):
        return relation.missing
    return bool(_SIGNS[relation.sign](x, y)) if relation.sign else not relation.missing


def _same(first: list[Tried], second: list[Tried]) -> bool:
    """Whether these are the values of the same elements."""
    return all(
        x[1] == y[1] and (x[0] == y[0] or isnan(x[0]) and isnan(y[0]))
        for x, y in zip(first, second, strict=True)
    )


def _samples(type_: Any) -> tuple[float, ...]:
    """Numbers enough for three of them to stand for any three in comparisons."""
    return (-1, 0, 1) if dtype_of(type_).is_whole else (-1.0, 0.0, 1.0, nan)


def _ends(type_: Any) -> tuple[float, float]:
    """The smallest and the largest number of a type."""
    dtype = dtype_of(type_)
    if not dtype.is_whole:
        return -inf, inf
    low = -(1 << (dtype.bits - 1))
    return low, -1 - low

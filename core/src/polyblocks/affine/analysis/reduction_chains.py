"""Values that one commutative operation joins, as unrolled reductions leave them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from polyblocks.affine.analysis.dataflow import makers_of, slice_of
from polyblocks.affine.analysis.reductions import COMMUTATIVE
from polyblocks.affine.model import Index, Load, Node, Op, Value


@dataclass(frozen=True)
class ReductionChain:
    """``terms[0] op terms[1] op ...``, one after the other or as a tree.

    Attributes:
        last: the operation whose result is the whole; all others do the same.
        terms: what is joined, at least two values, from left to right.
    """

    last: Op
    terms: list[Value]


class StraightLineCode:
    """Which node makes each value of a body without loops, and which values are alike.

    Two values are *alike* if the same operations make them, of the same values and of loads that
    differ in constants only, as the copies of an unrolled body do: ``%a[%i, 0] * %b[0, %j]`` and
    ``%a[%i, 1] * %b[1, %j]``.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self._makers = makers_of(nodes)
        self._uses = Counter(value for node in nodes for value in node.uses)

    def chains(self) -> list[ReductionChain]:
        """The longest chains, in program order."""
        tops = [n for n in self.nodes if isinstance(n, Op) and n.name in COMMUTATIVE]
        inner = {value for op in tops for value in op.operands if self._inside(value, op.name)}
        return [self._chain(op) for op in tops if op.results[0] not in inner]

    def chain(self, value: Value) -> ReductionChain | None:
        """The chain that ends in a value; None if its operation is not commutative."""
        op = self._makers.get(value)
        return self._chain(op) if isinstance(op, Op) and op.name in COMMUTATIVE else None

    def uses(self, value: Value) -> int:
        """How often nodes use a value."""
        return self._uses[value]

    def _chain(self, last: Op) -> ReductionChain:
        terms: list[Value] = []
        pending = list(reversed(last.operands))
        while pending:
            value = pending.pop()
            if self._inside(value, last.name):
                pending.extend(reversed(self._makers[value].uses))
            else:
                terms.append(value)
        return ReductionChain(last, terms)

    def _inside(self, value: Value, name: str) -> bool:
        """Whether a value is part of a chain of such operations and nothing else."""
        maker = self._makers.get(value)
        return isinstance(maker, Op) and maker.name == name and self._uses[value] == 1

    def congruence_classes(self, values: Iterable[Value]) -> list[list[Value]]:
        """The values, grouped by equal code."""
        groups: dict[int | Value, list[Value]] = {}
        for value in values:
            groups.setdefault(self._forms.get(value, value), []).append(value)
        return list(groups.values())

    @cached_property
    def _forms(self) -> dict[Value, int]:
        """A number for each value that the nodes make; what is alike has the same one."""
        numbers: dict[Any, int] = {}
        forms: dict[Value, int] = {}
        for node in self.nodes:
            form: Any
            if isinstance(node, Load):
                form = (node.buffer, *(e - e.const for e in node.index))
            elif isinstance(node, Index):
                form = node.expr
            elif isinstance(node, Op):
                attributes = sorted((key, str(a)) for key, a in node.attributes.items())
                used = (forms.get(v, v) for v in node.operands)
                form = (node.name, *attributes, *used)
            else:
                form = node
            for i, value in enumerate(node.defines):
                forms[value] = numbers.setdefault((i, form), len(numbers))
        return forms

    def loads(self, values: Iterable[Value]) -> list[Load]:
        """The loads on which values depend, in program order."""
        needed = slice_of(values, self._makers)
        return [n for n in self.nodes if isinstance(n, Load) and n in needed]

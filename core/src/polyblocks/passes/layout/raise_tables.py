"""raise-tables: what a constant table of places says is said by an expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.access import address
from polyblocks.affine.analysis.known_values import KnownValues
from polyblocks.affine.element import I32, I64, INDEX, dtype_of
from polyblocks.affine.expr import Expr
from polyblocks.affine.model import (
    Buffer,
    Index,
    IndirectLoad,
    Load,
    Nest,
    Op,
    Sequence,
    remove_dead,
    replace_values,
    walk,
)
from polyblocks.affine.rewrites.inlining import Candidate, Producer
from polyblocks.affine.steps import StepFunction
from polyblocks.affine.users import Users
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class RaiseTablesPass(NestPass):
    """Read arrays at affine places where these were looked up in a constant table.

    Images are enlarged with tables of the pixels that each pixel comes from: ``0, 0, 0, 1, 1, 2``
    and so on, held within the image at its ends. Such a table is a quotient and a few steps. Places
    of windows are computed, as sums of iteration numbers: these arrays are expressions as well.

    Before::

        affine.for %x = 0 to 64 {
          %t = affine.load %table[%x]            // 0, 0, 1, 1, 2, 2, ..., 30, 31, 31, 31
          %y = memref.load %a[%t] ... }

    After::

        affine.for %x = 0 to 64 {
          %y = affine.load %a[(%x + 1) floordiv 2 - (%x + 63) floordiv 64 ...] ... }
    """

    name: ClassVar[str] = "raise-tables"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Raise in every nest that gathers."""
        functions: dict[Buffer, StepFunction | None] = {}
        users = Users(sequence)
        for nest in sequence.nests():
            gathers = [n for n in walk(nest.body) if isinstance(n, IndirectLoad)]
            if not gathers:
                continue
            known = KnownValues()
            for load in walk(nest.body):
                if not isinstance(load, Load) or load.where or not _is_integer(load):
                    continue
                buffer = load.buffer
                if buffer.constant is None:
                    counted = _counted(load, users, nest)
                    if counted is not None:
                        known.exprs[load.result] = counted
                    continue
                if buffer not in functions:
                    functions[buffer] = StepFunction.of(_values(buffer))
                function = functions[buffer]
                if function is not None:
                    known.exprs[load.result] = function.at(address(buffer, load.index))
            if known.exprs and self._raise(nest, known):
                left = sum(isinstance(n, IndirectLoad) for n in walk(nest.body))
                context.decide(self.name, nest.name, "raised", nodes=len(gathers) - left)

    def _raise(self, nest: Nest, known: KnownValues) -> bool:
        if not known.block(nest.body):
            return False
        replace_values(nest.body, known.same)
        remove_dead(nest.body)
        nest.replace()
        return True


def _is_integer(load: Load) -> bool:
    return dtype_of(load.result.type) in (I32, I64, INDEX)


def _counted(load: Load, users: Users, nest: Nest) -> Expr | None:
    """The expression of a load from a buffer of numbers that are affine in loops, or None.

    They may be computed from numbers of other such buffers.
    """
    if load.buffer.kind != "alloc":
        return None
    candidate = Candidate.of(users, load.buffer)
    producer = None if candidate is None else Producer.of(candidate)
    if candidate is None or producer is None or not users.before(candidate.producer, nest):
        return None
    nodes, value = producer.body_at(load.index)
    known = KnownValues()
    for node in walk(nodes):
        if isinstance(node, Index):
            known.exprs[node.result] = node.expr
        elif isinstance(node, Op) and len(node.results) == 1:
            known.learn(node)
        elif isinstance(node, Load) and not node.where and _is_integer(node):
            inner = _counted(node, users, candidate.producer)
            if inner is None:
                return None
            known.exprs[node.result] = inner
    return known.exprs.get(value)


def _values(buffer: Buffer) -> list[int]:
    assert buffer.constant is not None
    return [int(getattr(v, "value", v)) for v in buffer.constant]

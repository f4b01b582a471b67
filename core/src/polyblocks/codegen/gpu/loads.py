"""Numbers that memory holds and kernels need: each kernel loads them again, nobody waits."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Any

from polyblocks.affine.reader import SCALAR_DIALECTS
from polyblocks.affine.views import VIEWS
from polyblocks.mlir import ir

#: Operations that load one element.
LOADS = ("affine.load", "memref.load")


@dataclass
class Changes:
    """Where the program changes memory, as far as its nests are kernels already.

    Attributes:
        launches: for a block and memory, as :func:`root` gives it, the last launch in the block of
            a kernel that stores there.
        others: for a block the last operation in it that stays and may store anywhere.
    """

    launches: dict[tuple[Any, Any], Any] = field(default_factory=dict)
    others: dict[Any, Any] = field(default_factory=dict)

    def launch(self, op: Any, stored: Iterable[Any]) -> None:
        """Take note of a launch, and of the arguments that its kernel stores to."""
        for value in stored:
            self.launches[op.block, root(value)] = op

    def stay(self, op: Any) -> None:
        """Take note of an operation that is between launches when all nests are kernels."""
        if len(op.regions) or op.name.endswith("store"):
            self.others[op.block] = op

    def behind(self, load: Any) -> bool:
        """Whether something behind a load, in its block, may change what it loads."""
        block = load.block
        last = (self.others.get(block), self.launches.get((block, root(load.operands[0]))))
        return any(op is not None and load.is_before_in_block(op) for op in last)


class Loads:
    """Which scalars of the program a kernel may compute itself.

    A scalar is computed from constants and loads. The kernel may load again what nobody has
    changed since, and what it does not change itself.

    Attributes:
        before: the operation in whose place the kernel is launched.
        changes: what happens before it.
        stored: memory that the kernel itself stores to, as :func:`root` gives it.
    """

    def __init__(self, before: Any, changes: Changes, stored: Set[Any]) -> None:
        self.before = before
        self.changes = changes
        self.stored = stored
        self._answers: dict[Any, bool] = {}

    def repeatable(self, value: Any) -> bool:
        """Whether the kernel may compute a scalar itself."""
        if value not in self._answers:
            self._answers[value] = self._repeatable(value)
        return self._answers[value]

    def _repeatable(self, value: Any) -> bool:
        owner = value.owner
        if isinstance(owner, ir.Block) or isinstance(value.type, ir.MemRefType):
            return False
        op = owner.operation
        if len(op.regions):
            return False
        if op.name in LOADS:
            # In a kernel there are no maps of values that are no loop variables.
            affine = op.name == "affine.load" and len(op.operands) > 1
            return not affine and all(map(self._known, op.operands)) and self._same(op)
        if not op.name.startswith(SCALAR_DIALECTS):
            return False
        return all(map(self._known, op.operands))

    def _known(self, value: Any) -> bool:
        """Whether a value is memory, the same for all launches, or repeatable itself."""
        owner = value.owner
        if isinstance(value.type, ir.MemRefType):
            if isinstance(owner, ir.Block) or owner.operation.name == "memref.get_global":
                return True
            return owner.operation.name in VIEWS and all(map(self._known, owner.operation.operands))
        if not isinstance(owner, ir.Block) and owner.operation.name == "arith.constant":
            return True
        return self.repeatable(value)

    def _same(self, load: Any) -> bool:
        """Whether memory holds at the launch what the program loaded."""
        if root(load.operands[0]) in self.stored or load.block != self.before.block:
            return False
        return bool(load.is_before_in_block(self.before)) and not self.changes.behind(load)


def root(value: Any) -> Any:
    """The memory that a view looks at."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in VIEWS:
        value = value.owner.operation.operands[0]
    return value


def is_inside(value: Any, op: Any) -> bool:
    """Whether a value is defined in an operation with regions."""
    owner = value.owner
    block = owner if isinstance(owner, ir.Block) else owner.operation.block
    while True:
        around = block.owner.operation
        if around == op:
            return True
        if around.name == "func.func":
            return False
        block = around.block

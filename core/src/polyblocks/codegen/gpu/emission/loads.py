"""Numbers that memory holds and kernels need: each kernel loads them again, nothing waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

from polyblocks.affine.mlir.nest_reader import SCALAR_DIALECTS
from polyblocks.affine.mlir.views import VIEWS
from polyblocks.codegen.walk import nested
from polyblocks.mlir import ir

#: Operations that load one element.
LOADS = ("affine.load", "memref.load")
#: Operations that define whole arrays.
_MEMORY = ("memref.alloc", "memref.get_global")


class Changes:
    """Where the program changes memory, as far as its nests are kernels already."""

    def __init__(self) -> None:
        #: For a block and memory the last operation in it that may store there, itself or inside.
        self._last: dict[tuple[Any, Any], Any] = {}
        #: For a loop or branch and memory whether anything that is no launch stores there.
        self._inside: dict[tuple[Any, Any], bool] = {}

    def launch(self, op: Any, stored: Iterable[Any]) -> None:
        """Take note of a launch, and of the arguments that its kernel stores to."""
        for memory in map(root, stored):
            around = op
            while around.name != "func.func":
                self._last[around.block, memory] = around
                around = around.block.owner.operation

    def stay(self, op: Any) -> None:
        """Take note of an operation that is between launches when all nests are kernels."""
        self.launch(op, _stored(op))

    def behind(self, load: Any) -> bool:
        """Whether something behind a load, in its block, may change what it loads."""
        last = self._last.get((load.block, root(load.operands[0])))
        return last is not None and bool(load.is_before_in_block(last))

    def inside(self, region: Any, memory: Any) -> bool:
        """Whether nests of a loop or branch that are no kernels yet may store to memory."""
        key = (region, memory)
        if key not in self._inside:
            written = (v for op in nested(region) for v in _stored(op))
            self._inside[key] = any(root(v) == memory for v in written)
        return self._inside[key]


def _stored(op: Any) -> Iterator[Any]:
    """Memory that an operation itself may store to, unless it is a launch."""
    if op.name not in (*LOADS, *VIEWS, "memref.extract_strided_metadata", "gpu.launch_func"):
        yield from (v for v in op.operands if isinstance(v.type, ir.MemRefType))


class Loads:
    """Which scalars of the program a kernel may compute itself.

    A scalar is computed from constants and loads. The kernel may load again what nothing has
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
        if op.name != "affine.apply" and not op.name.startswith(SCALAR_DIALECTS):
            return False
        return all(map(self._known, op.operands))

    def _known(self, value: Any) -> bool:
        """Whether a value is memory, the same for all launches, or repeatable itself."""
        owner = value.owner
        if isinstance(value.type, ir.MemRefType):
            if isinstance(owner, ir.Block) or owner.operation.name in _MEMORY:
                return True
            return owner.operation.name in VIEWS and all(map(self._known, owner.operation.operands))
        if isinstance(owner, ir.Block):
            # Of a loop of the host, which hands it over.
            return bool(owner.owner.operation.name in ("affine.for", "scf.for"))
        return owner.operation.name == "arith.constant" or self.repeatable(value)

    def _same(self, load: Any) -> bool:
        """Whether memory holds at the launch what the program loaded."""
        memory = root(load.operands[0])
        if memory in self.stored:
            return False
        # The load's sibling: the launch, or a host loop or branch around it.
        beside = self.before
        while beside.block != load.block:
            beside = beside.block.owner.operation
            if beside.name == "func.func":
                return False
        if not load.is_before_in_block(beside) or self.changes.behind(load):
            return False
        # In a loop, what comes behind the launch runs before it comes round again.
        return beside == self.before or not self.changes.inside(beside, memory)


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

"""Numbers that memory holds and kernels need: each kernel loads them again, nobody waits."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.reader import SCALAR_DIALECTS
from polyblocks.affine.views import VIEWS
from polyblocks.mlir import ir

_LOADS = ("affine.load", "memref.load")
#: What gives whole arrays.
_MEMORY = ("memref.alloc", "memref.get_global")


class Loads:
    """Which scalars of the program a kernel may compute itself.

    A scalar is computed from constants and loads. The kernel may load again what nobody has
    changed since, and what it does not change itself.

    Attributes:
        before: the operation in whose place the kernel is launched.
        written: for each kernel so far the positions of the arguments that it stores to.
        stored: memory that the kernel itself stores to, as :func:`root` gives it.
    """

    def __init__(self, before: Any, written: dict[str, set[int]]) -> None:
        self.before = before
        self.written = written
        self.stored: set[Any] = set()

    def repeatable(self, value: Any) -> bool:
        """Whether the kernel may compute a scalar itself."""
        owner = value.owner
        if isinstance(owner, ir.Block) or isinstance(value.type, ir.MemRefType):
            return False
        op = owner.operation
        if len(op.regions):
            return False
        if op.name in _LOADS:
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
        # What stands beside the load: the launch, or a loop of the host around it.
        launch = self.before
        while launch.block != load.block:
            launch = launch.block.owner.operation
            if launch.name == "func.func":
                return False
        operations = [op.operation for op in load.block.operations]
        between = operations[operations.index(load) + 1 : operations.index(launch)]
        if launch != self.before:
            # What comes behind the launch runs before it comes round again.
            between.append(launch)
        return not any(self._writes(op, memory) for op in between)

    def _writes(self, op: Any, memory: Any) -> bool:
        """Whether an operation, or one inside of it, may store to memory."""
        if op.name == "gpu.launch_func":
            name = str(op.attributes["kernel"]).rpartition("@")[2]
            # Three sizes of the grid and of the block come first.
            arguments = list(op.operands)[6:]
            return any(root(arguments[i]) == memory for i in self.written[name])
        if op.name in _LOADS or op.name in VIEWS:
            return False
        if any(root(v) == memory for v in op.operands if isinstance(v.type, ir.MemRefType)):
            return True
        return any(
            self._writes(inner.operation, memory)
            for region in op.regions
            for block in region.blocks
            for inner in block.operations
        )


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

"""plan-memory: all buffers that are left share one workspace, at offsets planned by liveness."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.affine.element import element_bytes
from polyblocks.affine.mlir.regions import LOOPS
from polyblocks.artifact import KEPT
from polyblocks.attributes import PREPARATION, REGION_ATTRIBUTE
from polyblocks.passes import facts
from polyblocks.program import ArraySpec

#: A cache line on all targets; also what vector loads like best.
ALIGNMENT = 64


@dataclass(frozen=True)
class Block:
    """A buffer to place: bytes, and the first and last step at which it is in use."""

    size: int
    first: int
    last: int


@dataclass(frozen=True)
class PlanMemoryPass:
    """Replace allocations by views of a workspace argument.

    Two buffers share bytes if no operation of ``@main`` needs both. One that a loop finds as the
    iteration before left it is needed during the whole of the loop; allocations in the body live
    in one iteration. Results of the program's preparation lie in persistent memory, another
    argument. The caller owns the workspace, so that nothing is
    allocated during a call.

    Before::

        func.func @main(%a: memref<4xf32>, %out: memref<4xf32>) {
          %b = memref.alloc() : memref<4xf32>

    After::

        func.func @main(%a: memref<4xf32>, %out: memref<4xf32>, %ws: memref<64xi8>) {
          %c0 = arith.constant 0 : index
          %b = memref.view %ws[%c0][] : memref<64xi8> to memref<4xf32>
    """

    name: ClassVar[str] = "plan-memory"
    needs: ClassVar[frozenset[str]] = frozenset({facts.BUFFERS, facts.BOUND_ARGUMENTS})

    def run(self, module: Any, context: Any) -> None:
        """Plan and rewrite."""
        block = signature.main_of(module).body.blocks[0]
        steps_of = _Steps(block)
        allocs = [
            op
            for op in steps_of.span
            if op.name == "memref.alloc" and not len(op.operands) and _is_plain(op)
        ]
        blocks = []
        begin, end = steps_of.preparation
        kept = []
        for op in list(allocs):
            steps = steps_of.of(op)
            inside = [begin <= step <= end for step in steps]
            if op in steps_of.top and any(inside) and not all(inside):
                allocs.remove(op)
                kept.append(op)
                continue
            blocks.append(Block(_bytes(op), min(steps, default=0), max(steps, default=0)))
        if blocks:
            offsets, total = place(blocks)
            context.decide(
                self.name,
                "main",
                "workspace",
                bytes=total,
                without_sharing=sum(b.size for b in blocks),
                buffers=len(blocks),
            )
            _replace(module, allocs, "workspace", offsets, total)
        if kept:
            # All of them hold something until the next call: they are always in use.
            offsets, total = place([Block(_bytes(op), 0, 0) for op in kept])
            context.decide(self.name, "main", "kept", bytes=total, buffers=len(kept))
            _replace(module, kept, KEPT, offsets, total)


def _bytes(alloc: Any) -> int:
    type_ = alloc.results[0].type
    return int(prod(type_.shape)) * element_bytes(type_.element_type)


def _replace(module: Any, allocs: list[Any], role: str, offsets: list[int], total: int) -> None:
    """Let allocations be views of a new argument of ``total`` bytes."""
    from polyblocks.mlir import dialect, ir

    rows = signature.rows(module)
    function = signature.main_of(module)
    block = function.body.blocks[0]
    with module.context, ir.Location.unknown():
        memory_type = ir.MemRefType.get([total], ir.IntegerType.get_signless(8))
        memory = block.add_argument(memory_type, ir.Location.unknown())
        memref, arith = dialect("memref"), dialect("arith")
        index = ir.IndexType.get()
        for op, offset in zip(allocs, offsets, strict=True):
            # Before all loops: so what loops run on are pointers that they do not compute.
            with ir.InsertionPoint(_at_top(op, block)):
                shift = arith.ConstantOp(index, offset)
                view = memref.ViewOp(op.results[0].type, memory, shift, [])
            op.results[0].replace_all_uses_with(view.result)
            op.erase()
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([a.type for a in block.arguments], [])
        )
    spec = ArraySpec.contiguous((total,), "int8")
    signature.set_rows(module, [*rows, signature.entry(role, role, spec)])


def _at_top(op: Any, block: Any) -> Any:
    """The operation of the block that contains ``op``, or is it."""
    while op.block != block:
        op = op.parent.operation
    return op


def place(blocks: list[Block]) -> tuple[list[int], int]:
    """Offsets of the blocks and the size of the workspace: largest first, at the lowest gap."""
    offsets = [0] * len(blocks)
    placed = _Placed()
    total = 0
    for i in sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, blocks[i].first, i)):
        b = blocks[i]
        offset = 0
        for low, high in placed.while_in_use(b):
            if offset + b.size <= low:
                break
            offset = max(offset, high)
        size = -(-max(b.size, 1) // ALIGNMENT) * ALIGNMENT
        offsets[i] = offset
        placed.add(b, offset, offset + size)
        total = max(total, offset + size)
    return offsets, total


class _Placed:
    """Places that are taken, by time: most blocks live for a short time and meet few others."""

    #: Steps that share a list.
    WIDTH = 16

    def __init__(self) -> None:
        self._by_time: dict[int, list[tuple[int, int, Block]]] = {}

    def _times(self, block: Block) -> range:
        return range(block.first // self.WIDTH, block.last // self.WIDTH + 1)

    def add(self, block: Block, low: int, high: int) -> None:
        """Take the bytes from ``low`` to ``high`` while the block is in use."""
        for time in self._times(block):
            self._by_time.setdefault(time, []).append((low, high, block))

    def while_in_use(self, block: Block) -> list[tuple[int, int]]:
        """Byte ranges taken while the block is in use, in order."""
        found = {
            (low, high)
            for time in self._times(block)
            for low, high, other in self._by_time.get(time, ())
            if other.last >= block.first and block.last >= other.first
        }
        return sorted(found)


def _is_plain(op: Any) -> bool:
    type_ = op.results[0].type
    return bool(type_.has_static_shape) and type_.memory_space is None and _identity(type_)


def _identity(type_: Any) -> bool:
    strides, offset = type_.get_strides_and_offset()
    expected = []
    step = 1
    for extent in reversed(type_.shape):
        expected.append(step)
        step *= extent
    return offset == 0 and list(strides) == list(reversed(expected))


class _Steps:
    """The operations of ``@main`` and of the loops and branches in it, in order.

    Attributes:
        span: the first and last step of each operation; that of a nest is one step.
        top: the operations outside of loops and branches.
        preparation: the first and last step of the program's preparation, if any.
    """

    def __init__(self, block: Any) -> None:
        self.span: dict[Any, tuple[int, int]] = {}
        self._count = 0
        self._visit(block)
        self.top = {op.operation for op in block.operations}
        self.preparation = (0, -1)
        for op in self.top:
            attributes = op.attributes
            is_region = REGION_ATTRIBUTE in attributes
            if is_region and attributes[REGION_ATTRIBUTE].value == PREPARATION:
                self.preparation = self.span[op]

    def _visit(self, block: Any) -> None:
        for op in block.operations:
            op = op.operation
            first = self._count
            self.span[op] = (first, first)
            self._count += 1
            if REGION_ATTRIBUTE in op.attributes:
                for region in op.regions:
                    for inner in region.blocks:
                        self._visit(inner)
                self._count += 1
                self.span[op] = (first, self._count - 1)

    def of(self, op: Any) -> list[int]:
        """Steps at which the buffer of an allocation, or a view of it, is in use."""
        from polyblocks.affine.mlir.views import VIEWS

        steps: list[int] = []
        pending = list(op.results)
        while pending:
            value = pending.pop()
            for use in value.uses:
                owner = use.owner.operation
                top = owner
                while top not in self.span:
                    top = top.parent.operation
                if owner in self.span and owner.name in VIEWS:
                    pending.extend(owner.results)
                    continue
                steps.extend(self._during(top, op))
                # A buffer that an operation hands on lives as long as what was handed on.
                for result in top.results:
                    if "memref" in str(result.type):
                        pending.append(result)
        return steps

    def _during(self, user: Any, alloc: Any) -> tuple[int, int]:
        """The steps of a use: those of the outermost loop around it that the buffer outlives."""
        found = self.span[user]
        around = user.parent.operation
        while around in self.span and around != alloc.parent.operation:
            if around.name in LOOPS:
                found = self.span[around]
            around = around.parent.operation
        return found

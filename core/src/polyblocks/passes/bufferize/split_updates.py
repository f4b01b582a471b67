"""split-updates: long chains of slices put into one tensor are analysed in pieces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.tensor.control_flow import besides_bodies

#: Updates of one tensor between two cuts. One-shot analysis compares each write of a tensor with
#: each read and each other write of it, so its time grows with the cube of their number.
PIECE = 24

_INSERT = "tensor.insert_slice"


@dataclass(frozen=True)
class SplitUpdatesPass:
    """Hand a tensor on through a buffer after every :data:`PIECE` updates of it.

    Before::

        %1 = tensor.insert_slice %a into %0[0] [1] [1] : tensor<1xf32> into tensor<9xf32>

    After::

        %1 = tensor.insert_slice %a into %0[0] [1] [1] : tensor<1xf32> into tensor<9xf32>
        %buffer = bufferization.to_buffer %1 : tensor<9xf32> to memref<9xf32>
        %2 = bufferization.to_tensor %buffer restrict writable : memref<9xf32> to tensor<9xf32>

    and ``%2`` in place of ``%1``. The analysis expects that the buffer is written to: where an
    earlier value of the tensor is read later, it copies the tensor first, as it would otherwise.
    A slice that is put back later stays with the tensor it is of.
    """

    name: ClassVar[str] = "split-updates"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was such a chain."""
        del context
        updates: Counter[Any] = Counter()
        roots: dict[Any, Any] = {}
        cuts = []
        for op in besides_bodies(module):
            if op.name != _INSERT:
                continue
            into, result = op.operands[1], op.results[0]
            root = roots[result] = roots.get(into, into)
            updates[root] += 1
            if updates[root] % PIECE == 0 and not _is_part(root):
                cuts.append(op)
        for op in cuts:
            _cut(op)
        return bool(cuts)


def _is_part(root: Any) -> bool:
    """Whether a tensor is a view of another one, into which it may be put back."""
    owner = root.owner
    return getattr(owner, "name", "") in (
        "tensor.extract_slice",
        "tensor.collapse_shape",
        "tensor.expand_shape",
    )


def _cut(op: Any) -> None:
    """Let the users of an update take the tensor from a buffer."""
    from polyblocks import mlir

    ir = mlir.ir
    result = op.results[0]
    users = [(use.owner, use.operand_number) for use in result.uses]
    kind = ir.RankedTensorType(result.type)
    with op.location, ir.InsertionPoint.after(op):
        place = ir.MemRefType.get(kind.shape, kind.element_type)
        buffer = ir.Operation.create("bufferization.to_buffer", results=[place], operands=[result])
        tensor = ir.Operation.create(
            "bufferization.to_tensor",
            results=[kind],
            operands=[buffer.results[0]],
            attributes={"restrict": ir.UnitAttr.get(), "writable": ir.UnitAttr.get()},
        )
    for owner, number in users:
        owner.operands[number] = tensor.results[0]

"""bufferize-scans: scans, scatters, sorts and top-k work on buffers of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.tensor.control_flow import besides_bodies

#: Casts between tensors and buffers.
_VIEWS = ("bufferization.to_tensor", "bufferization.to_buffer")


@dataclass(frozen=True)
class BufferizeScansPass:
    """Bufferize the ``tm_tensor`` dialect and say of its results what one-shot analysis needs.

    The upstream pass allocates every result afresh, so it is neither an alias of anything nor
    read-only, and it only reads its operands; but it does not say so.

    Before: ``%s = tm_tensor.scan ins(%x : tensor<4xf32>) ...``; after: a ``tm_tensor.scan`` on
    buffers, ``bufferization.to_buffer %x read_only`` and ``%s = bufferization.to_tensor %buffer
    restrict writable``.
    """

    name: ClassVar[str] = "bufferize-scans"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was such an operation."""
        from polyblocks import mlir

        del context
        ir = mlir.ir
        operations = besides_bodies(module)
        if not any(op.name.startswith("tm_tensor.") for op in operations):
            return False
        before = {op for op in operations if op.name in _VIEWS}
        mlir.run_textual(module, "func.func(tm-tensor-bufferize)", verify=False)
        with module.context:
            for op in besides_bodies(module):
                if op.name not in _VIEWS or op in before:
                    continue
                if op.name == "bufferization.to_buffer":
                    op.attributes["read_only"] = ir.UnitAttr.get()
                elif "restrict" not in op.attributes:
                    op.attributes["restrict"] = ir.UnitAttr.get()
                    op.attributes["writable"] = ir.UnitAttr.get()
        return True

"""bufferize-scans: scans, scatters, sorts and top-k work on buffers of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


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

    def run(self, module: Any, context: Any) -> None:
        """Rewrite in place."""
        from polyblocks import mlir

        del context
        ir = mlir.ir
        found: list[Any] = []

        def collect(op: Any) -> Any:
            if op.name in ("bufferization.to_tensor", "bufferization.to_buffer"):
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(collect)
        before = set(found)
        found.clear()
        mlir.run_textual(module, "func.func(tm-tensor-bufferize)")
        module.operation.walk(collect)
        with module.context:
            for op in found:
                if op in before:
                    continue
                if op.name == "bufferization.to_buffer":
                    op.attributes["read_only"] = ir.UnitAttr.get()
                elif "restrict" not in op.attributes:
                    op.attributes["restrict"] = ir.UnitAttr.get()
                    op.attributes["writable"] = ir.UnitAttr.get()

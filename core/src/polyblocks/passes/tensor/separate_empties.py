"""separate-empties: every result starts in an empty tensor of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class SeparateEmptiesPass:
    """Clone ``tensor.empty`` for each use.

    Bufferization would otherwise compute one tensor in the buffer of another one that it does not
    need any more. That saves memory which fusion and memory planning save anyway, and ties
    together what fusion wants apart.

    Before::

        %e = tensor.empty() : tensor<4xf32>
        %a = linalg.generic ... outs(%e : tensor<4xf32>)
        %b = linalg.generic ... outs(%e : tensor<4xf32>)

    After: ``%a`` and ``%b`` each have a ``tensor.empty`` of their own.
    """

    name: ClassVar[str] = "separate-empties"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite in place."""
        from polyblocks.mlir import ir

        del context
        empties: list[Any] = []

        def visit(op: Any) -> Any:
            if op.name == "tensor.empty":
                empties.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in empties:
            uses = list(op.results[0].uses)
            for use in uses[1:]:
                owner = use.owner.operation
                with ir.InsertionPoint(owner):
                    copy = op.clone()
                owner.operands[use.operand_number] = copy.results[0]

"""select-elements: a choice between two tensors chooses element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts
from polyblocks.passes.tensor.control_flow import besides_bodies


@dataclass(frozen=True)
class SelectElementsPass:
    """Choose elements, not tensors: these would be pointers that nothing can follow.

    A branch that does nothing but choose is folded to such a choice.

    Before::

        %r = arith.select %p, %a, %b : tensor<4xf32>

    After::

        %r = linalg.generic ... ins(%p, %a, %b : i1, tensor<4xf32>, tensor<4xf32>) ... {
          ^bb0(%q: i1, %x: f32, %y: f32, %o: f32):
            %c = arith.select %q, %x, %y : f32
            linalg.yield %c : f32 }
    """

    name: ClassVar[str] = "select-elements"
    needs: ClassVar[frozenset[str]] = frozenset({facts.TENSORS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was such a choice."""
        from polyblocks.mlir import ir

        del context
        found = [
            op
            for op in besides_bodies(module)
            if op.name == "arith.select" and isinstance(op.results[0].type, ir.RankedTensorType)
        ]
        with module.context:
            for op in found:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(_chosen(*op.operands))
                op.erase()
        return bool(found)


def _chosen(condition: Any, first: Any, second: Any) -> Any:
    from polyblocks.mlir import dialect, ir

    type_ = ir.RankedTensorType(first.type)
    rank = type_.rank
    same = ir.AffineMap.get_identity(rank)
    scalar = (
        same if isinstance(condition.type, ir.RankedTensorType) else ir.AffineMap.get(rank, 0, [])
    )
    empty = dialect("tensor").EmptyOp(list(type_.shape), type_.element_type).result
    loop = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    new = ir.Operation.create(
        "linalg.generic",
        results=[type_],
        operands=[condition, first, second, empty],
        attributes={
            "indexing_maps": ir.ArrayAttr.get(
                [ir.AffineMapAttr.get(m) for m in (scalar, same, same, same)]
            ),
            "iterator_types": ir.ArrayAttr.get([loop] * rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([3, 1]),
        },
        regions=1,
    )
    element = type_.element_type
    block = new.regions[0].blocks.append(ir.IntegerType.get_signless(1), *[element] * 3)
    with ir.InsertionPoint(block):
        value = dialect("arith").SelectOp(*list(block.arguments)[:3]).result
        ir.Operation.create("linalg.yield", operands=[value])
    return new.results[0]

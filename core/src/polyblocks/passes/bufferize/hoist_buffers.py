"""hoist-buffers: allocations leave the loops of nests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.attributes import REGION_ATTRIBUTE
from polyblocks.passes import facts


@dataclass(frozen=True)
class HoistBuffersPass:
    """Move allocations out of nests, to the block that the nest stands in.

    A loop or branch of the program keeps those that it makes: what is allocated in an iteration
    does not outlive it, and what looks at the body knows that. Local buffers stay in their nest.

    Before::

        affine.for %i = 0 to 8 { %b = memref.alloc() : memref<4xf32> ... }

    After::

        %b = memref.alloc() : memref<4xf32>
        affine.for %i = 0 to 8 { ... }
    """

    name: ClassVar[str] = "hoist-buffers"
    needs: ClassVar[frozenset[str]] = frozenset({facts.BUFFERS})

    def run(self, module: Any, context: Any) -> None:
        """Rewrite in place."""
        from polyblocks import mlir, signature
        from polyblocks.affine.mlir.regions import nested_regions

        del context
        ir = mlir.ir
        main = signature.main_of(module)
        found: list[Any] = []
        local = False

        def collect(op: Any) -> Any:
            nonlocal local
            local |= op.name == "memref.alloca"
            if op.name == "memref.alloc" and not len(op.operands):
                found.append(op)
            return ir.WalkResult.ADVANCE

        main.operation.walk(collect)
        if not local and next(nested_regions(main.body.blocks[0]), None) is None:
            # It moves local buffers as well.
            mlir.run_textual(
                module, "func.func(buffer-hoisting,buffer-loop-hoisting)", verify=False
            )
            return
        for op in found:
            place = op
            while True:
                around = place.parent.operation
                if around == main.operation or REGION_ATTRIBUTE in around.attributes:
                    break
                place = around
            if place != op:
                op.move_before(place)

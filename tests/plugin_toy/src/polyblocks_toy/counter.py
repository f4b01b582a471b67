"""An extension: a pass at the end of the mid-level that counts loops, and an observer."""

from __future__ import annotations

from typing import Any, ClassVar

from polyblocks import hookimpl

POLYBLOCKS_API = {"configure_pipeline": 1, "observe": 1}

#: Names of the passes that ran, as seen by the observer.
SEEN: list[str] = []


class CountLoopsPass:
    """Reports how many affine loops are left; changes nothing."""

    name: ClassVar[str] = "toy-count-loops"

    def run(self, module: Any, context: Any) -> None:
        """Count, and report a decision that `explain` shows."""
        loops = 0

        def visit(op: Any) -> Any:
            nonlocal loops
            loops += op.name in ("affine.for", "affine.parallel")
            return WALK_ON

        from polyblocks.mlir import ir

        WALK_ON = ir.WalkResult.ADVANCE
        module.operation.walk(visit)
        context.decide(self.name, "module", "loops counted", loops=loops)


@hookimpl
def configure_pipeline(pipeline: Any) -> None:
    """Add the pass at the end of S3."""
    pipeline.append("S3", CountLoopsPass())


@hookimpl
def observe(event: Any) -> None:
    """Remember which passes ran."""
    if event.kind == "pass-end":
        SEEN.append(event.data["name"])

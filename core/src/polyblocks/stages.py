"""The stages of a compilation, and how far a module came."""

from __future__ import annotations

from typing import Any

from polyblocks.attributes import RESUME_ATTRIBUTE

#: Stage -> its readable name; together they are the dump's file name and the resume point.
STAGES: dict[str, str] = {
    "S1": "tensor",
    "S2": "affine",
    "S3": "midlevel",
    "S4": "target",
    "S5": "llvm",
}


def mark(module: Any, done: str | None) -> None:
    """Record in the module how far it came (``S2`` or ``S3:fuse-slices``); None takes it away."""
    from polyblocks import mlir

    attributes = module.operation.attributes
    if done is None:
        if RESUME_ATTRIBUTE in attributes:
            del attributes[RESUME_ATTRIBUTE]
        return
    with module.context:
        attributes[RESUME_ATTRIBUTE] = mlir.ir.StringAttr.get(done)

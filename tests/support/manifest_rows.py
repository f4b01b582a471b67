"""Rows of manifests, for programs that no compiler made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks.program import ArraySpec


def row(
    role: str,
    name: str,
    shape: Sequence[int] = (2, 3),
    dtype: str = "float32",
    strides: Sequence[int] | None = None,
    updates: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """An argument in a manifest."""
    spec = ArraySpec.contiguous(tuple(shape), dtype)
    return {
        "role": role,
        "name": name,
        "dtype": dtype,
        "shape": list(shape),
        "strides": list(spec.strides if strides is None else strides),
        "constant": False,
        "updates": updates,
        **more,
    }

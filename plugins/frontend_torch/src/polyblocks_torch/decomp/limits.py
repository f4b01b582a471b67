"""Sizes up to which factorizations are compiled, where these depend on the device."""

from __future__ import annotations

import torch

from polyblocks.algorithms.factorizations.limits import (
    MOST_REFLECTED,
    MOST_REFLECTED_BY_ONE_OF_MANY,
    most_rotated,
    most_valued,
)


def most_reflected(a: torch.Tensor) -> int:
    """How many columns are reflected, at most: QR and products of reflections."""
    return MOST_REFLECTED if a.device.type == "cpu" else MOST_REFLECTED_BY_ONE_OF_MANY


def most_decomposed(a: torch.Tensor, *, vectors: bool) -> int:
    """How many rows or columns matrices have, at most, whose eigenvalues, or singular values, are
    computed: with their vectors, or without."""
    if a.device.type != "cpu":
        return most_rotated(a.shape)
    return most_valued(a.shape, vectors=vectors)

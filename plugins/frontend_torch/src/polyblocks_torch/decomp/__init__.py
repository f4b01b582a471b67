"""Decompositions of ops that neither PyTorch's own tables nor torch-mlir cover rightly."""

from polyblocks_torch.decomp import (
    attention,
    bits,
    comparisons,
    contractions,
    copies,
    division,
    factories,
    indexing,
    movement,
    multiply_add,
    pooling,
    powers,
    reductions,
    scans,
    sorting,
    special,
    variance,
)
from polyblocks_torch.decomp.registry import REGISTRY

__all__ = [
    "REGISTRY",
    "attention",
    "bits",
    "comparisons",
    "contractions",
    "copies",
    "division",
    "factories",
    "indexing",
    "movement",
    "multiply_add",
    "pooling",
    "powers",
    "reductions",
    "scans",
    "sorting",
    "special",
    "variance",
]

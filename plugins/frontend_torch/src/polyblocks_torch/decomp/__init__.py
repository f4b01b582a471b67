"""Decompositions of ops that neither PyTorch's own tables nor torch-mlir cover rightly."""

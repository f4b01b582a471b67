"""Captures -> linalg on tensors, through torch-mlir."""

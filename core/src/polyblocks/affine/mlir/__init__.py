"""From MLIR to the model of nests, and back."""

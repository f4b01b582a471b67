"""PyTorch frontend of PolyBlocks."""

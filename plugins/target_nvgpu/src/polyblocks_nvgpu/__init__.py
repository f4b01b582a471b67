"""NVIDIA GPU target of PolyBlocks."""

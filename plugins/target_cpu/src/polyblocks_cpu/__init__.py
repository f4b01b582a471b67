"""CPU target of PolyBlocks."""

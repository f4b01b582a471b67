"""AMD GPU target of PolyBlocks."""

"""PolyBlocks: a compiler for tensor programs."""

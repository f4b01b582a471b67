"""An out-of-tree plugin of PolyBlocks: the target `toy` and an extension."""

"""Graph rewrites before the import: what torch-mlir lacks, crashes on, or gets wrong."""

from polyblocks_torch.rewrites.pipeline import rewrite_graph

__all__ = ["rewrite_graph"]

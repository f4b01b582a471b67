"""Recurrent layers as loops over time."""

from polyblocks_torch.recurrent.rewrite import RECURRENT, as_loops

__all__ = ["RECURRENT", "as_loops"]

"""Stage S2: from tensors to affine nests over buffers."""

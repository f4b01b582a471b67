"""Fusion of nests through the buffers between them, for passes that weigh it."""

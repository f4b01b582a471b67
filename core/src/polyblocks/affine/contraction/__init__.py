"""Contractions for vector registers and caches: what they are made of, their tiles, the code."""

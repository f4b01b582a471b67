"""Buffers renamed, and split in parts."""

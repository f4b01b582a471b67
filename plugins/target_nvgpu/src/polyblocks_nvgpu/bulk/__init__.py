"""Bulk copies: boxes of arrays, and how the driver describes these."""

"""Nests whose innermost loops are vectors."""

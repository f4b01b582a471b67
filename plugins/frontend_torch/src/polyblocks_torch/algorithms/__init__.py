"""Ops that are algorithms of the core."""

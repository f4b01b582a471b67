"""Calls of compiled programs with tensors."""

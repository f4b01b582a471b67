"""Zeros around arrays and between their elements."""

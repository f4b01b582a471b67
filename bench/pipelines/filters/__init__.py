"""Filters of one image: every pixel of the result is made of those around it."""

"""Annotations of nests: kinds, names, estimates."""

"""Graphs that do not compile whole: parts that do, and operations that PyTorch runs."""

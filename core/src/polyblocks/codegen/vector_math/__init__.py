"""Vector math: elementary functions as straight-line arithmetic that any target vectorizes."""

from polyblocks.codegen.vector_math.expand import EXPANDED, expand_math

__all__ = ["EXPANDED", "expand_math"]

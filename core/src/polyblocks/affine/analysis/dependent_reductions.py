"""Whether nests that would be fused reduce what others of them have reduced."""

from __future__ import annotations

from collections.abc import Iterable

from polyblocks.affine.model import Buffer, For, Nest, reads, walk, writes


def reduces(nest: Nest) -> bool:
    """Whether a loop of the nest carries a value: reductions, contractions and scans."""
    return any(isinstance(node, For) and node.inits for node in walk(nest.body))


def have_dependent_reductions(nests: Iterable[Nest]) -> bool:
    """Whether one of these nests reduces what comes out of a reduction in another one of them.

    So do the sum and the maximum of a softmax, also with a point-wise nest between them; a sum and
    a sum of squares over the same array do not.

    Args:
        nests: in the order of the program.
    """
    reduced: set[Buffer] = set()
    for nest in nests:
        dependent = any(buffer.base in reduced for buffer in reads(nest))
        if dependent and reduces(nest):
            return True
        if dependent or reduces(nest):
            reduced.update(buffer.base for buffer in writes(nest))
    return False

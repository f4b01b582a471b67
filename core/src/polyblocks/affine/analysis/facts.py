"""Facts about a nest, computed once and forgotten when the nest changes."""

from __future__ import annotations

from functools import cached_property

from polyblocks.affine.analysis.contractions import Contraction, contraction_of
from polyblocks.affine.model import Nest, Node


class NestFacts:
    """Facts about code that stands as a nest does, each computed when first asked for.

    Facts refer to the nodes themselves: who changes these calls :meth:`Nest.replace`.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes

    @cached_property
    def contraction(self) -> Contraction | None:
        """Its parts, if it is a contraction."""
        return contraction_of(self._nodes)


def facts_of(nest: Nest) -> NestFacts:
    """The facts about a nest as it is now."""
    return nest.derived(NestFacts)

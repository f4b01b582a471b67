"""Nests that are contractions once the nests are fused that compute their factors."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from polyblocks.affine.analysis.facts import NestFacts
from polyblocks.affine.contraction.products.factors import has_units, is_product
from polyblocks.affine.contraction.tilings.eligibility import is_tiled, may_be_tiled
from polyblocks.affine.model import For, Nest, walk
from polyblocks.affine.rewrites.inlining import with_conversions, with_producers
from polyblocks.affine.users import Users
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class ProductNests:
    """Which nests are contractions worth keeping as such, by their structure and the target.

    Attributes:
        users: of the buffers of all nests. Stays right while nests read and write the same ones.
        target: where they will run.
    """

    users: Users
    target: TargetDescription

    def fits_unit(self, nest: Nest) -> bool:
        """Whether a matrix unit of blocks can compute a nest, with conversions of its factors."""
        if not has_units(self.target):
            return False
        body = with_conversions(nest, self.users)
        return is_product(NestFacts(body).contraction, self.target)

    def fits_tiles(self, nest: Nest) -> bool:
        """Whether a nest is large enough for tiles of any kind, with producers read once."""
        loops = [n for n in walk(nest.body) if isinstance(n, For)]
        extents = [loop.var.extent for loop in loops if not loop.inits]
        steps = prod(loop.var.extent for loop in loops if loop.inits)
        if not self.target.tiles_contractions or not may_be_tiled(extents, steps):
            return False
        return is_tiled(NestFacts(with_producers(nest, self.users)).contraction, self.target)

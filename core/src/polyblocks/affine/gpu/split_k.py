"""In how many parts the steps of a contraction are done: by the predicted times of its kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, gcd
from typing import Any

from polyblocks.affine.access import strides
from polyblocks.affine.analysis.facts import facts_of
from polyblocks.affine.analysis.reductions import ReductionNest, identities
from polyblocks.affine.contraction.products.factors import is_product
from polyblocks.affine.cost.constants import WORTH_PARTS
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.gpu.choose import choose, copy_of
from polyblocks.affine.gpu.plans.unit_access import unit_accesses
from polyblocks.affine.gpu.tiles.lanes_cost import least_of_all
from polyblocks.affine.gpu.tiles.units_cost import least_units
from polyblocks.affine.model import AffineAccess, For, Nest, Op, walk
from polyblocks.affine.rewrites.parts import split
from polyblocks.target import TargetDescription

#: Steps of a part are a multiple of these, where they are more: whole tiles, and whole pieces.
_GRAIN = 32
#: Steps of a part, at least: a part begins and ends as a whole contraction does.
_LEAST = 128
#: Times that are alike: the largest over the least.
_ALIKE = 1.03
#: Tiles per multiprocessor from which split-K is not needed: the last wave costs little.
_ENOUGH = 4


@dataclass(frozen=True)
class Parts:
    """A contraction in parts.

    Attributes:
        length: iterations of the outermost reduction loop in a part.
        count: of the parts.
        zeros: whether what the last part lacks is loaded as zeros, see :func:`split`.
        blocks: of the kernel that computes the parts.
        seconds: of the parts, of joining them, and of launching one more kernel.
        whole_seconds: in one part.
    """

    length: int
    count: int
    zeros: bool
    blocks: int
    seconds: float
    whole_seconds: float


class Choice:
    """In how many parts contractions are done; what is asked of equal ones is found out once.

    Args:
        target: with grids of blocks, and all rates.
    """

    def __init__(self, target: TargetDescription) -> None:
        self._target = target
        self._found: dict[tuple[Any, ...], Parts | None] = {}
        #: The variables that stand for those of loops, by the loop's number and extent.
        self._variables: dict[tuple[int, int], Var] = {}

    def of(self, nest: Nest, shape: ReductionNest) -> tuple[Parts, list[Op]] | None:
        """The quickest number of parts, and what combines the values that the nest carries.

        None if it is one part, no contraction, or cannot be joined.

        Args:
            nest: anything; it stays as it is.
            shape: its parts.
        """
        parts = facts_of(nest).contraction
        if parts is None or not parts.reduction.loops or shape.trips < 2 * _LEAST:
            return None
        # The unit of a product adds in an order of its own.
        product = is_product(parts, self._target)
        combiners = shape.combiners(any_order=not product)
        if combiners is None or identities(combiners) is None:
            return None
        key = self._signature(nest)
        if key not in self._found:
            self._found[key] = _Trials(nest, shape, product, self._target).best()
        found = self._found[key]
        return None if found is None else (found, combiners)

    def _signature(self, nest: Nest) -> tuple[Any, ...]:
        """Equal for nests that differ in names, values and buffers alone."""
        loops: dict[Var, Expr] = {}

        def with_loop_positions(found: Iterable[Expr]) -> tuple[Expr, ...]:
            return tuple(e.substitute(loops) for e in found)

        rows: list[tuple[Any, ...]] = []
        for node in walk(nest.body):
            row: tuple[Any, ...] = (type(node), *(str(v.type) for v in node.uses))
            if isinstance(node, For):
                place = len(loops), node.var.extent
                loops[node.var] = Expr.of(self._variables.setdefault(place, Var(node.var.extent)))
                row += (*place, len(node.body))
            elif isinstance(node, Op):
                row += (node.name,)
            elif isinstance(node, AffineAccess):
                buffer = node.buffer
                row += (
                    buffer.shape,
                    strides(buffer),
                    str(buffer.element),
                    with_loop_positions(node.index),
                    with_loop_positions(node.where),
                )
            rows.append(row)
        return tuple(rows)


class _Trials:
    """The numbers of parts that are tried for a contraction."""

    def __init__(
        self, nest: Nest, shape: ReductionNest, product: bool, target: TargetDescription
    ) -> None:
        self._nest, self._shape, self._product, self._target = nest, shape, product, target
        self._extent = shape.reductions[0].var.extent
        self._whole = 0.0
        #: By the length of a part.
        self._tried: dict[int, Parts] = {}

    def best(self) -> Parts | None:
        """First by factors of two, then what fills multiprocessors with tiles like the best."""
        units = max(self._target.shared_level.size, 1)
        kernel, predicted = choose(copy_of(self._nest), self._target)
        self._whole = predicted.seconds
        enough = bool(kernel.plan.tile) and kernel.plan.blocks >= _ENOUGH * units
        least = self._target.shared_level.overhead + self._compute_bound()
        if enough or WORTH_PARTS * self._whole <= least:
            return None
        count = 2
        while count <= _ENOUGH * units:
            length = self._length(count)
            if length * self._shape.trips // self._extent < _LEAST:
                break
            seconds = self._try(length)
            if seconds > 2 * min([self._whole, *(p.seconds for p in self._tried.values())]):
                break
            count *= 2
        if (best := self._quickest()) is not None:
            tiles, most = -(-best.blocks // best.count), 2 * best.count
            for each in range(1, _ENOUGH + 1):
                if 2 <= each * units // tiles <= most:
                    self._try(self._length(each * units // tiles))
        best = self._quickest()
        if best is None or best.seconds > WORTH_PARTS * self._whole:
            return None
        # Of equally good ones that which leaves the fewest multiprocessors without a block.
        alike = [p for p in self._tried.values() if p.seconds <= _ALIKE * best.seconds]
        return max(alike, key=lambda p: (min(p.blocks, units), -p.seconds))

    def _quickest(self) -> Parts | None:
        """The first of the quickest, if they are quicker than one part."""
        best = min(self._tried.values(), key=lambda p: p.seconds, default=None)
        return best if best is not None and best.seconds < self._whole else None

    def _compute_bound(self) -> float:
        """Seconds of all products on all units at once, which parts do not go below."""
        parts = facts_of(self._nest).contraction
        assert parts is not None
        found = unit_accesses(parts, self._target.matrix_units)
        return least_units(found[0]) if found else least_of_all(parts, self._target)

    def _try(self, length: int) -> float:
        """Seconds with parts of a length."""
        if length == self._extent:
            return self._whole
        if length in self._tried:
            return self._tried[length].seconds
        copied = copy_of(self._nest)
        shape = ReductionNest.of(copied)
        assert shape is not None
        combiners = shape.combiners(any_order=not self._product)
        assert combiners is not None
        nests = split(copied, shape, combiners, length, zeros=self._product)
        found = [choose(each, self._target) for each in nests]
        seconds = sum(predicted.seconds for _, predicted in found)
        seconds += (len(found) - 1) * self._target.shared_level.overhead
        count, blocks = ceil(self._extent / length), found[0][0].plan.blocks
        self._tried[length] = Parts(length, count, self._product, blocks, seconds, self._whole)
        return seconds

    def _length(self, count: int) -> int:
        """The length of ``count`` parts, or of fewer: of whole tiles, if it is more than one.

        But for products all parts are of the same.
        """
        length = ceil(self._extent / count)
        grain = _GRAIN // gcd(self._shape.trips // self._extent, _GRAIN)
        if length > grain:
            length = min(self._extent, ceil(length / grain) * grain)
        if not self._product:
            length = next(n for n in range(length, self._extent + 1) if self._extent % n == 0)
        return length

"""Which tiling a contraction gets: the one that the model predicts to be the fastest."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import prod

from polyblocks.affine.analysis.contractions import Contraction
from polyblocks.affine.contraction.copies import operand_time
from polyblocks.affine.contraction.kept_panels import batch_of, can_be_kept
from polyblocks.affine.contraction.products.flat_product import FlatProduct, products_of
from polyblocks.affine.contraction.tile_prologue import Prologues, TilePrologue
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.contraction.tilings.tiling_cost import TilingCost
from polyblocks.affine.contraction.tilings.tiling_space import TilingSpace
from polyblocks.affine.element import element_bytes
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.likeness import likeness
from polyblocks.affine.model import Node, Sequence
from polyblocks.target import TargetDescription


@dataclass(frozen=True)
class Tiled:
    """A contraction as the product that it is tiled as.

    Attributes:
        cost: the product, and what its tilings cost.
        tiling: the best one.
        seconds: the predicted time; None if the target's rate is unknown.
    """

    cost: TilingCost
    tiling: Tiling
    seconds: float | None


class Choices:
    """The tilings chosen for some code; several passes choose for it, and layers are alike.

    Attributes:
        code: the key of the code, see :func:`likeness`.

    Args:
        sequence: that the code is in, which keeps them.
        nodes: the code of a contraction.
    """

    def __init__(self, sequence: Sequence, nodes: list[Node]) -> None:
        self._chosen: dict[Hashable, Tiling | None] = sequence.memos.setdefault(Choices, {})
        self.code = likeness(nodes, anywhere=True)

    def of(self, cost: TilingCost, number: int) -> Tiling | None:
        """The choice of :func:`choose_tiling` for one of the products that the code can be."""
        kept = tuple([operand.kept for operand in cost.product.operands])
        key = self.code, number, kept, cost.available, cost.lasting
        if key not in self._chosen:
            self._chosen[key] = choose_tiling(cost)
        return self._chosen[key]


def tilings_of(
    contraction: Contraction,
    views: FlatViews,
    target: TargetDescription,
    threads: int | None,
    prologues: Prologues | None = None,
    choices: Choices | None = None,
) -> Iterator[Tiled]:
    """The best tiling of each product that a contraction can be seen as, the fastest one first.

    Tilings of a product are compared when it may be the next one: of most contractions no other
    than the fastest is asked for.

    Args:
        contraction: what is tiled.
        views: one-dimensional views of the program's buffers.
        target: the chip.
        threads: threads for it; None for all that there are.
        prologues: code ahead, which may fill panels.
        choices: those known for the contraction's code; None: each is made anew.
    """
    products = candidate_products(contraction, views, target, prologues)
    costs = [cost_of(product, target, threads, prologues) for product in products]
    # Time, whether it is that of a tiling and not a bound, number of the product, and its tiling.
    ranked: list[tuple[float, bool, int, Tiled | None]] = [
        (
            _comparable(cost, cost.least_time(TilingSpace(cost).register_tiles())),
            False,
            number,
            None,
        )
        for number, cost in enumerate(costs)
    ]
    heapify(ranked)
    while ranked:
        _, _, number, tiled = heappop(ranked)
        if tiled is not None:
            yield tiled
            continue
        cost = costs[number]
        tiling = choose_tiling(cost) if choices is None else choices.of(cost, number)
        if tiling is not None:
            time = cost.time(tiling)
            tiled = Tiled(cost, tiling, cost.seconds(time))
            heappush(ranked, (_comparable(cost, time), True, number, tiled))


def _comparable(cost: TilingCost, time: float) -> float:
    """Seconds of a time if they are known: units differ in what a multiply-add of theirs takes."""
    seconds = cost.seconds(time)
    return time if seconds is None else seconds


def candidate_products(
    contraction: Contraction,
    views: FlatViews,
    target: TargetDescription,
    prologues: Prologues | None = None,
) -> list[FlatProduct]:
    """The products that a contraction can be seen as, with the operands that can be prepacked."""
    products = products_of(contraction, views, target)
    if prologues is not None:
        for product in products:
            for operand in product.operands:
                operand.kept = can_be_kept(operand, product, prologues)
    return products


def cost_of(
    product: FlatProduct,
    target: TargetDescription,
    threads: int | None,
    prologues: Prologues | None,
) -> TilingCost:
    """The cost of tilings of a product; see :func:`tilings_of`."""
    bits = max(8 * element_bytes(v.type) for v in product.results)
    lasting = 0 if prologues is None else prologues.lasting_bytes
    return TilingCost(product, target, target.vector_bits // bits, threads, lasting)


def choose_tiling(cost: TilingCost) -> Tiling | None:
    """The fastest tiling of a product on a target, the first of equals; None if it has none."""
    return min(TilingSpace(cost).tilings(), key=cost.time, default=None)


def filling_seconds(cost: TilingCost, prologues: Prologues | None) -> float:
    """Seconds in which all threads fill the panels of a call, for a contraction in tiles.

    Args:
        cost: of the product.
        prologues: what fills its panels.
    """
    product, total = cost.product, 0.0
    for operand in product.operands if prologues is not None else ():
        assert prologues is not None
        if not operand.kept or not isinstance(prologues.of(operand.nodes), TilePrologue):
            continue
        each = operand_time(product, operand, cost.width) * cost.core.unit_rate
        batch = prod(v.extent for v in batch_of(operand, product))
        total += each * batch * product.column.extent * product.step.extent
    return (cost.seconds(total) or 0.0) / max(cost.target.shared_level.size, 1)

"""A tiled contraction's schedule as data: what ``plan-contractions`` decides and
``tile-contractions`` obeys.

:mod:`polyblocks.affine.plan.keys` has the keys. A key that is left out has the value that it has in
the fastest schedule with those that are given. Values that the contraction or the chip does not
allow are refused, with the limit that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.contraction.products.flat_product import FlatProduct
from polyblocks.affine.contraction.products.windows import innermost
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.contraction.tilings.choice import Tiled
from polyblocks.affine.contraction.tilings.tiling_cost import TilingCost
from polyblocks.affine.contraction.tilings.tiling_space import TILE_BYTES, TilingSpace
from polyblocks.affine.plan.keys import PlanKind, keys_of
from polyblocks.affine.plan.schedule import Schedule, printed
from polyblocks.affine.plan.tiles import Tiles

#: Keys that say which product a contraction is seen as.
_OF_PRODUCT = ("transposed", "staged", "windows", "unit")


def schedule_of(tiled: Tiled) -> dict[str, Any]:
    """The whole schedule of a contraction in tiles."""
    found = _of_product(tiled.cost.product) | _of_tiling(tiled.tiling)
    return printed(PlanKind.CORES, found)


def _of_product(product: FlatProduct) -> dict[str, Any]:
    found: dict[str, Any] = {
        "transposed": product.transposed,
        "staged": product.waits,
        "windows": product.windows is not None,
    }
    return found if product.unit is None else found | {"unit": product.unit.name}


def _of_tiling(tiling: Tiling) -> dict[str, Any]:
    return {
        **tiling.tiles.schedule(),
        "sum_chunk": tiling.chain,
        "chunks": [tiling.row_pieces, tiling.column_pieces],
        "packed": [tiling.pack_rows, tiling.pack_columns],
        "threads": tiling.threads,
    }


def scheduled(
    products: Sequence[FlatProduct],
    cost_of: Callable[[FlatProduct], TilingCost],
    schedule: Schedule,
) -> Tiled:
    """The contraction in the tiles of a schedule.

    Args:
        products: what it can be seen as.
        cost_of: the cost of tilings of one of these.
        schedule: of cores.

    Raises:
        UnsupportedError: the contraction or the chip does not allow for the schedule; says why.
    """
    schedule.check_keys(PlanKind.CORES)
    return _Tilings(products, cost_of, schedule).tiled()


@dataclass(frozen=True)
class _Tilings:
    """Tilings of the products of a contraction, as one schedule asks for them."""

    products: Sequence[FlatProduct]
    cost_of: Callable[[FlatProduct], TilingCost]
    schedule: Schedule

    def tiled(self) -> Tiled:
        """The tiles of the schedule."""
        costs = self._costs()
        given = {k: v for k, v in self.schedule.given.items() if k not in _OF_PRODUCT}
        sizes = [key for key in keys_of(PlanKind.CORES) if key not in _OF_PRODUCT]
        if len(given) == len(sizes):
            return self._obeyed(costs[0], self.schedule)
        fastest = min(
            (
                (cost.time(tiling) * (cost.core.seconds or 1.0), i, tiling)
                for i, cost in enumerate(costs)
                for tiling in TilingSpace(cost).tilings()
                if given.items() <= _of_tiling(tiling).items()
            ),
            key=lambda one: one[:2],
            default=None,
        )
        if fastest is None:
            missing = [key for key in sizes if key not in given]
            raise self.schedule.unexpected(
                "sizes of a schedule that the model knows, where keys are left out",
                dict(given),
                f"add {', '.join(missing)}",
            )
        _, i, tiling = fastest
        whole = Schedule(_of_tiling(tiling), self.schedule.name, self.schedule.chip)
        return self._obeyed(costs[i], whole)

    def _costs(self) -> list[TilingCost]:
        """The products that the schedule may mean."""
        asked = {k: self.schedule.given[k] for k in _OF_PRODUCT if k in self.schedule}
        known = [_of_product(product) for product in self.products]
        found = [
            self.cost_of(product)
            for product, keys in zip(self.products, known, strict=True)
            # No unit unless one is named.
            if asked.items() <= keys.items() and ("unit" in keys) == ("unit" in asked)
        ]
        if not found:
            possible = "; ".join(str(keys) for keys in known) or "none: the nest is no contraction"
            raise self.schedule.unexpected(f"one of these products: {possible}", asked)
        return found

    def _obeyed(self, cost: TilingCost, given: Schedule) -> Tiled:
        tiles = Tiles.read(given)
        (rows, lanes), (row_block, column_block) = tiles.register_tile, tiles.block_tile
        row_pieces, column_pieces = given.pair("chunks")
        pack_rows, pack_columns = given.choices("packed")
        tiling = Tiling(
            rows=rows,
            lanes=lanes,
            depth=tiles.k_block,
            chain=given.number("sum_chunk"),
            row_block=row_block,
            column_block=column_block,
            row_pieces=row_pieces,
            column_pieces=column_pieces,
            pack_rows=pack_rows,
            pack_columns=pack_columns,
            threads=given.number("threads"),
        )
        self._check_registers(cost, tiling)
        self._check_blocks(cost, tiling)
        self._check_steps(cost, tiling)
        self._check_threads(cost, tiling)
        return Tiled(cost, tiling, cost.seconds(cost.time(tiling)))

    # Limits

    def _check_registers(self, cost: TilingCost, tiling: Tiling) -> None:
        self.schedule.at_most(tiling.rows, cost.rows, "elements along M", "register_tile")
        if tiling.lanes % cost.width:
            raise self.schedule.unexpected(
                f"whole vectors of {cost.width} elements along N in 'register_tile'", tiling.lanes
            )
        vectors = tiling.lanes // cost.width
        if cost.unit is not None:
            down = -(-tiling.rows // cost.unit.shape[0])
            needed, limit = down * vectors + down + vectors, cost.unit.registers
            self.schedule.at_most(needed, limit, f"registers of {cost.unit.name}", "register_tile")
            return
        # The sums, a vector of each column, and an element of a row.
        needed = tiling.rows * vectors * len(cost.product.results) + vectors + 1
        limit = cost.target.vector_registers
        self.schedule.within_chip(needed, limit, "vector registers", "register_tile")
        windows = cost.product.windows
        if windows is not None and windows.run % tiling.rows:
            raise self.schedule.unexpected(
                f"a divisor of {windows.run} (elements in line) along M in 'register_tile', since "
                "'windows' is true",
                tiling.rows,
            )

    def _check_blocks(self, cost: TilingCost, tiling: Tiling) -> None:
        product = cost.product
        multiple, of = self.schedule.multiple, "register tiles along"
        multiple("block_tile", tiling.row_block, tiling.rows, f"{of} M", cost.rows)
        multiple("block_tile", tiling.column_block, tiling.lanes, f"{of} N", cost.columns)
        if cost.by_rows or (product.waits and len(product.columns) > 1):
            column, what = product.columns[-1].extent, "columns of one loop"
            multiple("block_tile", tiling.column_block, column, what, cost.columns)
        if product.windows is not None and tiling.pack_rows:
            expected = "false for 'packed' along M, since 'windows' is true"
            raise self.schedule.unexpected(expected, "true")
        # Even blocks may be fewer than the threads that they are for.
        tiles = (-(-cost.rows // tiling.rows), -(-cost.columns // tiling.lanes))
        pairs = zip((tiling.row_pieces, tiling.column_pieces), tiles, "MN", strict=True)
        for chunks, count, side in pairs:
            self.schedule.at_most(
                chunks, count, f"chunks along {side} (one a register tile)", "chunks"
            )

    def _check_steps(self, cost: TilingCost, tiling: Tiling) -> None:
        product, steps = cost.product, cost.steps
        self.schedule.at_most(tiling.depth, steps, "steps along K", "k_block")
        self.schedule.at_most(tiling.chain, tiling.depth, "steps of a pass", "sum_chunk")
        windows = product.windows
        if windows is not None and innermost(windows.steps, tiling.depth) is None:
            raise self.schedule.unexpected(
                f"'k_block' to be whole inner loops of {windows.steps} and a part of the next one "
                f"that divides it, such as {windows.pass_steps(tiling.depth)}, since 'windows' is "
                "true",
                tiling.depth,
            )
        if cost.unit is not None and (steps % tiling.depth or tiling.chain != tiling.depth):
            raise self.schedule.unexpected(
                f"'k_block' to divide {steps}, and 'sum_chunk' to be the same, since "
                f"{cost.unit.name} adds them up",
                (tiling.depth, tiling.chain),
            )

    def _check_threads(self, cost: TilingCost, tiling: Tiling) -> None:
        if cost.available is not None:
            self.schedule.at_most(
                tiling.threads, cost.available, "threads inside of a tile", "threads"
            )
            used, of = cost.panel_bytes(tiling), "bytes of panels on a thread's stack"
            self.schedule.at_most(used, TILE_BYTES, of, "block_tile")

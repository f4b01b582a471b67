"""A tiled contraction's schedule as data: what ``plan-contractions`` decides and
``tile-contractions`` obeys.

It is a dictionary, the attribute ``polyblocks.schedule`` of the contraction's outermost loop, with
the keys of :data:`KEYS`. A key that is left out has the value that it has in the fastest schedule
with those that are given. Values that the contraction or the chip does not allow are refused, with
the limit that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.affine.contraction.products.flat_product import FlatProduct
from polyblocks.affine.contraction.products.windows import innermost
from polyblocks.affine.contraction.tiling import Tiling
from polyblocks.affine.contraction.tilings.choice import Tiled
from polyblocks.affine.contraction.tilings.tiling_cost import TilingCost
from polyblocks.affine.contraction.tilings.tiling_space import TILE_BYTES, TilingSpace
from polyblocks.errors import UnsupportedError

#: Key -> what it means. M, N and K are rows, columns and steps of the product.
KEYS: dict[str, str] = {
    "register_tile": "elements of the result along M and N whose sums are in registers; along N "
    "they are whole vectors",
    "cache_block": "elements along M and N that are worked on together",
    "k_block": "steps along K in one pass over a block; sums wait in a buffer between passes",
    "sum_chunk": "steps along K that are added up before they are added to the total",
    "chunks": "parts along M and N that threads are given",
    "packed": "whether the operand along M, and that along N, is copied in the order of its use; "
    "what cannot be used in place is copied anyway",
    "threads": "how many share the chunks",
    "transposed": "whether M is what the nest's columns are",
    "staged": "whether results wait in a buffer and are stored from there",
    "windows": "whether the operand along M is used in place, loop by loop",
    "unit": "the matrix unit that computes steps; left out if none does",
}
#: Keys that say which product a contraction is seen as.
_OF_PRODUCT = ("transposed", "staged", "windows", "unit")


def schedule_of(tiled: Tiled) -> dict[str, Any]:
    """The whole schedule of a contraction in tiles."""
    return _of_product(tiled.cost.product) | _of_tiling(tiled.tiling)


def _of_product(product: FlatProduct) -> dict[str, Any]:
    found: dict[str, Any] = {
        "transposed": product.transposed,
        "staged": product.waits,
        "windows": product.windows is not None,
    }
    return found if product.unit is None else found | {"unit": product.unit.name}


def _of_tiling(tiling: Tiling) -> dict[str, Any]:
    return {
        "register_tile": [tiling.rows, tiling.lanes],
        "cache_block": [tiling.row_block, tiling.column_block],
        "k_block": tiling.depth,
        "sum_chunk": tiling.chain,
        "chunks": [tiling.row_pieces, tiling.column_pieces],
        "packed": [tiling.pack_rows, tiling.pack_columns],
        "threads": tiling.threads,
    }


def scheduled(
    products: Sequence[FlatProduct],
    cost_of: Callable[[FlatProduct], TilingCost],
    schedule: Mapping[str, Any],
    name: str,
) -> Tiled:
    """The contraction in the tiles of a schedule.

    Args:
        products: what it can be seen as.
        cost_of: the cost of tilings of one of these.
        schedule: see :data:`KEYS`.
        name: of the nest, for messages.

    Raises:
        UnsupportedError: the contraction or the chip does not allow for the schedule; says why.
    """
    return _Schedule(products, cost_of, schedule, name).tiled()


@dataclass(frozen=True)
class _Schedule:
    """One schedule being read."""

    products: Sequence[FlatProduct]
    cost_of: Callable[[FlatProduct], TilingCost]
    schedule: Mapping[str, Any]
    name: str

    def refuse(self, expected: str, got: Any, fix: str = "") -> UnsupportedError:
        """The error for a value that the schedule must not have."""
        end = f"; {fix}" if fix else ""
        return UnsupportedError(
            f"invalid schedule for '{self.name}': expected {expected}, got {got}{end}"
        )

    def tiled(self) -> Tiled:
        """The tiles of the schedule."""
        unknown = sorted(self.schedule.keys() - KEYS.keys())
        if unknown:
            raise self.refuse(f"keys among {', '.join(KEYS)}", f"'{unknown[0]}'")
        costs = self._costs()
        given = {k: v for k, v in self.schedule.items() if k not in _OF_PRODUCT}
        if len(given) + len(_OF_PRODUCT) == len(KEYS):
            return self._obeyed(costs[0], given)
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
            missing = [k for k in KEYS if k not in self.schedule and k not in _OF_PRODUCT]
            raise self.refuse(
                "sizes of a schedule that the model knows, where keys are left out",
                dict(given),
                f"add {', '.join(missing)}",
            )
        _, i, tiling = fastest
        return self._obeyed(costs[i], _of_tiling(tiling))

    def _costs(self) -> list[TilingCost]:
        """The products that the schedule may mean."""
        asked = {k: self.schedule[k] for k in _OF_PRODUCT if k in self.schedule}
        known = [_of_product(product) for product in self.products]
        found = [
            self.cost_of(product)
            for product, keys in zip(self.products, known, strict=True)
            # No unit unless one is named.
            if asked.items() <= keys.items() and ("unit" in keys) == ("unit" in asked)
        ]
        if not found:
            possible = "; ".join(str(keys) for keys in known) or "none: the nest is no contraction"
            raise self.refuse(f"one of these products: {possible}", asked)
        return found

    def _obeyed(self, cost: TilingCost, given: Mapping[str, Any]) -> Tiled:
        rows, lanes = self._pair(given, "register_tile")
        row_block, column_block = self._pair(given, "cache_block")
        row_pieces, column_pieces = self._pair(given, "chunks")
        pack_rows, pack_columns = self._choices(given, "packed")
        tiling = Tiling(
            rows=rows,
            lanes=lanes,
            depth=self._number(given, "k_block"),
            chain=self._number(given, "sum_chunk"),
            row_block=row_block,
            column_block=column_block,
            row_pieces=row_pieces,
            column_pieces=column_pieces,
            pack_rows=pack_rows,
            pack_columns=pack_columns,
            threads=self._number(given, "threads"),
        )
        self._check_registers(cost, tiling)
        self._check_blocks(cost, tiling)
        self._check_steps(cost, tiling)
        self._check_threads(cost, tiling)
        return Tiled(cost, tiling, cost.seconds(cost.time(tiling)))

    # Values

    def _number(self, given: Mapping[str, Any], key: str) -> int:
        value = given[key]
        if type(value) is not int or value < 1:
            raise self.refuse(f"'{key}' to be a whole number from 1 on", repr(value))
        return value

    def _pair(self, given: Mapping[str, Any], key: str) -> tuple[int, int]:
        value = given[key]
        right = isinstance(value, list) and len(value) == 2
        if not right or any(type(v) is not int or v < 1 for v in value):
            raise self.refuse(f"'{key}' to be two whole numbers from 1 on", repr(value))
        return value[0], value[1]

    def _choices(self, given: Mapping[str, Any], key: str) -> tuple[bool, bool]:
        value = given[key]
        if not isinstance(value, list) or [type(v) for v in value] != [bool, bool]:
            raise self.refuse(f"'{key}' to be two of true and false", repr(value))
        return value[0], value[1]

    # Limits

    def _at_most(self, number: int, limit: int, of: str, key: str) -> None:
        if number > limit:
            raise self.refuse(f"at most {limit} {of}", number, f"reduce '{key}'")

    def _multiple(self, number: int, of: int, whole: int, key: str, what: str) -> None:
        """Check that a size is a multiple of another one, or all there is."""
        if number % of and number != whole:
            raise self.refuse(f"'{key}' to be a multiple of {of} ({what}), or {whole}", number)

    def _check_registers(self, cost: TilingCost, tiling: Tiling) -> None:
        self._at_most(tiling.rows, cost.rows, "elements along M", "register_tile")
        if tiling.lanes % cost.width:
            raise self.refuse(
                f"whole vectors of {cost.width} elements along N in 'register_tile'", tiling.lanes
            )
        vectors = tiling.lanes // cost.width
        if cost.unit is not None:
            down = -(-tiling.rows // cost.unit.shape[0])
            needed, limit = down * vectors + down + vectors, cost.unit.registers
            self._at_most(needed, limit, f"registers of {cost.unit.name}", "register_tile")
            return
        # The sums, a vector of each column, and an element of a row.
        needed = tiling.rows * vectors * len(cost.product.results) + vectors + 1
        chip = f"{cost.target.name}:{cost.target.arch}"
        limit = cost.target.vector_registers
        self._at_most(needed, limit, f"vector registers on {chip}", "register_tile")
        windows = cost.product.windows
        if windows is not None and windows.run % tiling.rows:
            raise self.refuse(
                f"a divisor of {windows.run} (elements in line) along M in 'register_tile', since "
                "'windows' is true",
                tiling.rows,
            )

    def _check_blocks(self, cost: TilingCost, tiling: Tiling) -> None:
        product = cost.product
        self._multiple(tiling.row_block, tiling.rows, cost.rows, "cache_block", "register tiles")
        column, what = tiling.lanes, "register tiles"
        self._multiple(tiling.column_block, column, cost.columns, "cache_block", what)
        if cost.by_rows or (product.waits and len(product.columns) > 1):
            column, what = product.columns[-1].extent, "columns of one loop"
            self._multiple(tiling.column_block, column, cost.columns, "cache_block", what)
        if product.windows is not None and tiling.pack_rows:
            raise self.refuse("'packed' along M to be false, since 'windows' is true", "true")
        # Even blocks may be fewer than the threads that they are for.
        tiles = (-(-cost.rows // tiling.rows), -(-cost.columns // tiling.lanes))
        pairs = zip((tiling.row_pieces, tiling.column_pieces), tiles, "MN", strict=True)
        for chunks, count, side in pairs:
            self._at_most(chunks, count, f"chunks along {side} (one a register tile)", "chunks")

    def _check_steps(self, cost: TilingCost, tiling: Tiling) -> None:
        product, steps = cost.product, cost.steps
        self._at_most(tiling.depth, steps, "steps along K", "k_block")
        self._at_most(tiling.chain, tiling.depth, "steps of a pass", "sum_chunk")
        windows = product.windows
        if windows is not None and innermost(windows.steps, tiling.depth) is None:
            raise self.refuse(
                f"'k_block' to be whole inner loops of {windows.steps} and a part of the next one "
                f"that divides it, such as {windows.pass_steps(tiling.depth)}, since 'windows' is "
                "true",
                tiling.depth,
            )
        if cost.unit is not None and (steps % tiling.depth or tiling.chain != tiling.depth):
            raise self.refuse(
                f"'k_block' to divide {steps}, and 'sum_chunk' to be the same, since "
                f"{cost.unit.name} adds them up",
                (tiling.depth, tiling.chain),
            )

    def _check_threads(self, cost: TilingCost, tiling: Tiling) -> None:
        if cost.available is not None:
            self._at_most(tiling.threads, cost.available, "threads inside of a tile", "threads")
            used, of = cost.panel_bytes(tiling), "bytes of panels on a thread's stack"
            self._at_most(used, TILE_BYTES, of, "cache_block")

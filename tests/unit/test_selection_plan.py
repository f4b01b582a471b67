"""How the first elements of rows are found: never by a number of steps that grows as the square."""

from __future__ import annotations

import pytest

from polyblocks.algorithms.sorting.places import way
from polyblocks.algorithms.sorting.selection import plan

EXTENTS = [2, 17, 64, 100, 1000, 4099, 8192, 50257, 10**6, 10**7]


def leaves(extent: int, count: int, sort_cost: float) -> list[tuple[int, str]]:
    """The extents of all rows that a selection comes down to, and what is done with them."""
    chosen = plan(extent, count, sort_cost)
    if chosen.kind != "blocks":
        return [(extent, chosen.kind)]
    blocks, rest = divmod(extent, chosen.block)
    gathered = count * chosen.block + rest
    assert count < blocks
    assert gathered < extent
    return leaves(blocks, count, sort_cost) + leaves(gathered, count, sort_cost)


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("sort_cost", [1.0, 20.0])
def test_only_short_rows_are_sorted_by_rank(extent: int, sort_cost: float) -> None:
    for count in (1, 2, 8, 50, 1000, extent // 2, extent):
        if not 0 < count <= extent:
            continue
        rows = leaves(extent, count, sort_cost)
        assert all(length <= 1000 for length, kind in rows if kind == "rank"), (count, rows)
        # Sorting the whole row is always possible.
        assert plan(extent, count, sort_cost).cycles <= sort_cost * (2500 + 12 * extent)


def test_few_of_many_are_selected_from_blocks() -> None:
    for launches in (False, True):
        assert way(50257, 50, 32, launches)["how"] == "blocks"
        assert way(8192, 8, 32, launches)["how"] == "blocks"
    assert way(1000, 1000, 32, False) == {"how": "digits"}
    assert way(10**6, 10**6, 32, True) == {"how": "network"}
    assert way(50, 1, 32, False) == {"how": "alone"}
    assert way(50, 50, 32, False) == {"how": "rank"}


def test_many_of_a_row_are_searched_for_and_sorted_on_cpus() -> None:
    for bits in (16, 32, 64):
        assert way(2000, 500, bits, False)["how"] == "cut"
    assert way(2000, 500, 32, True)["how"] == "network"
    assert way(2000, 1500, 32, False)["how"] == "digits"
    # Several threads sort it.
    assert way(10**6, 10**5, 32, False)["how"] == "digits"

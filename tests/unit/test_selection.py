"""What brings the k-th element of a short row to its place."""

from itertools import product

import pytest

from polyblocks.frontends.selection import exchanges


def selected(row, place):
    row = list(row)
    for first, second, lesser, greater in exchanges(len(row), place):
        low, high = sorted((row[first], row[second]))
        # What is said not to be needed is lost.
        row[first], row[second] = low if lesser else None, high if greater else None
    return row[place]


@pytest.mark.parametrize("count", range(1, 11))
def test_every_place_of_every_row(count):
    # A network that is right for zeros and ones is right for all numbers (Knuth, 5.3.4, Z).
    for row in product((0, 1), repeat=count):
        assert [selected(row, place) for place in range(count)] == sorted(row)


@pytest.mark.parametrize("count", [25, 31, 32])
def test_longer_rows(count):
    for ones in range(count + 1):
        for turned in range(count):
            row = [0] * (count - ones) + [1] * ones
            row = row[turned:] + row[:turned]
            for place in (0, (count - 1) // 2, count - 1):
                assert selected(row, place) == sorted(row)[place]


def test_what_a_place_does_not_depend_on_is_left_out():
    assert len(exchanges(25, 12)) == 113
    assert sum(e.lesser + e.greater for e in exchanges(25, 12)) == 202
    assert len(exchanges(8, 0)) == 7

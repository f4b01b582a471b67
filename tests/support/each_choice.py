"""Each-choice and pairwise coverage: of a product of parameters, so many that all values are there.

R. Mandl, Orthogonal Latin squares: an application of experiment design to compiler testing, 1985:
what fails, fails for one value or for two of them, whatever the others are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest


def cover(
    combinations: Sequence[Mapping[str, Any]], others: Iterable[Mapping[str, Any]] = ()
) -> list[int]:
    """Positions of combinations in which every value of every parameter occurs, in their order.

    Greedy: the next one has the most values that are not covered yet, so that the product of n and
    m values is covered by max(n, m) combinations. Values of ``others`` are covered.
    """
    left = {(name, value) for values in combinations for name, value in values.items()}
    left -= {pair for values in others for pair in values.items()}
    kept = []
    while left:
        gains = [len(left & values.items()) for values in combinations]
        best = gains.index(max(gains))
        kept.append(best)
        left -= combinations[best].items()
    return sorted(kept)


def pairs(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of each two parameters, as values of one; those of a single one as they are."""
    if len(values) < 2:
        return dict(values)
    return {f"{a}, {b}": (values[a], values[b]) for a, b in itertools.combinations(values, 2)}


def choices(item: pytest.Item) -> dict[str, Any]:
    """What a test got of each ``parametrize``, and of each other parameter; by identity.

    Names that one ``parametrize`` sets together are one parameter.
    """
    values = dict(getattr(item, "callspec").params)  # noqa: B009
    found = {}
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        together = names if isinstance(names, (list, tuple)) else names.split(",")
        found[str(names)] = tuple(id(values.pop(name.strip())) for name in together)
    return found | {name: id(value) for name, value in values.items()}


def mark_slow(items: Sequence[pytest.Item]) -> None:
    """Mark what tests with ``each_choice`` do not need for each-choice coverage as ``slow``.

    Those with ``each_choice("extended")`` as ``extended``. Of what is marked so by its values, what
    covers values that no other has stays. Of all that is slow, what pairwise coverage does not need
    becomes ``exhaustive``.
    """
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("each_choice"):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for every in functions.values():
        _mark(every)


def _mark(every: Sequence[pytest.Item]) -> None:
    """The cases of one function."""
    (mark,) = getattr(every[0].get_closest_marker("each_choice"), "args", ()) or ("slow",)
    values = {item: choices(item) for item in every}
    cases = [item for item in every if not item.get_closest_marker("slow")]
    extended = [item for item in cases if item.get_closest_marker("extended")]
    kept: list[pytest.Item] = []
    for some in ([item for item in cases if item not in extended], extended):
        chosen = cover([values[item] for item in some], [values[item] for item in kept])
        kept += [some[position] for position in chosen]
        for position, item in enumerate(some):
            if position not in chosen:
                item.add_marker(mark)
    slow = [item for item in every if item.get_closest_marker("slow")]
    others = [pairs(values[item]) for item in every if item not in slow]
    needed = cover([pairs(values[item]) for item in slow], others)
    for position, item in enumerate(slow):
        if position not in needed:
            item.add_marker("exhaustive")

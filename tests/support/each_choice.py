"""Each-choice coverage: of a product of parameters, so many that every value is there."""

from __future__ import annotations

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
    covers values that no other has stays.
    """
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("each_choice") and not item.get_closest_marker("slow"):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in functions.values():
        (mark,) = getattr(cases[0].get_closest_marker("each_choice"), "args", ()) or ("slow",)
        extended = [item for item in cases if item.get_closest_marker("extended")]
        usual = [item for item in cases if item not in extended]
        kept: list[Mapping[str, Any]] = []
        for some, left_out in ((usual, mark), (extended, mark)):
            found = [choices(item) for item in some]
            chosen = cover(found, kept)
            kept += [found[position] for position in chosen]
            for position, item in enumerate(some):
                if position not in chosen:
                    item.add_marker(left_out)

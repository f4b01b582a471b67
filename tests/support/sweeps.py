"""Sweeps of which `make test` takes a part and `make test-all` everything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def sweep(values: Iterable[Any], *always: Any, extended: Sequence[Any] = ()) -> list[Any]:
    """Values of one parameter of a test; all but those named after them are marked ``slow``.

    Those that stay take every path of the test's subject once, together with those that are marked
    ``extended`` instead.

    Raises:
        ValueError: one that is to stay is none of the values.
    """
    values = list(values)
    missing = [value for value in (*always, *extended) if value not in values]
    if missing or not always:
        raise ValueError(f"expected one or more of {values} to stay, not {missing or 'none'}")
    marks = [
        (value, pytest.mark.extended if value in extended else pytest.mark.slow) for value in values
    ]
    return [v if v in always else pytest.param(v, marks=mark) for v, mark in marks]

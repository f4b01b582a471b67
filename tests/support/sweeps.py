"""Sweeps of which `make test` takes a part and `make test-all` everything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sweep(values: Iterable[Any], *always: Any) -> list[Any]:
    """Values of one parameter of a test; all but those named after them are marked ``slow``.

    Those that stay take every path of the test's subject once.

    Raises:
        ValueError: one that is to stay is none of the values.
    """
    values = list(values)
    missing = [value for value in always if value not in values]
    if missing or not always:
        raise ValueError(f"expected one or more of {values} to stay, not {missing or 'none'}")
    return [v if v in always else pytest.param(v, marks=pytest.mark.slow) for v in values]

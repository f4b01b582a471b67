"""Calls with NumPy's arrays, in a process without any other framework."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.host_calls import cases, files
from bench.host_calls.cases import Case
from bench.host_calls.measure import Call, Peer


def peers(case: Case, folder: Path) -> list[Peer]:
    """The loaded file, and NumPy itself."""
    inputs, weights = case.inputs, case.weights
    keep = dict(zip(files.weight_names(case), weights, strict=True))

    def itself() -> Call:
        if weights:
            return Call(lambda x: cases.total(x, *weights), (inputs[0],))
        return Call(cases.function_of(case.kind), *cases.arguments_of(case.kind, inputs))

    def loaded() -> Call:
        return Call(files.load(folder, case, keep or None), tuple(inputs))

    ours = [] if case.kind == cases.KEYWORDS else [Peer("loaded", loaded)]
    return [*ours, Peer("NumPy", itself)]


def arrays_of(result: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of a result."""
    if isinstance(result, dict):
        return list(result.values())
    return list(result) if isinstance(result, (tuple, list)) else [result]


def wait(result: Any) -> None:
    """Nothing runs on after a call."""

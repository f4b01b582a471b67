"""The files of programs that are compiled ahead of time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polyblocks
from bench.host_calls.cases import Case


def path(folder: Path, case: Case) -> Path:
    """Where a case's file is."""
    return folder / f"{re.sub(r'[^a-z0-9]+', '-', case.name.lower())}.zip"


def load(folder: Path, case: Case, weights: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The program of :mod:`bench.host_calls.in_files`.

    Raises:
        FileNotFoundError: it was not compiled.
    """
    return polyblocks.load(path(folder, case), weights=weights)


def write(folder: Path, case: Case) -> None:
    """Compile a case that is written in PyTorch ahead of time."""
    import torch

    from bench.host_calls import cases, torch_programs

    function: Any = torch_programs.program(case)[0]
    if case.kind == cases.TREE:
        function = cases.doubled_in_a_row
    artifact = polyblocks.aot(
        function,
        [torch.from_numpy(x) for x in case.inputs],
        frontend="torch",
        weights="arguments" if case.weights else "stored",
    )
    artifact.write(path(folder, case))


def weight_names(case: Case) -> list[str]:
    """Of the weights in such a file, in the order of the case's."""
    return [f"held.{number}" for number in range(len(case.weights))]

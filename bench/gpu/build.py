"""Compile the cases for several architectures. Needs the compiler and PyTorch, and no GPU."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import polyblocks
from bench.engines import joined
from bench.gpu import kit
from bench.gpu.bundle import SCHEMA, Bundle
from bench.gpu.cases import TINY, Pair
from bench.gpu.programs import function_of
from bench.table import Case
from polyblocks.errors import PolyBlocksError

Json = dict[str, Any]


def build(
    folder: Path,
    pairs: Sequence[Pair],
    target: str,
    archs: Sequence[str],
    *,
    sizes: Sequence[str] = ("large", "small"),
    simulated: bool = False,
    with_kit: bool = True,
    keep_going: bool = False,
    tell: Callable[[str], None] = print,
) -> Bundle:
    """Write a bundle, see :mod:`bench.gpu.bundle`.

    Args:
        folder: where; what was there of an earlier one is replaced.
        pairs: the cases.
        target: ``nvgpu`` or ``amdgpu``.
        archs: for which; the simulator takes the first one.
        sizes: of the cases, ``large`` and ``small``.
        simulated: for the simulator instead of for devices; it can only run small ones.
        with_kit: write the Python packages as well.
        keep_going: leave out what does not compile, instead of raising.
        tell: gets a line per case.

    Raises:
        PolyBlocksError: a case does not compile; nothing may fall back.
    """
    facts: Json = {
        "schema": SCHEMA,
        "target": target,
        "archs": list(archs[:1] if simulated else archs),
        "simulated": simulated,
        "versions": {"polyblocks": polyblocks.__version__, "torch": torch.__version__},
        "cases": {},
    }
    bundle = Bundle(folder, facts)
    options: Json = {"target": target, "arch": facts["archs"], "simulate": simulated}
    for pair in pairs:
        row: Json = {"large": None, "small": None, "seconds": {}, "simulation": None}
        # The host's part is measured with a small program.
        for size in dict.fromkeys((*sizes, "small") if pair is TINY else sizes):
            case: Case = getattr(pair, size)
            try:
                seconds = _compile(pair, size, options, bundle.program(pair, size))
            except PolyBlocksError as error:
                if not keep_going:
                    raise
                tell(f"{case.name}: left out: {' '.join(str(error).split())[:200]}")
                continue
            row[size] = case.name
            row["seconds"][size] = seconds
            tell(f"{case.name}: compiled for {', '.join(facts['archs'])} in {seconds:.1f} s")
        if "small" in sizes and row["small"]:
            inputs, expected = _example(pair.small)
            named = {f"input{k}": value for k, value in enumerate(inputs)}
            np.savez(bundle.data(pair), expected=expected, **named)
            row["simulation"] = {
                arch: _simulate(pair.small, target, arch, inputs) for arch in facts["archs"]
            }
        facts["cases"][pair.slug] = row
    if with_kit:
        kit.write(folder / "python")
    (folder / "bundle.json").write_text(json.dumps(facts, indent=1) + "\n")
    return bundle


def _compile(pair: Pair, size: str, options: Json, path: Path) -> float:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch._dynamo.reset()
    if pair.shapes:
        # The values do not matter; pages that nobody writes cost nothing.
        dtype = getattr(torch, pair.dtype)
        inputs = [torch.empty(shape, dtype=dtype) for shape in pair.shapes[size]]
    else:
        inputs = [torch.from_numpy(x) for x in getattr(pair, size).inputs()]
    begin = time.perf_counter()
    with torch.no_grad():
        made = polyblocks.aot(function_of(pair.large.program), inputs, options, frontend="torch")
    seconds = time.perf_counter() - begin
    made.write(path)
    return seconds


def _example(case: Case) -> tuple[list[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    """Inputs, and the result in float64."""
    inputs = [torch.from_numpy(x) for x in case.inputs()]
    with torch.no_grad():
        expected = function_of(case.program)(*(x.double() for x in inputs))
    return [x.numpy() for x in inputs], joined(expected)


def _simulate(case: Case, target: str, arch: str, inputs: list[np.ndarray[Any, Any]]) -> Json:
    """What the simulator says of a case: by kernel the bytes of its sectors, and findings."""
    torch._dynamo.reset()
    options = {"target": target, "arch": arch, "simulate": True}
    function = function_of(case.program)
    program = polyblocks.compile(function, frontend="torch", compile_options=options)
    with torch.no_grad():
        program(*map(torch.from_numpy, inputs))
    kernels: dict[str, Json] = {}
    findings: list[str] = []
    for row in program.polyblocks_report().simulation():
        counts = row["counts"]
        kernel = kernels.setdefault(row["kernel"], {"sectors": 0, "floor_bytes": 0, "launches": 0})
        kernel["sectors"] += counts["sectors"]
        kernel["floor_bytes"] += counts["global_read_floor"] + counts["global_write_floor"]
        kernel["launches"] += 1
        findings += row["findings"]
    return {"kernels": kernels, "findings": findings}

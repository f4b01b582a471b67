"""Compute on the GPU of this machine what the simulator computed, and compare.

``python tests/gpu_conformance/run.py --arch sm_90a --calls FILE.zip`` keeps the calls; this needs
what running needs and no compiler::

    PYTHONPATH=out/gpu/python python3 tests/gpu_conformance/replay.py FILE.zip

Each call runs twice, into memory that holds no zeros; the results must be the same bits twice, but
for sums that threads add to memory in any order, and the simulator's up to rounding. A result that
differs by more than that is run with its inputs changed in their last bits: if that alone changes
it as much, the call is *sensitive*, such as a step of Adam where the gradient is rounding alone.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Json = dict[str, Any]
#: Largest difference, relative to the largest magnitude of the result. A chip's own instructions
#: for roots, exponentials and the like, and where products and sums are rounded once, are not the
#: simulator's to the last bit.
CLOSE = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
OUTCOMES = ("same", "close", "sensitive", "different", "unsteady", "error", "crashed")
GOOD = OUTCOMES[:3]
#: Updates of floating-point sums in memory, as PTX and AMD's assembly have them.
_UPDATES = re.compile(rb"atom\.global\.add\.f|red\.global\.add\.f|global_atomic_(pk_)?add_f")
#: What no memory holds by chance: as a float a huge negative number.
POISON = 0xE9


def main() -> int:
    """Replay; the exit status is 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=Path, help="the file of calls")
    parser.add_argument("--json", type=Path, help="file for a line per call")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th only")
    parser.add_argument("--worker", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is not None:
        for name in arguments.worker:
            _say({"call": name, "outcome": "crashed"})
            _say(replayed(arguments.calls, name))
        return 0
    rows = replay(arguments.calls, arguments.every)
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = {kind: sum(row["outcome"] == kind for row in rows) for kind in OUTCOMES}
    for row in rows:
        if row["outcome"] not in GOOD:
            print(row)
    worst = sorted((r for r in rows if r["outcome"] == "close"), key=lambda r: -r["part"])[:5]
    print("largest part of what is allowed:", [(r["call"], round(r["part"], 3)) for r in worst])
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return int(len(rows) != sum(counts[kind] for kind in GOOD))


def replay(file: Path, every: int = 1) -> list[Json]:
    """A row per call: ``call``, ``outcome``, ``error``, ``part`` of what is allowed, ``told``.

    Args:
        file: made by ``keep_calls.pack``.
        every: only every so many-th.
    """
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(file) as archive:
            archive.extractall(folder)
        left = sorted(path.stem for path in Path(folder).glob("*.npz"))[::every]
        rows: dict[str, Json] = {}
        while left:
            before = len(left)
            for row in _worker(Path(folder), left):
                rows[row["call"]] = row
            # Those behind one that took the process, or the device's context, with it.
            left = [name for name in left if name not in rows]
            if len(left) == before:
                raise RuntimeError("a worker did nothing")
        return list(rows.values())


def _worker(folder: Path, names: Sequence[str]) -> Iterator[Json]:
    command = [sys.executable, __file__, str(folder), "--worker", *names[:500]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield (row := json.loads(line))
                if row.get("lost"):
                    process.kill()
                    return


def _say(row: Json) -> None:
    print(json.dumps(row), flush=True)


def replayed(folder: Path, name: str) -> Json:
    """Run one call and compare."""
    from polyblocks import driver
    from polyblocks.artifact import Artifact

    stem, _, rest = name.partition("-")
    artifact = Artifact.from_bytes((folder / f"{stem}.zip").read_bytes())
    with np.load(folder / f"{name}.npz") as data:
        arrays = dict(data)
    row: Json = {"call": name, "program": artifact.manifest["name"]}
    try:
        executable: Any = driver.load(artifact)
        if rest.endswith("preparation"):
            executable = executable.preparation
        runs = [_run(executable, arrays) for _ in range(2)]
    except Exception as error:
        # After an error of the device its context is of no use.
        return row | {"outcome": "error", "told": str(error)[:500], "lost": True}
    (status, first), (_, second) = runs
    if status != int(arrays["status"]):
        return row | {"outcome": "different", "told": f"status {status}, {arrays['status']}"}
    if status:
        return row | {"outcome": "same"}
    rows = executable.manifest["arguments"]
    if not any(_UPDATES.search(data) for data in artifact.blobs.values()):
        for number, result in first.items():
            if result.tobytes() != second[number].tobytes():
                return row | {"outcome": "unsteady", "told": f"argument {number}"}
    row |= _compared(rows, arrays, first)
    if row["outcome"] == "different":
        _, other = _run(executable, _shaken(rows, arrays))
        shaken = {key: value for key, value in arrays.items() if not key.startswith("after")}
        shaken |= {f"after-{number}": result for number, result in other.items()}
        if _compared(rows, shaken, first)["part"] * 8 >= row["part"]:
            row["outcome"] = "sensitive"
    return row


def _run(executable: Any, arrays: Json) -> tuple[int, dict[int, np.ndarray[Any, Any]]]:
    rows = executable.manifest["arguments"]
    memory: list[Any] = []
    views: list[np.ndarray[Any, Any]] = []
    for number, row in enumerate(rows):
        if row["updates"] not in (None, number):
            memory.append(memory[row["updates"]])
            views.append(_view(row, memory[-1]))
            continue
        memory.append(np.full(_span(row) + 16, POISON, np.uint8))
        views.append(_view(row, memory[-1]))
        if f"before-{number}" in arrays and row["role"] in ("input", "kept"):
            views[-1][...] = arrays[f"before-{number}"]
    addresses = np.array([m.ctypes.data for m in memory], np.uint64)
    status = executable.entry(addresses.tobytes(), 1)
    return int(status), {
        number: views[number].copy() for number in range(len(rows)) if f"after-{number}" in arrays
    }


def _shaken(rows: Sequence[Json], arrays: Json) -> Json:
    """The call with floating-point inputs that are one unit in the last place off, up or down."""
    random = np.random.default_rng(0)
    shaken = dict(arrays)
    for number, row in enumerate(rows):
        array = arrays.get(f"before-{number}")
        if array is not None and row["dtype"] in ("float16", "float32", "float64"):
            up = random.integers(0, 2, array.shape, dtype=bool)
            away = np.where(up, np.inf, -np.inf).astype(array.dtype)
            shaken[f"before-{number}"] = np.nextafter(array, away)
    return shaken


def _dtype(row: Json) -> np.dtype[Any]:
    return np.dtype("uint16" if row["dtype"] == "bfloat16" else row["dtype"])


def _span(row: Json) -> int:
    if 0 in row["shape"]:
        return 0
    last = sum((n - 1) * s for n, s in zip(row["shape"], row["strides"], strict=True))
    return int((last + 1) * _dtype(row).itemsize)


def _view(row: Json, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    width = _dtype(row).itemsize
    steps = [step * width for step in row["strides"]]
    at = (ctypes.c_char * memory.nbytes).from_address(memory.ctypes.data)
    return np.ndarray(tuple(row["shape"]), _dtype(row), at, strides=steps)


def _compared(rows: Sequence[Json], arrays: Json, found: dict[int, np.ndarray[Any, Any]]) -> Json:
    worst, part, told = 0.0, 0.0, ""
    # A result in float64 of something in float32 is no better than that.
    given = max((_close(r["dtype"]) for r in rows if r["role"] == "input"), default=0.0)
    for number, result in found.items():
        expected, row = arrays[f"after-{number}"], rows[number]
        # What is kept are bytes of several arrays: what reads them is compared.
        if row["role"] == "kept" or result.tobytes() == expected.tobytes():
            continue
        error = _error(_floats(result, row["dtype"]), _floats(expected, row["dtype"]))
        allowed = _close(row["dtype"])
        allowed = max(allowed, given) if allowed else 1e-300
        if error / allowed > part:
            part, told = error / allowed, f"argument {number}"
        worst = max(worst, error)
    outcome = "same" if part == 0 else "close" if part <= 1 else "different"
    return {"outcome": outcome, "error": worst, "part": part, "told": told}


def _close(dtype: str) -> float:
    """What is allowed of a dtype; 0 for integers."""
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return CLOSE.get(real, 0.0)


def _floats(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def _error(result: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """Relative to the largest finite magnitude; infinite if NaN or infinity are elsewhere."""
    if result.dtype.kind in "biu":
        return math.inf if (result != expected).any() else 0.0
    with np.errstate(all="ignore"):
        finite = np.isfinite(expected)
        strange = ~finite
        if (np.isfinite(result) != finite).any():
            return math.inf
        pairs = (np.nan_to_num(result[strange]), np.nan_to_num(expected[strange]))
        if (np.isnan(result) != np.isnan(expected)).any() or (pairs[0] != pairs[1]).any():
            return math.inf
        if not finite.any():
            return 0.0
        scale = float(np.abs(expected[finite]).max()) or 1.0
        off = np.abs(result[finite].astype(np.complex128) - expected[finite]).max()
        return float(off) / scale


if __name__ == "__main__":
    sys.exit(main())

"""What the host spends on one call of a GPU program: ``python -m bench.host_launches``.

The driver does nothing but count, so that no GPU is needed and everything that is measured is the
host's. The program has the shape of BERT-base: 200 arrays, 157 launches; another one has 20 arrays
and 15 launches. The fastest of several rounds counts, in CPU time of the calling thread, not the
clock's, on a busy machine. The kinds of calls are taken in turns.

``launch``: the launches alone. ``tensors`` and ``weights``: calls of a loaded file with PyTorch's
tensors, see :mod:`bench.device_calls`; ``protocol``: with arrays of a package that speaks the
vendor's protocol; ``numpy``: with NumPy's, which the vendor's bindings copy one by one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.counting_driver import CountingDriver
from polyblocks.artifact import Artifact
from polyblocks.options import CompileOptions
from polyblocks.runtime.device.executable import DeviceExecutable

ARRAYS, LAUNCHES = 200, 157
#: Elements of each array.
SHAPE = (64, 64)
#: The most CPU microseconds that a call may take, with few arrays and with many.
FEW_BARS = {"plain": 5.0, "replayed": 5.0, "new addresses": 25.0}
BARS = {"plain": 150.0, "replayed": 15.0, "new addresses": 60.0}
#: Arrays and launches of the program with few.
FEW = 20, 15
STREAM = 7
#: What must stay alive while its launches are measured.
_loaded: list[DeviceExecutable] = []


@dataclass(frozen=True)
class Row:
    """CPU microseconds of one call."""

    path: str
    case: str
    us: float
    bar: float


def program(arrays: int = ARRAYS, launches: int = LAUNCHES) -> Artifact:
    """Launches that read two arrays and the workspace each; the last array is the result."""
    strides = [SHAPE[1], 1]
    arguments = [
        {
            "role": "input" if k < arrays - 1 else "output",
            "name": f"a{k}",
            "dtype": "float32",
            "shape": list(SHAPE),
            "strides": strides,
            "constant": False,
            "updates": None,
        }
        for k in range(arrays)
    ]
    rows = [
        {
            "kernel": f"k{number}",
            "grid": [64, 1, 1],
            "block": [256, 1, 1],
            "shared_bytes": 0,
            "arguments": [
                {"argument": number},
                {"argument": arrays - 1 - number % (arrays - launches)},
                {"workspace": 256 * (number % 8)},
                {"value": number, "dtype": "int32"},
            ],
        }
        for number in range(launches)
    ]
    manifest = {
        "kind": "program", "target": "nvgpu", "arch": "sm_90", "name": "bert", "entry": "main",
        "arguments": arguments, "launches": rows, "workspace_bytes": 4096,
        "kernels": [{"name": f"k{number}"} for number in range(launches)],
    }  # fmt: skip
    return Artifact(manifest, {"kernels.sm_90.cubin": b"code"})


def measured(calls: dict[str, Callable[[], object]], rounds: int, number: int) -> dict[str, float]:
    """CPU microseconds of each call: the least of the rounds, in which they take turns."""
    least = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        for _ in range(50):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.thread_time()
            for _ in range(number):
                call()
            least[name] = min(least[name], (time.thread_time() - begin) / number * 1e6)
    return least


def executable(
    driver: Any, use_graph: bool | str, arrays: int = ARRAYS, launches: int = LAUNCHES
) -> DeviceExecutable:
    """The program, loaded."""
    made = DeviceExecutable(program(arrays, launches), lambda: driver)
    made.configure(CompileOptions(target="nvgpu", use_graph=use_graph))
    return made


def launches(driver: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """``launch(stream, workspace, *pointers)``."""
    same = [4096 * k for k in range(1, ARRAYS + 1)]
    moved = iter(range(1 << 60))
    for case, use_graph in (("plain", False), ("replayed", True), ("new addresses", "auto")):
        loaded = executable(driver, use_graph)
        _, launch = loaded.workspace_launcher(0)
        _loaded.append(loaded)
        if case != "new addresses":
            yield case, lambda launch=launch: launch(STREAM, 1 << 20, *same)
            continue
        for _ in range(2):  # a graph is there, and all other addresses are new
            launch(STREAM, 1 << 20, *same)

        def call(launch: Any = launch) -> None:
            base = next(moved) << 20
            launch(STREAM, base, *[base + place for place in same])

        yield case, call


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(measure(Path(folder), options.rounds, options.number))
    for row in rows:
        print(f"{row.path:13} {row.case:14} {row.us:9.1f} us  (bar {row.bar:g})")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return int(any(row.us > row.bar for row in rows))


def measure(folder: Path, rounds: int, number: int) -> Iterator[Row]:
    """The rows of the table."""
    from bench import device_calls
    from polyblocks_nvgpu.driver import CudaDriver

    api = CountingDriver(folder)
    driver = CudaDriver(api, api.library)
    driver.rank = lambda *_: 0  # type: ignore[method-assign]
    paths: dict[str, tuple[dict[str, Callable[[], object]], dict[str, float]]] = {
        "launch": (dict(launches(driver)), BARS),
        "tensors 20": (dict(device_calls.tensors(driver, *FEW)), FEW_BARS),
        "tensors 200": (dict(device_calls.tensors(driver)), BARS),
        "weights 200": (dict(device_calls.weights(driver)), BARS),
        "numpy 20": (dict(device_calls.host(driver, *FEW)), {"replayed": 80.0}),
        "numpy 200": (dict(device_calls.host(driver)), {"replayed": 400.0}),
        "protocol 20": (dict(device_calls.protocol(driver, *FEW)), FEW_BARS),
        "protocol 200": (dict(device_calls.protocol(driver)), BARS),
    }
    for path, (calls, bars) in paths.items():
        for case, us in measured(calls, rounds, number).items():
            yield Row(path, case, us, bars[case])


if __name__ == "__main__":
    sys.exit(main())

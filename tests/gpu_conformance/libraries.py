"""Libraries for C of programs for GPUs, on the GPU of this machine.

``libraries.py build FOLDER`` writes them where the compiler is, ``libraries.py run FOLDER`` calls
them where the GPU is; that needs Python, NumPy and the driver. PyTorch, where it is there, gives
arrays on the device and streams.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

Array = np.ndarray[Any, Any]
OK, WRONG_SIZE = 0, -2


def main() -> int:
    """Do it; the exit status is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("build", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="nvgpu")
    parser.add_argument("--arch", default="sm_80,sm_90a")
    arguments = parser.parse_args()
    if arguments.command == "build":
        build(arguments.folder, {"target": arguments.target, "arch": arguments.arch.split(",")})
        return 0
    wrong = 0
    for name, check in CHECKS.items():
        try:
            check(arguments.folder)
            print(f"{name}: right")
        except Exception as error:
            wrong += 1
            print(f"{name}: WRONG: {type(error).__name__}: {str(error)[:500]}")
    return int(wrong > 0)


def build(folder: Path, options: dict[str, Any]) -> None:
    """Write a library, and data, for each program."""
    import torch

    import polyblocks

    torch.manual_seed(0)
    layer = torch.nn.Linear(300, 200).eval()
    table = torch.rand(7, 3)
    x = torch.rand(333, 257)
    programs: dict[str, tuple[Any, list[Any], dict[str, Any]]] = {
        "pointwise": (lambda x, y: torch.tanh(x * 2) + y, [x, torch.rand(257)], {}),
        "stored": (layer, [torch.rand(64, 300)], {}),
        "steps": (_several_steps, [x], {}),
        "looked_up": (lambda n: table[n], [torch.tensor([0, 6, 2, 2])], {}),
        "on_device": (_several_steps, [x], {"on_gpu_tensors": True}),
    }
    for name, (function, given, more) in programs.items():
        with torch.no_grad():
            expected = function(*given)
            artifact = polyblocks.aot(function, given, options | more)
        polyblocks.write_library(artifact, folder, name)
        results = expected if isinstance(expected, tuple) else (expected,)
        np.savez(
            folder / f"{name}.npz",
            **{f"input{k}": x.numpy() for k, x in enumerate(given)},
            **{f"output{k}": x.numpy() for k, x in enumerate(results)},
        )
        print(f"wrote {folder / name}")


def _several_steps(x: Any) -> Any:
    return (x @ x.T).sum(0).cumsum(0)[:, None] + x, x.sum()


class _Program:
    """A library, its example and its results."""

    def __init__(self, folder: Path, name: str) -> None:
        from tests.support.c_libraries import Written

        self.library = Written(folder, name)
        with np.load(folder / f"{name}.npz") as data:
            self.inputs = [data[k] for k in data.files if k.startswith("input")]
            self.expected = [data[k] for k in data.files if k.startswith("output")]

    def outputs(self) -> list[Array]:
        return [np.full_like(each, np.nan) for each in self.expected]

    def check(self) -> None:
        outputs = self.outputs()
        _expect(self.library(*self.inputs, *outputs) == OK, self.library.error())
        self.compare(outputs)

    def compare(self, outputs: list[Array]) -> None:
        for got, wanted in zip(outputs, self.expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5 * abs(wanted).max())


def _expect(condition: bool, told: str) -> None:
    if not condition:
        raise AssertionError(told)


def _arrays_of_the_host(name: str) -> Callable[[Path], None]:
    def check(folder: Path) -> None:
        program = _Program(folder, name)
        for _ in range(3):
            program.check()
        _expect(program.library.release() == OK, program.library.error())
        program.check()
        sizes = [each.size for each in (*program.inputs, *program.expected)]
        sizes[-1] += 1
        status = program.library(*program.inputs, *program.outputs(), counts=sizes)
        _expect(status == WRONG_SIZE, f"status {status} for a wrong size")
        program.check()

    return check


def _threads(folder: Path) -> None:
    program = _Program(folder, "pointwise")
    failed: list[str] = []

    def work() -> None:
        try:
            for _ in range(20):
                program.check()
        except AssertionError as error:
            failed.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _expect(not failed, "; ".join(failed))


def _checks(folder: Path) -> None:
    program = _Program(folder, "looked_up")
    out = program.outputs()
    status = program.library(np.array([0, 7, 2, 2]), *out)
    _expect(status == 1 and "index" in program.library.error(), program.library.error())
    program.check()


def _on_the_device(folder: Path) -> None:
    import torch

    program = _Program(folder, "on_device")
    sizes = [each.size for each in (*program.inputs, *program.expected)]
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            given = [torch.from_numpy(x).cuda() for x in program.inputs]
            outputs = [torch.from_numpy(x).cuda() for x in program.outputs()]
            addresses = [x.data_ptr() for x in (*given, *outputs)]
            status = program.library.on_stream(stream.cuda_stream, addresses, sizes)
            _expect(status == OK, program.library.error())
            program.compare([x.cpu().numpy() for x in outputs])
        status = program.library.synchronize(stream.cuda_stream)
        _expect(status == OK, program.library.error())


def _in_a_graph(folder: Path) -> None:
    """Recorded by PyTorch and replayed with other numbers."""
    import torch

    program = _Program(folder, "on_device")
    sizes = [each.size for each in (*program.inputs, *program.expected)]
    given = [torch.from_numpy(x).cuda() for x in program.inputs]
    outputs = [torch.from_numpy(x).cuda() for x in program.outputs()]
    addresses = [x.data_ptr() for x in (*given, *outputs)]
    current = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream).value or 0
    _expect(program.library.on_stream(current, addresses, sizes) == OK, program.library.error())
    torch.cuda.synchronize()
    program.compare([x.cpu().numpy() for x in outputs])
    for output in outputs:
        output.fill_(float("nan"))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        inside = torch.cuda.current_stream().cuda_stream
        status = program.library.on_stream(inside, addresses, sizes)
    _expect(status == OK, program.library.error())
    graph.replay()
    torch.cuda.synchronize()
    program.compare([x.cpu().numpy() for x in outputs])


CHECKS: dict[str, Callable[[Path], None]] = {
    **{name: _arrays_of_the_host(name) for name in ("pointwise", "stored", "steps", "looked_up")},
    "four threads": _threads,
    "run-time checks": _checks,
    "arrays on the device": _on_the_device,
    "recorded in a graph": _in_a_graph,
}

if __name__ == "__main__":
    sys.exit(main())

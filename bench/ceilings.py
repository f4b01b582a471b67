"""What this machine can do at most, measured with code that this compiler's CPU target generates.

Arithmetic: chains of independent multiply-adds that never leave the registers. Memory: sums and
copies over a working set of a chosen size. Every thread has its own part; all of them run at once.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any

import numpy as np

from bench import ceiling_code
from bench.memory import empty_at

#: Seconds that one measurement runs at least.
SPAN_S = 0.02

#: Attempts of each measurement.
ATTEMPTS = 7


@dataclass(frozen=True)
class Machine:
    """Kernels for this machine, linked, and how many threads run them."""

    library: Any
    kernels: dict[str, ceiling_code.Kernel]
    threads: int

    def seconds(self, name: str, steps: int, nbytes: int = 4096) -> list[float]:
        """Seconds per step of a kernel in each attempt, when every thread takes ``steps`` of them.

        Args:
            name: of the kernel.
            steps: how often its body is run; memory kernels: passes over the working set.
            nbytes: working set of one thread; half of it is the copies' source.
        """
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
            self.library[name]
        )
        begin, end = Barrier(self.threads + 1), Barrier(self.threads + 1)

        def work() -> None:
            buffer = aligned(nbytes)
            address = buffer.ctypes.data
            function(address, nbytes, 1)
            for _ in range(ATTEMPTS):
                begin.wait()
                function(address, nbytes, steps)
                end.wait()

        took = []
        with ThreadPoolExecutor(self.threads) as pool:
            jobs = [pool.submit(work) for _ in range(self.threads)]
            for _ in range(ATTEMPTS):
                begin.wait()
                start = time.perf_counter()
                end.wait()
                took.append((time.perf_counter() - start) / steps)
            for job in jobs:
                job.result()
        return took

    def rate(
        self,
        name: str,
        work: float,
        nbytes: int = 4096,
        choose: Callable[[list[float]], float] = min,
    ) -> float:
        """Work per second of all threads, where one step of one thread does ``work``.

        Args:
            name: of the kernel.
            work: of one step.
            nbytes: working set of one thread.
            choose: which of the attempts counts; by default the fastest.
        """
        steps = 1
        while (took := min(self.seconds(name, steps, nbytes)) * steps) < SPAN_S:
            steps *= max(2, min(100, int(1.2 * SPAN_S / max(took, 1e-7))))
        return self.threads * work / choose(self.seconds(name, steps, nbytes))


def aligned(nbytes: int) -> np.ndarray[Any, Any]:
    """So many bytes of floats, all 1, on a page boundary."""
    floats = empty_at(nbytes // 4 * 4, 4096).view(np.float32)
    floats.fill(1)
    return floats


def open_machine(threads: int) -> Machine:
    """Generate and link the kernels for this machine."""
    kernels = ceiling_code.kernels()
    return Machine(ceiling_code.link(kernels), kernels, threads)


def measure(threads: int) -> dict[str, Any]:
    """All ceilings of ``threads`` threads together.

    Returns:
        ``peaks``: operations per second (a multiply-add is two) by type of operands, None where
        the chip has no instruction; ``memory``: bytes per second by level, of ``read`` and
        ``copy`` (read + written; ``copy`` of the main memory is the better one of ordinary and
        streaming stores); ``levels``: bytes of each level's working set per thread.
    """
    machine = open_machine(threads)
    peaks = {
        name: machine.rate(name, kernel.work) if (kernel := machine.kernels.get(name)) else None
        for name in ceiling_code.PEAKS
    }
    levels = ceiling_code.working_sets()
    memory = {}
    for level, nbytes in levels.items():
        rates = {name: machine.rate(name, nbytes, nbytes) for name in ("read", "copy")}
        if level == "main":
            rates["copy"] = max(rates["copy"], machine.rate("stream", nbytes, nbytes))
        memory[level] = rates
    return {"threads": threads, "peaks": peaks, "memory": memory, "levels": levels}


def copy_rate(threads: int) -> dict[str, float]:
    """``copy``: the rate of the main memory alone, in two seconds.

    As :func:`measure` has it, but of the median attempt: it is compared with median calls.
    """
    machine = open_machine(threads)
    nbytes = ceiling_code.working_sets()["main"]
    rates = (machine.rate(name, nbytes, nbytes, statistics.median) for name in ("copy", "stream"))
    return {"copy": max(rates)}


if __name__ == "__main__":
    import json
    import sys

    do = copy_rate if "copy" in sys.argv[2:] else measure
    print(json.dumps(do(int(sys.argv[1]) if len(sys.argv) > 1 else 2), indent=2))

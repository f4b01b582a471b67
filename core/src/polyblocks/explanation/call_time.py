"""How a call of a function divides: what its programs take, and what the host does around them.

Measured where ``polyblocks explain`` calls a function, from the clock before and after a call and
the times that profiled programs keep. Other calls do not pay for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.reports.report import CallTime
from polyblocks.runtime.arrays import HOST, ArrayInterface
from polyblocks.runtime.executable import Executable

#: A function is called until this many seconds have passed or this often, whichever is first.
SECONDS = 0.5
RUNS = 50
#: Calls that are always made: the first ones find caches cold and threads asleep.
LEAST_RUNS = 4


def call_often(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    arrays: ArrayInterface,
    loaded: Sequence[Executable] = (),
) -> CallTime | None:
    """Call a function until there is a time worth telling.

    Args:
        function: what is called; the first call may compile.
        inputs: its arguments.
        arrays: of its framework.
        loaded: the programs that are loaded, also those that the first call loads; of the ones
            that were compiled with the option ``profile`` the times are known.

    Returns:
        The call with the least time on the host; None if no program told its time.
    """
    _wait(arrays, function(*inputs))
    on_device = any(
        arrays.is_array(leaf) and arrays.device(leaf) != HOST for leaf in arrays.leaves(inputs)
    )
    found: list[CallTime] = []
    began = time.perf_counter()
    for run in range(RUNS):
        if run >= LEAST_RUNS and time.perf_counter() - began > SECONDS:
            break
        before = _spent(loaded)
        start = time.perf_counter()
        result = function(*inputs)
        returned = time.perf_counter()
        _wait(arrays, result)
        end = time.perf_counter()
        after = _spent(loaded)
        ran = [(e, after[e][0] - before.get(e, (0, 0.0))[0]) for e in after]
        kernels = sum(after[e][1] - before.get(e, (0, 0.0))[1] for e in after)
        if not any(calls for _, calls in ran):
            continue
        # Kernels of a device run beside the host; those of the CPU are a part of the call.
        host = returned - start if on_device else max(end - start - kernels, 0.0)
        found.append(CallTime(host, kernels, _predicted(ran)))
    return min(found, key=lambda each: each.host_seconds, default=None)


def _wait(arrays: ArrayInterface, result: Any) -> None:
    """Until a result is computed, where the framework computes it later."""
    for leaf in arrays.leaves(result):
        if arrays.is_array(leaf):
            arrays.make_ready(leaf, 0)


def _spent(loaded: Sequence[Executable]) -> dict[Executable, tuple[int, float]]:
    """Calls and seconds so far of each program that knows them."""
    rows = {executable: executable.profile() for executable in loaded}
    return {
        executable: (row[0]["calls"], row[0]["seconds"]) for executable, row in rows.items() if row
    }


def _predicted(ran: Sequence[tuple[Executable, int]]) -> float | None:
    """Seconds that the kernels of a call are predicted to take; None if one is unknown."""
    total = 0.0
    for executable, calls in ran:
        for kernel in executable.manifest.get("kernels", ()) if calls else ():
            predicted = (kernel.get("estimate") or {}).get("predicted_seconds")
            if predicted is None:
                return None
            total += calls * predicted
    return total

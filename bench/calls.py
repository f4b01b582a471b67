"""How long calls take, by the clock of this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def timed(call: Callable[[], Any], seconds: float) -> list[float]:
    """Seconds of each of as many calls as fill the time, two at least.

    What a call returns is given up before the next one begins.
    """
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while len(samples) < 2 or time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        samples.append(time.perf_counter() - begin)
    return samples

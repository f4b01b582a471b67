"""How long calls take, by the clock of this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: Seconds of a call that is long enough to be the only one.
LONG_S = 1.0


def timed(call: Callable[[], Any], seconds: float) -> list[float]:
    """Seconds of each of as many calls as fill the time, two at least unless the first is long.

    What a call returns is given up before the next one begins.
    """
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not samples or (len(samples) < 2 and samples[0] < LONG_S):
        begin = time.perf_counter()
        call()
        samples.append(time.perf_counter() - begin)
    return samples

"""Which programs XLA is to run on a thread of its own, so that their caller goes on meanwhile.

That thread allocates the results, too. glibc gives every thread an arena, and keeps little of what
is freed in any but the main thread's: of large results the pages are fresh again and again, and the
first write to each costs more than many programs do. On the caller's thread the same memory, warm
in the caches, is used at most calls, unless XLA still holds the result before. So a program whose
result costs more to allocate than the caller could gain by going on is one that it waits for.
"""

from __future__ import annotations

import math
from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.program import DTYPES

#: Seconds from which on a program without large results is long. Three threads are woken then, one
#: after another: that of XLA, the others of its OpenMP team, and the caller's when it waits. On two
#: CPUs of a Sapphire Rapids this takes 30 to 45 µs, also where calls follow each other, or Python
#: has 20 µs of work between them: a program of 34 µs took 104, one of 400 no longer than on the
#: caller's thread.
LONG_S = 100e-6

#: Seconds that fresh pages for a byte take: 1.9 ms for 16 MiB on two CPUs of a Zen 4, in huge pages
#: where they are whole.
FRESH_BYTE_S = 1.1e-10

#: Larger results are mapped anew by glibc on every thread: there is nothing to gain for them.
MOST_KEPT_BYTES = 32 << 20

#: Seconds from which on every program is long: Python has other work to do for as long.
MOST_WAITED_S = 2e-3


def is_long(artifact: Artifact, *, loops: bool) -> bool:
    """Whether a program's caller had better not wait for it.

    Args:
        artifact: the program, for the CPU.
        loops: whether it holds loops, of whose length the predicted time says nothing.
    """
    bar = LONG_S + FRESH_BYTE_S * sum(map(_kept_bytes, artifact.manifest["arguments"]))
    return loops or _predicted_s(artifact) > min(bar, MOST_WAITED_S)


def _kept_bytes(row: dict[str, Any]) -> int:
    """Bytes of a result that glibc may keep when it is freed; 0 of other arguments."""
    if row["role"] != "output":
        return 0
    nbytes = math.prod(row["shape"]) * DTYPES[row["dtype"]][1]
    return nbytes if nbytes < MOST_KEPT_BYTES else 0


def _predicted_s(artifact: Artifact) -> float:
    """Seconds that the program is predicted to take; that is too little if something is unknown."""
    kernels = artifact.manifest["kernels"]
    return sum(
        kernel.get("calls", 1) * (kernel.get("estimate") or {}).get("predicted_seconds", LONG_S)
        for kernel in kernels
    )

"""How many CPU threads a call uses: one rule for all frontends.

The option ``num_threads``, taken as it is; else what the framework is set to, where it has such a
setting; else ``OMP_NUM_THREADS`` as it was at the first call; else all CPUs. All but the option are
limited to the CPUs that the process may use.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os

from polyblocks.isolation import forks
from polyblocks.runtime import cgroup

#: For machine code that applies the same rule: the available CPUs and the default; 0: not known.
limits = (ctypes.c_int64 * 2)()


def resolve(option: int | None = None, framework: int | None = None) -> int:
    """The number of threads of one call.

    Args:
        option: the compile option ``num_threads``.
        framework: what the framework is set to; None if nothing has been set.
    """
    if option is not None:
        return option
    limits[0], limits[1] = available_cpus(), _default()
    return _default() if framework is None else min(framework, available_cpus())


@functools.cache
def available_cpus() -> int:
    """CPUs that this process may run on (its affinity), cut to its control group's quota."""
    if hasattr(os, "sched_getaffinity"):
        cpus = len(os.sched_getaffinity(0))
    else:
        cpus = os.cpu_count() or 1
    quota = cgroup.cpu_quota()
    return cpus if quota is None else max(1, min(cpus, math.ceil(quota)))


@functools.cache
def _default() -> int:
    # A list gives a number per nesting level (OpenMP 6.0, section 4.1.3); ours is the outermost.
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    wanted = int(first) if first.isdecimal() else 0
    return min(wanted, available_cpus()) if wanted > 0 else available_cpus()


@forks.in_child  # workers are often pinned to other CPUs
def forget() -> None:
    """Look again at the environment, the affinity and the quota at the next call."""
    available_cpus.cache_clear()
    _default.cache_clear()
    limits[0] = limits[1] = 0

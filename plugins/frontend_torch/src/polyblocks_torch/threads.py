"""How many CPU threads a call may use, and none of PyTorch's in a forked compilation."""

from __future__ import annotations

import torch

from polyblocks.isolation import isolation
from polyblocks.runtime.threads import available_cpus

_get_num_threads = torch.get_num_threads


def thread_count() -> int:
    """``torch.get_num_threads()``, which OMP_NUM_THREADS and the user set, cut to what there is."""
    wanted: int = _get_num_threads()
    available = available_cpus()
    return wanted if wanted < available else available


@isolation.on_child_start
def run_serially() -> None:
    """Keep PyTorch's ops on one thread in an isolated child.

    GNU OpenMP's threads do not survive a fork: the first parallel op would wait for them forever.
    """
    torch.set_num_threads(1)

"""How many CPU threads a call may use."""

from __future__ import annotations

import torch

from polyblocks.runtime.threads import available_cpus

_get_num_threads = torch.get_num_threads


def thread_count() -> int:
    """``torch.get_num_threads()``, which OMP_NUM_THREADS and the user set, cut to what there is."""
    wanted: int = _get_num_threads()
    available = available_cpus()
    return wanted if wanted < available else available

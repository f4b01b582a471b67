"""How many CPU threads a call may use, and none of PyTorch's in a forked compilation."""

from __future__ import annotations

import torch

from polyblocks.isolation import isolation
from polyblocks.runtime.threads import resolve

_get_num_threads = torch.get_num_threads


def thread_count() -> int:
    """Threads of a call without the option; ``OMP_NUM_THREADS`` is PyTorch's setting, too."""
    return resolve(None, _get_num_threads())


@isolation.on_child_start
def run_serially() -> None:
    """Keep PyTorch's ops on one thread in an isolated child.

    GNU OpenMP's threads do not survive a fork: the first parallel op would wait for them forever.
    """
    torch.set_num_threads(1)

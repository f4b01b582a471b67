"""Which tensors of a recorded graph count by equal steps."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from polyblocks_torch.recording.recorder import Recorder

aten = torch.ops.aten


def arange_of(tensor: Tensor) -> tuple[int, int] | None:
    """The first number and the step of an operand that the graph counts.

    Args:
        tensor: an operand of the decomposition that is being recorded.

    Returns:
        None if it is no such tensor, or nothing is recorded.
    """
    for mode in _get_current_dispatch_mode_stack():
        node = mode.node_for(tensor) if isinstance(mode, Recorder) else None
        if node is not None and node.target is aten.arange.start_step:
            start, _, step = (*node.args, 1)[:3]
            return (start, step) if isinstance(start, int) and isinstance(step, int) else None
    return None

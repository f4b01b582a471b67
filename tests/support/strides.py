"""Whether the strides of a compiled result are those that eager PyTorch gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses import FakeTensorMode

Array = torch.Tensor


def as_eager(
    ours: Array, eager: Array, function: Callable[..., Any], inputs: Sequence[Array], output: int
) -> bool:
    """Whether they are eager's, or what PyTorch tells a compiler that eager's are.

    Args:
        ours: a result of the compiled function.
        eager: the same result, of the function itself.
        function: gives a list of results.
        inputs: its arguments.
        output: which of its results.
    """
    if ours.stride() == eager.stride():
        return True
    return ours.stride() == _promised(function, inputs, output, eager)


def _promised(
    function: Callable[..., Any], inputs: Sequence[Array], output: int, eager: Array
) -> tuple[int, ...]:
    """The strides of an output that PyTorch tells a compiler, where they say what eager's do.

    Of dimensions of one element it has two opinions: what its kernels do, and what its shape
    functions promise (``flip`` keeps such a stride, and promises not to).
    """
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        promised: Array = function(*[mode.from_tensor(x) for x in inputs])[output]
    moving = [d for d, extent in enumerate(eager.shape) if extent > 1]
    same = all(promised.stride(d) == eager.stride(d) for d in moving)
    return promised.stride() if same else eager.stride()

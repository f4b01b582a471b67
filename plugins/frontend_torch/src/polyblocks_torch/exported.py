"""Programs that ``torch.export`` made, as functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import is_fake
from torch.export import ExportedProgram

from polyblocks.errors import InputError


def open_exported(function: Any) -> tuple[Callable[..., Any], Sequence[Any] | None]:
    """The module of an exported program, and the inputs that it was exported with.

    Raises:
        InputError: a parameter or buffer has no values.
    """
    if isinstance(function, torch.nn.Module):
        for name, tensor in itertools.chain(function.named_parameters(), function.named_buffers()):
            if tensor.is_meta or is_fake(tensor):
                raise InputError(
                    f"'{name}' of {type(function).__name__} has no values (a meta or fake tensor), "
                    "and a program needs them; load the weights first, with "
                    "load_state_dict(…, assign=True) for example"
                )
    if not isinstance(function, ExportedProgram):
        return function, None
    module = function.module(check_guards=False)
    # The remaining checks of its inputs; a loaded file has its own.
    module._forward_pre_hooks.clear()
    args, kwargs = function.example_inputs
    if not kwargs:
        return module, args

    class WithNames(torch.nn.Module):
        """Takes arguments with names as a dictionary behind the others."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *given: Any) -> Any:
            return self.module(*given[:-1], **given[-1])

    return WithNames(), (*args, kwargs)

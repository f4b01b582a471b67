"""The cases in PyTorch, for ours, its own compilers and its exporter. No compiler of ours here."""

from __future__ import annotations

from typing import Any

import torch

from bench.host_calls import cases
from bench.host_calls.cases import Case


class Weights(torch.nn.Module):
    """Adds its parameters to what it is given."""

    def __init__(self, values: list[torch.Tensor]) -> None:
        super().__init__()
        self.held = torch.nn.ParameterList(
            torch.nn.Parameter(value, requires_grad=False) for value in values
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x``, float32[16], and the sum of the parameters."""
        return cases.total(x, *self.held)  # type: ignore[no-any-return]


def program(case: Case) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """What is called, and its arguments."""
    values = [torch.from_numpy(x) for x in case.inputs]
    if case.kind == cases.WEIGHTS:
        return Weights([torch.from_numpy(x) for x in case.weights]).eval(), (values[0],), {}
    return cases.function_of(case.kind), *cases.arguments_of(case.kind, values)

"""One architecture: compiled whole, and compared with eager mode and with float64.

A training step runs the network in training mode and compares the gradients of its weights, too.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from forked_sweep import Outcome
from judge import WIDER, less_exact
from torch.utils import _pytree as pytree
from zoo import Model

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

#: How far a result may be from eager's, of the largest number in it, where float64 does not tell.
TOLERANCE = 1e-4


def check(model: Model) -> Outcome:
    """Compile one architecture under ``strict_target`` and call it twice."""
    torch.manual_seed(0)
    network, arguments = model.build()
    leave_nothing_neutral(network)
    # What it prepares at its first call is no part of its program.
    called(network.eval(), arguments, gradients=model.gradients)
    network.train(model.training)
    call = _stepped if model.training else partial(called, gradients=model.gradients)
    theirs = copy.deepcopy(network)
    for _ in range(2):  # a step may change statistics and counters
        expected = call(theirs, arguments)
    try:
        wide = copy.deepcopy(network).double()
        for _ in range(2):
            exact = call(wide, _widened(arguments))
    except RuntimeError:
        exact = []  # it computes a part in float32, whatever its weights are
    began = time.monotonic()
    strict = polyblocks_jit_torch(copy.deepcopy(network), compile_options={"strict_target": True})
    try:
        call(strict, arguments)
    except FallbackError as error:
        return _in_part(network, call, arguments, expected, exact) or Outcome(
            "fallback", line(error)
        )
    except Exception as error:  # whatever it is, eager mode does not raise it
        return Outcome("wrong", f"raised {type(error).__name__}: {line(error)}")
    seconds = time.monotonic() - began
    got = call(strict, arguments)
    if not strict.polyblocks_report().whole:
        return Outcome("fallback", "the report does not say whole")
    difference = differ(got, expected, exact)
    if difference:
        return Outcome("wrong", difference)
    weights = sum(weight.numel() for weight in network.parameters())
    # Gradients are last, and some of them are 0 but for rounding: no number for a table.
    results = len(got) - sum(weight.grad is not None for weight in theirs.parameters())
    error = max(distance(x, y) for x, y in zip(got[:results], expected, strict=False))
    return Outcome("compiled", measured={"weights": weights, "seconds": seconds, "error": error})


def _in_part(
    network: torch.nn.Module,
    call: Callable[..., list[torch.Tensor]],
    arguments: dict[str, Any],
    expected: list[torch.Tensor],
    exact: list[torch.Tensor],
) -> Outcome | None:
    """What is wrong with an architecture that PyTorch runs in part; None: nothing."""
    torch._dynamo.reset()
    compiled = polyblocks_jit_torch(network)
    for _ in range(2):
        got = call(compiled, arguments)
    difference = differ(got, expected, exact)
    return Outcome("wrong", difference) if difference else None


def leave_nothing_neutral(network: torch.nn.Module) -> None:
    """Weights of ones and zeros would hide errors: a shift that is not added, a scale left out."""
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.02)
        for module in network.modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                module.running_mean.normal_(std=0.1)
                module.running_var.uniform_(0.5, 1.5)


def called(
    network: Any, arguments: dict[str, Any], *, gradients: bool = False
) -> list[torch.Tensor]:
    """Results; ``gradients``: of a call that records them."""
    with torch.set_grad_enabled(gradients):
        return [result.detach() for result in _tensors(_results(network, arguments))]


def _stepped(network: Any, arguments: dict[str, Any]) -> list[torch.Tensor]:
    """Results, and the gradients of the weights that have some."""
    network.zero_grad()
    results = list(_tensors(_results(network, arguments)))
    sum(_weighed(result) for result in results if result.requires_grad).backward()
    gradients = [weight.grad for weight in network.parameters() if weight.grad is not None]
    return [*(result.detach() for result in results), *gradients]


def _weighed(result: torch.Tensor) -> torch.Tensor:
    """A loss that is constant for no result: neither a sum of 1 nor a norm of 1 makes it so."""
    weights = torch.linspace(-1, 1, result.numel(), dtype=result.dtype)
    return (result * weights.view(result.shape)).mean() + result.square().mean()


def _results(network: Any, arguments: dict[str, Any]) -> Any:
    torch.manual_seed(1)
    return network(*arguments.get("", ()), **{k: v for k, v in arguments.items() if k})


def _widened(arguments: Any) -> Any:
    return pytree.tree_map(
        lambda value: value.double() if value.is_floating_point() else value, arguments
    )


def _tensors(results: Any) -> Iterator[torch.Tensor]:
    """All that a network gives but its cache of keys and values."""
    if hasattr(results, "items"):
        results = [value for name, value in results.items() if name != "cache"]
    return (leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor))


def differ(got: list[Any], expected: list[Any], exact: list[Any]) -> str:
    if len(got) != len(expected):
        return f"{len(got)} results instead of {len(expected)}"
    for index, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
            return f"result {index} is {mine.dtype}{list(mine.shape)}"
        if not bool(theirs.isfinite().all()):
            return f"result {index} is not finite in eager mode: nothing to compare with"
        if distance(mine, theirs) <= TOLERANCE / 10:
            continue
        if len(exact) == len(got) and exact[index].dtype == WIDER.get(mine.dtype):
            less = less_exact(mine, theirs, exact[index])
        else:
            less = "" if distance(mine, theirs) <= TOLERANCE else "far from eager's"
        if less:
            return f"result {index}: {less}; relative error {distance(mine, theirs):.1e}"
    return ""


def distance(mine: torch.Tensor, theirs: torch.Tensor) -> float:
    """The largest difference, of the largest number."""
    if not mine.numel():
        return 0.0
    difference = (mine.double() - theirs.double()).abs().max()
    return float(difference / theirs.abs().max().clamp(min=1e-30))


def line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:240]

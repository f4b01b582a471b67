"""Sums over columns that are too many for whole rows, against float64 and eager mode."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

#: Rows, columns in blocks with a shorter last one (a prime number), width.
ROWS, COLUMNS, WIDTH = 70, 16411, 5


def kernel_sum(x: Tensor, y: Tensor) -> Tensor:
    squares = (x * x).sum(-1)[:, None] + (y * y).sum(-1)[None, :]
    return torch.exp(2 * (x @ y.T) - squares) @ y


def log_sum(x: Tensor, y: Tensor) -> Tensor:
    return torch.logsumexp(x @ y.T, -1)


def largest(x: Tensor, y: Tensor) -> Tensor:
    return (x @ y.T).amax(-1)


def attention(x: Tensor, y: Tensor) -> Tensor:
    return torch.softmax((x @ y.T) * 0.3, -1) @ y


def deviation(x: Tensor, y: Tensor) -> Tensor:
    return (x @ y.T).std(-1)


CASES = (kernel_sum, log_sum, largest, attention, deviation)


def points(special: str = "") -> tuple[Tensor, Tensor]:
    """Two sets of points; the third row of all products has special values."""
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, WIDTH, generator=generator) for n in (ROWS, COLUMNS))
    if special:
        x[2, 0] = float("nan") if special == "nan" else float("inf")
        y[:, 0] = -y[:, 0].abs() - 0.1
        if special == "block":
            # All of several blocks are minus infinity, others are not; no product is no number.
            x[2], y[:, 0] = 1.0, 0.5
            y[:5000, 0] = float("-inf")
        if special == "inf":
            y[777, 0] = 1.0
    return x, y


def check(function: Callable[..., Tensor], x: Tensor, y: Tensor, **options: bool) -> None:
    torch._dynamo.reset()
    compile_options = {"strict_target": True, **options}
    ours = polyblocks_jit_torch(function, compile_options=compile_options)(x, y)
    eager, exact = function(x, y), function(x.double(), y.double())
    assert torch.equal(ours.isnan(), eager.isnan())
    assert torch.equal(ours.isinf(), eager.isinf())
    if not exact.numel():
        return
    errors = [
        (r.double() - exact).nan_to_num(0.0, 0.0, 0.0).abs().max().item() for r in (ours, eager)
    ]
    size = exact.nan_to_num(0.0, 0.0, 0.0).abs().max().item()
    assert errors[0] <= max(2 * errors[1], 4e-6 * size)


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_sums_over_columns(function: Callable[..., Tensor]) -> None:
    check(function, *points())


@pytest.mark.parametrize(
    "special",
    ["nan", "minus", *(pytest.param(s, marks=pytest.mark.extended) for s in ("inf", "block"))],
)
def test_special_rows(special: str) -> None:
    for function in (log_sum, largest):
        check(function, *points(special))


def test_gradients_of_a_loss_over_many_classes() -> None:
    x, y = points()
    targets = torch.arange(ROWS) * 211

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(x @ y.T, targets)

    def gradients(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
        leaves = [v.clone().requires_grad_() for v in inputs]
        value = function(*leaves)
        return [value.detach(), *torch.autograd.grad(value, leaves)]

    torch._dynamo.reset()
    compiled = polyblocks_jit_torch(loss, compile_options={"strict_target": True})
    every = zip(
        gradients(compiled, x, y),
        gradients(loss, x, y),
        gradients(loss, x.double(), y.double()),
        strict=True,
    )
    for ours, eager, exact in every:
        errors = [(r.double() - exact).abs().max().item() for r in (ours, eager)]
        assert errors[0] <= max(2 * errors[1], 4e-6 * exact.abs().max().item())


@pytest.mark.parametrize("rows", [1, pytest.param(2, marks=pytest.mark.extended), 509])
def test_other_numbers_of_rows(rows: int) -> None:
    x, y = points()
    for function in (log_sum, attention):
        check(function, x[:1].repeat(rows, 1), y)


def test_no_rows() -> None:
    x, y = points()
    check(largest, x[:0], y)


@pytest.mark.extended
def test_without_dependent_reductions() -> None:
    check(log_sum, *points(), polyblocks_disable_reduce_reduce_fusion=True)


def picked(x: Tensor, y: Tensor, classes: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(x @ y.T, classes, reduction="none")


def by_hand(x: Tensor, y: Tensor, classes: Tensor) -> Tensor:
    return -torch.log_softmax(x @ y.T, -1).gather(1, classes[:, None])[:, 0]


def by_sums(x: Tensor, y: Tensor, classes: Tensor) -> Tensor:
    scores = x @ y.T
    return torch.logsumexp(scores, -1) - scores[torch.arange(len(scores)), classes]


@pytest.mark.parametrize("function", [picked, by_hand, by_sums], ids=lambda f: f.__name__)
def test_classes_are_picked_without_all_scores(function: Callable[..., Tensor]) -> None:
    x, y = points("nan")
    classes = torch.arange(ROWS) * 211 % COLUMNS
    # The first and the last column, and those at both sides of a border between blocks.
    classes[:4] = torch.tensor([0, COLUMNS - 1, 8191, 8192])
    y[5, 0] = float("-inf")
    torch._dynamo.reset()
    compiled = polyblocks_jit_torch(function, compile_options={"strict_target": True})
    ours, eager = compiled(x, y, classes), function(x, y, classes)
    exact = function(x.double(), y.double(), classes)
    assert torch.equal(ours.isnan(), eager.isnan())
    errors = [
        (r.double() - exact).nan_to_num(0.0, 0.0, 0.0).abs().max().item() for r in (ours, eager)
    ]
    assert errors[0] <= max(
        2 * errors[1], 4e-6 * exact.nan_to_num(0.0, 0.0, 0.0).abs().max().item()
    )
    (part,) = compiled.polyblocks_report().parts
    assert part.workspace_bytes < 4 * ROWS * COLUMNS // 8


@pytest.mark.extended
def test_ignored_classes_and_those_that_there_are_not() -> None:
    x, y = points()
    classes = torch.arange(ROWS) * 211 % COLUMNS
    classes[3] = -100
    check(lambda x, y: torch.nn.functional.cross_entropy(x @ y.T, classes), x, y)
    torch._dynamo.reset()
    compiled = polyblocks_jit_torch(by_hand, compile_options={"strict_target": True})
    compiled(x, y, classes.clamp(min=0))
    classes[3] = COLUMNS
    with pytest.raises(RuntimeError, match="index must be smaller than dim size"):
        compiled(x, y, classes)


@pytest.mark.extended
def test_of_several_look_ups_in_a_row_all_scores_are_kept() -> None:
    x, y = points()
    places = torch.arange(ROWS * 3).reshape(ROWS, 3)

    def several(x: Tensor, y: Tensor) -> Tensor:
        scores = x @ y.T
        return scores.gather(1, places) - scores.logsumexp(-1, keepdim=True)

    check(several, x, y)

"""Decompositions of losses and resampling, run by PyTorch and compared with its own kernels."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._decomp import decomposition_table
from torch._subclasses.fake_tensor import FakeTensorMode

from polyblocks_torch.decomp.every import REGISTRY
from polyblocks_torch.tracing.python_kernels import made_without_looking, operations_kept

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("name", ["upsample_nearest", "_upsample_nearest_exact"])
def test_nearest(name: str, dims: int) -> None:
    numbers = random.Random(dims)
    torch.manual_seed(0)
    forward, backward = (getattr(aten, f"{name}{dims}d{end}").default for end in ("", "_backward"))
    for _ in range(100):
        dtype = numbers.choice([torch.float32, torch.float64])
        sizes = [numbers.randint(1, 24 if dims < 3 else 9) for _ in range(dims)]
        if numbers.random() < 0.5:
            outputs = [numbers.choice([numbers.randint(1, 30), n, 2 * n, 3 * n]) for n in sizes]
            scales: list[float | None] = [None] * dims
        else:
            # Some leave a size as it is, or double it, without being 1 or 2.
            given = [numbers.choice([1.0, 2.0, 1.01, 2.05, 1.3, 0.7, 0.5, 3.0]) for _ in sizes]
            outputs = [max(1, int(n * scale)) for n, scale in zip(sizes, given, strict=True)]
            scales = list(given)
        channels = numbers.choice([1, 3, 4])
        x = torch.randn(2, channels, *sizes, dtype=dtype)
        grad = torch.randn(2, channels, *outputs, dtype=dtype)
        if dims > 1 and numbers.random() < 0.3:
            last = torch.channels_last if dims == 2 else torch.channels_last_3d
            x, grad = x.to(memory_format=last), grad.to(memory_format=last)
        assert torch.equal(REGISTRY[forward](x, outputs, *scales), forward(x, outputs, *scales))
        args = (grad, outputs, list(x.shape), *scales)
        torch.testing.assert_close(REGISTRY[backward](*args), backward(*args), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_multilabel_margin_loss(reduction: int) -> None:
    numbers = random.Random(reduction)
    torch.manual_seed(0)
    forward = aten.multilabel_margin_loss_forward.default
    backward = aten.multilabel_margin_loss_backward.default
    for _ in range(100):
        classes = numbers.randint(1, 6)
        shape = [classes] if numbers.random() < 0.3 else [numbers.randint(1, 4), classes]
        x = torch.randn(shape, dtype=torch.float64)
        target = torch.randint(numbers.choice([-1, 0]), classes, shape)
        loss, named = forward(x, target, reduction)
        torch.testing.assert_close(REGISTRY[forward](x, target, reduction), (loss, named))
        args = (torch.randn_like(loss), x, target, reduction, named)
        torch.testing.assert_close(REGISTRY[backward](*args), backward(*args))


@pytest.mark.parametrize("training", [False, True])
def test_rrelu(training: bool) -> None:
    backward = aten.rrelu_with_noise_backward.default
    grad, x, noise = torch.randn(3, 20)
    x[:2] = torch.tensor([0.0, -0.0])
    for lower, upper in ((0.1, 0.3), (0.2, 0.2)):
        args = (grad, x, noise, lower, upper, training, False)
        torch.testing.assert_close(REGISTRY[backward](*args), backward(*args))


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_soft_margin_loss_backward(dtype: torch.dtype, reduction: int) -> None:
    backward = aten.soft_margin_loss_backward.default
    x = torch.tensor([20.0, 8.0, 1.0, 0.0, -0.5, -3.0, -20.0], dtype=dtype)
    for sign in (1, -1):
        grad = torch.tensor(0.7, dtype=dtype).expand(() if reduction else x.shape)
        args = (grad, x * sign, torch.full_like(x, sign), reduction)
        # Where the loss is small, so is the gradient: absolute errors say nothing.
        torch.testing.assert_close(REGISTRY[backward](*args), backward(*args), rtol=1e-6, atol=0)


def test_what_pytorch_replaces_is_as_before() -> None:
    op = aten.upsample_nearest2d.vec
    before = dict(op.py_kernels)
    with operations_kept():
        assert op.py_kernels.keys() < before.keys()
    assert op.py_kernels == before


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.5, math.inf])
def test_distances(p: float) -> None:
    """Also of rows that are equal, and of elements that are."""
    torch.manual_seed(0)
    op = aten._cdist_backward.default
    shapes = [((4, 5), (3, 5)), ((2, 7, 3), (2, 1, 3)), ((1, 1), (40, 1)), ((5, 0), (3, 0))]
    for first, second in shapes:
        x, y = torch.randn(first, dtype=torch.float64), torch.randn(second, dtype=torch.float64)
        if x.numel():
            y[..., 0, :] = x[..., 0, :]
            y[..., -1, 0] = x[..., 0, 0]
        distances = torch.cdist(x, y, p)
        args = (torch.randn_like(distances), x, y, p, distances)
        torch.testing.assert_close(REGISTRY[op](*args), op(*args))
    op = aten._pdist_backward.default
    x = torch.randn(6, 4, dtype=torch.float64)
    x[2], x[1, 1] = x[4], x[0, 1]
    distances = torch.nn.functional.pdist(x, p)
    args = (torch.randn_like(distances), x, p, distances)
    torch.testing.assert_close(REGISTRY[op](*args), op(*args))


@pytest.mark.parametrize(
    "kernel, dilation, stride",
    [(3, 1, 1), (3, 1, 2), (5, 1, 2), (2, 1, 3), (3, 2, 1), (3, 3, 2), (2, 5, 3), (1, 1, 1)],
)
def test_windows_are_added_up(kernel: int, dilation: int, stride: int) -> None:
    torch.manual_seed(0)
    op = aten.col2im.default
    window = (kernel, 2), (dilation, 1), (1, 0), (stride, 1)
    image = torch.randn(2, 3, 13, 5, dtype=torch.float64)
    columns = torch.nn.functional.unfold(image, *window)
    args = (torch.randn_like(columns), [13, 5], *window)
    torch.testing.assert_close(REGISTRY[op](*args), op(*args))


@pytest.mark.parametrize("size, step", [(1, 1), (3, 1), (5, 2), (4, 4), (2, 5), (13, 3), (0, 2)])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_the_gradient_of_windows(size: int, step: int, dim: int) -> None:
    torch.manual_seed(0)
    op = aten.unfold_backward.default
    windows = torch.randn(13, 13, 13, dtype=torch.float64).unfold(dim, size, step)
    args = (torch.randn_like(windows), [13, 13, 13], dim, size, step)
    torch.testing.assert_close(REGISTRY[op](*args), op(*args))
    if dim == 1:
        args = (args[0][:1], *args[1:])
        torch.testing.assert_close(REGISTRY[op](*args), op(*args))
    scalar = (torch.tensor([2.5]), [], 0, 1, 1)
    torch.testing.assert_close(REGISTRY[op](*scalar), op(*scalar))


def test_the_shape_of_a_gradient_of_windows_takes_no_steps() -> None:
    op = aten.unfold_backward.default
    # A row for several, for which PyTorch adds element by element.
    args = (torch.randn(1, 6, 4), [3, 14], 1, 4, 2)
    steps: list[Any] = []

    class Counted(FakeTensorMode):
        def dispatch(self, func: Any, *given: Any, **options: Any) -> Any:
            steps.append(func)
            return super().dispatch(func, *given, **options)

    def shape(rows: int) -> torch.Size:
        steps.clear()
        with Counted() as mode:
            return op(mode.from_tensor(args[0]), [rows, 14], *args[2:]).shape

    with made_without_looking():
        assert shape(3) == (3, 14)
        short = len(steps)
    # Elsewhere it is PyTorch's own; of other sizes, as PyTorch remembers shapes.
    assert shape(5) == (5, 14)
    assert short < 5 < len(steps)
    torch.testing.assert_close(decomposition_table[op](*args), op(*args))


@pytest.mark.parametrize("shape, dim", [((4, 5, 2), 0), ((4, 5, 2), 2), ((3, 1), 1)])
def test_weight_norms(shape: tuple[int, ...], dim: int) -> None:
    torch.manual_seed(0)
    op = aten._weight_norm_interface_backward.default
    v = torch.randn(shape, dtype=torch.float64)
    g = torch.randn([n if k == dim else 1 for k, n in enumerate(shape)], dtype=torch.float64)
    weight, norms = aten._weight_norm_interface.default(v, g, dim)
    args = (torch.randn_like(weight), v, g, norms, dim)
    torch.testing.assert_close(REGISTRY[op](*args), op(*args))


def test_the_gradient_of_a_single_row() -> None:
    op = aten.embedding_dense_backward.default
    for freq in (False, True):
        args = (torch.randn(3), torch.tensor(2), 5, -1, freq)
        torch.testing.assert_close(REGISTRY[op](*args), op(*args))

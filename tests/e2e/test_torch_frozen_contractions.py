"""Contractions of all kinds with frozen weights: panels that are kept hold what private ones do."""

from __future__ import annotations

import gc
import math

import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from polyblocks.runtime.kept.memory import kept_bytes  # noqa: E402
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch  # noqa: E402

# Weights are kept by CPUs alone so far.
pytestmark = pytest.mark.cpu


class Weighted(nn.Module):
    """A function of an input and of weights that belong to the module."""

    def __init__(self, function, *shapes: tuple[int, ...], dtype=torch.float32) -> None:
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList(
            nn.Parameter((torch.randn(shape) * 0.2).to(dtype)) for shape in shapes
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *self.weights)


def conv(dims: int, **options):
    function = getattr(functional, f"conv{dims}d")
    return lambda x, w: function(x, w, **options)


#: Cases whose weights are packed.
KEPT_IN_PANELS = (
    "linear",
    "long sums",
    "weights as columns",
    "two products",
    "convolutions in tiles of filters",
)
CASES = {
    "linear": (functional.linear, (130, 96), [(70, 96)]),
    "linear of few rows": (functional.linear, (3, 512), [(300, 512)]),
    "linear of one row": (functional.linear, (1, 256), [(300, 256)]),
    "linear with bias": (functional.linear, (64, 96), [(250, 96), (250,)]),
    "long sums": (functional.linear, (48, 2100), [(130, 2100)]),
    "weights as columns": (torch.matmul, (100, 80), [(80, 200)]),
    "weights as rows": (lambda x, w: w @ x, (80, 200), [(100, 80)]),
    "batches share weights": (torch.matmul, (5, 33, 64), [(64, 48)]),
    "batches of weights": (torch.bmm, (6, 33, 64), [(6, 64, 48)]),
    "weights of the outer batch": (
        lambda x, w: torch.einsum("abmk,akn->abmn", x, w),
        (3, 4, 20, 32),
        [(3, 32, 40)],
    ),
    "two products": (lambda x, v, w: torch.relu(x @ v.T) @ w.T, (90, 64), [(256, 64), (72, 256)]),
    "sums of weights": (lambda x, v, w: x @ (v + w), (65, 64), [(64, 100), (64, 100)]),
    "weights of weights": (lambda x, v, w: x @ (v @ w), (65, 64), [(64, 50), (50, 100)]),
    "gathered weights": (lambda x, w: x @ w[:, 10:90].T, (65, 80), [(100, 100)]),
    "normalized weights": (
        lambda x, w: x @ functional.normalize(w, dim=1).T,
        (65, 64),
        [(100, 64)],
    ),
    "distances": (lambda x, w: ((x[:, None] - w[None]) ** 2).sum(-1), (90, 24), [(50, 24)]),
    "convolution": (conv(2, padding=1), (1, 32, 14, 14), [(48, 32, 3, 3)]),
    "small images": (conv(2, padding=1), (1, 256, 7, 7), [(256, 256, 3, 3)]),
    "convolutions in tiles of filters": (
        lambda x, v, w: functional.conv2d(
            torch.relu(functional.conv2d(x, v, padding=1)), w, padding=1
        ),
        (1, 128, 14, 14),
        [(256, 128, 3, 3), (128, 256, 3, 3)],
    ),
    "strided": (conv(2, stride=2, padding=3), (1, 3, 30, 30), [(40, 3, 7, 7)]),
    "dilated": (conv(2, dilation=2), (2, 16, 15, 17), [(33, 16, 3, 3)]),
    "points": (conv(2), (2, 64, 9, 9), [(130, 64, 1, 1)]),
    "groups": (conv(2, padding=1, groups=4), (1, 32, 12, 12), [(64, 8, 3, 3)]),
    "depthwise": (conv(2, padding=1, groups=48), (1, 48, 20, 20), [(48, 1, 3, 3)]),
    "one dimension": (conv(1, padding=2), (2, 24, 100), [(40, 24, 5)]),
    "three dimensions": (conv(3, padding=1), (1, 8, 6, 8, 8), [(20, 8, 3, 3, 3)]),
    "transposed": (
        lambda x, w: functional.conv_transpose2d(x, w, stride=2),
        (1, 32, 8, 8),
        [(32, 24, 4, 4)],
    ),
}


def check(module: nn.Module, x: torch.Tensor, tolerance: float) -> int:
    """Compare, change a weight, compare again; the bytes that were kept."""
    options = {"freeze_weights": True, "strict_target": True}
    compiled = polyblocks_jit_torch(module, compile_options=options)
    gc.collect()
    before = kept_bytes()
    with torch.no_grad():
        for _ in range(2):
            for _ in range(2):
                expected = module(x)
                scale = expected.abs().max().item()
                torch.testing.assert_close(
                    compiled(x), expected, rtol=tolerance, atol=tolerance * scale
                )
            kept = kept_bytes() - before
            for weight in module.parameters():
                weight.add_(0.125)
    return kept


#: A product and a convolution of each kind.
QUICK = (
    "linear of one row",
    "batches of weights",
    "weights of weights",
    "convolution",
    "transposed",
)
FURTHER = ("linear with bias", "normalized weights", "distances", "dilated")


@pytest.mark.parametrize(
    "name", sweep([name for name in CASES if name not in KEPT_IN_PANELS], *QUICK, extended=FURTHER)
)
def test_frozen_weights(name):
    function, shape, weights = CASES[name]
    torch.manual_seed(0)
    check(Weighted(function, *weights), torch.randn(shape), 2e-5)


@pytest.mark.parametrize(
    "name",
    sweep(
        ["convolution", "strided", "points", "groups", "depthwise"],
        "groups",
        extended=["strided", "depthwise"],
    ),
)
def test_frozen_weights_of_images_with_channels_last(name):
    function, shape, weights = CASES[name]
    torch.manual_seed(0)
    x = torch.randn(shape).to(memory_format=torch.channels_last)
    check(Weighted(function, *weights), x, 2e-5)


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["linear", "two products", "convolution"])
def test_frozen_weights_of_other_types(name, dtype):
    function, shape, weights = CASES[name]
    torch.manual_seed(0)
    tolerance = 1e-10 if dtype == torch.float64 else 2e-2
    check(Weighted(function, *weights, dtype=dtype), torch.randn(shape).to(dtype), tolerance)


def test_converted_weights_are_kept_as_they_are_used():
    torch.manual_seed(0)
    module = Weighted(lambda x, w: x @ w.float().T, (128, 64), dtype=torch.bfloat16)
    assert check(module, torch.randn(96, 64), 2e-5) >= 4 * 128 * 64


@pytest.mark.parametrize(
    "name",
    sweep(
        KEPT_IN_PANELS,
        *("linear", "convolutions in tiles of filters"),
        extended=["long sums", "weights as columns", "two products"],
    ),
)
def test_panels_are_kept(name):
    function, shape, weights = CASES[name]
    torch.manual_seed(0)
    kept = check(Weighted(function, *weights), torch.randn(shape), 2e-5)
    assert kept >= sum(4 * math.prod(extents) for extents in weights)


@pytest.mark.parametrize("threads", [1, 3])
def test_other_numbers_of_threads(threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    torch.manual_seed(0)
    for name in ("linear", "small images"):
        function, shape, weights = CASES[name]
        check(Weighted(function, *weights), torch.randn(shape), 2e-5)

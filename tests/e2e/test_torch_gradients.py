"""Gradients of compiled functions, against PyTorch's own in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch import Tensor
from torch.nn import functional

from polyblocks.errors import FallbackError
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

OPTIONS = {"target": "cpu", "strict_target": True}


def gradients(function: Callable[..., Any], tensors: Sequence[Tensor]) -> list[Tensor]:
    """Results, and gradients of every tensor that needs one."""
    given = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
    results = function(*given)
    results = [results] if isinstance(results, Tensor) else list(results)
    weighted = [
        (r.double() * torch.cos(r.detach().double() + i)).sum() for i, r in enumerate(results)
    ]
    total = torch.stack(weighted).sum()
    return [*results, *torch.autograd.grad(total, [t for t in given if t.requires_grad])]


def check(function: Callable[..., Any], *tensors: Tensor, tolerance: float = 1e-10) -> None:
    """Compare one function's results and gradients with eager's."""
    want = gradients(function, tensors)
    got = gradients(polyblocks_jit_torch(compile_options=OPTIONS)(function), tensors)
    for mine, theirs in zip(got, want, strict=True):
        assert mine.shape == theirs.shape
        torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance)


def randn(*shape: int, needs: bool = True) -> Tensor:
    return torch.randn(shape, dtype=torch.float64).requires_grad_(needs)


#: Channels of the image, of the result, groups, sizes of the image, of the window, options.
CONVOLUTIONS: list[tuple[int, int, int, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (8, 16, 8, (9, 9), (3, 3), {"stride": 2, "padding": 1}),
    (8, 8, 8, (10, 7), (3, 3), {"stride": 2, "padding": 1}),
    (8, 8, 8, (6, 7), (5, 3), {"padding": (2, 1)}),
    (8, 4, 2, (11, 8), (2, 3), {"stride": (3, 4)}),
    (6, 9, 3, (9, 8), (3, 2), {"stride": 2, "dilation": (2, 3), "padding": 2}),
    (4, 6, 2, (5, 5), (1, 1), {"padding": 2, "stride": 3}),
    (4, 6, 1, (7, 6), (3, 3), {"stride": 2, "padding": 1}),
    (6, 4, 2, (11,), (4,), {"stride": 3, "padding": 2}),
    (4, 4, 2, (4, 5, 6), (2, 3, 2), {"stride": (2, 1, 3), "padding": 1}),
]
TRANSPOSED = [
    (4, 4, 4, (4, 5), (3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    (6, 4, 2, (3, 4), (2, 3), {"stride": (3, 1), "dilation": 2, "output_padding": (2, 1)}),
    (4, 4, 2, (3, 2, 3), (2, 1, 2), {"stride": 2}),
]
USES: dict[str, Callable[[Tensor], Tensor]] = {
    "half": lambda w: w * 0.5,
    "standardized": lambda w: (w - w.mean((1, 2, 3), True)) / (w.std((1, 2, 3), keepdim=True) + 1),
}


#: Of groups and without, of one to three dimensions, of windows that strides leave apart.
QUICK = [CONVOLUTIONS[number] for number in (0, 3, 4, 7, 8)]


@pytest.mark.parametrize(
    "cases",
    sweep([CONVOLUTIONS, QUICK, TRANSPOSED], QUICK, extended=[TRANSPOSED]),
    ids=["all", "some", "transposed"],
)
def test_convolutions(cases: list[tuple[Any, ...]]) -> None:
    torch.manual_seed(0)
    tensors: list[Tensor] = []
    calls: list[Callable[..., Tensor]] = []
    transposed = cases is TRANSPOSED
    for inputs, outputs, groups, sizes, window, options in cases:
        first, second = (inputs, outputs) if transposed else (outputs, inputs)
        weight = randn(first, second // groups, *window)
        tensors += [randn(2, inputs, *sizes), weight, randn(outputs)]
        name = f"conv_transpose{len(sizes)}d" if transposed else f"conv{len(sizes)}d"
        calls.append(partial(getattr(functional, name), groups=groups, **options))

    def f(*tensors: Tensor) -> list[Tensor]:
        return [
            call(tensors[3 * i], tensors[3 * i + 1] * 0.5, tensors[3 * i + 2])
            for i, call in enumerate(calls)
        ]

    check(f, *tensors)


def test_what_else_the_graph_does_with_a_weight() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> list[Tensor]:
        kw = {"stride": 2, "padding": 1, "groups": 4}
        found = [functional.conv2d(x, use(w), **kw) for use in USES.values()]
        # Twice, and a penalty.
        return [*found, functional.conv2d(x.sin(), w, **kw), (w * w).sum()]

    check(f, randn(3, 4, 9, 8), randn(8, 1, 3, 3))


def test_autocast() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return functional.conv2d(x, w, stride=2, padding=1, groups=8).float()

    x, w = torch.randn(2, 8, 9, 9), torch.randn(16, 1, 3, 3).requires_grad_()
    check(f, x, w, tolerance=3e-2)


def test_a_convolution_of_windows_that_read_padding_alone() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> Tensor:
        return functional.conv2d(x, w * 2, padding=3, stride=2)

    check(f, randn(1, 2, 2, 3), randn(3, 2, 1, 2))


#: Views that are saved for the backward graph, of a computed [3, 12] and weights of their shapes.
VIEWS: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, ...]]] = {
    "windows": (lambda y: y.unfold(-1, 4, 2), (4,)),
    "windows of windows": (lambda y: y.unfold(0, 2, 1).unfold(1, 3, 1), (2, 3)),
    "windows of every second": (lambda y: y[::2, ::2].unfold(1, 2, 1), (2,)),
    "expanded windows": (lambda y: y.unfold(-1, 4, 2).expand(2, 3, 5, 4), (2, 1, 1, 4)),
    "every second": (lambda y: y[:, 1::2], (6,)),
    "transposed": (lambda y: y.T[::3], (3,)),
    "diagonal": (lambda y: y.diagonal(), (3,)),
    "expanded": (lambda y: y[:, :1].expand(3, 5), (5,)),
    "of another type": (lambda y: torch.view_as_real(torch.fft.fft(y)).unfold(1, 4, 2), (4,)),
    "strided": (lambda y: y.as_strided((5, 4), (2, 1), 3), (4,)),
    "strided backwards": (lambda y: y.as_strided((4, 3), (1, 2), 1), (3,)),
    "strided of windows": (lambda y: y.unfold(1, 4, 2).as_strided((3, 3), (2, 1), 1), (3,)),
    "strided of strided": (
        lambda y: y.as_strided((5, 4), (2, 1)).as_strided((4, 3), (2, 1), 20),
        (3,),
    ),
    "strided of transposed": (lambda y: y.T.sin().as_strided((6, 4), (5, 1), 2), (4,)),
}


#: One of each kind.
SOME_VIEWS = ["windows of windows", "expanded windows", "of another type", "strided of windows"]
OTHER_VIEWS = [name for name in VIEWS if name not in SOME_VIEWS]


@pytest.mark.parametrize(
    "names", sweep([SOME_VIEWS, OTHER_VIEWS], SOME_VIEWS, extended=[OTHER_VIEWS]), ids=len
)
def test_views_of_computed_values(names: list[str]) -> None:
    torch.manual_seed(0)
    views = [VIEWS[name] for name in names]

    def f(x: Tensor, *weights: Tensor) -> list[Tensor]:
        return [
            view(x * (i + 2)) * w
            for i, ((view, _), w) in enumerate(zip(views, weights, strict=True))
        ]

    check(f, randn(3, 12), *(randn(*shape) for _, shape in views))


def test_views_of_one_value() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> list[Tensor]:
        y = x * 2
        windows = y.unfold(-1, 4, 2)
        return [windows * w, windows.cos() * w, y[1:] * w[0], windows, y]

    check(f, randn(3, 12), randn(4))


@pytest.mark.extended
def test_views_of_an_argument() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> list[Tensor]:
        strided = x.as_strided((5, 4), (2, 1)).as_strided((4, 4), (3, 1), 2)
        return [x.unfold(-1, 4, 2) * w, strided * w]

    check(f, randn(3, 12), randn(4))


def test_views_of_constants() -> None:
    torch.manual_seed(0)
    table = torch.arange(12, dtype=torch.float64)

    def f(w: Tensor) -> Tensor:
        return table.unfold(-1, 4, 2) * w

    check(f, randn(4))


def test_stft() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> Tensor:
        return torch.view_as_real(torch.stft(x, 16, 4, window=w, return_complex=True))

    check(f, randn(2, 40), randn(16))


@pytest.mark.extended
def test_istft() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> Tensor:
        spectrum = torch.stft(x, 16, 4, window=w, return_complex=True)
        return torch.istft(spectrum * 2, 16, 4, window=w, length=35)

    check(f, randn(2, 40), randn(16).abs() + 1)


@pytest.mark.extended
def test_views_that_pytorch_reads() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> Tensor:
        windows = (x.abs() + 2).unfold(-1, 4, 2)
        return torch.special.zeta(windows.detach(), torch.ones(4, dtype=w.dtype)) * windows * w

    x, w = randn(3, 12), randn(4)
    want = gradients(f, [x, w])
    got = gradients(polyblocks_jit_torch(compile_options={"target": "cpu"})(f), [x, w])
    torch.testing.assert_close(got, want)


def test_results_keep_their_strides() -> None:
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        return (x * 2).unfold(-1, 4, 2), torch.view_as_real(torch.fft.fft(x)).unfold(1, 4, 2)

    x = torch.randn(3, 12)
    compiled = polyblocks_jit_torch(compile_options=OPTIONS)(f)
    for mine, theirs in zip(compiled(x), f(x), strict=True):
        assert mine.stride() == theirs.stride()
        torch.testing.assert_close(mine, theirs)


def test_memory_beside_a_value() -> None:
    def f(x: Tensor) -> Tensor:
        return (x * 2)[1:].as_strided((4,), (1,), 0) + x[::2].as_strided((3, 4), (4, 1))

    x = torch.randn(12)
    compiled = polyblocks_jit_torch(compile_options=OPTIONS)(f)
    torch.testing.assert_close(compiled(x), f(x))


def test_memory_beside_an_argument() -> None:
    def f(x: Tensor) -> Tensor:
        return x.as_strided((3,), (1,), 1) * 2

    x = torch.randn(12)[::3]
    with pytest.raises(FallbackError, match="reads or writes memory beside the elements"):
        polyblocks_jit_torch(compile_options=OPTIONS)(f)(x)
    torch.testing.assert_close(polyblocks_jit_torch(compile_options={"target": "cpu"})(f)(x), f(x))


def test_nearest_resize() -> None:
    torch.manual_seed(0)

    def f(x: Tensor) -> list[Tensor]:
        return [
            functional.interpolate(x, mode=mode, **options)
            for mode in ("nearest", "nearest-exact")
            for options in (
                {"scale_factor": (1.05, 2.3)},
                {"scale_factor": (2.05, 1.0)},
                {"size": (8, 11)},
                {"size": (3, 14)},
            )
        ]

    check(f, randn(1, 2, 8, 7))


@pytest.mark.extended
@pytest.mark.parametrize(
    "modes", sweep([["bilinear", "bicubic"], ["bicubic"]], ["bicubic"]), ids=str
)
def test_resizes_with_weights(modes: list[str]) -> None:
    torch.manual_seed(0)
    resize = functional.interpolate

    def f(row: Tensor, x: Tensor, volume: Tensor) -> list[Tensor]:
        found = [resize(row, scale_factor=1.7, mode="linear")]
        found.append(resize(volume, size=(3, 7, 5), mode="trilinear", align_corners=True))
        for mode in modes:
            found.append(resize(x, scale_factor=2, mode=mode))
            found.append(resize(x, size=(5, 9), mode=mode, align_corners=True))
            found.append(resize(x, size=(3, 12), mode=mode, antialias=True))
        return [*found, resize(x, size=(4, 9), mode="area")]

    check(f, randn(2, 3, 7), randn(2, 3, 8, 7), randn(1, 2, 4, 5, 3))


@pytest.mark.extended
def test_distances() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, y: Tensor) -> list[Tensor]:
        powers = (0.5, 1.0, 2.0, 3.0, float("inf"))
        return [*(torch.cdist(x, y, p) for p in powers), functional.pdist(x)]

    check(f, randn(4, 5), randn(3, 5))


@pytest.mark.extended
def test_normalized_weights() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, v: Tensor, rows: Tensor, columns: Tensor, table: Tensor) -> list[Tensor]:
        row = functional.embedding(torch.tensor(1), table)
        weights = torch._weight_norm(v, rows, 0), torch._weight_norm(v, columns, 1)
        return [row, *(functional.linear(x, weight) for weight in weights)]

    check(f, randn(3, 5), randn(4, 5), randn(4, 1), randn(1, 5), randn(3, 2))


@pytest.mark.extended
def test_normalized_batches() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        mean, variance = torch.zeros(5, dtype=x.dtype), torch.ones(5, dtype=x.dtype)
        return torch.ops.aten._batch_norm_with_update(x, weight, bias, mean, variance, 0.1, 1e-5)[0]

    check(f, randn(4, 5, 3), randn(5), randn(5))


@pytest.mark.extended
def test_covariances_and_combinations() -> None:
    """PyTorch makes them of looks at data, which decide nothing where there are no weights."""
    torch.manual_seed(0)

    def f(x: Tensor, row: Tensor) -> list[Tensor]:
        found = [torch.cov(x), torch.cov(x, correction=0), torch.cov(row), torch.corrcoef(x)]
        for r in (1, 2, 3):
            found.append(torch.combinations(row, r))
            found.append(torch.combinations(row, r, with_replacement=True))
        return found

    check(f, randn(3, 7), randn(5))


@pytest.mark.extended
def test_covariances_with_weights() -> None:
    """The weights are checked by the program, which stays whole."""
    torch.manual_seed(0)
    times = torch.tensor([1, 2, 0, 1, 3])

    def f(x: Tensor, w: Tensor) -> list[Tensor]:
        some = ({"fweights": times}, {"aweights": w}, {"fweights": times, "aweights": w})
        return [torch.cov(y, correction=c, **k) for y in (x, x[0]) for c in (0, 1) for k in some]

    check(f, randn(3, 5), torch.rand(5, dtype=torch.float64) + 0.1)


@pytest.mark.parametrize(
    "dtype",
    sweep(
        [torch.float32, torch.int64, torch.complex64],
        torch.int64,
        extended=[torch.float32, torch.complex64],
    ),
)
def test_weights_of_covariances(dtype: torch.dtype) -> None:
    """Of other types, with too few degrees of freedom, negative and without a sum."""

    def f(x: Tensor, times: Tensor, w: Tensor) -> list[Tensor]:
        return [torch.cov(x, fweights=times), torch.cov(x, fweights=times, aweights=w)]

    compiled = polyblocks_jit_torch(compile_options=OPTIONS)(f)
    torch.manual_seed(0)
    x = (torch.randn(3, 5, dtype=dtype if dtype.is_complex else None) * 4).to(dtype)
    w = torch.rand(5)
    for times in (torch.tensor([1, 2, 0, 1, 3]), torch.tensor([0, 0, 1, 0, 0])):
        torch.testing.assert_close(compiled(x, times, w), f(x, times, w), equal_nan=True)
    for bad, text in ((-times, "fweights cannot be negative"), (0 * times, "weights sum to zero")):
        with pytest.raises(RuntimeError, match=text):
            f(x, bad, w)
        with pytest.raises(RuntimeError, match=text):
            compiled(x, bad, w)
    for bad in (-w, w * torch.nan):
        with pytest.raises(RuntimeError, match="aweights cannot be negative"):
            f(x, times, bad)
        with pytest.raises(RuntimeError, match="aweights cannot be negative"):
            compiled(x, times, bad)


@pytest.mark.extended
def test_filled_rows() -> None:
    torch.manual_seed(0)
    places = torch.tensor([0, 2, 0, 3])

    def f(x: Tensor, value: Tensor, single: Tensor) -> list[Tensor]:
        found = [x.sin().index_fill(dim, places, value) for dim in (0, -1)]
        found.append(x.T.index_fill(0, torch.tensor(1), value))
        return [*found, single.sin().index_fill(0, torch.tensor([0]), value)]

    x, value, single = randn(4, 5), randn(), randn()
    check(f, x, value, single)
    check(f, x, value.detach(), single)
    check(f, x.detach(), value, single.detach())


@pytest.mark.extended
def test_tensors_without_dimensions_are_indexed() -> None:
    torch.manual_seed(0)
    first = torch.tensor([0])

    def f(x: Tensor, y: Tensor, row: Tensor) -> list[Tensor]:
        x = x * 2
        found = [x.index_add(0, i, y) for i in (first, first[0])]
        found += [x.index_copy(0, first, y), x.index_select(0, first)]
        return [*found, row.index_select(0, first[0]), row.index_add(0, first[0], y.reshape(1))]

    check(f, randn(), randn(), randn(3))


@pytest.mark.extended
def test_losses_and_activations() -> None:
    torch.manual_seed(0)
    target = torch.tensor([[0, 2, -1, 1, 1], [3, 1, 4, -1, 0], [-1, 0, 1, 2, 3], [4, 3, 2, 1, 0]])

    def f(x: Tensor) -> list[Tensor]:
        return [
            functional.multilabel_margin_loss(x, target),
            functional.multilabel_margin_loss(x[0], target[0], reduction="sum"),
            functional.rrelu(x, 0.1, 0.4, training=False),
            functional.soft_margin_loss(x * 9, x.detach().sign(), reduction="none"),
        ]

    check(f, randn(4, 5))


@pytest.mark.extended
def test_second_derivatives() -> None:
    torch.manual_seed(0)

    def f(x: Tensor, w: Tensor) -> Tensor:
        y = functional.conv2d(x.sin(), w * 0.5, stride=2, padding=1, groups=4)
        y = functional.interpolate(y.tanh(), (7, 5), mode="nearest")
        return (y.unfold(-1, 3, 1) ** 2).sum() + (x.abs() * x).sum()

    def second(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        def first(x: Tensor, w: Tensor) -> Tensor:
            of_x, of_w = torch.func.grad(f, (0, 1))(x, w)
            return of_x.cos().sum() + of_w.sin().sum()

        return torch.func.grad(first, (0, 1))(x, w)

    x, w = torch.randn(2, 4, 6, 7).double(), torch.randn(8, 1, 3, 3).double()
    got = polyblocks_jit_torch(compile_options=OPTIONS)(second)(x, w)
    torch.testing.assert_close(got, second(x, w), rtol=1e-10, atol=1e-10)

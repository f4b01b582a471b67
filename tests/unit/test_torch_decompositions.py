"""The decompositions and graph rewrites of the torch frontend, run by PyTorch against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from polyblocks.errors import UnsupportedError
from polyblocks_torch.decomp.every import REGISTRY
from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.importing.decompositions import decomposition_table
from polyblocks_torch.importing.refusals import RANDOM_OPS
from polyblocks_torch.rewrites import rewrite_graph

aten = torch.ops.aten

EDGES = torch.tensor(
    [0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 0.5, 5.0, 8.0, 10.0, torch.inf, -torch.inf, torch.nan]
)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(7)


def traced(function: Callable[..., Any], *inputs: Tensor) -> torch.fx.GraphModule:
    """The graph that is given to the lowering, after the rewrites."""
    graph = make_fx(function, decomposition_table=decomposition_table(), tracing_mode="fake")(
        *inputs
    )
    rewrite_graph(graph)
    graph.graph.lint()
    graph.recompile()
    return graph


def same(got: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, equal_nan=True)


def numbers(low: float, high: float) -> Tensor:
    return torch.cat((torch.rand(501) * (high - low) + low, EDGES))


SPECIAL = [
    (aten.i0.default, -30, 30),
    (aten.special_i0e.default, -30, 30),
    (aten.special_i1.default, -30, 30),
    (aten.special_i1e.default, -30, 30),
    (aten.special_modified_bessel_i0.default, -30, 30),
    (aten.special_modified_bessel_i1.default, -30, 30),
    (aten.special_modified_bessel_k0.default, 0, 30),
    (aten.special_modified_bessel_k1.default, 0, 30),
    (aten.special_scaled_modified_bessel_k0.default, 0, 30),
    (aten.special_scaled_modified_bessel_k1.default, 0, 30),
    (aten.special_bessel_j0.default, -30, 30),
    (aten.special_bessel_j1.default, -30, 30),
    (aten.special_bessel_y0.default, 0, 30),
    (aten.special_bessel_y1.default, 0, 30),
    (aten.special_spherical_bessel_j0.default, -30, 30),
    (aten.special_airy_ai.default, -8, 30),
    (aten.erfinv.default, -1, 1),
    (aten.special_erfcx.default, -5, 60),
    (aten.special_log_ndtr.default, -30, 30),
    (aten.special_ndtri.default, 0, 1),
    (aten.lgamma.default, -20, 60),
    (aten.digamma.default, -20, 60),
]


@pytest.mark.parametrize("op, low, high", SPECIAL, ids=[str(row[0]) for row in SPECIAL])
def test_special_function_equals_eager(op: Any, low: float, high: float) -> None:
    x = numbers(low, high).double()
    same(REGISTRY[op](x), op(x), rtol=1e-8, atol=1e-9)
    same(REGISTRY[op](x.float()), op(x).float(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("order", range(6))
def test_polygamma_equals_eager(order: int) -> None:
    x = numbers(0.1, 40)
    x = x[~((x <= 0) & (x == x.floor()))].double()
    same(REGISTRY[aten.polygamma.default](order, x), torch.polygamma(order, x), rtol=1e-8)


def test_zeta_equals_eager() -> None:
    orders = torch.tensor([0.5, 1, 1.0000001, 1.5, 2, 3, 7, 30, 1000, -2, torch.nan, torch.inf])
    places = [
        torch.nan,
        -torch.inf,
        torch.inf,
        0,
        -1,
        -0.5,
        -3.7,
        -30.2,
        -1e-6,
        0.01,
        0.5,
        1,
        9.5,
        1e5,
        1e20,
    ]
    s, q = torch.meshgrid(orders.double(), torch.tensor(places).double(), indexing="ij")
    zeta = REGISTRY[aten.special_zeta.default]
    same(zeta(s, q), torch.special.zeta(s, q), rtol=1e-12, atol=0)
    s, q = s.float(), q.float()
    same(zeta(s, q), torch.special.zeta(s, q), rtol=2e-6, atol=0)
    whole = torch.arange(2, 6)
    same(zeta(whole, whole), torch.special.zeta(whole, whole), rtol=2e-6, atol=0)
    x = torch.rand(5) + 1.5
    same(
        REGISTRY[aten.special_zeta.self_scalar](2.5, x),
        torch.special.zeta(2.5, x),
        rtol=2e-6,
        atol=0,
    )
    same(
        REGISTRY[aten.special_zeta.other_scalar](x, 3), torch.special.zeta(x, 3), rtol=2e-6, atol=0
    )


def test_half_precision_special_functions_are_computed_in_float32() -> None:
    x = torch.rand(33).half()
    got = REGISTRY[aten.lgamma.default](x)
    assert got.dtype == torch.float16
    same(got, torch.lgamma(x.float()).half(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape, dim", [((1,), 0), ((7, 13), 1), ((5, 3, 4), 0), ((), -1)])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable_and_puts_nan_last(
    shape: tuple[int, ...], dim: int, descending: bool
) -> None:
    x = torch.randint(-3, 3, shape).float()
    if x.dim() and x.numel() > 4:
        x.view(-1)[[1, 3]] = torch.nan
        x.view(-1)[2] = -torch.inf
    got = REGISTRY[aten.sort.stable](x, stable=True, dim=dim, descending=descending)
    expected = torch.sort(x, stable=True, dim=dim, descending=descending)
    same(got[0], expected[0], 0, 0)
    same(got[1], expected[1], 0, 0)


def test_modes_of_floats_are_left_to_the_framework() -> None:
    assert REGISTRY[aten.mode.default](torch.rand(3)) is NotImplemented


def test_long_rows_are_sorted() -> None:
    x = torch.rand(10_000)
    same(REGISTRY[aten.sort.default](x)[0], x.sort().values, 0, 0)


def test_complex_numbers_have_no_order() -> None:
    assert REGISTRY[aten.sort.default](torch.rand(3) + 1j) is NotImplemented


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.float64, torch.float16])
def test_order_statistics_equal_eager(dtype: torch.dtype) -> None:
    x = (torch.rand(5, 9) * 20 - 10).to(dtype)
    same(REGISTRY[aten.topk.default](x, 4, 1)[0], torch.topk(x, 4, 1)[0], 0, 0)
    same(REGISTRY[aten.kthvalue.default](x, 3, 1)[0], torch.kthvalue(x, 3, 1)[0], 0, 0)
    same(REGISTRY[aten.median.dim](x, 0)[0], torch.median(x, 0)[0], 0, 0)
    if not dtype.is_floating_point:
        same(REGISTRY[aten.mode.default](x, 1, True)[0], torch.mode(x, 1, True)[0], 0, 0)


def test_median_with_nan_equals_eager() -> None:
    x = torch.rand(4, 7)
    x[1, 2] = x[2, :] = torch.nan
    same(REGISTRY[aten.median.dim](x, 1)[0], torch.median(x, 1)[0])
    same(REGISTRY[aten.nanmedian.dim](x, 1)[0], torch.nanmedian(x, 1)[0])
    same(REGISTRY[aten.median.default](x), torch.median(x))


def test_bits_of_floats_equal_eager() -> None:
    x, y = numbers(-5, 5), numbers(-5, 5).flip(0)
    tiny = torch.tensor([1e-45, -1e-45, 1.17549435e-38, 3.4028235e38])
    x, y = torch.cat((x, tiny)), torch.cat((y, -tiny))
    same(REGISTRY[aten.signbit.default](x), torch.signbit(x), 0, 0)
    same(REGISTRY[aten.nextafter.default](x, y), torch.nextafter(x, y), 0, 0)
    same(REGISTRY[aten.hypot.default](x, y), torch.hypot(x, y))
    same(REGISTRY[aten.fmax.default](x, y), torch.fmax(x, y), 0, 0)
    same(REGISTRY[aten.fmin.default](x, y), torch.fmin(x, y), 0, 0)
    same(REGISTRY[aten.angle.default](x), torch.angle(x))
    finite = x[x.isfinite()]
    same(REGISTRY[aten.frexp.Tensor](finite), tuple(torch.frexp(finite)), 0, 0)


@pytest.mark.parametrize("right", [False, True])
def test_searches_equal_eager(right: bool) -> None:
    rows = torch.randint(0, 20, (3, 11)).float().sort(-1).values
    values = torch.randint(-2, 22, (3, 6)).float()
    values[0, 0] = torch.nan
    got = REGISTRY[aten.searchsorted.Tensor](rows, values, right=right)
    same(got, torch.searchsorted(rows, values, right=right), 0, 0)
    got = REGISTRY[aten.bucketize.Tensor](values, rows[0], right=right, out_int32=True)
    same(got, torch.bucketize(values, rows[0], right=right, out_int32=True), 0, 0)


def test_scatters_and_histograms_equal_eager() -> None:
    x = torch.randn(4, 5)
    index = torch.tensor([0, -1, 7, 7])
    source = torch.randn(4)
    put = REGISTRY[aten.put.default]
    same(put(x, index, source, True), torch.put(x, index, source, True))
    same(REGISTRY[aten.histc.default](x, 7), torch.histc(x, 7), 0, 0)
    same(REGISTRY[aten.histc.default](x, 5, -1, 1), torch.histc(x, 5, -1, 1), 0, 0)
    for kind in ("prod", "mean", "amax", "amin"):
        arguments = (x, 0, torch.tensor([3, 0, 3]), torch.randn(3, 5), kind)
        same(REGISTRY[aten.index_reduce.default](*arguments), aten.index_reduce(*arguments))


@pytest.mark.parametrize("offset, dims", [(0, (0, 1)), (-2, (0, 2)), (3, (2, 1)), (1, (1, 0))])
def test_diagonal_scatter_equals_eager(offset: int, dims: tuple[int, int]) -> None:
    x = torch.randn(4, 6, 5)
    source = torch.randn_like(torch.diagonal(x, offset, *dims))
    got = REGISTRY[aten.diagonal_scatter.default](x, source, offset, *dims)
    same(got, torch.diagonal_scatter(x, source, offset, *dims), 0, 0)


#: Views that are slices of an array of 5 x 4, or of 5 x 2 x 2, in each dimension.
BOXES = [
    ((5, 1), (4, 1), 3),
    ((1, 3), (4, 1), 9),
    ((2, 3), (1, 4), 5),
    ((5, 2), (4, 2), 1),
    ((2, 1, 3), (2, 1, 4), 8),
]


@pytest.mark.parametrize(
    "size, stride, offset",
    [
        ((3, 4), (4, 1), 0),
        ((4, 3), (1, 4), 2),
        ((3, 3), (1, 1), 1),
        ((2, 5), (0, 3), 0),
        ((5, 4), (2, 1), 1),
        ((4, 2), (5, 1), 3),
        ((), (), 4),
        *BOXES,
    ],
)
def test_strided_views_equal_eager(size: Any, stride: Any, offset: int) -> None:
    x = torch.randn(5, 4)
    got = REGISTRY[aten.as_strided.default](x, size, stride, offset)
    same(got, torch.as_strided(x, size, stride, offset), 0, 0)
    assert REGISTRY[aten.as_strided.default](x.T, size, stride, offset) is NotImplemented


@pytest.mark.parametrize("size, stride, offset", [((4, 2), (5, 1), 3), ((3,), (6,), 1), *BOXES])
def test_stores_into_strided_views_equal_eager(size: Any, stride: Any, offset: int) -> None:
    x, part = torch.randn(5, 4), torch.randn(size)
    got = REGISTRY[aten.as_strided_scatter.default](x, part, size, stride, offset)
    same(got, torch.as_strided_scatter(x, part, size, stride, offset), 0, 0)


@pytest.mark.parametrize("size, stride, offset", BOXES)
def test_strided_boxes_are_slices(size: Any, stride: Any, offset: int) -> None:
    def read_and_store(x: torch.Tensor, part: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        read = REGISTRY[aten.as_strided.default](x, size, stride, offset)
        return read, REGISTRY[aten.as_strided_scatter.default](x, part, size, stride, offset)

    graph = make_fx(read_and_store)(torch.randn(5, 4), torch.randn(size)).graph
    targets = {node.target for node in graph.nodes}
    assert not targets & {aten.index.Tensor, aten.index_put.default}


@pytest.mark.parametrize("sizes", [((7, 9), (3, 4)), ((5, 5), (5, 5)), ((4, 3), (6, 7))])
def test_pooling_and_resampling_equal_eager(sizes: Any) -> None:
    extent, output = sizes
    x = torch.randn(2, 3, *extent)
    got = REGISTRY[aten.adaptive_max_pool2d.default](x, output)
    expected = aten.adaptive_max_pool2d(x, output)
    same(got[0], expected[0], 0, 0)
    same(got[1], expected[1], 0, 0)
    for op in (aten._upsample_bilinear2d_aa.default, aten._upsample_bicubic2d_aa.default):
        same(REGISTRY[op](x, output, False), op(x, output, False))


@pytest.mark.parametrize(
    "extents, output",
    [
        ((7, 9), (3, 4)),
        ((13, 5), (5, 7)),
        ((1, 300), (1, 4)),
        ((11, 700), (11, 7)),
        ((6, 70), (4, 9)),
        ((8, 8), (2, 3)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_unequal_windows_equal_eager(extents: Any, output: Any, dtype: torch.dtype) -> None:
    x = torch.randn(2, 3, *extents).to(dtype)
    # Equal elements and some that are no numbers, also several in one window.
    x[0, 0] = x[0, 0].round()
    x[1, 0, :, 1::5] = torch.nan
    x[1, 1, 0, 0], x[1, 2] = torch.inf, -torch.inf
    for image in (x, x[1]):
        for op in (aten.adaptive_max_pool2d.default, aten._adaptive_avg_pool2d.default):
            got, want = REGISTRY[op](image, output), op(image, output)
            if isinstance(want, Tensor):
                same(got, want)
            else:
                same(got[0], want[0], 0, 0)
                assert got[1].equal(want[1])


def test_distances_equal_eager() -> None:
    a, b = torch.randn(2, 5, 3), torch.randn(2, 4, 3)
    for p in (0.0, 1.0, 2.0, 3.5, torch.inf):
        same(REGISTRY[aten._cdist_forward.default](a, b, p, None), torch.cdist(a, b, p))
        same(REGISTRY[aten._pdist_forward.default](a[0], p), torch.pdist(a[0], p))


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 257, 611, 1100])
def test_distances_of_pairs_are_in_the_order_of_eager(rows: int) -> None:
    x = torch.randn(rows, 3, dtype=torch.float64)
    x[rows // 2 :: 5, 1] = torch.nan
    same(REGISTRY[aten._pdist_forward.default](x), torch.pdist(x))
    assert REGISTRY[aten._pdist_forward.default](x[:, :0]).equal(torch.zeros_like(torch.pdist(x)))


def test_scalars_are_reduced_along_dimension_zero() -> None:
    for value in (3.0, 0.0, torch.nan, torch.inf):
        x = torch.tensor(value)
        same(REGISTRY[aten._softmax.default](x, 0, False), torch.softmax(x, 0))
        same(REGISTRY[aten._log_softmax.default](x, 0, False), torch.log_softmax(x, 0))
        for order in (0, 1, 2, torch.inf):
            same(
                REGISTRY[aten.linalg_vector_norm.default](x, order, [0]),
                torch.linalg.vector_norm(x, order, [0]),
            )


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
def test_norms_of_single_numbers_neither_overflow_nor_vanish(dtype: torch.dtype) -> None:
    norm = torch.linalg.vector_norm
    limits = torch.finfo(dtype)
    numbers = [limits.max / 2, limits.tiny, 0.0, -3.0, torch.inf, torch.nan]
    x = torch.tensor(numbers, dtype=torch.float64).to(dtype)[:, None]

    def function(x: Tensor) -> list[Tensor]:
        orders = (0, 0.5, 1, 2, 3, -1, torch.inf)
        rows = [norm(x, order, dim=1) for order in orders]
        kept = [norm(x.mT, 3, dim=-2, keepdim=True), norm(x[:1]), norm(x[0], 2, keepdim=True)]
        return [*rows, *kept, norm(x[3, 0], 2, dim=[0])]

    for mine, theirs in zip(traced(function, x)(x), function(x), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=4 * limits.eps, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gradients_of_hardswish_are_nan_where_the_operand_is(dtype: torch.dtype) -> None:
    edges = [3.0, -3.0, torch.nan, 2.0, torch.inf, -torch.inf, -5.0, 5.0]
    # As many as vectors of eager mode's hold: single numbers it computes otherwise.
    x = torch.tensor(edges * 8, dtype=dtype)
    for value in (2.0, -0.3, torch.nan, torch.inf):
        grad = torch.full_like(x, value)
        backward = aten.hardswish_backward.default
        mine, theirs = traced(backward, grad, x)(grad, x), backward(grad, x)
        unit = torch.finfo(dtype).eps
        torch.testing.assert_close(mine, theirs, rtol=2 * unit, atol=0, equal_nan=True)


def test_sums_of_scalars_equal_eager() -> None:
    for x in (torch.tensor(2.5), torch.tensor(3, dtype=torch.int32), torch.tensor(True)):
        got = REGISTRY[aten.sum.dim_IntList](x, [0])
        assert got.dtype == torch.sum(x, [0]).dtype
        same(got, torch.sum(x, [0]))
        half = REGISTRY[aten.sum.dim_IntList](x, None, dtype=torch.float16)
        same(half, torch.sum(x, dtype=torch.float16))


def test_reciprocals_equal_eager() -> None:
    for x in (EDGES, EDGES.to(torch.float64), torch.tensor([0, 2, -4])):
        same(REGISTRY[aten.reciprocal.default](x), torch.reciprocal(x), 0, 0)


FOURIER = [
    (lambda x: torch.fft.fft(x), torch.complex64, (3, 12)),
    (lambda x: torch.fft.ifft2(x, norm="ortho"), torch.complex64, (2, 5, 7)),
    (lambda x: torch.fft.rfftn(x), torch.float32, (4, 6, 5)),
    (lambda x: torch.fft.irfft(x, n=9), torch.complex64, (3, 5)),
    (lambda x: torch.fft.irfft2(x), torch.complex64, (3, 4, 5)),
    (lambda x: torch.fft.hfft(x), torch.complex128, (3, 5)),
    (lambda x: torch.fft.fft(x), torch.complex64, (2, 360)),
    (lambda x: torch.fft.fft(x), torch.complex64, (1, 1024)),
    (lambda x: torch.fft.fft(x, dim=0), torch.complex64, (74, 3)),
    (lambda x: torch.fft.rfft(x, n=5, norm="forward"), torch.float64, (2, 8)),
    (lambda x: torch.fft.ihfft(x, norm="ortho"), torch.float32, (2, 9)),
    (lambda x: torch.fft.fft(x), torch.float32, (2, 4)),
]


@pytest.mark.parametrize("function, dtype, shape", FOURIER)
def test_fourier_transforms_equal_eager(function: Any, dtype: torch.dtype, shape: Any) -> None:
    x = torch.randn(shape, dtype=dtype)
    same(traced(function, x)(x), function(x), rtol=1e-4, atol=1e-4)


def test_complex_arithmetic_equals_eager() -> None:
    def function(x: Tensor, y: Tensor, r: Tensor) -> tuple[Tensor, ...]:
        z = (x * y + 2j - r * x.conj()) / 3
        return z @ y, z.abs(), torch.angle(z), z.exp(), torch.where(r > 0, z, 0), z.sum(0).real

    x, y = torch.randn(4, 4, dtype=torch.complex64), torch.randn(4, 4, dtype=torch.complex64)
    r = torch.randn(4, 4)
    same(traced(function, x, y, r)(x, y, r), function(x, y, r))


def test_complex_graphs_keep_no_complex_operation() -> None:
    x = torch.randn(3, 4, dtype=torch.complex64)
    graph = traced(lambda x: (x * x).cumsum(0), x).graph
    complex_ops = [
        node.target
        for node in graph.nodes
        if node.op == "call_function" and node.meta["val"].is_complex()
    ]
    assert complex_ops == [aten.complex.default]


def test_unknown_complex_operation_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="aten.linalg_eig.default: no rule for it"):
        traced(torch.linalg.eig, torch.randn(3, 3, dtype=torch.complex64))


def test_fourier_transforms_that_are_too_long_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="_fft_c2c.*5000000 numbers needs 5000000 factors"):
        traced(torch.fft.fft, torch.empty(5_000_000, dtype=torch.complex64))


def test_division_by_complex_numbers_equals_eager() -> None:
    parts = [complex(a, b) for a in (0, 1, -2, torch.inf, torch.nan) for b in (0, 3, -torch.inf)]
    edges = torch.tensor(parts, dtype=torch.complex64)
    x, y = edges.repeat(15), edges.repeat_interleave(15)
    same(traced(torch.div, x, y)(x, y), x / y)
    large, small = torch.randn(2, 99, dtype=torch.complex64) * torch.tensor([[1e30], [1e-30]])
    for z in (large, small):
        same(traced(lambda z: z / z.flip(0) + 1j / (z / z), z)(z), z / z.flip(0) + 1j / (z / z))


def test_complex_truth_norms_and_fills_equal_eager() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        norm = torch.linalg.vector_norm
        return (
            x.logical_not(), torch.logical_and(x, y), torch.logical_xor(x, y.real),
            torch.full_like(x, 2 - 1j) * torch.ones_like(x) + torch.zeros_like(y), norm(x),
            norm(x, 3, dim=1), norm(x, torch.inf, dim=0, keepdim=True), aten.copy(x, y[0]) + x,
        )  # fmt: skip

    x = torch.randn(4, 5, dtype=torch.complex64)
    x[1] = 0
    y = x.roll(2) * 3j
    y[2, 2] = 0
    same(traced(function, x, y)(x, y), function(x, y))


EMPTY = [
    (lambda a, b: a @ b, (3, 0), (0, 4)),
    (lambda a, b: torch.cat((a, b), 1), (3, 0), (3, 4)),
    (lambda a, b: torch.addmm(b, a, a.T, beta=0.5), (3, 0), (3, 3)),
    (lambda a, b: a.sum(1) + b, (3, 0), (3,)),
    (lambda a, b: a.prod(1) * b, (3, 0), (3,)),
    (lambda a, b: a.reshape(0, 2, 3).permute(1, 0, 2), (3, 0), (1,)),
]


@pytest.mark.parametrize("function, left, right", EMPTY)
def test_tensors_without_elements_leave_the_graph(function: Any, left: Any, right: Any) -> None:
    a, b = torch.randn(left), torch.randn(right)
    graph = traced(function, a, b)
    same(graph(a, b), function(a, b))
    used = [node for node in graph.graph.nodes if node.op == "placeholder" and node.users]
    assert all(node.meta["val"].numel() for node in used)


def test_unknown_mixture_with_empty_tensors_is_refused() -> None:
    operands = torch.randn(3), torch.randn(3, 0), torch.randn(0)
    graph = make_fx(aten.addmv.default, tracing_mode="fake")(*operands)
    with pytest.raises(UnsupportedError, match="mixes tensors with and without elements"):
        rewrite_graph(graph)


def test_random_draws_are_not_decomposed() -> None:
    left = {str(getattr(op, "overloadpacket", op)).split(".")[-1] for op in decomposition_table()}
    assert not left & RANDOM_OPS


def test_contractions_are_not_decomposed() -> None:
    table = decomposition_table()
    for op in (aten.mm.default, aten.bmm.default):
        assert op not in table
    # But for those with groups that torch-mlir lacks.
    x, weight = torch.randn(1, 4, 5, 5), torch.randn(4, 1, 3, 3)
    ordinary = ([1, 1], [1, 1], [1, 1], False, [0, 0], 4)
    assert table[aten.convolution.default](x, weight, None, *ordinary) is NotImplemented
    graph = traced(torch.addmm, torch.randn(2, 4), torch.randn(2, 3), torch.randn(3, 4)).graph
    assert graph.find_nodes(op="call_function", target=aten.addmm.default)
    assert not graph.find_nodes(op="call_function", target=aten.mm.default)


def test_second_decomposition_of_an_op_is_refused() -> None:
    with pytest.raises(ValueError, match="aten.i0.default has two decompositions"):
        decomposition(aten.i0.default)(lambda x: x)


def test_constants_are_folded_as_pytorch_computes_them() -> None:
    def function(x: Tensor) -> Tensor:
        return x + torch.full((3,), -7) // 2 + torch.remainder(torch.full((), -7), 4)

    x = torch.randn(3)
    graph = traced(function, x)
    same(graph(x), function(x))
    targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert set(targets) == {aten.full.default, aten.add.Tensor}


def test_dimensions_of_scatters_count_from_the_front() -> None:
    x, index, source = torch.randn(4, 5), torch.zeros(4, 3, dtype=torch.int64), torch.randn(4, 3)
    graph = traced(lambda x, i, s: x.scatter_add(-1, i, s), x, index, source)
    (node,) = (n for n in graph.graph.nodes if n.target is aten.scatter_add.default)
    assert node.args[1] == 1
    same(graph(x, index, source), x.scatter_add(-1, index, source))


NAN = torch.tensor([0.0, -1.0, 3.0, torch.nan, torch.inf, -torch.inf])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.maximum(x, x.flip(0)),
        lambda x: torch.minimum(x, x.flip(0)),
        lambda x: x.clamp(-1, 2),
        lambda x: x.clamp(min=0),
        lambda x: torch.nn.functional.hardtanh(x),
        torch.isfinite,
        lambda x: x.argmax(),
        lambda x: x.argmin(0, keepdim=True),
        lambda x: torch.max(x, 0),
        lambda x: torch.min(x[:3], 0),
    ],
)
def test_nan_is_handed_on(function: Callable[[Tensor], Any]) -> None:
    got, expected = traced(function, NAN)(NAN), function(NAN)
    same(
        tuple(got) if isinstance(got, (list, tuple)) else got,
        tuple(expected) if isinstance(expected, tuple) else expected,
        0,
        0,
    )


@pytest.mark.parametrize("function", [torch.remainder, torch.fmod, torch.floor_divide])
def test_remainders_and_floored_quotients_equal_eager(function: Any) -> None:
    x = torch.tensor([1.0, -1.0, 1e9, 0.0, -7.5, torch.inf])
    y = torch.tensor([2.0, -2.0, 0.5, 1.0, 7.0, -7.0])
    same(traced(function, x, y)(x, y), function(x, y), 0, 0)
    same(traced(lambda x: function(x, 3.0), x)(x), function(x, 3.0), 0, 0)
    same(traced(lambda x: function(x, -0.1), x)(x), function(x, -0.1), 0, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_erfinv_near_one(dtype: torch.dtype) -> None:
    """The digits of erf(x) - y cancel there."""
    gaps = torch.logspace(-7, -1, 500, dtype=torch.float64)
    y = torch.cat([1 - gaps, gaps - 1]).to(dtype)
    y = y[y.abs() < 1]
    ours = decomposition_table()[aten.erfinv.default](y)
    exact = torch.erfinv(y.double())
    torch.testing.assert_close(ours.double(), exact, rtol=4 * torch.finfo(dtype).eps, atol=0)


#: Shapes of three operands, the dimensions that they lack, and what is summed.
TRILINEAR = {
    "bilinear": ([(5, 3), (2, 3, 7), (5, 7)], [[1, 3], [0], [1, 2]], [2, 3]),
    "gradient of its weight": ([(5, 2), (5, 3), (5, 7)], [[2, 3], [1, 3], [1, 2]], [0]),
    "nothing is summed": ([(5,), (3,), (4,)], [[1, 2], [0, 2], [0, 1]], []),
    "all is summed": ([(5, 3), (5, 3), (5, 3)], [[], [], []], [0, 1]),
    "two are columns": ([(5,), (3,), (5, 3)], [[1], [0], []], [1]),
    "one element": ([(1, 1), (1, 1, 1), (1, 1)], [[1, 3], [0], [1, 2]], [2, 3]),
}


@pytest.mark.parametrize("name", TRILINEAR)
def test_trilinear(name: str) -> None:
    shapes, expanded, summed = TRILINEAR[name]
    generator = torch.Generator().manual_seed(0)
    operands = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
    found = decomposition_table()[aten._trilinear.default](*operands, *expanded, summed)
    same(found, aten._trilinear.default(*operands, *expanded, summed), 1e-12, 1e-12)

"""``flex_attention``: functions of scores and places, against PyTorch's eager mode in float64."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    create_block_mask,
    flex_attention,
)

from polyblocks.errors import FallbackError
from polyblocks.events import Event, listening
from polyblocks_torch import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

LOW = float("-inf")
Function = Callable[..., Any]
STRICT = {"strict_target": True}
#: Of parameters that take a way that others of their test have taken.
MORE = pytest.mark.extended


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        # Eager mode says that it is slow.
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def _gradients_on_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch refuses these of what is on a CPU, but its graphs are the same as those of GPUs."""
    import torch.nn.attention.flex_attention as module

    monkeypatch.setattr(module, "_validate_device", lambda *tensors: None)


def causal(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return q >= k


def window(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return (q >= k) & (q - k < 48)


def prefix(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return (k < 20) | (q >= k)


def documents(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return (q // 64 == k // 64) & (q >= k)


def by_head(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return torch.where(h % 2 == 0, q >= k, b + q + k >= 90)


def some_empty(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return (q >= k) & (q % 3 != 0) & (q > 5)


def nowhere(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return q < 0


def alibi(s: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return s + (k - q) * torch.exp2(-((h + 1) * 2.0))


def capped(s: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return 3 * torch.tanh(s / 3)


def hidden(s: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return torch.where(q >= k, s, LOW)


def _inputs(
    queries: int,
    keys: int,
    size: int = 16,
    dtype: torch.dtype = torch.float32,
    heads: tuple[int, int] = (4, 4),
    batches: tuple[int, int] = (2, 2),
    values: int | None = None,
) -> list[Tensor]:
    torch.manual_seed(queries + keys)
    shapes = (
        (batches[0], heads[0], queries, size),
        (batches[1], heads[1], keys, size),
        (batches[1], heads[1], keys, size if values is None else values),
    )
    return [torch.randn(shape).to(dtype) for shape in shapes]


def _block_mask(mask_mod: Function | None, q: Tensor, k: Tensor) -> BlockMask | None:
    if mask_mod is None:
        return None
    sizes = q.shape[0], q.shape[1], q.shape[2], k.shape[2]
    return create_block_mask(mask_mod, *sizes, device="cpu")


def _check(
    inputs: list[Tensor],
    score_mod: Function | None = None,
    mask_mod: Function | None = None,
    **options: Any,
) -> Tensor:
    """Output and logarithms against float64; the output."""
    q, k, v = inputs
    block_mask = _block_mask(mask_mod, q, k)

    def run(q: Tensor, k: Tensor, v: Tensor, block_mask: BlockMask | None) -> Any:
        aux = AuxRequest(lse=True)
        out, more = flex_attention(
            q, k, v, score_mod=score_mod, block_mask=block_mask, return_aux=aux, **options
        )
        return out, more.lse

    ours = polyblocks_jit_torch(run, compile_options=STRICT)(q, k, v, block_mask)
    exact = run(q.double(), k.double(), v.double(), block_mask)
    rounding = 32 * torch.finfo(q.dtype).eps
    assert ours[0].dtype == q.dtype
    torch.testing.assert_close(
        ours[0].double(), exact[0], rtol=rounding, atol=rounding, equal_nan=True
    )
    assert ours[1].dtype == torch.float32
    torch.testing.assert_close(
        ours[1].double(), exact[1].double(), rtol=1e-5, atol=1e-5, equal_nan=True
    )
    return ours[0]


@pytest.mark.parametrize(
    ("score_mod", "mask_mod"),
    [
        pytest.param(None, None, marks=MORE),
        pytest.param(None, causal, marks=MORE),
        pytest.param(None, window, marks=MORE),
        pytest.param(None, prefix, marks=MORE),
        pytest.param(None, documents, marks=MORE),
        (None, by_head),
        (alibi, causal),
        pytest.param(capped, window, marks=MORE),
        pytest.param(hidden, None, marks=MORE),
        pytest.param(None, some_empty, marks=MORE),
        pytest.param(capped, nowhere, marks=MORE),
    ],
)
def test_functions_of_scores_and_places(
    score_mod: Function | None, mask_mod: Function | None
) -> None:
    _check(_inputs(96, 96), score_mod, mask_mod)


@pytest.mark.parametrize(
    ("queries", "keys", "size", "mask_mod"),
    [
        pytest.param(1, 1, 8, causal, marks=MORE),
        (1, 67, 5, prefix),
        pytest.param(131, 1, 8, causal, marks=MORE),
        (127, 131, 17, window),
        pytest.param(200, 70, 8, window, marks=MORE),
        pytest.param(7, 129, 1, documents, marks=MORE),
    ],
)
def test_odd_sizes(queries: int, keys: int, size: int, mask_mod: Function) -> None:
    _check(_inputs(queries, keys, size, values=size + 3), alibi, mask_mod)


@pytest.mark.parametrize(
    "dtype",
    [torch.bfloat16, *(pytest.param(t, marks=MORE) for t in (torch.float16, torch.float64))],
)
@pytest.mark.parametrize(
    ("score_mod", "mask_mod"), [(alibi, causal), pytest.param(capped, some_empty, marks=MORE)]
)
def test_other_types(dtype: torch.dtype, score_mod: Function, mask_mod: Function) -> None:
    _check(_inputs(65, 65, dtype=dtype), score_mod, mask_mod)


@pytest.mark.parametrize(("heads", "queries"), [((6, 2), 40), pytest.param((6, 1), 3, marks=MORE)])
def test_heads_that_share_keys(heads: tuple[int, int], queries: int) -> None:
    _check(_inputs(queries, 40, heads=heads), alibi, by_head, enable_gqa=True)


@pytest.mark.extended
def test_batches_that_share_keys_with_a_scale() -> None:
    _check(_inputs(40, 40, batches=(3, 1)), capped, causal, scale=0.3)


@MORE
def test_batches_that_share_keys() -> None:
    _check(_inputs(40, 40, batches=(3, 1)), None, causal)


def test_largest_scores() -> None:
    """Of the operator, since PyTorch's function does not give them on CPUs."""
    q, k, v = _inputs(40, 40)
    block_mask = _block_mask(some_empty, q, k)
    assert block_mask is not None
    options = {"BACKEND": "AUTO", "OUTPUT_LOGSUMEXP": True, "OUTPUT_MAX": True}

    def run(q: Tensor, k: Tensor, v: Tensor, block_mask: BlockMask) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = torch.ops.higher_order.flex_attention(
            q, k, v, capped, block_mask.as_tuple(), 0.5, options
        )
        return found

    ours = polyblocks_jit_torch(run, compile_options=STRICT)(q, k, v, block_mask)
    for mine, theirs in zip(ours, run(q, k, v, block_mask), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


@MORE
def test_scale() -> None:
    _check(_inputs(40, 40), capped, None, scale=0.3)


def test_rows_without_keys_are_zero() -> None:
    out = _check(_inputs(96, 96), None, some_empty)
    assert not out[:, :, ::3].any()
    assert out[:, :, 7::3].all()


def test_what_the_functions_capture() -> None:
    numbers = torch.randint(0, 3, (2, 50))
    bias, slopes, table = torch.randn(4, 50, 60), torch.rand(4), torch.randn(99)
    factor = torch.tensor(0.5, dtype=torch.float64)

    def same(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return numbers[b, q] == numbers[b, k]

    def biased(s: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return s * factor + bias[h, q, k]

    def sloped(s: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return s + slopes[h] * (k - q) + table[q - k + 49] + bias[h, k, q]

    _check(_inputs(50, 50), biased, same)
    _check(_inputs(50, 50), sloped, same)


def test_functions_that_are_not_elementwise() -> None:
    rows, columns = torch.randn(50, 3), torch.randn(50, 3)

    def low_rank(s: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return s + (rows[q] * columns[k]).sum()

    _check(_inputs(50, 50), low_rank, causal)


@pytest.mark.parametrize(
    "special", [float("nan"), *(pytest.param(x, marks=MORE) for x in (float("inf"), LOW))]
)
def test_missing_and_infinite_values(special: float) -> None:
    q, k, v = _inputs(40, 40)
    k[..., 30, :] = special
    q[:, :, 7] = q[:, :, 7].abs()
    _check([q, k, v], None, causal)
    v[..., 20, 1] = special
    _check([q, k, v], alibi, None)


@pytest.mark.parametrize(
    "mask_mod", [documents, *(pytest.param(m, marks=MORE) for m in (causal, window, prefix))]
)
def test_masked_places_are_left_out(
    mask_mod: Function, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    events: list[Event] = []
    with listening(events.append):
        _check(_inputs(640, 640, 32, batches=(1, 1)), alibi, mask_mod)
    cut = [e.data["loops"] for e in events if e.data.get("what") == "bounds of masks"]
    assert sum(cut) >= 5


def _gradients(
    inputs: list[Tensor],
    captured: list[Tensor],
    score_mod: Function,
    mask_mod: Function | None,
    **o: Any,
) -> tuple[list[Tensor], list[Tensor]]:
    """Ours, and eager's of float64: gradients of inputs and of what was captured."""
    block_mask = _block_mask(mask_mod, *inputs[:2])

    def loss(*tensors: Tensor) -> Tensor:
        (q, k, v), more = tensors[:3], tensors[3:]

        def scored(s: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return score_mod(s, b, h, q, k, *more)

        aux = AuxRequest(lse=True)
        out, found = flex_attention(
            q, k, v, score_mod=scored, block_mask=block_mask, return_aux=aux, **o
        )
        kept = torch.where(found.lse > LOW, found.lse, 0.0)
        return (out.to(kept.dtype) ** 2).sum() + kept.sin().sum()

    def run(function: Function, dtype: torch.dtype | None) -> list[Tensor]:
        leaves = [x.detach().to(dtype or x.dtype).requires_grad_() for x in (*inputs, *captured)]
        return list(torch.autograd.grad(function(*leaves), leaves))

    ours = run(polyblocks_jit_torch(loss, compile_options=STRICT), None)
    return ours, run(loss, torch.float64)


def _bias(s: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor, *bias: Tensor) -> Tensor:
    return 3 * torch.tanh(s / 3) + bias[0][h, q, k] + bias[1][h] * (k - q) + bias[2][q - k + 40]


@pytest.mark.extended
@pytest.mark.usefixtures("_gradients_on_cpus")
@pytest.mark.parametrize(
    ("mask_mod", "heads"),
    [
        pytest.param(None, (4, 4), marks=MORE),
        (causal, (4, 2)),
        pytest.param(some_empty, (4, 4), marks=MORE),
    ],
)
def test_gradients(mask_mod: Function | None, heads: tuple[int, int]) -> None:
    inputs = _inputs(41, 41, heads=heads)
    captured = [torch.randn(4, 43, 41), torch.rand(4) / 8, torch.randn(81)]
    found = _gradients(inputs, captured, _bias, mask_mod, enable_gqa=heads[0] != heads[1])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.extended
@MORE
@pytest.mark.usefixtures("_gradients_on_cpus")
def test_gradients_of_keys_that_batches_share() -> None:
    inputs = _inputs(41, 41, batches=(3, 1))
    for mine, theirs in zip(*_gradients(inputs, [], hidden, causal), strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.extended
@MORE
@pytest.mark.usefixtures("_gradients_on_cpus")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_gradients_of_other_types(dtype: torch.dtype) -> None:
    inputs = _inputs(41, 41, dtype=dtype)
    # Logarithms, which the loss reads, are float32.
    near = 1e-6 if dtype is torch.float64 else 0.05
    for mine, theirs in zip(*_gradients(inputs, [], capped, causal), strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=near, atol=near * 2)


@pytest.mark.usefixtures("_gradients_on_cpus")
def test_gradients_inside_of_the_function() -> None:
    inputs = _inputs(41, 41)
    block_mask = _block_mask(causal, *inputs[:2])

    def step(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        out = flex_attention(*leaves, score_mod=alibi, block_mask=block_mask)
        return torch.autograd.grad(out.square().sum(), leaves)

    ours = polyblocks_jit_torch(step, compile_options=STRICT)(*inputs)
    for mine, theirs in zip(ours, step(*(x.double() for x in inputs)), strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.extended
def test_gradients_of_what_is_captured_alone() -> None:
    """PyTorch allows these on CPUs."""
    inputs, bias = _inputs(41, 41), torch.randn(4, 41, 41)

    def loss(bias: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        def biased(s: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return s + bias[h, q, k]

        return flex_attention(q, k, v, score_mod=biased).square().sum()

    leaves = [bias.clone().requires_grad_(), bias.double().requires_grad_()]
    polyblocks_jit_torch(loss, compile_options=STRICT)(leaves[0], *inputs).backward()
    loss(leaves[1], *(x.double() for x in inputs)).backward()
    torch.testing.assert_close(leaves[0].grad.double(), leaves[1].grad, rtol=1e-4, atol=1e-4)


def test_a_function_that_draws_is_left_to_pytorch() -> None:
    def noisy(s: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return s + torch.rand_like(s)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q, k, v, score_mod=noisy)

    with pytest.raises(FallbackError, match="flex_attention.*draws"):
        polyblocks_jit_torch(run, compile_options=STRICT)(*_inputs(8, 8))

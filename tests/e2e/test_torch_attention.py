"""Attention and its gradients, against eager mode and float64; nothing is left to PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from sweeps import sweep
from torch import Tensor, nn
from torch.nn.attention.bias import CausalBias, causal_lower_right, causal_upper_left

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

attend = torch.nn.functional.scaled_dot_product_attention

Shapes = list[tuple[int, ...]]

QKV: Shapes = [(2, 3, 5, 7), (2, 3, 6, 7), (2, 3, 6, 7)]
GROUPED: Shapes = [(2, 6, 5, 7), (2, 2, 6, 7), (2, 2, 6, 7)]

#: The second row sees nothing.
SEEN = torch.tensor([[1, 0, 1, 1, 0, 1], [0] * 6, [1] * 6, [0, 0, 1, 0, 1, 0], [0, 1, 1, 1, 1, 1]])
SEEN = SEEN.bool()
ADDED = torch.linspace(-2, 2, 30).reshape(5, 6)


def heads_last(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attend(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=True).transpose(1, 2)


CASES: dict[str, tuple[Callable[..., Tensor], Shapes]] = {
    "plain": (attend, QKV),
    "causal": (lambda q, k, v: attend(q, k, v, is_causal=True), QKV),
    "causal, longer queries": (
        lambda q, k, v: attend(q, k, v, is_causal=True),
        [(1, 2, 67, 9), (1, 2, 33, 9), (1, 2, 33, 9)],
    ),
    "boolean mask": (lambda q, k, v: attend(q, k, v, attn_mask=SEEN), QKV),
    "mask of a batch": (
        lambda q, k, v: attend(q, k, v, attn_mask=SEEN[2:4].reshape(2, 1, 1, 6)),
        QKV,
    ),
    "added mask": (lambda q, k, v: attend(q, k, v, attn_mask=ADDED.to(q.dtype)), QKV),
    "gradient of the mask": (lambda q, k, v, m: attend(q, k, v, m), [*QKV, (2, 1, 5, 6)]),
    "scale": (lambda q, k, v: attend(q, k, v, scale=0.3), QKV),
    "grouped": (lambda q, k, v: attend(q, k, v, enable_gqa=True), GROUPED),
    "grouped, causal": (
        lambda q, k, v: attend(q, k, v, is_causal=True, enable_gqa=True),
        GROUPED,
    ),
    "heads last": (heads_last, [(2, 5, 3, 7), (2, 6, 3, 7), (2, 6, 3, 7)]),
    "three dimensions": (attend, [s[1:] for s in QKV]),
    "three dimensions, boolean mask": (
        lambda q, k, v: attend(q, k, v, attn_mask=SEEN),
        [s[1:] for s in QKV],
    ),
    "wider values": (attend, [*QKV[:2], (2, 3, 6, 9)]),
    "one element": (attend, [(1, 1, 1, 1)] * 3),
}


def output_and_gradients(function: Callable[..., Tensor], inputs: list[Tensor]) -> list[Tensor]:
    inputs = [x.detach().requires_grad_() for x in inputs]
    output = function(*inputs)
    weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).reshape(output.shape)
    gradients = torch.autograd.grad(output, inputs, weights.to(output.dtype))
    return [output.detach(), *gradients]


RUNS = [
    *((case, torch.float32) for case in CASES),
    *(
        (case, torch.bfloat16)
        for case in ("plain", "boolean mask", "grouped, causal", "three dimensions, boolean mask")
    ),
    *((case, torch.float16) for case in ("causal", "added mask", "grouped", "heads last")),
]
#: With each kind of mask and without, of groups, of another layout, and of nothing but one.
QUICK = [("gradient of the mask", torch.float32), ("grouped, causal", torch.bfloat16)]
FURTHER = [
    *((case, torch.float32) for case in ("boolean mask", "one element")),
    ("heads last", torch.float16),
]


@pytest.mark.parametrize("run", sweep(RUNS, *QUICK, extended=FURTHER), ids=str)
def test_attention_and_gradients(run: tuple[str, torch.dtype]) -> None:
    check(*run)


@pytest.mark.simulated
def test_attention_on_each_kind_of_chip() -> None:
    check("grouped, causal", torch.float32)


@pytest.mark.parametrize(
    "case", sweep([(6, 2), (5, 5), (4, 1)], (6, 2), extended=[(5, 5), (4, 1)]), ids=str
)
def test_heads_that_share_packed_keys(case: tuple[int, int]) -> None:
    """Scores that no cache has room for: tiles of rows, whose keys are packed once."""

    def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, is_causal=True, enable_gqa=True)

    heads, shared = case
    q, k, v = (torch.randn(1, n, 401, 16) for n in (heads, shared, shared))
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(grouped)
    expected = grouped(q.double(), k.double(), v.double()).float()
    torch.testing.assert_close(compiled(q, k, v), expected, rtol=1e-5, atol=1e-5)


def check(case: str, dtype: torch.dtype) -> None:
    """Compile a case with gradients and without, and compare with eager mode and float64."""
    function, shapes = CASES[case]
    inputs = [torch.randn(shape, dtype=torch.float64).to(dtype) for shape in shapes]
    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    ours = output_and_gradients(compiled, inputs)
    eager = output_and_gradients(function, inputs)
    exact = output_and_gradients(function, [x.double() for x in inputs])
    with torch.no_grad():
        ours.append(compiled(*inputs))
    for mine, theirs, best in zip(ours, [*eager, eager[0]], [*exact, exact[0]], strict=True):
        assert (mine.dtype, mine.shape, mine.stride()) == (dtype, theirs.shape, theirs.stride())
        error = (mine.double() - best).abs().max()
        rounding = 2 * torch.finfo(dtype).eps * best.abs().max()
        assert error <= 2 * (theirs.double() - best).abs().max() + rounding


def test_dropout_drops_what_eager_drops() -> None:
    inputs = [torch.randn(shape) for shape in QKV]

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, dropout_p=0.4)

    compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
    torch.manual_seed(11)
    eager = output_and_gradients(function, inputs)
    state = torch.get_rng_state()
    torch.manual_seed(11)
    ours = output_and_gradients(compiled, inputs)
    assert torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)


X = torch.linspace(-1, 1, 3 * 7 * 24).reshape(3, 7, 24).sin()
PADDING = torch.arange(7) >= torch.tensor([[7], [4], [6]])

MODULES: dict[str, tuple[nn.Module, Callable[..., Tensor]]] = {
    "attention": (
        nn.MultiheadAttention(24, 4, batch_first=True),
        lambda m, x: m(x, x, x, key_padding_mask=PADDING, need_weights=False)[0],
    ),
    "weights returned": (nn.MultiheadAttention(24, 4), lambda m, x: m(x, x, x)[0]),
    "encoder": (
        nn.TransformerEncoderLayer(24, 4, 40, dropout=0.1, batch_first=True),
        lambda m, x: m(x, src_key_padding_mask=PADDING),
    ),
    "causal encoder, norm first": (
        nn.TransformerEncoderLayer(24, 4, 40, dropout=0.0, batch_first=True, norm_first=True),
        lambda m, x: m(x, nn.Transformer.generate_square_subsequent_mask(7), is_causal=True),
    ),
    "decoder": (
        nn.TransformerDecoderLayer(24, 4, 40, dropout=0.0, batch_first=True),
        lambda m, x: m(x, x[:, :5]),
    ),
}


def trained(
    module: nn.Module, loss: Callable[..., Tensor], **options: Any
) -> tuple[list[float], dict[str, Tensor]]:
    """Losses and parameters of two steps."""
    module = copy.deepcopy(module)
    function = polyblocks_jit_torch(compile_options=options)(loss) if options else loss
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    torch.manual_seed(13)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        value = function(module, X)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses, dict(module.named_parameters())


@pytest.mark.parametrize("name", sweep(MODULES, "encoder"))
def test_module_trains(name: str) -> None:
    module, call = MODULES[name]

    def loss(m: nn.Module, x: Tensor) -> Tensor:
        return call(m, x).square().mean()

    losses, parameters = trained(module, loss, strict_target=True)
    expected_losses, expected_parameters = trained(module, loss)
    torch.testing.assert_close(losses, expected_losses, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(parameters, expected_parameters, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("bias", [causal_lower_right, causal_upper_left])
@pytest.mark.parametrize(
    ("queries", "keys"),
    [(7, 13), *(pytest.param(*n, marks=pytest.mark.extended) for n in ((13, 7), (300, 301)))],
)
def test_causal_biases(bias: Callable[[int, int], CausalBias], queries: int, keys: int) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, 8) for n in (queries, keys, keys))
    mask = bias(queries, keys)

    def given(q: Tensor, k: Tensor, v: Tensor, mask: CausalBias) -> Tensor:
        return attend(q, k, v, mask)

    def held(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, mask)

    exact = held(*(x.double() for x in (q, k, v)))
    options = {"strict_target": True}
    ours = [
        polyblocks_jit_torch(given, compile_options=options)(q, k, v, mask),
        polyblocks_jit_torch(held, compile_options=options)(q, k, v),
    ]
    for result in ours:
        torch.testing.assert_close(result.double(), exact, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_a_causal_bias_is_not_made_inside() -> None:
    def made(q: Tensor) -> Tensor:
        bias = causal_lower_right(q.shape[-2], q.shape[-2])
        return attend(q, q, q, bias)

    with pytest.raises(FallbackError, match="subclass default constructor"):
        polyblocks_jit_torch(made, compile_options={"strict_target": True})(torch.randn(1, 2, 5, 8))


def test_heads_beside_a_lazy_conjugate(caplog: pytest.LogCaptureFixture) -> None:
    """All values are made anew there: those of attention have other strides than PyTorch's."""

    def joined(x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        q = x.mT.contiguous().view(2, 4, 4, 8).transpose(1, 2)
        return attend(q, q, q).transpose(1, 2).reshape(2, 4, 32), z * 2

    x, z = torch.randn(2, 32, 4), torch.randn(3, dtype=torch.complex64).conj()
    with torch.no_grad():
        found = polyblocks_jit_torch(joined, compile_options={"strict_target": True})(x, z)
    torch.testing.assert_close(found, joined(x, z))
    assert "cannot be decomposed" not in caplog.text

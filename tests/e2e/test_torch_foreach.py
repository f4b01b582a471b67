"""Operations on lists of tensors, as optimizers and the clipping of gradients use them."""

import math

import pytest
import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}
UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
BINARY = "add clamp_max clamp_min div maximum minimum mul pow sub".split()


def tensors(dtype=torch.float32):
    return [torch.rand(n, dtype=torch.float64).mul(0.9).add(0.05).to(dtype) for n in (7, 1, 12)]


def check(function, *args):
    expected = function(*args)
    for _ in range(2):
        torch.testing.assert_close(
            polyblocks_jit_torch(function, compile_options=STRICT)(*args), expected
        )


def test_of_one_list():
    check(lambda x: [f(x) for f in (getattr(torch, f"_foreach_{n}") for n in UNARY)], tensors())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
def test_of_two_lists_and_numbers(dtype):
    names = [n for n in BINARY if n not in ("div", "pow") or dtype != torch.int32]
    scale = 40 if dtype == torch.int32 else 1
    x, y = ([(t * scale).to(dtype) for t in tensors(torch.float32)] for _ in range(2))
    number, numbers = (2, [1, 2, 3]) if dtype == torch.int32 else (0.5, [0.5, 0.25, 2.0])

    def function(x, y):
        found = []
        for name in names:
            f = getattr(torch, f"_foreach_{name}")
            found += [f(x, y), f(x, number), f(x, numbers)]
        return [*found, torch._foreach_add(x, y, alpha=2), torch._foreach_mul(x, y[1].sum())]

    check(function, x, y)


def test_of_three_lists():
    def function(x, y, z):
        return [
            torch._foreach_addcmul(x, y, z, 0.5),
            torch._foreach_addcdiv(x, y, z, [0.5, 1.5, 2.5]),
            torch._foreach_lerp(x, y, z),
            torch._foreach_lerp(x, y, 0.25),
            torch._foreach_pow(2.0, x),
        ]

    check(function, tensors(), tensors(), tensors())


@pytest.mark.parametrize("order", [0, 1, 2, 3.5, math.inf, -math.inf])
def test_norms(order):
    x = [t - 0.5 for t in tensors()]
    check(lambda x: torch._foreach_norm(x, order), x)
    check(lambda x: torch._foreach_norm(x, order, dtype=torch.float64), x)


def test_updates():
    def function(x, y):
        torch._foreach_mul_(x, 2)
        torch._foreach_copy_(y, x)
        torch._foreach_zero_(x)
        return torch._foreach_clone(y)

    ours, theirs = ([tensors(), tensors()] for _ in range(2))
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(mine, other, strict=True):
            b.copy_(a)
    found = polyblocks_jit_torch(function, compile_options=STRICT)(*ours)
    torch.testing.assert_close((found, ours), (function(*theirs), theirs))


def test_gradients_are_clipped_in_a_compiled_function():
    layer = torch.nn.Linear(4, 3)
    layer(torch.randn(2, 4)).square().sum().backward()
    kept = [p.grad.clone() for p in layer.parameters()]

    def clipped():
        return torch.nn.utils.clip_grad_norm_(layer.parameters(), 0.1)

    total = polyblocks_jit_torch(clipped, compile_options=STRICT)()
    ours = [p.grad.clone() for p in layer.parameters()]
    for p, grad in zip(layer.parameters(), kept, strict=True):
        p.grad.copy_(grad)
    torch.testing.assert_close(total, clipped())
    torch.testing.assert_close(ours, [p.grad for p in layer.parameters()])

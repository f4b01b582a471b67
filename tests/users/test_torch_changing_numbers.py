"""Python numbers that change: one more variant, which takes them as arguments."""

import math

import pytest
import torch
from torch.nn import functional as F

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}

VALUES = [0.1 * i + 0.05 for i in range(20)]

FUNCTIONS = {
    "mul": lambda x, a: x * a,
    "python_arithmetic": lambda x, a: x * math.sqrt(a) + a**2 - 1 / a,
    "alpha": lambda x, a: torch.sub(x, x, alpha=a),
    "clamp": lambda x, a: x.clamp(min=a) + x.clamp(a, 2 * a),
    "pow": lambda x, a: x**a + a**x,
    "full": lambda x, a: x + torch.full((5,), a),
    "leaky_relu": lambda x, a: F.leaky_relu(x - 0.5, a),
    "where": lambda x, a: torch.where(x > a, x, a),
    "masked_fill": lambda x, a: x.masked_fill(x > 0.5, a),
    "lerp": lambda x, a: torch.lerp(x, 2 * x, a),
    "addmm": lambda x, a: torch.addmm(x @ x.T, x, x.T, alpha=a, beta=a),
    "addcdiv": lambda x, a: torch.addcdiv(x, x, x + 1, value=a),
    "integers": lambda x, a: (x * 10).to(torch.int32) * a,
    "temperature": lambda x, a: torch.softmax(x / a, -1),
}

QUICK = ("python_arithmetic", "clamp")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in FUNCTIONS]
)
def test_float_argument_that_changes(name):
    function = FUNCTIONS[name]
    fast = polyblocks_jit_torch(function, compile_options=STRICT)
    x = torch.rand(4, 5)
    for value in VALUES:
        torch.testing.assert_close(fast(x, value), function(x, value), rtol=1e-5, atol=1e-6)
    assert len(fast.polyblocks_report().variants) == 2


@pytest.mark.slow
def test_float_argument_that_changes_with_gradients():
    def loss(x, a):
        return F.leaky_relu((x * a).sin() - 0.5, a).sum()

    fast = polyblocks_jit_torch(loss, compile_options=STRICT)
    x = torch.rand(4, 5)
    for value in VALUES:
        ours, theirs = (x.clone().requires_grad_() for _ in range(2))
        fast(ours, value).backward()
        loss(theirs, value).backward()
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-5, atol=1e-6)
    # Forward and backward, each for the first value and for all others.
    assert len(fast.polyblocks_report().variants) == 4


def test_float_argument_is_not_rounded_to_a_narrow_type():
    def scale(x, a):
        return x * a

    x = torch.rand(1000).half()
    fast = polyblocks_jit_torch(scale, compile_options=STRICT)
    for value in (0.1, 0.2, 0.15, 0.3):
        result = fast(x, value)
    assert torch.equal(result, scale(x, 0.3))


@pytest.mark.slow
def test_float_arguments_of_special_values():
    def scale(x, a):
        return x * a

    x = torch.rand(7) - 0.5
    fast = polyblocks_jit_torch(scale, compile_options=STRICT)
    for value in (1.5, 0.0, 1.0, -0.0, math.inf, math.nan, -1.0, 1e300, 1e-300, -math.inf):
        result = fast(x, value)
        torch.testing.assert_close(result, scale(x, value), equal_nan=True)
        assert torch.equal(result.signbit(), scale(x, value).signbit()) or math.isnan(value)


@pytest.mark.slow
def test_float_argument_that_python_looks_at():
    def choose(x, a):
        return x * a if a < 1 else x + a

    fast = polyblocks_jit_torch(choose, compile_options=STRICT)
    x = torch.rand(5)
    for value in VALUES:
        torch.testing.assert_close(fast(x, value), choose(x, value))
    assert len(fast.polyblocks_report().variants) == 3


def test_division_by_a_float_argument_that_is_zero():
    def scale(x, a):
        return x * (1 / a)

    fast = polyblocks_jit_torch(scale, compile_options=STRICT)
    x = torch.rand(5)
    for value in (0.5, 0.25, 0.75):
        torch.testing.assert_close(fast(x, value), scale(x, value))
    with pytest.raises(Exception, match="division by zero"):
        fast(x, 0.0)


@pytest.mark.slow
def test_number_that_shapes_the_program_is_compiled_for_its_value():
    def normalize(x, eps):
        return F.layer_norm(x, (5,), eps=eps)

    fast = polyblocks_jit_torch(normalize, compile_options=STRICT)
    x = torch.rand(2, 5)
    for value in (0.1, 0.2, 0.3):
        torch.testing.assert_close(fast(x, value), normalize(x, value))


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def forward(self, x):
        return x * self.scale


def test_float_attribute_and_closure_that_change():
    module, rate = Scaled(), [0.5]
    fast = polyblocks_jit_torch(module, compile_options=STRICT)

    @polyblocks_jit_torch(compile_options=STRICT)
    def decayed(x):
        return x * rate[0]

    x = torch.rand(5)
    for value in VALUES:
        module.scale = rate[0] = value
        torch.testing.assert_close(fast(x), x * value)
        torch.testing.assert_close(decayed(x), x * value)
    assert len(fast.polyblocks_report().variants) == 2
    assert len(decayed.polyblocks_report().variants) == 2


@pytest.mark.slow
def test_many_sizes_are_said_once(caplog):
    @polyblocks_jit_torch
    def double(x):
        return x * 2

    for size in range(2, 8):
        double(torch.rand(size, 3))
    lines = [r.getMessage() for r in caplog.records if "sizes of dimension" in r.getMessage()]
    (line,) = lines
    assert "double: compiled for 4 sizes of dimension 0 of argument 0 (2, 3, 4, 5)" in line

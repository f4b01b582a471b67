"""Python integers that change: one more variant where they are computed with, else one each."""

import pytest
import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}

VALUES = range(20)

COMPUTED_WITH = {
    "mul": lambda x, n: x * n,
    "sub": lambda x, n: n - x,
    "python_arithmetic": lambda x, n: x * (n**2 % 7 - n // 3) + -n / (n + 1),
    "alpha": lambda x, n: torch.sub(x, x, alpha=n),
    "clamp": lambda x, n: (x * 20).clamp(max=n),
    "pow": lambda x, n: x**n,
    "where": lambda x, n: torch.where(x * 20 > n, x, n),
    "full": lambda x, n: torch.full((3,), n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0.5, n),
    "int32": lambda x, n: (x * 100).to(torch.int32) * n + n,
    "floor_divide": lambda x, n: (x * 100).to(torch.int64) // (n + 1),
    "remainder": lambda x, n: (x * 100).to(torch.int16) % (n + 1),
    "bits": lambda x, n: (x * 100).to(torch.uint8) & n,
    "bool": lambda x, n: (x > 0.5) + n,
    "half": lambda x, n: x.half() * n,
    "python_max": lambda x, n: x / max(n, 3),
}
SHAPES = {
    "narrow": lambda x, n: x[:, : n % 5 + 1],
    "place": lambda x, n: x[n % 4],
    "roll": lambda x, n: torch.roll(x, n, 1),
    "loop": lambda x, n: sum(x * i for i in range(n + 1)),
    "both": lambda x, n: x[:, : n % 5 + 1] * n,
    "dim": lambda x, n: torch.cumsum(x, n % 2),
}
QUICK = ("mul", "int32", "narrow", "both")


def cases(table):
    return [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in table]


def same(ours, theirs):
    assert ours.dtype == theirs.dtype
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", cases(COMPUTED_WITH))
def test_integer_that_is_computed_with(name):
    def function(x, n):
        return COMPUTED_WITH[name](x, n)

    fast = polyblocks_jit_torch(function, compile_options=STRICT)
    x = torch.rand(4, 5)
    for value in VALUES:
        same(fast(x, value), function(x, value))
    assert len(fast.polyblocks_report().variants) <= (3 if name == "python_max" else 2)


@pytest.mark.parametrize("name", cases(SHAPES))
def test_integer_that_shapes_the_program(name):
    def function(x, n):
        return SHAPES[name](x, n)

    fast = polyblocks_jit_torch(function, compile_options=STRICT)
    x = torch.rand(4, 5)
    for value in (1, 3, 0, 2, 7, 3, 1):
        same(fast(x, value), function(x, value))


def test_integer_with_gradients():
    def loss(x, n):
        return ((x * n).sin() * (n + 1)).sum()

    fast = polyblocks_jit_torch(loss, compile_options=STRICT)
    x = torch.rand(4, 5)
    for value in VALUES:
        ours, theirs = (x.clone().requires_grad_() for _ in range(2))
        fast(ours, value).backward()
        loss(theirs, value).backward()
        same(ours.grad, theirs.grad)
    # Forward and backward, each for the first value and for all others.
    assert len(fast.polyblocks_report().variants) == 4


@pytest.mark.slow
def test_integer_that_is_returned():
    def function(x, n):
        return x * n, n, n + 1

    fast = polyblocks_jit_torch(function, compile_options=STRICT)
    x = torch.rand(5)
    for value in (2, 5, 9, -3):
        ours, theirs = fast(x, value), function(x, value)
        same(ours[0], theirs[0])
        assert ours[1:] == theirs[1:]
        assert all(type(number) is int for number in ours[1:])


@pytest.mark.slow
def test_large_and_negative_integers():
    def function(x, n):
        return x + n, x * n - n

    fast = polyblocks_jit_torch(function, compile_options=STRICT)
    x = torch.randint(-9, 9, (7,))
    for value in (3, -3, 0, 1, 2**62, -(2**63), 2**63 - 1, 2**53 + 1):
        for ours, theirs in zip(fast(x, value), function(x, value), strict=True):
            assert torch.equal(ours, theirs)
    assert len(fast.polyblocks_report().variants) == 2


@pytest.mark.slow
def test_integer_that_the_type_cannot_hold():
    def function(x, n):
        return x > n

    fast = polyblocks_jit_torch(function, compile_options=STRICT)
    x = torch.tensor([1, 100, -100], dtype=torch.int8)
    # Eager mode takes 128 for -128.
    for value in (5, 6, 100, -128, 128, 300, -129):
        assert torch.equal(fast(x, value), function(x, value))


@pytest.mark.slow
def test_branch_on_an_integer():
    def function(x, n):
        return x * n if n < 10 else x + n

    fast = polyblocks_jit_torch(function, compile_options=STRICT)
    x = torch.rand(5)
    for value in VALUES:
        same(fast(x, value), function(x, value))
    assert len(fast.polyblocks_report().variants) == 3


@pytest.mark.slow
def test_counter_of_a_module():
    class Decay(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 0

        def forward(self, x):
            self.step += 1
            return x / self.step

    fast = polyblocks_jit_torch(Decay(), compile_options=STRICT)
    x = torch.rand(5)
    for step in range(1, 6):
        same(fast(x), x / step)


def test_integer_in_a_text():
    def function(x, n):
        return {f"step {n}": x * n}

    fast = polyblocks_jit_torch(function)
    x = torch.rand(5)
    for value in (2, 3, 4):
        (name,) = fast(x, value)
        assert name == f"step {value}"
        same(fast(x, value)[name], x * value)
    report = fast.polyblocks_report()
    assert report.whole
    assert len(report.variants) == 3


@pytest.mark.slow
def test_integer_beside_a_graph_break():
    def function(x, n):
        y = x * n
        torch._dynamo.graph_break()
        return y + n

    fast = polyblocks_jit_torch(function)
    x = torch.rand(5)
    for value in VALUES:
        same(fast(x, value), function(x, value))
    report = fast.polyblocks_report()
    assert len(report.graph_breaks) == 1
    assert len(report.variants) == 4


@pytest.mark.slow
def test_both_kinds_of_numbers():
    def function(x, n, a):
        return x * (n * a) + a**n

    fast = polyblocks_jit_torch(function, compile_options=STRICT)
    x = torch.rand(5)
    for n, a in ((2, 0.5), (3, 0.25), (4, 0.75), (5, 1.5)):
        same(fast(x, n, a), function(x, n, a))
    assert len(fast.polyblocks_report().variants) <= 3


@pytest.mark.slow
def test_torch_compile_with_an_integer_that_changes():
    fast = torch.compile(lambda x, n: x * n + n, backend="polyblocks", fullgraph=True)
    x = torch.rand(5)
    for value in VALUES:
        same(fast(x, value), x * value + value)

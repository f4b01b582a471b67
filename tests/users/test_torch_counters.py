"""Numbers of modules, closures and globals that change at each call: one more variant."""

import copy

import pytest
import torch
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}
CALLS = 20


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.step = 0

    def forward(self, x):
        self.step += 1
        return self.layer(x) / self.step


class Averaging(torch.nn.Module):
    """The decay depends on the count, as in the moving averages of weights."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.register_buffer("average", torch.zeros(3))

    def forward(self, x):
        self.count += 1
        decay = min(0.9, (1 + self.count) / (10 + self.count))
        self.average.mul_(decay).add_(x * (1 - decay))
        return self.average * 1 + (self.count > 7)


class EveryFourth(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x):
        self.count += 1
        return x * self.count if self.count % 4 == 0 else x + self.count


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(Counting, marks=pytest.mark.slow),
        Averaging,
        pytest.param(EveryFourth, marks=pytest.mark.slow),
        lambda: torch.nn.Sequential(EveryFourth(), Counting(), Counting()),
    ],
    ids=["counter", "decay", "branches", "layers"],
)
def test_counter_of_a_module(module):
    theirs = module()
    ours = copy.deepcopy(theirs)
    fast = polyblocks_jit_torch(ours, compile_options=STRICT)
    x = torch.rand(3)
    for _ in range(CALLS):
        with torch.no_grad():
            torch.testing.assert_close(fast(x), theirs(x))
    counts = [
        [{k: v for k, v in part.__dict__.items() if type(v) is int} for part in m.modules()]
        for m in (ours, theirs)
    ]
    assert counts[0] == counts[1]
    # The first call, and one for each branch.
    assert len(fast.polyblocks_report().variants) <= 4


def test_counter_in_training():
    theirs = Counting()
    ours = copy.deepcopy(theirs)
    fast = polyblocks_jit_torch(ours, compile_options=STRICT)
    x = torch.rand(4, 3)
    for _ in range(CALLS):
        for module, called in ((theirs, theirs), (ours, fast)):
            module.zero_grad()
            called(x).sum().backward()
        torch.testing.assert_close(ours.layer.weight.grad, theirs.layer.weight.grad)
    assert len(fast.polyblocks_report().variants) == 4


TOTAL = 0


def test_counters_of_closures_and_globals():
    global TOTAL
    TOTAL = 0
    listed, nonlocal_, rate = [0], 0, 0.0

    @polyblocks_jit_torch(compile_options=STRICT)
    def counted(x):
        nonlocal nonlocal_, rate
        global TOTAL
        listed[0] += 1
        nonlocal_ += 2
        TOTAL += 3
        rate += 0.5
        return x * listed[0] + nonlocal_ - TOTAL + rate

    x = torch.rand(3)
    for n in range(1, CALLS + 1):
        torch.testing.assert_close(counted(x), x * n + 2 * n - 3 * n + 0.5 * n)
    assert (listed[0], nonlocal_, TOTAL, rate) == (CALLS, 2 * CALLS, 3 * CALLS, 0.5 * CALLS)
    assert type(listed[0]) is type(nonlocal_) is type(TOTAL) is int
    assert len(counted.polyblocks_report().variants) == 2


def test_counter_beyond_64_bits():
    """Python adds what is not computed with."""
    count = [2**63 - 3]

    @polyblocks_jit_torch(compile_options=STRICT)
    def counted(x):
        count[0] += 1
        return x * 2

    for _ in range(6):
        counted(torch.rand(3))
    assert count == [2**63 + 3]


def test_two_models_of_one_class_have_constants_of_their_own():
    class Scaled(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x):
            return x.reshape(self.factor, -1) * self.factor

    x = torch.rand(12)
    for factor in (2, 3):
        fast = polyblocks_jit_torch(Scaled(factor), compile_options=STRICT)
        torch.testing.assert_close(fast(x), x.reshape(factor, -1) * factor)
        (variant,) = fast.polyblocks_report().variants
        assert variant.arguments == ["float32[12]"]


def test_integer_that_shapes_the_program_has_a_limit(caplog):
    @polyblocks_jit_torch
    def head(x, count):
        return x[:count] * 2

    x = torch.rand(40)
    for count in range(1, 25):
        torch.testing.assert_close(head(x, count), x[:count] * 2)
    assert len(head.polyblocks_report().variants) == 17
    (line,) = [r.getMessage() for r in caplog.records if "more than 16 values" in r.getMessage()]
    assert "count" in line
    assert f"{__file__}:{head.__wrapped__.__code__.co_firstlineno + 2}" in line


@pytest.mark.parametrize("size", sweep([3, 4], 3))
def test_dynamic_shapes_with_floats(size):
    norm = torch.nn.LayerNorm(5)
    fast = torch.compile(lambda x, a: norm(x) * a + x.shape[0], backend="polyblocks", dynamic=True)
    for value in (0.5, 0.25, 0.75):
        for rows in (size, size + 3):
            x = torch.rand(rows, 5)
            torch.testing.assert_close(fast(x, value), norm(x) * value + rows)

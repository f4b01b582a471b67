"""Values that Dynamo guards: so many variants for equal tensors, then PyTorch, with the name."""

from __future__ import annotations

import enum
import itertools
import re

import pytest
import torch

from polyblocks.errors import FallbackError
from polyblocks_torch import polyblocks_jit_torch
from polyblocks_torch.tracing import value_variants

#: In place of the number that users meet, for short tests.
VALUES = 4

Mode = enum.Enum("Mode", [f"m{i}" for i in range(VALUES + 2)])


@pytest.fixture(autouse=True)
def few_values(monkeypatch):
    assert value_variants.VALUES == 16
    monkeypatch.setattr(value_variants, "VALUES", VALUES)


def text(x, k):
    return x + len(k) if k == "a1" else x * 2


def flags(x, k):
    for index, flag in enumerate(k):
        if flag:
            x = x + index
    return x


def member(x, k):
    return x * k.value


def shape(x, k):
    return x.reshape(k) + 1


def keys(x, k):
    return x + k[next(iter(k))]


CASES = {
    "text": (text, [f"a{i}" for i in range(VALUES + 2)]),
    "booleans": (flags, list(itertools.product((True, False), repeat=3))[: VALUES + 2]),
    "zeros and ones": (flags, list(itertools.product((0, 1), repeat=3))[: VALUES + 2]),
    "enum": (member, list(Mode)),
    "shape": (shape, [(1,) * i + (6,) + (1,) * (n - i) for n in range(4) for i in range(n + 1)]),
    "keys": (keys, [{f"k{i}": 2} for i in range(VALUES + 2)]),
}


@pytest.mark.parametrize("case", CASES)
def test_values_have_a_limit_of_variants(case, caplog):
    function, values = CASES[case]
    compiled = polyblocks_jit_torch(function)
    x = torch.rand(6)
    for value in values:
        torch.testing.assert_close(compiled(x, value), function(x, value))
    report = compiled.polyblocks_report()
    assert len(report.variants) == VALUES
    (frame,) = (row for row in report.frames if not row.compiled)
    assert re.search(r"depends on (list\(dict\.keys\()?k\b.*4 variants", frame.reason)
    first = function.__code__.co_firstlineno
    path, _, line = frame.location.rpartition(":")
    assert path == __file__
    assert first < int(line) < first + 5
    assert caplog.text.count("4 variants") == 1


def test_other_tensors_are_counted_apart():
    compiled = polyblocks_jit_torch(text)
    for size, value in itertools.product((2, 3), [f"a{i}" for i in range(VALUES)]):
        x = torch.rand(size)
        torch.testing.assert_close(compiled(x, value), text(x, value))
    assert len(compiled.polyblocks_report().variants) == 2 * VALUES
    assert compiled.polyblocks_report().whole


def test_strict_target_refuses_more_values():
    compiled = polyblocks_jit_torch(text, compile_options={"strict_target": True})
    x = torch.rand(3)
    for index in range(VALUES):
        compiled(x, f"a{index}")
    with pytest.raises(FallbackError, match=r"text: .*depends on k, and 4 .*strict_target.* at "):
        compiled(x, "more")
    torch.testing.assert_close(compiled(x, "a1"), text(x, "a1"))


def test_a_call_without_tensor_work_says_nothing_of_the_next():
    @polyblocks_jit_torch
    def f(x, k=None):
        return x if k is None else x * 2

    x = torch.rand(3)
    assert f(x) is x
    torch.testing.assert_close(f(x, "twice"), x * 2)
    assert f(x) is x
    assert f.polyblocks_report().whole
    assert [v.outcome for v in f.polyblocks_report().variants] == ["trivial", "compiled"]

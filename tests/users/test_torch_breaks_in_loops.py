"""Graphs that end inside loops and comprehensions: results as eager's, and a reason that helps."""

import logging
import re

import pytest
import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def histograms(x):
    q = (x.sigmoid() * 16).long().clamp(0, 15)
    return torch.stack([torch.bincount(q[:, c].reshape(-1), minlength=16) for c in range(3)])


def histograms_by_loop(x):
    q = (x.sigmoid() * 16).long().clamp(0, 15)
    found = []
    for c in range(3):
        found.append(torch.bincount(q[:, c].reshape(-1), minlength=16))
    return torch.stack(found)


def newton(x):
    for _ in range(20):
        step = (x * x - 2) / (2 * x)
        x = x - step
        if step.abs().max() < 1e-6:
            break
    return x


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (histograms_by_loop, r"`aten\.bincount.* data, at .*loops\.py:21, in a loop"),
        (newton, r"Data-dependent branching.* tensor is true, at .*loops\.py:29, in a loop"),
    ],
)
def test_names_the_line_inside_a_loop(function, reason, caplog):
    x = torch.rand(2, 3, 7, 5) + 1
    compiled = polyblocks_jit_torch(function)
    with caplog.at_level(logging.WARNING, "polyblocks"):
        for _ in range(2):  # The reason is told anew for each function, once.
            torch.testing.assert_close(compiled(x), function(x))
    (line,) = (line for line in caplog.messages if f"Python runs {function.__name__} at" in line)
    assert re.search(reason, line), line


def test_a_comprehension_with_a_break_leaves_the_rest_compiled():
    # The code that Dynamo makes of it holds constants without a hash.
    x = torch.randn(2, 3, 7, 5)
    compiled = polyblocks_jit_torch(histograms)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), histograms(x))
    rows = compiled.polyblocks_report().to_json()["frames"]
    assert not [row for row in rows if "unhashable" in row["reason"]]

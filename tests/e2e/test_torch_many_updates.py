"""Arrays that a loop of the program updates many times: right, with no copy for each update."""

import pytest
import torch

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}


def diffused(x):
    """The error of rounding is handed on from one pixel to its neighbours."""
    x = x.clone()
    for c in range(30):
        old = x[0, c].clone()
        x[0, c] = new = (old > 0.5).float()
        x[0, c + 1] += (old - new) * 7 / 16
        x[1, c] += (old - new) * 5 / 16
    return x


def with_past_values(x):
    """What the array was is read after it has changed."""
    x, kept = x.clone(), []
    for i in range(60):
        if i % 25 == 24:
            kept.append(x.clone() if i % 2 else x[0] * 1.0)
        row = x[1]
        x[0, i] = x[1, i] * 2 + i
        x[1, i % 7] = row.sum()
    return x, kept


def of_a_constant(x):
    out = torch.zeros(70, 3)
    h = x
    for t in range(70):
        h = torch.tanh(h + t / 70)
        out[t] = h
    return out, h


@pytest.mark.extended
@pytest.mark.parametrize("function", [diffused, with_past_values])
def test_many_updates(function):
    x = torch.rand(3, 61)
    given = x.clone()
    compiled = polyblocks_jit_torch(function, compile_options=STRICT)
    torch.testing.assert_close(compiled(given), function(x))
    torch.testing.assert_close(given, x)


@pytest.mark.extended
def test_rows_of_a_result_are_written_in_place():
    x = torch.rand(3)
    compiled = polyblocks_jit_torch(of_a_constant, compile_options=STRICT)
    torch.testing.assert_close(compiled(x), of_a_constant(x))
    # The states are in the workspace, the array of results is not.
    (part,) = compiled.polyblocks_report().to_json()["parts"]
    assert part["workspace_bytes"] < 70 * 3 * 4

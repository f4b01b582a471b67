"""Calls that only say something end no graph where they are given constants."""

import logging
import sys
import warnings

import pytest
import torch

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

STRICT = {"strict_target": True}

logger = logging.getLogger("a_model")


def inner(x):
    warnings.warn("inner")  # noqa: B028
    print("inner", x.shape)
    return x + 1


def test_calls_with_constants(capsys, caplog):
    @polyblocks_jit_torch(compile_options=STRICT)
    def outer(x):
        print("first", x.shape[0])
        logger.warning("rows: %d", x.shape[0])
        y = inner(x)
        for i in range(2):
            print("last", i)
        return y * 2

    x = torch.rand(3)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            torch.testing.assert_close(outer(x), (x + 1) * 2)
        assert [str(w.message) for w in given if w.category is UserWarning].count("inner") == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines == ["first 3", "inner torch.Size([3])", "last 0", "last 1"]
    messages = [r.getMessage() for r in caplog.records if r.name == "a_model"]
    assert messages == ["rows: 3"] * 2
    assert outer.polyblocks_report().whole


CHANGING = {
    "gradients": lambda x, said: print(x),
    "list": lambda x, said: print(said),
    "object": lambda x, said: print("a", "b", file=sys.stdout),
}


@pytest.mark.parametrize("name", CHANGING)
def test_calls_that_end_the_graph(name, capsys):
    def function(x):
        y, said = x * 2, [1]
        CHANGING[name](y, said)
        y.add_(1)
        said.append(2)
        return y * len(said)

    x = torch.ones(2, requires_grad=name == "gradients")
    torch.testing.assert_close(polyblocks_jit_torch(function)(x), function(x))
    ours, theirs = (line.split(", grad_fn")[0] for line in capsys.readouterr().out.splitlines())
    assert ours == theirs
    with pytest.raises(FallbackError, match="call of print with what may change: it is"):
        polyblocks_jit_torch(function, compile_options=STRICT)(x)

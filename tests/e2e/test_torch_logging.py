"""Calls that say something of tensors, and with keywords, end no graph, and nothing is lost."""

from __future__ import annotations

import logging
import sys

import pytest
import torch

from polyblocks.errors import FallbackError
from polyblocks_torch import polyblocks_jit_torch

STRICT = {"strict_target": True}
logger = logging.getLogger("a.program")


def says(caplog):
    return [row for row in caplog.records if row.name == logger.name]


def test_a_tensor_is_said_as_it_was(caplog):
    @polyblocks_jit_torch(compile_options=STRICT)
    def f(x):
        y = x * 2
        logger.warning("y is %s, x %s", y, x)
        y.add_(1)
        logger.warning("then %s", y)
        return y

    x = torch.tensor([1.0, 2.0])
    for factor in (1, 3):
        caplog.clear()
        assert f(x * factor).tolist() == [2 * factor + 1, 4 * factor + 1]
        assert [row.getMessage() for row in says(caplog)] == [
            f"y is {x * factor * 2}, x {x * factor}",
            f"then {x * factor * 2 + 1}",
        ]


def test_keywords_of_loggers(caplog):
    def inner(x):
        logger.warning("seen %d", 3, extra={"place": "here", "row": {"a": 1}}, stack_info=False)
        return x + 1

    @polyblocks_jit_torch(compile_options=STRICT)
    def f(x):
        return inner(x) * 2

    for _ in range(2):
        f(torch.ones(2))
    assert [(r.getMessage(), r.place, r.row) for r in says(caplog)] == [
        ("seen 3", "here", {"a": 1})
    ] * 2


def test_keywords_of_print(capsys):
    @polyblocks_jit_torch(compile_options=STRICT)
    def f(x):
        print("sum", x.sum(), sep="=", end=";")
        return x + 1

    f(torch.ones(3))
    assert capsys.readouterr().out == "sum=tensor(3.);"


def test_what_may_change_is_a_fallback_that_names_the_call(capsys):
    def f(x):
        print("now", file=sys.stdout)
        return x + 1

    line = f.__code__.co_firstlineno + 1
    assert polyblocks_jit_torch(f)(torch.ones(1)).tolist() == [2.0]
    assert capsys.readouterr().out == "now\n"
    strict = polyblocks_jit_torch(f, compile_options=STRICT)
    with pytest.raises(FallbackError, match=rf"call of print with what may.*logging.py:{line}"):
        strict(torch.ones(1))


def test_a_tensor_with_gradients_ends_the_graph(caplog):
    def f(x):
        y = x * 2
        logger.warning("y %s", y)
        return y + 1

    x = torch.ones(2, requires_grad=True)
    compiled = polyblocks_jit_torch(f)
    compiled(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert [row.getMessage().startswith("y tensor([2., 2.], grad_fn=") for row in says(caplog)]
    (row,) = [b for b in compiled.polyblocks_report().graph_breaks if "Logger.warning" in b.reason]
    assert row.location == f"{__file__}:{f.__code__.co_firstlineno + 2}"

"""The option ``compile_timeout``, and what shares one limit."""

from __future__ import annotations

import math
import time

import pytest

from polyblocks.errors import MachineError, OptionError
from polyblocks.isolation import isolation
from polyblocks.isolation.isolation import limited, run_isolated
from polyblocks.options import CompileOptions

VARIABLE = "POLYBLOCKS_COMPILE_TIMEOUT"


def test_the_environment_says_it_where_the_option_does_not(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert CompileOptions.from_dict({}).compile_timeout == 600
    monkeypatch.setenv(VARIABLE, "2.5")
    assert CompileOptions.from_dict({}).compile_timeout == 2.5
    assert CompileOptions.from_dict({"compile_timeout": None}).compile_timeout is None
    assert CompileOptions.from_dict({"compile_timeout": 7}).compile_timeout == 7


def test_it_does_not_change_the_code():
    one, other = CompileOptions(compile_timeout=1), CompileOptions(compile_timeout=None)
    assert one.cache_key() == other.cache_key()


@pytest.mark.parametrize("value", [-1, True, "10", math.nan])
def test_wrong_values(value):
    with pytest.raises(OptionError, match="'compile_timeout' must be seconds or None, not"):
        CompileOptions.from_dict({"compile_timeout": value})


@pytest.mark.parametrize("value", ["-1", "soon", "nan"])
def test_wrong_values_of_the_variable(monkeypatch, value):
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(OptionError, match=f"{VARIABLE} must be seconds or 0, not '{value}'"):
        CompileOptions.from_dict({})


def test_all_inside_of_a_block_shares_its_limit():
    begin = time.monotonic()
    with limited(1.0):
        run_isolated(lambda: time.sleep(0.7) or b"")
        with (
            limited(60.0),  # of a part: what is left of the whole
            pytest.raises(MachineError, match="stopped after 1 s.*POLYBLOCKS_COMPILE_TIMEOUT"),
        ):
            run_isolated(lambda: time.sleep(30) or b"")
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("seconds", [None, 0])
def test_no_limit(seconds):
    with limited(seconds):
        assert isolation._deadline.get() == math.inf
        assert run_isolated(lambda: b"done") == b"done"

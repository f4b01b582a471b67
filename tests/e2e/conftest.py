"""Fixtures of the end-to-end tests: compiled functions against eager PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from simulated_chips import on_chip


def pytest_generate_tests(metafunc: Any) -> None:
    """What is marked ``simulated`` runs as it is, and on a GPU of each kind."""
    if metafunc.definition.get_closest_marker("simulated"):
        metafunc.fixturenames.append("chip")
        metafunc.parametrize("chip", ["cpu", "sm_90a", "gfx1100"], indirect=True)


@pytest.fixture
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the test compiles runs on this chip, in the simulator if it is a GPU."""
    if request.param == "cpu":
        yield
        return
    with on_chip(request.param) as seen:
        yield
    assert seen.launches
    assert not seen.findings


def assert_same(ours: Any, eager: Any) -> None:
    """Equal structure, values, dtypes and strides (of extents that are not 1)."""
    import torch

    if isinstance(eager, (tuple, list)):
        assert type(ours) is type(eager)
        assert len(ours) == len(eager)
        for a, b in zip(ours, eager, strict=True):
            assert_same(a, b)
    elif isinstance(eager, torch.Tensor):
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5, equal_nan=True)
        if eager.numel() > 1:
            wide = [d for d, n in enumerate(eager.shape) if n > 1]
            assert [ours.stride(d) for d in wide] == [eager.stride(d) for d in wide]
    else:
        assert ours == eager
        assert type(ours) is type(eager)


@pytest.fixture
def check() -> Callable[..., Any]:
    """``check(f, *args)``: compiled and eager agree in results and in what they do to arguments.

    Both start from the same seed. Returns the report; unless ``whole=False``, nothing may have
    fallen back.
    """
    import torch

    from polyblocks_torch import polyblocks_jit_torch

    def run(function: Any, *arguments: Any, whole: bool = True, **options: Any) -> Any:
        theirs, ours = arguments, copy.deepcopy(arguments)
        torch.manual_seed(7)
        expected = function(*theirs)
        compiled = polyblocks_jit_torch(function, compile_options=options or None)
        torch.manual_seed(7)
        actual = compiled(*ours)
        assert_same(actual, expected)
        assert_same(list(ours), list(theirs))
        report = compiled.polyblocks_report()
        if whole:
            assert report.whole, str(report)
        return report

    return run

"""Loaded programs, called as often as it takes for machine code to call them."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import polyblocks
from polyblocks.errors import ExecutionError, InputError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.cpu


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 7, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(7 * 25, 11),
        torch.nn.Softmax(-1),
    ).eval()


def several(x: Any, y: Any) -> Any:
    return x + y, (x * y).sum(-1), x.transpose(0, 1)[1:] + 1, y


def typed(a: Any, b: Any, c: Any) -> Any:
    return a.to(torch.float32) * b, c & (a > 0), a.half()


def product(x: Any, w: Any) -> Any:
    return torch.relu(x @ w) @ w.t()


def rolled(x: Any) -> Any:
    return torch.fft.fft(x).abs().cumsum(0)


CASES: dict[str, Any] = {
    "network": (network, lambda: [torch.rand(2, 3, 5, 5)]),
    "several results": (lambda: several, lambda: [torch.rand(5, 7), torch.rand(5, 7)]),
    "types": (
        lambda: typed,
        lambda: [torch.arange(-3, 4), torch.rand(7).double().float(), torch.rand(7) > 0.5],
    ),
    "products": (lambda: product, lambda: [torch.rand(33, 65), torch.rand(65, 130)]),
    "transposed": (lambda: product, lambda: [torch.rand(17, 13).t(), torch.rand(17, 5)]),
    "complex": (lambda: rolled, lambda: [torch.randn(16, dtype=torch.complex64)]),
    "scalar": (lambda: torch.exp, lambda: [torch.rand(())]),
    "large": (lambda: torch.neg, lambda: [torch.rand(1031, 513)]),
    "empty": (lambda: lambda x: (x + 1, x.sum(0)), lambda: [torch.rand(0, 3)]),
}


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def as_numpy(values: list[Any]) -> list[np.ndarray]:
    return [value.numpy() for value in values]


@pytest.mark.parametrize("case", CASES)
def test_results_of_all_ways(case):
    make, arrays = CASES[case]
    function, given = make(), arrays()
    options = {"target": "cpu", "strict_target": True}
    artifact = polyblocks.aot(function, given, options, frontend="torch")
    loaded = polyblocks.load(artifact)
    with torch.no_grad():
        expected = flat(function(*given))
    for _ in range(4):
        got = flat(loaded(*given))
        for one, other in zip(got, expected, strict=True):
            torch.testing.assert_close(one, other)
            assert one.stride() == other.stride() or one.numel() == 0
        ours = flat(loaded(*as_numpy(given)))
        for one, other in zip(ours, expected, strict=True):
            assert type(one) is np.ndarray
            torch.testing.assert_close(torch.from_numpy(one), other)
    assert loaded.__self__.count == 3  # tensors, parameters, NumPy's arrays
    wrong = torch.rand(4, 4, 4)
    for bad in (given[:-1], [*given[:-1], wrong], [*given, wrong]):
        with pytest.raises(InputError, match="takes|expected"):
            loaded(*bad)


def test_updates_are_the_caller_s():
    def step(w: Any, g: Any) -> None:
        w.sub_(0.5 * g)

    artifact = polyblocks.aot(step, [torch.rand(6), torch.rand(6)], {"target": "cpu"})
    loaded = polyblocks.load(artifact)
    w, g = torch.zeros(6), torch.ones(6)
    for k in range(5):
        loaded(w, g)
        torch.testing.assert_close(w, torch.full((6,), -0.5 * (k + 1)))
    with pytest.raises(InputError, match="is updated in place and shares memory with"):
        loaded(w, w)
    w.requires_grad_()
    with pytest.raises(InputError, match="it is updated in place, but cannot be written"):
        loaded(w, g)


def test_checks_at_run_time():
    def picked(x: Any, i: Any) -> Any:
        return x[i]

    x, i = torch.rand(9), torch.tensor([1, 8, 0])
    loaded = polyblocks.load(polyblocks.aot(picked, [x, i], {"target": "cpu"}))
    messages = []
    for _ in range(4):
        torch.testing.assert_close(loaded(x, i), x[i])
        with pytest.raises(ExecutionError, match="index") as failure:
            loaded(x, i + 5)
        messages.append(str(failure.value))
    assert len(set(messages)) == 1


def test_threads_with_a_program_of_workspaces():
    given = [torch.rand(65, 129), torch.rand(129, 66)]
    loaded = polyblocks.load(polyblocks.aot(product, given, {"target": "cpu"}))
    expected = product(*given)
    wrong = []

    def work() -> None:
        for _ in range(40):
            if not torch.allclose(loaded(*given), expected, rtol=1e-4, atol=1e-4):
                wrong.append(1)
            gc.collect(0)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert wrong == []

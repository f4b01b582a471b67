"""The sweep over PyTorch's operator database: what it takes, and how it judges."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import SampleInput

from polyblocks.options import CompileOptions

FOLDER = Path(__file__).parent.parent / "opinfo"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("check")


@pytest.fixture
def sweep(check: Any) -> Any:
    return importlib.import_module("sweep")


def entry(function: Any, samples: Any) -> Any:
    return SimpleNamespace(
        name="entry", variant_test_name="", op=function, sample_inputs=lambda *_: samples()
    )


def ran(sweep: Any, op: Any, dtype: torch.dtype) -> Any:
    task = sweep.Task(4, dtype, CompileOptions(num_threads=1, strict_target=True))
    (result,) = sweep.sweep([op], 1, task)
    return result


def test_entries_are_those_of_the_dtype(check: Any) -> None:
    names = {check.entry_name(op) for op in check.entries(torch.int64)}
    assert "bitwise_and" in names
    assert "cholesky" not in names
    assert {"cholesky"} <= {check.entry_name(op) for op in check.entries(torch.float64)}


def test_an_entry_without_samples_is_skipped(sweep: Any) -> None:
    def refuse() -> Any:
        raise RuntimeError("not implemented for 'Half'")
        yield

    result = ran(sweep, entry(torch.neg, refuse), torch.float16)
    assert result.kind == "skipped"
    assert result.reason == "no sample: RuntimeError: not implemented for 'Half'"


def test_samples_before_a_refusal_count(sweep: Any) -> None:
    def refuse() -> Any:
        yield SampleInput(torch.ones(3))
        raise RuntimeError("no more")

    result = ran(sweep, entry(torch.neg, refuse), torch.float32)
    assert [outcome.kind for outcome in result.outcomes] == ["compiled", "skipped"]
    assert result.kind == "compiled"


def test_complex128_is_compared_with_a_tolerance(check: Any) -> None:
    x = torch.ones(3, dtype=torch.complex128)
    assert check.compare(x * (1 + 1e-12j), x) == ""
    assert "not close" in check.compare(x * (1 + 1e-8j), x)


def judged(check: Any, ours: Tensor, eager: Tensor, exact: Tensor) -> bool:
    """Whether ours counts as right beside eager's, where an operation gives ``exact``."""
    op = entry(lambda x: exact if x.dtype == torch.float64 else eager, None)
    sample = SampleInput(torch.ones((), dtype=eager.dtype))
    return not check._less_exact(op, sample, ours, eager, "they differ")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_16_bits_are_judged_by_float64(check: Any, dtype: torch.dtype) -> None:
    exact = torch.tensor([1.0, 64.0], dtype=torch.float64)
    eps = torch.finfo(dtype).eps
    eager = (exact * (1 + 8 * eps)).to(dtype)
    assert judged(check, exact.to(dtype), eager, exact)
    assert judged(check, (exact * (1 - 16 * eps)).to(dtype), eager, exact)
    assert not judged(check, (exact * (1 - 18 * eps)).to(dtype), eager, exact)
    # A unit in the last place is not twice as inexact, whatever eager's luck.
    assert judged(check, (exact * (1 - eps / 2)).to(dtype), exact.to(dtype), exact)
    assert not judged(check, (exact * (1 - 2 * eps)).to(dtype), exact.to(dtype), exact)


def test_large_elements_do_not_excuse_small_ones(check: Any) -> None:
    exact = torch.tensor([0.001, 0.001, 0.001, 100.0], dtype=torch.float64)
    eager, ours = exact.half(), exact.half()
    eager[3] += 0.5
    ours[:3] += 0.1
    assert not judged(check, ours, eager, exact)


def test_where_terms_cancel_as_many_elements_may_be_less_exact_as_eagers(check: Any) -> None:
    exact = torch.tensor([0.001, 0.001, 0.001, 0.001, 100.0], dtype=torch.float64)
    none, some = torch.tensor([0, 0, 0, 0, 0]), torch.tensor([0.001, 0, 0, 0, 0])
    more, much = torch.tensor([0, 0.001, 0.001, 0, 0]), torch.tensor([0, 0.01, 0, 0, 0])
    right = exact.half()
    eager = right + some.half()
    assert judged(check, right + more.half(), eager, exact)
    assert not judged(check, right + more.half(), right + none.half(), exact)
    assert not judged(check, right + much.half(), eager, exact)


def test_roundings_of_float32_are_no_errors_of_16_bits(check: Any) -> None:
    exact = torch.tensor([1e-6, 1e-6, 100.0], dtype=torch.float64)
    other = exact.half() + torch.tensor([1e-5, 1e-5, 0]).half()
    assert judged(check, other, exact.half(), exact)


def test_what_does_not_overflow_is_right_where_eager_does(check: Any) -> None:
    exact = torch.tensor([300.0, 1e6], dtype=torch.float64)
    right, wrong = torch.tensor([300.0, 6e4]).half(), torch.tensor([torch.inf, torch.inf]).half()
    exact[1] = 6e4
    assert judged(check, right, wrong, exact)
    assert not judged(check, wrong, right, exact)
    assert not judged(check, torch.tensor([300.0, 7.0]).half(), right, exact)


def test_another_infinity_or_nan_is_wrong(check: Any) -> None:
    exact = torch.tensor([torch.inf, 1.0], dtype=torch.float64)
    for other in (-torch.inf, torch.nan, 7.0):
        ours = torch.tensor([other, 1.0]).half()
        assert not judged(check, ours, exact.half(), exact)


def test_of_equal_elements_any_may_be_chosen(check: Any) -> None:
    x = torch.tensor([[3, 7, 7], [5, 5, 1]])
    expected = (torch.tensor([7, 5]), torch.tensor([1, 0]))
    assert check.chooses(x, (torch.tensor([7, 5]), torch.tensor([2, 1])), expected)
    assert not check.chooses(x, (torch.tensor([7, 5]), torch.tensor([0, 1])), expected)
    assert not check.chooses(x, (torch.tensor([7, 1]), torch.tensor([2, 2])), expected)
    twice = (torch.tensor([[7, 7], [5, 5]]), torch.tensor([[1, 1], [0, 1]]))
    once = (twice[0], torch.tensor([[2, 1], [0, 1]]))
    assert check.chooses(x, once, once)
    assert not check.chooses(x, twice, once)
    assert check.chooses(x, torch.tensor([[0, 2, 1], [2, 1, 0]]), x.argsort(stable=True))
    assert not check.chooses(x, torch.tensor([[2, 0, 1], [2, 1, 0]]), x.argsort(stable=True))


def test_singular_vectors_may_have_another_phase(check: Any) -> None:
    u, s, v = torch.linalg.svd(torch.randn(2, 3, 3, dtype=torch.complex64))
    found, turned = (u, s, v.mH), (u * 1j, s, v.mH * 1j)
    op = SimpleNamespace(name="svd_lowrank")
    assert check.compare(turned, found)
    assert not check.compare(check.determined(op, turned), check.determined(op, found))
    other = check.determined(op, (u, s * 1.1, v.mH))
    assert check.compare(other, check.determined(op, found))


@pytest.fixture
def derivatives(check: Any) -> Any:
    return importlib.import_module("derivatives")


def test_gradients_of_both_orders(derivatives: Any) -> None:
    x, y = torch.linspace(-1, 1, 5, dtype=torch.float64), torch.ones(5, dtype=torch.float64)

    def f(x: Tensor, y: Tensor) -> Tensor:
        return x.sin() * y

    needed = [True, False]
    (first,) = derivatives.gradients(f, needed, lambda r: r)(x, y)
    (second,) = derivatives.second_gradients(f, needed, lambda r: r)(x, y)
    weights = [derivatives.weight(x, number) for number in (0, 7)]
    torch.testing.assert_close(first, weights[0] * x.cos())
    torch.testing.assert_close(second, -weights[0] * weights[1] * x.sin())
    traced = derivatives.traced(derivatives.second_gradients(f, needed, lambda r: r), [x, y])
    torch.testing.assert_close(traced(x, y), [second])
    assert weights[0].unique().numel() > 3
    assert torch.equal(weights[0].to(torch.bfloat16).double(), weights[0])


def test_what_has_no_gradient(derivatives: Any) -> None:
    run = derivatives.gradients(torch.sign, [False], lambda r: r)
    with pytest.raises(derivatives.NoGradientError):
        run(torch.ones(2))


def test_entries_with_gradients(check: Any) -> None:
    names = {check.entry_name(op) for op in check.entries(torch.float32, gradients=True)}
    assert "sin" in names
    assert "bitwise_and" not in names


@pytest.mark.parametrize("off", [0.0, 0.5])
def test_a_wrong_gradient_is_found(sweep: Any, check: Any, off: float, monkeypatch: Any) -> None:
    def given() -> Any:
        yield SampleInput(torch.linspace(0.5, 1, 4).requires_grad_())

    compiled = check._compiled

    def other(call: Any, *rest: Any) -> Any:
        return compiled(lambda x: call(x) + off * x, *rest)

    # In the place of a compiler that makes a mistake.
    monkeypatch.setattr(check, "_compiled", other)
    op = entry(torch.sin, given)
    op.supports_gradgrad = False
    outcome = check.check(op, next(given()), CompileOptions(num_threads=1), gradients=True)
    assert outcome.kind == ("wrong" if off else "compiled")


def test_entries_that_are_left_are_named(sweep: Any, tmp_path: Path) -> None:
    summary = importlib.import_module("summary")
    task = sweep.Task(4, torch.float32, CompileOptions(num_threads=1), gradients=True)
    result = sweep.Result("sin", [sweep.Outcome("compiled")])
    summary.write_markdown(tmp_path / "x.md", [result], task, ["cos", "tan"])
    text = (tmp_path / "x.md").read_text()
    assert "2 entries: cos, tan." in text
    assert 'OPINFO_ARGS="--gradients --samples 4"' in text

"""Random contractions, compiled and judged; that the judge sees what is wrong, and nothing else.

`python tests/slow/random_contractions.py` runs many more of them, and times them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import contraction_kinds as kinds
import pytest
import torch
from contraction_check import check, problems
from contraction_fuzz import Sample, make
from contraction_report import Row, bad_lines, counts, times, write
from sweeps import sweep

from polyblocks.errors import FallbackError

pytestmark = pytest.mark.cpu

#: Matrices in int8 by an operator of their own; einsums; convolutions of all ranks and types, with
#: groups, filters that are expanded, NaN; products of batches; transposed convolutions.
SAMPLES = [0, 2, 3, 4, 8, 9, 11, 19, 39, 54, 70]


@pytest.mark.parametrize("number", sweep(SAMPLES, 2, 3, 4, 39, 70))
def test_random_contraction(number: int) -> None:
    outcome = check(make(0, number))
    assert (outcome.kind, outcome.reason) == ("compiled", "")


def test_draws_are_repeated_and_stay_within_the_bounds() -> None:
    drawn = [make(3, number) for number in range(300)]
    assert {sample.contraction.kind for sample in drawn} == set(kinds.KINDS)
    assert [make(3, number).text for number in range(0, 300, 20)] == [s.text for s in drawn[::20]]
    assert max(sample.contraction.flops for sample in drawn) <= kinds.MOST_FLOPS
    assert sum(0 in operand.shape for sample in drawn for operand in sample.operands) > 3
    assert sum(operand.special for sample in drawn for operand in sample.operands) > 3


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Of PyTorch: a team that shares its processors with another test waits at every barrier."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_eager_is_as_good_as_itself(one_thread: None) -> None:
    judged = 0
    for number in range(80):
        sample = make(0, number)
        inputs = sample.inputs()
        try:
            eager = sample.program(*inputs)[0]
        except RuntimeError:  # it has no such convolution
            continue
        judged += 1
        assert problems(sample, inputs, eager) == "", sample.text
    assert judged > 70


def _sample(accepts: Callable[[Sample], bool]) -> Sample:
    return next(sample for n in range(1000) if accepts(sample := make(0, n)))


def _ends_with(sample: Sample, name: str) -> bool:
    return name in sample.steps[-1].text and 0 not in sample.program(*sample.inputs())[0].shape


def _of(kind: str, dtype: torch.dtype) -> Callable[[Sample], bool]:
    """Samples that end with the contraction, and hold numbers only."""
    return lambda s: (
        (s.contraction.kind, s.dtype, len(s.steps) - 1) == (kind, dtype, s.product)
        and s.contraction.flops > 1000
        and not any(operand.special for operand in s.operands)
    )


def _element(change: Callable[[float], float]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Another value for the element of the largest magnitude."""

    def changed(x: torch.Tensor) -> torch.Tensor:
        place = torch.unravel_index(x.abs().argmax(), x.shape)
        x[place] = change(x[place].item())
        return x

    return changed


@pytest.mark.parametrize(
    ("accepts", "change", "expected"),
    [
        (_of("matmul", torch.float32), _element(lambda v: v * 1.0001), "error .*, allowed"),
        (_of("conv2d", torch.bfloat16), _element(lambda v: v * 1.1), "error .*, allowed"),
        (
            _of("einsum", torch.float32),
            _element(lambda v: math.nan),
            "1 elements: at .* nan, eag",
        ),
        (
            _of("matmul", torch.float16),
            _element(lambda v: math.inf),
            "1 elements: at .* inf, eag",
        ),
        (_of("matmul", torch.float32), lambda x: x.bfloat16().float(), "error .*, allowed"),
        (_of("matmul", torch.float32), lambda x: x.double(), "torch.float64 .*, eager"),
        (_of("matmul", torch.float32), lambda x: x.T.contiguous().T, "strides .*, eager"),
        (
            lambda s: s.dtype == torch.int8 and _ends_with(s, "_int_mm"),
            _element(lambda v: v + 1),
            "error 1 of",
        ),
        (lambda s: _ends_with(s, "argmin"), lambda x: x + 1000, "places from 1000 to"),
        (
            lambda s: s.dtype == torch.float32 and _ends_with(s, "argmin") and _rows(s) > 8,
            lambda x: (x + 1) % 8,
            "places: at",
        ),
    ],
)
def test_what_is_wrong_is_reported(
    accepts: Callable[[Sample], bool],
    change: Callable[[torch.Tensor], torch.Tensor],
    expected: str,
) -> None:
    def wrong(compile_options: Any) -> Callable[..., Any]:
        del compile_options
        return lambda function: lambda *inputs: change(function(*inputs))

    sample = _sample(accepts)
    outcome = check(sample, wrong)
    assert outcome.kind == "wrong"
    assert re.search(expected, outcome.reason)


def _rows(sample: Sample) -> int:
    """The elements of which one is chosen."""
    d = sample.steps[-1].chooses_along
    return 0 if d is None else sample.program.values(*sample.inputs())[-2].shape[d]


@pytest.mark.parametrize(("added", "kind"), [(0.0, "fallback"), (1.0, "wrong")])
def test_a_fallback_is_reported_and_has_to_be_right(added: float, kind: str) -> None:
    def partial(compile_options: dict[str, Any]) -> Callable[..., Any]:
        def refused(*inputs: torch.Tensor) -> torch.Tensor:
            raise FallbackError("aten.mm: why; strict_target forbids that PyTorch runs it")

        if compile_options.get("strict_target"):
            return lambda function: refused
        return lambda function: lambda *inputs: function(*inputs) + added

    outcome = check(_sample(_of("matmul", torch.float32)), partial)
    assert outcome.kind == kind
    if kind == "fallback":
        assert outcome.reason == "aten.mm: why"


def test_an_error_of_the_compiler_is_reported() -> None:
    def broken(compile_options: Any) -> Callable[..., Any]:
        raise RuntimeError("no such pass")

    outcome = check(_sample(_of("matmul", torch.float32)), broken)
    assert (outcome.kind, outcome.reason) == ("wrong", "raised RuntimeError: no such pass")


def _row(number: int, outcome: str = "compiled", reason: str = "", **measured: float) -> Row:
    return Row(number, "float32 conv2d", "conv2d", 10**6, ["v2 = v0"], outcome, reason, measured)


def test_the_report(tmp_path: Path) -> None:
    rows = [
        _row(0, ours=1e-3, eager=2e-3),
        _row(1, ours=1e-3, eager=2e-3, inductor=4e-4),
        _row(2, ours=9e-5, eager=1e-6),
        _row(3),
        _row(4, "fallback", "no lowering"),
        _row(5, "wrong", "error 1"),
    ]
    assert [row.ratio for row in rows[:4]] == [2.0, 0.4, pytest.approx(1 / 90), None]
    text = counts(rows)
    assert text[-2].split() == ["all", "4", "1", "0", "1", "0", "0"]
    assert text[-1] == "fallback, 1 samples (4): no lowering"
    report = times(rows)
    assert report[0] == "not timed, as the machine was busy with others: 1"
    assert report[1] == "better peer / ours, of 2 calls of 0.1 ms and more:"
    assert report[-3].split() == ["all", "2", "0.40", "0.80", "1.20", "1.60", "2.00"]
    assert report[-1].split()[:2] == ["0.400", "1"]
    assert "--seed 7 --only 5" in bad_lines(rows[5], 7)[1]
    write(rows, tmp_path / "ratios.png")
    assert (tmp_path / "ratios.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / "ratios.json").read_text())) == len(rows)

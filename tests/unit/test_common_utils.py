"""validate_outputs: nested structures of any framework, tolerances by dtype."""

from __future__ import annotations

import dataclasses
from collections import namedtuple

import numpy as np
import pytest

from polyblocks.common_utils import validate_outputs

Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Output:
    logits: object
    hidden: object = None


def check(outputs, references, capsys, **kwargs):
    agreed = validate_outputs(outputs, references, **kwargs)
    return agreed, capsys.readouterr().out.strip()


def test_equal_structures_agree(capsys):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = {"x": [a, (None, 2.5, True)], "y": Pair(a, Output(a))}
    agreed, text = check(value, value, capsys)
    assert agreed
    assert text == "outputs agree with the references: 7 arrays, off by 0"


def test_the_place_and_the_size_of_a_difference(capsys):
    want = np.ones((2, 3), np.float32)
    got = want.copy()
    got[1, 2] = 1.5
    got[0, 0] = 1.1
    agreed, text = check({"y": [got]}, {"y": [want]}, capsys)
    assert not agreed
    assert text == (
        "outputs['y'][0]: 2 of 6 elements differ; largest at (1, 2): 1.5, expected 1.0, "
        "off by 0.5 (0.5 relative); tolerances rtol=0.0001 atol=1e-05"
    )


@pytest.mark.parametrize(
    "dtype, fits, too_much",
    [
        ("float64", 1e-11, 1e-9),
        ("float32", 5e-5, 5e-4),
        ("float16", 5e-3, 5e-2),
        ("complex64", 5e-5, 5e-4),
        ("complex128", 1e-11, 1e-9),
    ],
)
def test_tolerance_by_dtype(dtype, fits, too_much, capsys):
    want = np.ones(3, dtype)
    assert check((want + fits).astype(dtype), want, capsys)[0]
    assert not check((want + too_much).astype(dtype), want, capsys)[0]


def test_the_less_precise_dtype_decides(capsys):
    want = np.ones(3, np.float64)
    assert check((want + 5e-5).astype(np.float32), want, capsys)[0]


def test_given_tolerances(capsys):
    want = np.full(3, 2.0)
    assert not check(want + 0.5, want, capsys)[0]
    assert check(want + 0.5, want, capsys, rtol=0.25)[0]
    assert check(want + 0.5, want, capsys, atol=0.5)[0]
    assert not check(want + 0.5, want, capsys, rtol=0.1, atol=0.1)[0]


def test_integers_and_booleans_are_exact(capsys):
    agreed, text = check(np.uint8([255, 3]), np.uint8([0, 3]), capsys)
    assert not agreed
    assert "1 of 2 elements differ; largest at (0,): 255, expected 0, off by 255;" in text
    big = np.int64([2**62 + 1])
    assert not check(big, big - 1, capsys)[0]
    assert not check(np.bool_([True]), np.bool_([False]), capsys)[0]
    assert check(np.int32([7]), np.int64([7]), capsys)[0]


def test_nan_equals_nan_and_infinities_have_signs(capsys):
    nan, inf = float("nan"), float("inf")
    special = np.float32([nan, inf, -inf, 0.0])
    assert check(special, special.copy(), capsys)[0]
    for other in (
        [0, inf, -inf, 0],
        [nan, -inf, -inf, 0],
        [nan, 1, -inf, 0],
        [nan, inf, -inf, inf],
    ):
        agreed, text = check(np.float32(other), special, capsys)
        assert not agreed
        assert "1 of 4 elements differ" in text
        assert "off by inf" in text


@pytest.mark.parametrize(
    "got, want, text",
    [
        ([1, 2], [1, 2, 3], "outputs: is a list of [0], [1], expected a list of [0], [1], [2]"),
        ({"a": 1}, {"b": 1}, "outputs: is a dict of ['a'], expected a dict of ['b']"),
        ([1.0], 1.0, "outputs: is a list of [0], expected 1.0"),
        ([None], [np.zeros(2)], "outputs[0]: is None, expected an array of shape (2,)"),
        (np.zeros(2), np.zeros((2, 1)), "outputs: has shape (2,), expected (2, 1)"),
        (np.zeros(2), np.zeros(2, int), "outputs: has dtype float64, expected int64"),
        ([], [1], "outputs: is a list of nothing, expected a list of [0]"),
    ],
)
def test_structures_that_differ(got, want, text, capsys):
    assert check(got, want, capsys) == (False, text)


def test_every_difference_is_printed(capsys):
    _, text = check([1, 2, 3], [1, 5, 6], capsys)
    assert [line.split(":")[0] for line in text.splitlines()] == ["outputs[1]", "outputs[2]"]


def test_empty_arrays_agree(capsys):
    assert check(np.zeros((0, 3)), np.zeros((0, 3)), capsys)[0]


def test_tensors_of_a_framework(capsys):
    torch = pytest.importorskip("torch")
    x = torch.linspace(-1, 1, 5, requires_grad=True)
    assert check(x, x.detach().numpy(), capsys)[0]
    assert check(x.bfloat16(), x, capsys)[0]
    assert not check(x.bfloat16() + 1, x, capsys)[0]
    z = torch.complex(x, x).conj()
    assert check(z, z.resolve_conj(), capsys)[0]
    assert check(torch.tensor(True), torch.tensor(True), capsys)[0]

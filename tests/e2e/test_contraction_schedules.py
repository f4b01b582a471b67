"""Schedules of a CPU's contractions: what is edited takes effect, or is refused with the limit."""

from __future__ import annotations

import contextlib
import random
import re
from typing import Any

import numpy as np
import pytest
import torch
from cpu_kernels import load, pack
from tests.support.schedules import edited, scheduled, schedules
from torch.nn import functional

from polyblocks.api import compile_text
from polyblocks.errors import OldSpellingWarning, UnsupportedError
from polyblocks.events import Event, listening
from polyblocks.options import CompileOptions
from polyblocks_cpu.describe import describe

pytestmark = pytest.mark.cpu

WIDTH = describe(CompileOptions()).vector_bits // 32


def captured(function: Any, *inputs: torch.Tensor) -> tuple[str, list[np.ndarray], np.ndarray]:
    """A program with schedules, its inputs, and its result as PyTorch has it."""
    text = scheduled(function, inputs, describe(CompileOptions()), "tile-contractions")
    return text, [x.numpy() for x in inputs], function(*inputs).numpy()


def tiles_of(text: str, inputs: list[np.ndarray], expected: np.ndarray) -> list[dict[str, Any]]:
    """Compile from the schedules on and compare the result; returns the tiles that were made."""
    events: list[Event] = []
    with listening(events.append):
        artifact = compile_text(text, CompileOptions(), after="S3:plan-contractions")
    executable = load(artifact)
    result = np.full(expected.shape, np.nan, np.float32)
    assert executable.entry(pack([*inputs, result]), 2) == 0
    executable.close()
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    return [e.data for e in events if e.data.get("what") == "register tiles"]


@pytest.fixture(scope="module")
def product() -> Any:
    return captured(
        lambda a, b, c: functional.relu(a @ b + c),
        *(torch.randn(37, 48), torch.randn(48, 70), torch.randn(70)),
    )


@pytest.fixture(scope="module")
def convolution() -> Any:
    return captured(functional.conv2d, torch.randn(2, 8, 16, 16), torch.randn(16, 8, 3, 3))


def test_what_is_planned_is_done(product: Any) -> None:
    text, inputs, expected = product
    (schedule,) = schedules(text)
    (made,) = tiles_of(text, inputs, expected)
    assert [made["rows"], made["lanes"]] == schedule["register_tile"]
    assert [made["row_block"], made["column_block"]] == schedule["block_tile"]
    assert (made["depth"], made["threads"]) == (schedule["k_block"], schedule["threads"])


SIZES: list[dict[str, Any]] = [
    {"register_tile": [3, WIDTH], "block_tile": [9, 2 * WIDTH]},
    {"k_block": 7, "sum_chunk": 3},
    {"packed": [True, True], "staged": True},
    {
        "transposed": True,
        "staged": True,
        "packed": [False, True],
        "register_tile": [2, WIDTH],
        "block_tile": [4, WIDTH],
    },
]


@pytest.mark.parametrize("changes", SIZES)
def test_an_edited_schedule_takes_effect(product: Any, changes: dict[str, Any]) -> None:
    text, inputs, expected = product
    whole = {"threads": 1, "chunks": [1, 1], "block_tile": [37, 70], **changes}
    (made,) = tiles_of(edited(text, 0, **whole), inputs, expected)
    for key, names in {
        "register_tile": ["rows", "lanes"],
        "block_tile": ["row_block", "column_block"],
        "packed": ["pack_rows", "pack_columns"],
    }.items():
        if key in changes:
            assert [made[n] for n in names] == changes[key]
    for key, name in {"k_block": "depth", "sum_chunk": "chain", "staged": "waits"}.items():
        assert made[name] == changes.get(key, made[name])


def test_an_old_key_is_read_with_a_warning(product: Any) -> None:
    text, inputs, expected = product
    (whole,) = schedules(text)
    old = edited(text, 0, "block_tile", cache_block=whole["block_tile"])
    with pytest.warns(
        OldSpellingWarning, match=r"old spelling of 'cache_block', .*; write block_tile"
    ):
        made = tiles_of(old, inputs, expected)
    assert made == tiles_of(text, inputs, expected)


def test_what_is_left_out_is_found(product: Any) -> None:
    text, inputs, expected = product
    (whole,) = schedules(text)
    gone = [key for key in whole if key != "register_tile"]
    (made,) = tiles_of(edited(text, 0, *gone, register_tile=[2, WIDTH]), inputs, expected)
    assert (made["rows"], made["lanes"]) == (2, WIDTH)
    (made,) = tiles_of(edited(text, 0, *whole), inputs, expected)
    assert [made["rows"], made["lanes"]] == whole["register_tile"]


def test_a_convolution_can_be_copied_instead_of_used_in_place(convolution: Any) -> None:
    text, inputs, expected = convolution
    (whole,) = schedules(text)
    for windows in (False, True):
        gone = [key for key in whole if key != "windows"]
        made = tiles_of(edited(text, 0, *gone, windows=windows), inputs, expected)
        assert len(made) == 1
        if windows:
            assert not made[0]["pack_rows"]


def test_schedules_at_random(product: Any) -> None:
    text, inputs, expected = product
    draw = random.Random(5)
    done = 0
    for _ in range(12):
        rows, vectors = draw.randint(1, 8), draw.randint(1, 3)
        changes = {
            "register_tile": [rows, vectors * WIDTH],
            "block_tile": [rows * draw.randint(1, 5), vectors * WIDTH * draw.randint(1, 3)],
            "k_block": draw.randint(1, 60),
            "sum_chunk": draw.randint(1, 30),
            "chunks": [draw.randint(1, 3), draw.randint(1, 3)],
            "packed": [draw.random() < 0.5, draw.random() < 0.5],
            "threads": draw.randint(1, 2),
            "staged": draw.random() < 0.5,
            "transposed": draw.random() < 0.5,
        }
        # Refused, or right; nothing else.
        with contextlib.suppress(UnsupportedError):
            tiles_of(edited(text, 0, **changes), inputs, expected)
            done += 1
    assert done > 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"register_tile": [40, WIDTH]}, "at most 37 elements along M, got 40; reduce 'register_"),
        ({"register_tile": [37, 8 * WIDTH]}, r"vector registers on cpu:.*, got \d+; reduce"),
        ({"register_tile": [4, WIDTH + 1]}, f"whole vectors of {WIDTH} elements along N"),
        ({"register_tile": [4]}, r"two whole numbers from 1 on for 'register_tile', got \[4\]"),
        (
            {"register_tile": [4, WIDTH], "block_tile": [5, 70]},
            r"a multiple of 4 \(register tiles along M\), or 37 for 'block_tile', got 5",
        ),
        ({"k_block": 49}, "at most 48 steps along K, got 49; reduce 'k_block'"),
        ({"k_block": True}, "a whole number from 1 on for 'k_block', got True"),
        ({"k_block": 8, "sum_chunk": 9}, "at most 8 steps of a pass, got 9; reduce 'sum_chunk'"),
        ({"chunks": [38, 1]}, r"chunks along M \(one a register tile\), got 38; reduce 'chunks'"),
        ({"packed": [True]}, "two of true and false for 'packed', got"),
        ({"threads": 0}, "a whole number from 1 on for 'threads', got 0"),
        ({"unit": "abacus"}, "one of these products: .*transposed.*, got .*abacus"),
        ({"tile": 3}, r"keys of tiles on cores \(chunks, .*\), got 'tile'"),
    ],
)
def test_a_wrong_schedule_is_refused(product: Any, changes: dict[str, Any], message: str) -> None:
    text, inputs, expected = product
    with pytest.raises(UnsupportedError, match=f"invalid schedule for '.+': expected .*{message}"):
        tiles_of(edited(text, 0, **changes), inputs, expected)


def test_windows_have_their_own_limits(convolution: Any) -> None:
    text, inputs, expected = convolution
    assert schedules(text)[0]["windows"]
    for changes, message in (
        (
            {"packed": [True, True]},
            "expected false for 'packed' along M, since 'windows' is true, got true",
        ),
        ({"k_block": 36, "sum_chunk": 36}, "that divides it, such as 24, since 'windows' is true"),
    ):
        with pytest.raises(UnsupportedError, match=re.escape(message)):
            tiles_of(edited(text, 0, **changes), inputs, expected)


@pytest.mark.parametrize("steps", [4, 8, 24])
def test_windows_go_in_passes(convolution: Any, steps: int) -> None:
    text, inputs, expected = convolution
    (made,) = tiles_of(edited(text, 0, k_block=steps, sum_chunk=steps), inputs, expected)
    assert made["depth"] == steps
    assert not made["pack_rows"]


def test_a_schedule_of_no_contraction_is_refused() -> None:
    text = """
    func.func @main(%a: memref<64x64xf32>) {
      affine.for %i = 0 to 64 {
        affine.for %j = 0 to 64 {
          %x = affine.load %a[%i, %j] : memref<64x64xf32>
          %y = arith.negf %x : f32
          affine.store %y, %a[%i, %j] : memref<64x64xf32>
        }
      } {polyblocks.schedule = {k_block = 4}}
      return
    }
    """
    with pytest.raises(UnsupportedError, match="expected one of .*: the nest is no contraction"):
        compile_text(text, CompileOptions(), after="S3:plan-contractions")

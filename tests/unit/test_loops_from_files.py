"""Modules whose @main works on memrefs: written by hand, without a frontend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from described_chips import described_as

import polyblocks
from polyblocks.api import compile_text
from polyblocks.errors import InputError
from polyblocks.options import CompileOptions

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

ADD = """
func.func @main(%x: memref<7xf32>, %sum: memref<7xf32>, %twice: memref<7xf32>) {
  affine.for %i = 0 to 7 {
    %a = affine.load %x[%i] : memref<7xf32>
    %b = affine.load %sum[%i] : memref<7xf32>
    %c = arith.addf %a, %b : f32
    affine.store %c, %sum[%i] : memref<7xf32>
    %d = arith.addf %a, %a : f32
    affine.store %d, %twice[%i] : memref<7xf32>
  }
  return
}
"""


def test_roles_come_from_what_the_loops_do() -> None:
    artifact = compile_text(ADD, CompileOptions())
    rows = [(r["role"], r["updates"]) for r in artifact.manifest["arguments"]]
    assert rows == [("input", None), ("input", 1), ("output", None)]
    x, total = np.arange(7, dtype=np.float32), np.ones(7, dtype=np.float32)
    twice = polyblocks.load(artifact)(x, total)
    np.testing.assert_array_equal(twice, 2 * x)
    np.testing.assert_array_equal(total, x + 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "func.func @main(%x: memref<4xf32>, %y: tensor<4xf32>) { return }",
            "@main takes either tensors, or memrefs and returns nothing",
        ),
        (
            "func.func @main(%x: memref<?xf32>) { return }",
            r"@main takes and returns static tensors, not memref<\?xf32>",
        ),
        (
            "func.func @main(%x: memref<4xf32, strided<[2]>>) { return }",
            "@main takes and returns static tensors, not memref<4xf32, strided",
        ),
    ],
)
def test_what_cannot_be_an_argument(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compile_text(text, CompileOptions())


def run(body: str, *arrays: np.ndarray) -> Any:
    """What a module computes whose @main gets ``arrays`` as %a, %b, … and has this body."""
    types = [f"memref<{'x'.join(map(str, a.shape))}xf32>" for a in arrays]
    names = "abcdef"[: len(arrays)]
    for name, type_ in zip(names, types, strict=True):
        body = body.replace(f"T{name}", type_)
    arguments = ", ".join(f"%{n}: {t}" for n, t in zip(names, types, strict=True))
    text = f"func.func @main({arguments}) {{ {body} return }}"
    artifact = compile_text(text, CompileOptions())
    inputs = [
        array
        for array, row in zip(arrays, artifact.manifest["arguments"], strict=True)
        if row["role"] == "input"
    ]
    return polyblocks.load(artifact)(*inputs)


def numbers(*shape: int) -> np.ndarray:
    """Small integers, whose sums are exact."""
    return np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)


def test_a_short_sum_over_a_part_of_a_row() -> None:
    a = numbers(8, 8)
    b = run(
        """
        affine.for %i = 0 to 8 {
          %z = arith.constant 0.0 : f32
          %r = affine.for %k = max affine_map<(d0) -> (0, d0 - 2)>(%i)
              to min affine_map<(d0) -> (d0 + 1, 6)>(%i) iter_args(%s = %z) -> (f32) {
            %x = affine.load %a[%i, %k] : Ta
            %t = arith.addf %s, %x fastmath<reassoc> : f32
            affine.yield %t : f32
          }
          affine.store %r, %b[%i] : Tb
        }
        """,
        a,
        np.zeros(8, np.float32),
    )
    np.testing.assert_array_equal(b, [a[i, max(0, i - 2) : min(i + 1, 6)].sum() for i in range(8)])


def test_a_sum_in_memory_over_a_part_of_a_row() -> None:
    a, b = numbers(40, 40), numbers(40)
    expected = b + np.array([a[i, i:].sum() for i in range(40)])
    run(
        """
        affine.for %i = 0 to 40 {
          affine.for %k = affine_map<(d0) -> (d0)>(%i) to 40 {
            %x = affine.load %a[%i, %k] : Ta
            %s = affine.load %b[%i] : Tb
            %t = arith.addf %s, %x fastmath<reassoc> : f32
            affine.store %t, %b[%i] : Tb
          }
        }
        """,
        a,
        b,
    )
    np.testing.assert_array_equal(b, expected)


def test_sums_in_memory_whose_number_changes_with_what_is_summed() -> None:
    a, b = numbers(40, 40), numbers(40)
    expected = b + np.array([a[: j + 1, j].sum() for j in range(40)])
    run(
        """
        affine.for %k = 0 to 40 {
          affine.for %j = affine_map<(d0) -> (d0)>(%k) to 40 {
            %x = affine.load %a[%k, %j] : Ta
            %s = affine.load %b[%j] : Tb
            %t = arith.addf %s, %x fastmath<reassoc> : f32
            affine.store %t, %b[%j] : Tb
          }
        }
        """,
        a,
        b,
    )
    np.testing.assert_array_equal(b, expected)


def test_what_a_part_is_written_over_stays_elsewhere() -> None:
    a = numbers(40, 40)
    b = run(
        """
        %t = memref.alloc() : Ta
        affine.for %i = 0 to 40 {
          affine.for %j = 0 to 40 {
            %x = affine.load %a[%i, %j] : Ta
            affine.store %x, %t[%j, %i] : Ta
          }
        }
        affine.for %i = 0 to 40 {
          affine.for %j = affine_map<(d0) -> (d0)>(%i) to 40 {
            %z = arith.constant 9.0 : f32
            affine.store %z, %t[%i, %j] : Ta
          }
        }
        affine.for %i = 0 to 40 {
          affine.for %j = 0 to 40 {
            %x = affine.load %t[%i, %j] : Ta
            affine.store %x, %b[%i, %j] : Tb
          }
        }
        """,
        a,
        np.zeros((40, 40), np.float32),
    )
    np.testing.assert_array_equal(b, np.where(np.triu(np.ones_like(a)) > 0, 9, a.T))


def test_a_long_sum_for_a_team_over_a_part_of_a_row() -> None:
    a = numbers(2, 1 << 20)
    with described_as("lanes-8-team"):
        b = run(
            """
            affine.for %i = 0 to 2 {
              %z = arith.constant 0.0 : f32
              %r = affine.for %k = affine_map<(d0) -> (d0 * 500000)>(%i) to 1048576
                  iter_args(%s = %z) -> (f32) {
                %x = affine.load %a[%i, %k] : Ta
                %t = arith.addf %s, %x fastmath<reassoc> : f32
                affine.yield %t : f32
              }
              affine.store %r, %b[%i] : Tb
            }
            """,
            a,
            np.zeros(2, np.float32),
        )
    np.testing.assert_array_equal(b, [a[0].sum(), a[1, 500000:].sum()])

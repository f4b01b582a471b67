"""Tilings that one pass chose are those of later passes, for code that is alike."""

from __future__ import annotations

import pytest

from polyblocks import mlir
from polyblocks.affine.analysis.contractions import contraction_of
from polyblocks.affine.contraction.tilings import choice
from polyblocks.affine.contraction.tilings.choice import Choices, Tiled, choose_tiling, tilings_of
from polyblocks.affine.flat_views import FlatViews
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import Sequence
from polyblocks.options import CompileOptions
from polyblocks_cpu.describe import describe

PRODUCT = """
  affine.for %i = 0 to {m} {{ affine.for %j = 0 to 96 {{
    %r = affine.for %k = 0 to 64 iter_args(%s = %zero) -> (f32) {{
      %p = affine.load %{x}[%i, %k] : memref<{m}x64xf32>
      %q = affine.load %y[%k, %j] : memref<64x96xf32>
      %t = arith.mulf %p, %q : f32
      %n = arith.addf %s, %t : f32
      affine.yield %n : f32
    }}
    affine.store %r, %{z}[%i, %j] : memref<{m}x96xf32>
  }} }}
"""
TEXT = f"""
func.func @main(%a: memref<128x64xf32>, %b: memref<128x64xf32>, %c: memref<30x64xf32>,
    %y: memref<64x96xf32>,
    %u: memref<128x96xf32>, %v: memref<128x96xf32>, %w: memref<30x96xf32>) {{
  %zero = arith.constant 0.0 : f32
  {PRODUCT.format(m=128, x="a", z="u")}
  {PRODUCT.format(m=128, x="b", z="v")}
  {PRODUCT.format(m=30, x="c", z="w")}
  return
}}
"""


@pytest.fixture
def sequence() -> Sequence:
    module = mlir.parse(TEXT)
    with module.context:
        return reader.read(module)


def tiled(sequence: Sequence, number: int, threads: int | None, remember: bool) -> list[Tiled]:
    """The tilings of one of the products."""
    nodes = sequence.nests()[number].body
    contraction = contraction_of(nodes)
    assert contraction is not None
    target = describe(CompileOptions(arch="x86-64-v4"))
    choices = Choices(sequence, nodes) if remember else None
    return list(tilings_of(contraction, FlatViews(sequence), target, threads, None, choices))


def test_what_is_alike_is_chosen_once(sequence, monkeypatch):
    chosen = []
    monkeypatch.setattr(
        choice, "choose_tiling", lambda cost: chosen.append(cost) or choose_tiling(cost)
    )
    cases = [(0, None), (1, None), (0, None), (0, 1), (2, None)]
    counts = []
    for number, threads in cases:
        before = len(chosen)
        found = tiled(sequence, number, threads, True)
        counts.append(len(chosen) - before)
        anew = tiled(sequence, number, threads, False)
        assert [(t.tiling, t.seconds) for t in found] == [(t.tiling, t.seconds) for t in anew]
    # The second product is like the first one; another number of threads, and of rows, is not.
    first, *others = counts
    assert first > 0
    assert [count > 0 for count in others] == [False, False, True, True]


def test_another_program_has_choices_of_its_own(sequence):
    tiled(sequence, 0, None, True)
    assert sequence.memos
    assert not Sequence([], []).memos

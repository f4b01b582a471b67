"""Scores that are scaled by a constant: exponents have it in their place, or they do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.gpu_target import gpu_target

from polyblocks import mlir
from polyblocks.options import CompileOptions
from polyblocks.passes.contraction import chain_products
from polyblocks.pipeline import PassContext

TEXT = (Path(__file__).parents[1] / "filecheck" / "chain-products-scaled.mlir").read_text()
#: 0.125 times the binary logarithm of e.
SCALED = "arith.constant 0.18033"


def chained(*changes: tuple[str, str]) -> str:
    """The module, with some of its text replaced, as one chain."""
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    module = mlir.parse(text)
    context = PassContext.create(gpu_target(chaining=True), CompileOptions())
    chain_products.ChainProductsPass().run(module, context)
    found = str(module)
    assert "chained = true" in found
    return found


def test_exponents_are_scaled() -> None:
    assert SCALED in chained()


@pytest.mark.parametrize(
    "change",
    [
        # The largest score is the smallest product.
        ("arith.constant 0.125", "arith.constant -0.125"),
        ("arith.constant 0.125", "arith.constant 0x7F800000"),
        ("%r, %scale fastmath<reassoc,contract>", "%r, %scale"),
        # A score of rows without any.
        ("0xFF800000", "-1.0e+38"),
        # Something else is made of a score.
        ("%p = math.exp %e : f32", "%g = math.exp %e : f32\n        %p = arith.mulf %g, %x : f32"),
    ],
)
def test_scores_are_scaled(change: tuple[str, str]) -> None:
    assert SCALED not in chained(change)


def test_without_registers_for_it_scores_are_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_products, "_ROOMY", 0)
    assert SCALED not in chained()

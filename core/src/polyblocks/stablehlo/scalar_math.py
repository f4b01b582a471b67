"""Sums and products of scalars of any element type."""

from __future__ import annotations

from typing import Any

from polyblocks.stablehlo import code, complexes
from polyblocks.stablehlo.code import emit
from polyblocks.stablehlo.element import Element


def plus(kind: Element, x: Any, y: Any) -> Any:
    """The sum; of truth values whether one is true."""
    if kind.is_complex:
        reals = complexes.Reals(kind.part)
        return code.join(*complexes.add(reals, code.parts(x), code.parts(y)))
    return emit("arith.addf" if kind.is_float else _on_bits(kind, "addi", "ori"), [x, y])


def times(kind: Element, x: Any, y: Any) -> Any:
    """The product; of truth values whether both are true."""
    if kind.is_complex:
        reals = complexes.Reals(kind.part)
        return code.join(*complexes.multiply(reals, code.parts(x), code.parts(y)))
    return emit("arith.mulf" if kind.is_float else _on_bits(kind, "muli", "andi"), [x, y])


def _on_bits(kind: Element, on_integers: str, on_bools: str) -> str:
    return f"arith.{on_bools if kind.is_bool else on_integers}"

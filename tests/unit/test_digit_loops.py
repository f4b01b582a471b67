"""Loops whose digits are used, split into a loop for each."""

from __future__ import annotations

import pytest

from polyblocks import mlir
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.mlir import reader
from polyblocks.affine.model import For, Load, Store, Value, walk
from polyblocks.affine.rewrites.digit_loops import split_at_digits

SUM = """
func.func @main(%a: memref<{shape}xf32>, %b: memref<9xf32>) {{
  %z = arith.constant 0.0 : f32
  affine.for %i = 0 to 9 {{
    %r = affine.for %k = {range} iter_args(%s = %z) -> (f32) {{
      %x = affine.load %a[{index}] : memref<{shape}xf32>
      %t = arith.addf %s, %x : f32
      affine.yield %t : f32
    }}
    affine.store %r, %b[%i] : memref<9xf32>
  }}
  return
}}
"""


def reduction(shape: str, index: str, range_: str) -> For:
    module = mlir.parse(SUM.format(shape=shape, index=index, range=range_))
    with module.context:
        nest = reader.read(module).nests()[0]
    (loop,) = (n for n in walk(nest.body) if isinstance(n, For) and n.inits)
    return loop


def test_two_digits() -> None:
    loop = reduction("2x21", "%k floordiv 21, %k mod 21", "0 to 42")
    results = loop.results
    assert split_at_digits([loop])
    (inner,) = loop.body
    assert isinstance(inner, For)
    assert (loop.var.extent, inner.var.extent) == (2, 21)
    (load,) = (n for n in inner.body if isinstance(n, Load))
    assert load.index == (Expr.of(loop.var), Expr.of(inner.var))
    # What is carried goes through both.
    assert loop.results is results
    assert inner.inits == loop.arguments
    assert loop.yields == inner.results


def test_three_digits() -> None:
    loop = reduction("2x3x7", "%k floordiv 21, (%k floordiv 7) mod 3, %k mod 7", "0 to 42")
    assert split_at_digits([loop])
    loops = [n for n in walk([loop]) if isinstance(n, For)]
    assert [n.var.extent for n in loops] == [2, 3, 7]
    (load,) = (n for n in walk([loop]) if isinstance(n, Load))
    assert load.index == tuple(Expr.of(n.var) for n in loops)


@pytest.mark.parametrize(
    ("shape", "index", "range_"),
    [
        ("42", "%k", "0 to 42"),
        ("3x21", "%k floordiv 21, %k mod 21", "0 to 43"),
        ("3x21", "%k floordiv 21, %k mod 21", "0 to min affine_map<(d0) -> (42, d0 + 7)>(%i)"),
    ],
)
def test_loops_that_stay(shape: str, index: str, range_: str) -> None:
    loop = reduction(shape, index, range_)
    var = loop.var
    assert not split_at_digits([loop])
    assert loop.var is var


def test_bounds_of_others_keep_a_loop() -> None:
    var, other = Var(42), Var(8)
    place = (Expr.of(var) // 21, Expr.of(var) % 21)
    buffer = next(
        n.buffer for n in walk([reduction("2x21", "0, 0", "0 to 4")]) if hasattr(n, "buffer")
    )
    store = Store(Value("f32"), buffer, place)
    loop = For(var, [For(other, [store], upper=(Expr.of(var),))])
    assert not split_at_digits([loop])

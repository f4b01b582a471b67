"""Two nests of windows, one after the other, of random sizes."""

from __future__ import annotations

import random
from collections.abc import Sequence

#: A window along rows, then one along columns of what it gives.
STENCILS = """
func.func @main(%x: memref<{high}x{wide}xf32>, %y: memref<{h}x{w}xf32>) {{
  %m = memref.alloc() : memref<{h}x{wide}xf32>
  affine.for %i = 0 to {h} {{ affine.for %j = 0 to {wide} {{
    %a = affine.load %x[%i, %j] : memref<{high}x{wide}xf32>
    %b = affine.load %x[%i + {down}, %j] : memref<{high}x{wide}xf32>
    %c = arith.addf %a, %b : f32
    affine.store %c, %m[%i, %j] : memref<{h}x{wide}xf32>
  }} }} {{polyblocks.kernel = "first", polyblocks.kind = "stencil", polyblocks.sources = []}}
  affine.for %i = 0 to {h} {{ affine.for %j = 0 to {w} {{
    %a = affine.load %m[%i, %j] : memref<{h}x{wide}xf32>
    %b = affine.load %m[%i, %j + {right}] : memref<{h}x{wide}xf32>
    %c = arith.mulf %a, %b : f32
    affine.store %c, %y[%i, %j] : memref<{h}x{w}xf32>
  }} }} {{polyblocks.kernel = "second", polyblocks.kind = "stencil", polyblocks.sources = []}}
  return
}}
"""


def stencils(
    draw: random.Random,
    highs: Sequence[int] = (64, 200, 517, 1024),
    wides: Sequence[int] = (31, 100, 640, 1030),
) -> str:
    """A module of such nests; the number of rows and of columns is one of those that are given."""
    h, w = draw.choice(highs), draw.choice(wides)
    down, right = draw.randint(1, 4), draw.randint(1, 4)
    return STENCILS.format(h=h, w=w, high=h + down, wide=w + right, down=down, right=right)

"""A product of matrices as loops in MLIR."""

from __future__ import annotations

#: ``m``, ``n`` and ``k`` are to be filled in.
PRODUCT = """
func.func @main(%a: memref<{m}x{k}xf32>, %b: memref<{k}x{n}xf32>, %c: memref<{m}x{n}xf32>) {{
  %z = arith.constant 0.0 : f32
  affine.for %i = 0 to {m} {{ affine.for %j = 0 to {n} {{
    %r = affine.for %k = 0 to {k} iter_args(%s = %z) -> (f32) {{
      %x = affine.load %a[%i, %k] : memref<{m}x{k}xf32>
      %y = affine.load %b[%k, %j] : memref<{k}x{n}xf32>
      %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
      %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }}
    affine.store %r, %c[%i, %j] : memref<{m}x{n}xf32>
  }} }}
  return
}}
"""

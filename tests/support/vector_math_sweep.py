"""Compiled sweeps over float32: a function against its own float64 expansion.

What `vector_math_jit.ulp_error` does in numpy for any reference, at a few nanoseconds per value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from vector_math_jit import Code

from polyblocks.codegen.builder import Scale, Table

LANES = 16


def _text(op: str, stride: int) -> str:
    singles, doubles = f"vector<{LANES}xf32>", f"vector<{LANES}xf64>"
    ints, longs, bools = f"vector<{LANES}xi32>", f"vector<{LANES}xi64>", f"vector<{LANES}xi1>"
    steps = ", ".join(str(i * stride) for i in range(LANES))
    return f"""
func.func @sweep(
    %parameters: memref<2xi64>, %errors: memref<{LANES}xf64>, %at: memref<{LANES}xi32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = memref.load %parameters[%c0] : memref<2xi64>
  %count64 = memref.load %parameters[%c1] : memref<2xi64>
  %count = arith.index_cast %count64 : i64 to index
  %start = arith.trunci %first : i64 to i32
  %starts = vector.broadcast %start : i32 to {ints}
  %offsets = arith.constant dense<[{steps}]> : {ints}
  %bits0 = arith.addi %starts, %offsets : {ints}
  %step = arith.constant dense<{LANES * stride}> : {ints}
  %none = arith.constant dense<-1.0> : {doubles}
  %zero = arith.constant dense<0.0> : {doubles}
  %inf = arith.constant dense<0x7FF0000000000000> : {doubles}
  %top = arith.constant dense<{2.0**128:.1f}> : {doubles}
  %bottom = arith.constant dense<-{2.0**128:.1f}> : {doubles}
  %exponent = arith.constant dense<0x7FF0000000000000> : {longs}
  %smallest = arith.constant dense<{2.0**-126!r}> : {doubles}
  %largest = arith.constant dense<{2.0**127:.1f}> : {doubles}
  %epsilon = arith.constant dense<{2.0**-23!r}> : {doubles}
  %no = arith.constant dense<0> : {longs}
  %r:3 = scf.for %i = %c0 to %count step %c1
      iter_args(%bits = %bits0, %worst = %none, %where = %bits0) -> ({ints}, {doubles}, {ints}) {{
    %x = arith.bitcast %bits : {ints} to {singles}
    %y = {op} %x : {singles}
    %xx = arith.extf %x : {singles} to {doubles}
    %exact = {op} %xx : {doubles}
    %wide = arith.extf %y : {singles} to {doubles}
    %l0 = arith.minimumf %exact, %top : {doubles}
    %limited = arith.maximumf %l0, %bottom : {doubles}
    %w0 = arith.minimumf %wide, %top : {doubles}
    %w1 = arith.maximumf %w0, %bottom : {doubles}
    %raw = arith.bitcast %limited : {doubles} to {longs}
    %binade0 = arith.andi %raw, %exponent : {longs}
    %binade1 = arith.bitcast %binade0 : {longs} to {doubles}
    %binade2 = arith.minimumf %binade1, %largest : {doubles}
    %binade = arith.maximumf %binade2, %smallest : {doubles}
    %unit = arith.mulf %binade, %epsilon : {doubles}
    %difference = arith.subf %w1, %limited : {doubles}
    %distance = math.absf %difference : {doubles}
    %error0 = arith.divf %distance, %unit : {doubles}
    %nan_exact = arith.cmpf uno, %exact, %exact : {doubles}
    %nan_y = arith.cmpf uno, %wide, %wide : {doubles}
    %nans = arith.xori %nan_exact, %nan_y : {bools}
    %wide_bits = arith.bitcast %wide : {doubles} to {longs}
    %exact_bits = arith.bitcast %exact : {doubles} to {longs}
    %signs = arith.xori %wide_bits, %exact_bits : {longs}
    %sign = arith.cmpi slt, %signs, %no : {longs}
    %error1 = arith.select %sign, %inf, %error0 : {bools}, {doubles}
    %error2 = arith.select %nan_exact, %zero, %error1 : {bools}, {doubles}
    %error = arith.select %nans, %inf, %error2 : {bools}, {doubles}
    %worse = arith.cmpf ogt, %error, %worst : {doubles}
    %worst1 = arith.select %worse, %error, %worst : {bools}, {doubles}
    %where1 = arith.select %worse, %bits, %where : {bools}, {ints}
    %bits1 = arith.addi %bits, %step : {ints}
    scf.yield %bits1, %worst1, %where1 : {ints}, {doubles}, {ints}
  }}
  vector.store %r#1, %errors[%c0] : memref<{LANES}xf64>, {doubles}
  vector.store %r#2, %at[%c0] : memref<{LANES}xi32>, {ints}
  return
}}
"""


@dataclass(frozen=True)
class Worst:
    """The largest error in units in the last place, the argument, and how many were tried."""

    error: float
    argument: float
    count: int


def own_reference(
    op: str,
    stride: int,
    *,
    fma: bool,
    ldexp: bool,
    scale: Scale | None = None,
    table: Table | None = None,
) -> Worst:
    """Every ``stride``-th float32 bit pattern through ``op``, in float32 and in float64."""
    text = _text(op, stride)
    code = Code(text, ["sweep"], fma=fma, ldexp=ldexp, scale=scale, table=table, machine=None)
    sweep = code.function("sweep")
    vectors = (1 << 32) // (LANES * stride)
    parameters = np.array([0, vectors], np.int64)
    errors, at = np.empty(LANES), np.empty(LANES, np.int32)
    sweep(parameters, errors, at)
    index = int(np.argmax(errors))
    argument = float(at[index : index + 1].view(np.float32)[0])
    return Worst(float(errors[index]), argument, vectors * LANES)

"""Sweeps all float32 values through the unary vector-math functions and reports their errors.

    python tests/slow/vector_math_exhaustive.py                    # everything: hours
    python tests/slow/vector_math_exhaustive.py exp tanh           # two functions, minutes each
    python tests/slow/vector_math_exhaustive.py --stride 61        # a fixed fraction of all values
    python tests/slow/vector_math_exhaustive.py --own-reference    # a minute each, see below

The reference is numpy in float64 (``math.erf``/``math.erfc`` for those), or with
``--own-reference`` the float64 expansion of the same function, which the unit tests hold to a few
units in float64's last place against mpmath; the whole sweep is compiled code then. Exits with 1
if an error exceeds ``polyblocks.codegen.vector_math.accuracy.MAX_ULP``. Runs at the lowest
priority.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from vector_math_jit import CHUNK, Compiled, Loop, host_scale, host_table
from vector_math_sweep import LANES, Worst, own_reference

from polyblocks.codegen.vector_math.accuracy import MAX_ULP

NAMES = [op.split(".")[1] for op in MAX_ULP if op not in ("math.powf", "math.atan2", "math.fpowi")]
_NUMPY = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}
_EXPONENT = np.int64(0x7FF0000000000000)


def numpy_reference(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """The function on float64 arrays."""
    if name == "rsqrt":
        return lambda x: 1 / np.sqrt(x)
    if name in ("erf", "erfc"):
        return np.vectorize(getattr(math, name), otypes=[np.float64])
    return getattr(np, _NUMPY.get(name, name))  # type: ignore[no-any-return]


def errors(result: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors of float32 results in units in the last place of float64 references."""
    limited = np.clip(exact, -(2.0**128), 2.0**128)
    wide = np.clip(result.astype(np.float64), -(2.0**128), 2.0**128)
    binade = (limited.view(np.int64) & _EXPONENT).view(np.float64)
    unit = np.clip(binade, 2.0**-126, 2.0**127) * 2.0**-23
    error = np.abs(wide - limited) / unit
    wrong = (np.isnan(result) != np.isnan(exact)) | (
        (np.signbit(result) != np.signbit(exact)) & ~np.isnan(exact)
    )
    error[np.isnan(exact)] = 0.0
    error[wrong] = np.inf
    return error


def sweep(
    run: Callable[[np.ndarray], np.ndarray],
    reference: Callable[[np.ndarray], np.ndarray],
    stride: int,
) -> Worst:
    """Every ``stride``-th float32 bit pattern through ``run`` and ``reference``."""
    worst, where, count = -1.0, math.nan, 0
    step = CHUNK * stride
    for start in range(0, 1 << 32, step):
        bits = np.arange(start, min(start + step, 1 << 32), stride, dtype=np.uint64)
        x = bits.astype(np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            error = errors(run(x), reference(x.astype(np.float64)))
        index = int(np.argmax(error))
        if error[index] > worst:
            worst, where = float(error[index]), float(x[index])
        count += len(x)
    return Worst(worst, where, count)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, help="functions; default: all")
    parser.add_argument("--stride", type=int, default=1, help="try every n-th bit pattern")
    parser.add_argument("--no-fma", action="store_true", help="test the code for old chips")
    parser.add_argument("--no-ldexp", action="store_true", help="as on chips without either")
    parser.add_argument("--own-reference", action="store_true", help="our float64 as reference")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(NAMES))
    if unknown:
        parser.error(f"unknown functions {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if hasattr(os, "nice"):
        os.nice(19)
    scale = None if arguments.no_ldexp else host_scale()
    table = None if arguments.no_ldexp or arguments.no_fma else host_table()
    # What the chip has for powers of two and for tables is used by vectors.
    lanes = LANES if scale is not None else 0
    failed = False
    for name in arguments.names:
        begun = time.perf_counter()
        if arguments.own_reference:
            worst = own_reference(
                f"math.{name}",
                arguments.stride,
                fma=not arguments.no_fma,
                ldexp=scale is not None,
                scale=scale,
                table=table,
            )
        else:
            compiled = Compiled(
                {name: Loop(f"math.{name}", ("f32",), ("f32",), lanes)},
                fma=not arguments.no_fma,
                ldexp=scale is not None,
                scale=scale,
                table=table,
            )

            def run(x: np.ndarray, name: str = name, compiled: Compiled = compiled) -> np.ndarray:
                return compiled(name, x)[0]

            worst = sweep(run, numpy_reference(name), arguments.stride)
        allowed = MAX_ULP[f"math.{name}"][0]
        verdict = "ok" if worst.error <= allowed else "TOO LARGE"
        failed |= worst.error > allowed
        seconds = time.perf_counter() - begun
        print(
            f"{name:6s} {worst.error:7.4f} ULP at {worst.argument!r} (allowed {allowed}) "
            f"{verdict}; {worst.count} values, {seconds:.0f} s",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

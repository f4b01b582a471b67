"""Times the generated vector math against PyTorch's own, one thread, data in the first-level cache.

    python -m bench.vector_math                        # a table
    python -m bench.vector_math exp tanh --assembly math.s
    python -m bench.vector_math --results bench/results

Columns: nanoseconds per element of PyTorch eager and of our code, written once as a loop of scalar
operations (which LLVM vectorizes) and once with operations on whole vectors (which the mid-level
emits); then for the latter cycles per vector and the instructions of its loop per vector, with
load, store, copies between registers and the loop itself.

Both sides are timed with 512 and 4096 elements and the difference is divided, so that PyTorch's
cost of a call is not counted. Each number is the smallest of many. Cycles are estimated with a
chain of dependent fused multiply-adds, whose latency is taken as four cycles.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench import report
from bench.math_loops import CLOCK, LENGTH, Program, lanes, loop

_SHORT = 512
_FMA_LATENCY = 4
_CHAIN = 100_000
#: Sweeps over the array per measured call.
_SWEEPS = 20
HEADER = ("function", "eager ns", "loop ns", "vector ns", "cycles", "instructions", "eager/vector")


@dataclass(frozen=True)
class Case:
    """One function of a float32.

    Attributes:
        body: see :func:`bench.math_loops.loop`.
        eager: the same in PyTorch, ``eager(x, out=y)``.
        low, high: the arguments are spread evenly between them.
    """

    body: str
    eager: Callable[..., Any]
    low: float = -5.0
    high: float = 5.0


def _unary(op: str, function: Callable[..., Any], low: float = -5.0, high: float = 5.0) -> Case:
    return Case(f"%r = math.{op} %x : T", function, low, high)


def _power(exponent: float) -> Case:
    body = f"%y = C({exponent})\n%r = math.powf %x, %y : T"
    return Case(body, lambda x, out: torch.pow(x, exponent, out=out), 0.1, 10.0)


_SIGMOID = """%one = C(1.0)
%n = arith.negf %x : T
%e = math.exp %n : T
%d = arith.addf %one, %e : T
"""
_GELU = """%h = C(0.5)
%k = C(0.70710678)
%one = C(1.0)
%z = arith.mulf %x, %k : T
%e = math.erf %z : T
%p = arith.addf %e, %one : T
%hx = arith.mulf %x, %h : T
%r = arith.mulf %hx, %p : T"""
CASES: Mapping[str, Case] = {
    "exp": _unary("exp", torch.exp, -80, 80),
    "exp2": _unary("exp2", torch.exp2, -80, 80),
    "expm1": _unary("expm1", torch.expm1),
    "log": _unary("log", torch.log, 0.01, 100),
    "log2": _unary("log2", torch.log2, 0.01, 100),
    "log1p": _unary("log1p", torch.log1p, -0.9, 20),
    "sin": _unary("sin", torch.sin, -30, 30),
    "cos": _unary("cos", torch.cos, -30, 30),
    "tan": _unary("tan", torch.tan, -30, 30),
    "tanh": _unary("tanh", torch.tanh),
    "sigmoid": Case(f"{_SIGMOID}%r = arith.divf %one, %d : T", torch.sigmoid),
    "silu": Case(f"{_SIGMOID}%r = arith.divf %x, %d : T", torch.ops.aten.silu.out),
    "erf": _unary("erf", torch.erf),
    "erfc": _unary("erfc", torch.erfc),
    "gelu": Case(_GELU, torch.ops.aten.gelu.out),
    "asin": _unary("asin", torch.asin, -1, 1),
    "atan": _unary("atan", torch.atan),
    "rsqrt": _unary("rsqrt", torch.rsqrt, 0.01, 100),
    "pow(x, 2x)": Case(
        "%y = arith.addf %x, %x : T\n%r = math.powf %x, %y : T",
        lambda x, out: torch.pow(x, x, out=out),
        0.1,
        10.0,
    ),
    **{f"pow(x, {exponent:g})": _power(exponent) for exponent in (2.0, 3.0, 4.0, -1.0, 0.5, -0.5)},
}


def _fastest(call: Callable[[], object], seconds: float) -> float:
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def _seconds_per_element(call: Callable[[int, int], object]) -> float:
    """From two lengths; ``call(length, times)``."""
    short = long = float("inf")
    # In turns, since other work on the machine comes and goes.
    for _ in range(4):
        short = min(short, _fastest(partial(call, _SHORT, _SWEEPS), 0.04))
        long = min(long, _fastest(partial(call, LENGTH, _SWEEPS), 0.08))
    return (long - short) / _SWEEPS / (LENGTH - _SHORT)


def _eager(function: Callable[..., Any], x: torch.Tensor, y: torch.Tensor) -> float:
    def call(length: int, times: int) -> None:
        source, target = x[:length], y[:length]
        for _ in range(times):
            function(source, out=target)

    return _seconds_per_element(call)


def _symbol(name: str, form: str) -> str:
    return re.sub(r"\W+", "_", f"{name.replace('-', 'minus')} {form}")


def compiled(names: list[str]) -> Program:
    """The loops of the named cases and the clock."""
    functions = {"clock": CLOCK}
    for name in names:
        for form, width in (("loop", 0), ("vector", lanes())):
            symbol = _symbol(name, form)
            functions[symbol] = loop(symbol, CASES[name].body, width)
    return Program(functions)


def gigahertz(program: Program) -> float:
    """The clock now."""
    x = np.full(LENGTH, 0.5, np.float32)
    seconds = _fastest(partial(program.run, "clock", x, x, 1, _CHAIN), 0.2)
    return _FMA_LATENCY * _CHAIN / seconds / 1e9


def measure(program: Program, name: str, ghz: float) -> tuple[str, ...]:
    """One row of the table."""
    case = CASES[name]
    x = np.random.default_rng(0).uniform(case.low, case.high, LENGTH).astype(np.float32)
    y = np.empty_like(x)
    eager = _eager(case.eager, torch.from_numpy(x), torch.from_numpy(y)) * 1e9
    plain, vector = (
        _seconds_per_element(partial(program.run, _symbol(name, form), x, y)) * 1e9
        for form in ("loop", "vector")
    )
    return (
        name,
        *(f"{t:.3f}" for t in (eager, plain, vector)),
        f"{vector * lanes() * ghz:.1f}",
        str(program.instructions(_symbol(name, "vector"))),
        f"{eager / vector:.1f}",
    )


def _page(rows: list[tuple[str, ...]], cpu: str, ghz: float) -> str:
    lines = [
        f"# Vector math, {cpu}",
        "",
        f"float32, one thread, {LENGTH} elements in the first-level cache, {lanes()} lanes, "
        f"{ghz:.2f} GHz, PyTorch {torch.__version__}; `python -m bench.vector_math`, whose text "
        "says what the columns are.",
        "",
    ]
    table = [HEADER, ("---",) + ("---:",) * (len(HEADER) - 1), *rows]
    lines += [f"| {' | '.join(row)} |" for row in table]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure and print; the exit status is 2 for unknown names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="functions; default: all")
    parser.add_argument("--assembly", type=Path, help="write the generated assembly there")
    parser.add_argument("--results", type=Path, help="folder for the table as Markdown")
    arguments = parser.parse_args()
    names = arguments.names or list(CASES)
    if unknown := sorted(set(names) - set(CASES)):
        parser.error(f"unknown functions {', '.join(unknown)}; there are {', '.join(CASES)}")
    torch.set_num_threads(1)
    program = compiled(names)
    if arguments.assembly:
        arguments.assembly.write_text(program.assembly)
    ghz = gigahertz(program)
    rows = []
    print(*(f"{cell:>12s}" for cell in HEADER))
    with torch.inference_mode():
        for name in names:
            rows.append(measure(program, name, ghz))
            print(*(f"{cell:>12s}" for cell in rows[-1]), flush=True)
    if arguments.results:
        arguments.results.mkdir(parents=True, exist_ok=True)
        cpu = report.cpu_name()
        stem = report.place({"date": datetime.date.today().isoformat()}, arguments.results, cpu)
        Path(f"{stem}-vector-math.md").write_text(_page(rows, cpu, ghz))
    return 0


if __name__ == "__main__":
    sys.exit(main())

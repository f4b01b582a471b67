"""One sample: run it with ``jax.jit`` and compiled, and compare."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from samples import Sample

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

HERE = Path(__file__).parent

#: A result may differ from XLA's by this much, or else must be as near to the float64 result.
TOLERANCE = {
    "float64": (1e-11, 1e-12),
    "float32": (2e-5, 1e-6),
    "complex64": (2e-5, 2e-6),
    "complex128": (1e-11, 1e-12),
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
}

#: Results count as equally exact when their error is at most this many times XLA's.
SLACK = 4.0


@dataclass(frozen=True)
class Outcome:
    """What happened to one sample.

    Attributes:
        kind: ``compiled`` (whole), ``fallback`` (JAX runs a part or all of it), ``wrong``,
            ``skipped`` (XLA does not compile it either).
        reason: one line; empty if compiled.
    """

    kind: str
    reason: str = ""


def check(sample: Sample) -> Outcome:
    """Run one sample both ways."""
    try:
        reference = jax.jit(sample.function)(*sample.arguments)
        expected = [np.asarray(leaf) for leaf in jax.tree.leaves(reference)]
    except Exception as error:  # whatever it is, there is nothing to compare with
        return Outcome("skipped", _line(error))
    try:
        got, report = _run(sample)
    except Exception as error:
        return Outcome("wrong", f"raised {_line(error)}")
    if len(got) != len(expected):
        return Outcome("wrong", f"{len(got)} results instead of {len(expected)}")
    for index, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        difference = _differ(mine, theirs, sample.same)
        if difference and not _nearer(sample, index, mine, theirs):
            return Outcome("wrong", f"result {index}: {difference}")
    if report.whole:
        return Outcome("compiled")
    left = [*report.fallbacks, *report.failures]
    reasons = "; ".join(str(fallback) for fallback in left[:2])
    return Outcome("fallback", reasons.replace(f"{HERE}/", ""))


def _run(sample: Sample) -> tuple[list[Any], Any]:
    """The results of the compiled function and its report."""
    compiled = polyblocks_jit_jax(sample.function)
    results = compiled(*sample.arguments)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(results)], compiled.polyblocks_report()


def _differ(mine: Any, theirs: Any, same: bool) -> str:
    """Where and how two arrays differ; empty if they agree."""
    if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
        return f"{mine.dtype}{list(mine.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
    rtol, atol = (0.0, 0.0) if same else TOLERANCE.get(str(theirs.dtype), (0.0, 0.0))
    try:
        np.testing.assert_allclose(_wide(mine), _wide(theirs), rtol=rtol, atol=atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""


def _wide(array: Any) -> Any:
    if array.dtype.kind in "fV":
        return array.astype(np.float64)
    return array.astype(np.complex128) if array.dtype.kind == "c" else array


_WIDER = {"complex64": np.complex128}


def _nearer(sample: Sample, index: int, mine: Any, theirs: Any) -> bool:
    """Whether a result is about as near to the one in double precision as XLA's is."""
    inexact = theirs.dtype.kind in "fVc" and theirs.dtype not in (np.float64, np.complex128)
    if sample.same or not inexact or mine.shape != theirs.shape:
        return False
    wide = [
        a.astype(_WIDER.get(str(a.dtype), np.float64)) if a.dtype.kind in "fVc" else a
        for a in map(np.asarray, sample.arguments)
    ]
    try:
        exact = _wide(np.asarray(jax.tree.leaves(jax.jit(sample.function)(*wide))[index]))
    except Exception:  # the function insists on its types
        return False
    mine, theirs = _wide(mine), _wide(theirs)
    odd = ~(np.isfinite(mine) & np.isfinite(theirs) & np.isfinite(exact))
    if not np.array_equal(mine[odd], theirs[odd], equal_nan=True):
        return False
    errors = [np.max(np.abs(x - exact)[~odd], initial=0.0) for x in (mine, theirs)]
    return bool(errors[0] <= SLACK * errors[1])


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}"


def limit(seconds: int) -> None:
    """End the process by SIGPROF after so many seconds of its own work, also in native code.

    One that waits for ever is ended by SIGALRM, much later: others may need the machine.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(20 * seconds)

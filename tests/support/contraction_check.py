"""Is a compiled contraction right, and how long does it take?

It is compared with float64, and has to be as exact as eager PyTorch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from contraction_fuzz import Sample
from forked_sweep import Outcome
from program_fuzz import Array
from strides import as_eager

from polyblocks.errors import FallbackError
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

#: Turns of each function that is timed, and seconds of one.
TURNS, TURN_S = 3, 0.02
#: Processors that others may keep busy meanwhile. A team of threads that has to share them waits a
#: slice of the scheduler's at each of its barriers, a hundred times as long as a short call.
MOST_BUSY = 0.15
#: Seconds of silence before it is tried again, and how often it is.
SILENCE_S, TRIES = 0.3, 3


def check(
    sample: Sample, jit: Callable[..., Any] = polyblocks_jit_torch, timed: bool = False
) -> Outcome:
    """Compile a sample, run it and judge the result; a fallback has to be right as well.

    Args:
        sample: what to compile.
        jit: what compiles it.
        timed: whether the outcome has the seconds of eager calls and of ours.
    """
    inputs, function = sample.inputs(), _function(sample)
    try:
        function(*inputs)
    except (RuntimeError, NotImplementedError) as error:
        return Outcome("skipped", f"PyTorch refuses: {_line(error)}")
    reason = ""
    begin = time.perf_counter()
    try:
        compiled = jit(compile_options={"target": "cpu", "strict_target": True})(function)
        try:
            ours = compiled(*inputs)
        except FallbackError as error:
            # Without the place: it is in the fuzzer.
            reason = _line(error).split("; strict_target", 1)[0]
            torch._dynamo.reset()
            compiled = jit(compile_options={"target": "cpu"})(function)
            ours = compiled(*inputs)
    except Exception as error:  # every failure counts, whatever it is
        return Outcome("wrong", f"raised {type(error).__name__}: {_line(error)}")
    measured = {"first_call": time.perf_counter() - begin}
    wrong = problems(sample, inputs, ours)
    if wrong:
        return Outcome("wrong", wrong)
    if timed:
        measured |= seconds_of({"ours": compiled, "eager": function}, inputs)
    return Outcome("fallback" if reason else "compiled", reason, measured=measured)


def time_inductor(sample: Sample) -> Outcome:
    """The seconds of a call of what PyTorch's own compiler makes of a sample."""
    inputs = sample.inputs()
    compiled = torch.compile(_function(sample), dynamic=False)
    begin = time.perf_counter()
    try:
        compiled(*inputs)
    except Exception as error:
        return Outcome("skipped", f"Inductor: {type(error).__name__}: {_line(error)}")
    first = time.perf_counter() - begin
    measured = seconds_of({"inductor": compiled}, inputs)
    return Outcome("compiled", measured={"inductor_first_call": first, **measured})


def seconds_of(
    calls: Mapping[str, Callable[..., Any]], inputs: Sequence[Array]
) -> dict[str, float]:
    """Seconds of the fastest call of each, in turns; nothing if the machine is busy with others."""
    # Needed here only: with it come all that the benchmark compares with.
    from bench.measure import one_turn
    from bench.silence import busy_seconds

    def others() -> tuple[float, float]:
        """Seconds that processors have worked for others, and the time."""
        return (busy_seconds() or 0.0) - time.process_time(), time.perf_counter()

    for _ in range(TRIES):
        samples: dict[str, list[float]] = {name: [] for name in calls}
        before, begin = others()
        for _ in range(TURNS):
            for name, call in calls.items():
                samples[name] += one_turn(call, tuple(inputs), TURN_S)
        after, end = others()
        if after - before <= MOST_BUSY * (end - begin):
            return {name: min(seconds) for name, seconds in samples.items()}
        time.sleep(SILENCE_S)
    return {}


def _function(sample: Sample) -> Callable[..., Array]:
    def function(*arrays: Array) -> Array:
        return sample.program(*arrays)[0]

    return function


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def problems(sample: Sample, inputs: Sequence[Array], ours: Array) -> str:
    """What is wrong with a result, in words; empty if all is well.

    Its type, shape and strides are eager's. NaN and infinities stand where the float64 result has
    them, or where eager has them: a narrow type may overflow. No error is larger than twice the
    largest one of eager mode, and rounding (:func:`rounding`). Integers are equal.

    Args:
        sample: what was compiled.
        inputs: its arguments.
        ours: what the compiled program gave.
    """
    eager = sample.program.values(*inputs)
    exact = sample.program.values(*[x.double() for x in inputs])
    theirs = eager[-1]
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {list(ours.shape)}, eager {theirs.dtype} {list(theirs.shape)}"
    if not as_eager(ours, theirs, sample.program, inputs, 0):
        return f"strides {ours.stride()}, eager {theirs.stride()}"
    if ours.numel() == 0:
        return ""
    chosen_along = sample.steps[-1].chooses_along
    if chosen_along is not None:
        return _wrong_choices(sample, chosen_along, eager, exact, ours)
    wrong = _wrong_specials(ours, theirs, exact[-1])
    if wrong:
        return wrong
    finite = ours.isfinite() & theirs.isfinite() & exact[-1].isfinite()
    error = _largest((ours.double() - exact[-1])[finite])
    eagers = _largest((theirs.double() - exact[-1])[finite])
    allowed = 2 * eagers + rounding(sample, eager, exact, len(sample.steps))
    if error <= allowed:
        return ""
    scale = _largest(exact[-1])
    return f"error {error:.3g} of {scale:.3g}, eager {eagers:.3g}, allowed {allowed:.3g}"


def rounding(sample: Sample, eager: Sequence[Array], exact: Sequence[Array], steps: int) -> float:
    """How far a good program may be from the exact values after so many steps, eager or not.

    A sum of n products, each rounded to the nearest float32 or summed exactly, has an error that
    grows as sqrt(n) units times the sum of their magnitudes (Higham and Mary, A new approach to
    probabilistic rounding error analysis, SIAM J. Sci. Comput. 41(5), 2019). Whatever is stored is
    rounded to its type once more, and so is what the operands are made of; roundings of these n
    have signs of their own. Four units of float32 are for elementary functions.

    Args:
        sample: the program.
        eager: all of its values in their types.
        exact: the same in float64.
        steps: how many steps have run; more than those up to the contraction.
    """
    first, terms = len(sample.operands), max(1, sample.contraction.terms)
    products = sample.program.steps[sample.product]([_magnitudes(x) for x in exact])
    single = torch.finfo(torch.float32).eps / 2
    sum_of_magnitudes = _largest(products)
    error = 0.0
    if sample.dtype.is_floating_point:
        error = single * max(4.0, math.sqrt(terms)) * sum_of_magnitudes
    for number in range(sample.product):
        if sample.steps[number].rounds:
            error += 4 * _unit(eager[first + number]) * sum_of_magnitudes / math.sqrt(terms)
    for number in range(sample.product, steps):
        step, stored = sample.steps[number], eager[first + number]
        largest = _largest(exact[first + number])
        if number > sample.product:
            error *= step.gain
        if stored.dtype.is_floating_point and step.rounds:
            error += (_unit(stored) + 4 * single) * largest
    return error


def _unit(x: Array) -> float:
    """Half a unit in the last place of a number near 1; 0 for integers."""
    return torch.finfo(x.dtype).eps / 2 if x.dtype.is_floating_point else 0.0


def _largest(x: Array) -> float:
    """The largest magnitude of what is finite."""
    return _magnitudes(x).max().item() if x.numel() else 0.0


def _magnitudes(x: Array) -> Array:
    return torch.nan_to_num(x, 0.0, 0.0, 0.0).abs()


def _classes(x: Array) -> Array:
    """0 for what is finite; a number for NaN and one for each infinity."""
    return torch.isposinf(x) * 1 + torch.isneginf(x) * 2 + torch.isnan(x) * 3


def _wrong_specials(ours: Array, theirs: Array, exact: Array) -> str:
    if not exact.dtype.is_floating_point or not ours.dtype.is_floating_point:
        return ""
    mine = _classes(ours)
    bad = (mine != _classes(exact)) & (mine != _classes(theirs))
    if not bad.any():
        return ""
    place = tuple(bad.nonzero()[0].tolist())
    return (
        f"{int(bad.sum())} elements: at {place} {ours[place].item()}, eager "
        f"{theirs[place].item()}, float64 {exact[place].item()}"
    )


def _wrong_choices(
    sample: Sample, d: int, eager: Sequence[Array], exact: Sequence[Array], ours: Array
) -> str:
    """What is wrong with places of smallest elements: of nearly equal ones it may be any."""
    of, theirs, right = exact[-2], eager[-1], exact[-1]
    if not bool(((ours >= 0) & (ours < of.shape[d])).all()):
        return f"places from {int(ours.min())} to {int(ours.max())} of {of.shape[d]}"
    finite = of.isfinite() & eager[-2].isfinite()
    narrow = (eager[-2].double() - of)[finite]
    allowed = 2 * _largest(narrow) + rounding(sample, eager, exact, len(sample.steps) - 1)
    chosen, smallest = (of.gather(d, places.unsqueeze(d)).squeeze(d) for places in (ours, right))
    near = (chosen - smallest).abs() <= 2 * allowed
    bad = ~(near | (ours == right) | (ours == theirs))
    if not bad.any():
        return ""
    place = tuple(bad.nonzero()[0].tolist())
    return (
        f"{int(bad.sum())} places: at {place} element {ours[place].item()} of {chosen[place]:.6g}, "
        f"smallest {right[place].item()} of {smallest[place]:.6g}, allowed {2 * allowed:.3g}"
    )

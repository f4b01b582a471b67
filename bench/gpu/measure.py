"""Time the programs of a bundle against PyTorch's, on the GPU that is there."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import polyblocks
from bench import report
from bench.contest import Score
from bench.engines import OURS, joined
from bench.errors import max_error
from bench.gpu import attention_peers
from bench.gpu.bundle import Bundle
from bench.gpu.cases import COPY, TINY, Pair
from bench.gpu.clocks import Clock
from bench.gpu.programs import function_of
from bench.table import Case
from polyblocks.errors import PolyBlocksError

Json = dict[str, Any]
Call = Callable[..., Any]

EAGER, INDUCTOR, AUTOTUNE = "eager", "inductor", "inductor-max-autotune"
PEERS = (EAGER, INDUCTOR, AUTOTUNE, *attention_peers.PEERS)
#: Calls in one measurement of the host's part.
_CALLS = 500


@dataclass(frozen=True)
class Pace:
    """How long it takes.

    Attributes:
        rounds: turns of everybody.
        turn_s: seconds of calls in a turn.
    """

    rounds: int = 7
    turn_s: float = 0.15


@dataclass
class Runner:
    """Somebody who runs a case, after the first call.

    Attributes:
        score: what is measured.
        call: computes the case; None if it cannot.
    """

    score: Score
    call: Callable[[], Any] | None = None


def inputs_on(clock: Clock, case: Case) -> list[torch.Tensor]:
    """The arguments of a case, where the clock's programs run."""
    return [torch.from_numpy(x).to(clock.device) for x in case.inputs()]


def ways(function: Call, load: Callable[[], Call], peers: Sequence[str]) -> dict[str, Any]:
    """How each peer gets what it calls; ours first."""
    known = {
        EAGER: lambda: function,
        INDUCTOR: lambda: torch.compile(function, dynamic=False),
        AUTOTUNE: lambda: torch.compile(function, dynamic=False, mode="max-autotune-no-cudagraphs"),
    }
    known |= attention_peers.ways(function)
    return {OURS: load} | {name: known[name] for name in peers}


def peers_of(pair: Pair, peers: Sequence[str]) -> list[str]:
    """Those of the peers that compute a case."""
    able = pair.peers or (EAGER, INDUCTOR, AUTOTUNE)
    return [name for name in peers if name in able]


def start(
    names: dict[str, Any], case: Case, inputs: Sequence[torch.Tensor], clock: Clock
) -> list[Runner]:
    """The first calls, which compile or load, and whether they are right.

    Args:
        names: by peer what gives the function to call.
        case: what is computed.
        inputs: its arguments.
        clock: says when a call is done.
    """
    expected = _in_double(function_of(case.program), inputs)
    runners = []
    # Once for all: it also drops what the peers before have compiled.
    torch._dynamo.reset()
    for name, way in names.items():
        score = Score(name)
        runners.append(Runner(score))
        try:
            begin = time.perf_counter()
            call = way()
            result = call(*inputs)
            clock.synchronize()
            score.first_call = time.perf_counter() - begin
        except Exception as error:
            # Whatever a compiler raises: the others are measured nevertheless.
            score.problem = f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
            continue
        score.error = max_error(_numpy(result), expected, case.branches)
        del result
        runners[-1].call = _closed(call, inputs)
    return runners


def _closed(call: Call, inputs: Sequence[torch.Tensor]) -> Callable[[], Any]:
    return lambda: call(*inputs)


def _in_double(function: Call, inputs: Sequence[torch.Tensor]) -> np.ndarray[Any, Any]:
    return _numpy(function(*(x.double() for x in inputs)))


def _numpy(result: Any) -> np.ndarray[Any, Any]:
    """The results of a call, one behind the other if there are several."""
    parts = [part.cpu() for part in _tensors(result)]
    return joined(parts if len(parts) > 1 else parts[0])


def _tensors(result: Any) -> tuple[torch.Tensor, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def take_turns(
    runners: Sequence[Runner], case: Case, clock: Clock, pace: Pace, copy: Callable[[], float]
) -> None:
    """Rounds of turns, in an order that rotates. Ratios and shares are those of one round.

    Args:
        runners: those without a ``call`` are left out; the first one is ours.
        case: what is computed.
        clock: times the calls.
        pace: how many turns of what length.
        copy: the copy bandwidth now, in bytes per second.
    """
    able = [runner for runner in runners if runner.call is not None]
    for number in range(pace.rounds):
        rate = copy()
        medians: dict[str, float] = {}
        turn = number % max(len(able), 1)
        for runner in [*able[turn:], *able[:turn]]:
            assert runner.call is not None
            samples = clock.samples(runner.call, pace.turn_s)
            runner.score.samples += samples
            medians[runner.score.peer] = statistics.median(samples)
        for runner in able:
            peer = runner.score.peer
            if peer != OURS and OURS in medians:
                runner.score.ratios.append(medians[peer] / medians[OURS])
            runner.score.shares.append(case.floor_bytes / rate / medians[peer])


def copying(bundle: Bundle, size: str, clock: Clock, seconds: float) -> Callable[[], float]:
    """A function that measures the copy bandwidth: bytes per second, read and written.

    The copy is a kernel of this compiler, too, into memory that PyTorch gives out.
    """
    case: Case = getattr(COPY, size)
    program = polyblocks.load(bundle.program(COPY, size))
    inputs = inputs_on(clock, case)
    call = _closed(program, inputs)

    def measured() -> float:
        return case.floor_bytes / statistics.median(clock.samples(call, seconds))

    return measured


def host_seconds(call: Callable[[], Any], clock: Clock, calls: int = _CALLS) -> float:
    """Seconds that the host spends on a call: the least of five series that do not wait."""
    found = []
    for _ in range(5):
        clock.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - begin) / calls)
    clock.synchronize()
    return min(found)


def overheads(bundle: Bundle, clock: Clock, peers: Sequence[str], calls: int = _CALLS) -> Json:
    """By peer the host's seconds per call of a function of 16 elements; null where it cannot."""
    inputs = inputs_on(clock, TINY.small)
    load = lambda: polyblocks.load(bundle.program(TINY, "small"))  # noqa: E731
    names = ways(function_of(TINY.small.program), load, peers)
    runners = start(names, TINY.small, inputs, clock)
    return {
        runner.score.peer: host_seconds(runner.call, clock, calls) if runner.call else None
        for runner in runners
    }


def recorded(call: Callable[[], Any], clock: Clock, calls: int = _CALLS) -> Json:
    """A program recorded in a graph of PyTorch's and replayed: is it right, what does it cost.

    Keys: ``same`` (the replay computes what the call does), ``call`` and ``replay`` (seconds of
    the host per call), or ``problem``.
    """
    if clock.device == "cpu":
        return {"problem": "a graph needs a GPU"}
    try:
        expected = [part.clone() for part in _tensors(call())]
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            call()
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = call()
        for part in _tensors(result):
            part.zero_()
        graph.replay()
        torch.cuda.synchronize()
        return {
            "same": all(map(torch.equal, _tensors(result), expected)),
            "call": host_seconds(call, clock, calls),
            "replay": host_seconds(graph.replay, clock, calls),
        }
    except Exception as error:
        return {"problem": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]}


@torch.no_grad()
def run(
    bundle: Bundle,
    pairs: Sequence[Pair],
    clock: Clock,
    peers: Sequence[str] = PEERS,
    pace: Pace | None = None,
    tell: Callable[[str], None] = print,
    limit: float = math.inf,
) -> Json:
    """All results, as :mod:`bench.report` has them, and ``gpu``, ``host`` and ``graphs``.

    Args:
        bundle: what was built.
        pairs: the cases to run.
        clock: where, and how it is timed.
        peers: the others.
        pace: how long it takes.
        tell: gets a line per case.
        limit: seconds after which no further case is begun.
    """
    begin = time.perf_counter()
    pace = pace or Pace()
    size = "small" if bundle.simulated else "large"
    results = report.header(pace.rounds, threads=0)
    results["gpu"] = {
        "name": clock.name,
        "target": bundle.facts["target"],
        "archs": bundle.facts["archs"],
        "versions": {"torch": torch.__version__, "polyblocks": polyblocks.__version__},
    }
    rates: list[float] = []
    copy = copying(bundle, size, clock, pace.turn_s)

    def rate() -> float:
        rates.append(copy())
        return rates[-1]

    for pair in pairs:
        case: Case = getattr(pair, size)
        if time.perf_counter() - begin > limit:
            tell(f"no time left for {case.name}")
            continue
        tell(f"measuring {case.name}")
        inputs = inputs_on(clock, case)
        load = _loader(bundle, pair, size)
        names = ways(function_of(case.program), load, peers_of(pair, peers))
        runners = start(names, case, inputs, clock)
        if not bundle.simulated:
            runners[0].score.predicted = predicted_seconds(bundle.program(pair, size))
        take_turns(runners, case, clock, pace, rate)
        rows = [report.row(runner.score, case.tolerance) for runner in runners]
        report.add_case(results, case, rows)
        if runners[0].call is not None:
            results.setdefault("graphs", {})[case.name] = recorded(runners[0].call, clock, 20)
        del inputs, runners
    tell("measuring the host's part")
    calls = 3 if bundle.simulated else _CALLS
    results["host"] = overheads(bundle, clock, peers_of(TINY, peers), calls)
    best = max(rates, default=math.nan)
    memory = {"main": {"copy": best}} if rates else None
    ceilings = {"threads": 0, "peaks": {}, "memory": memory} if memory else None
    report.finish(results, ceilings)
    return results


def predicted_seconds(program: Path) -> float | None:
    """What the cost model expects of one call on this GPU; None if it does not say."""
    from bench.gpu.device import chosen

    try:
        _, manifest = chosen(program)
    except PolyBlocksError:
        return None  # told where it was loaded to be run
    estimates = [kernel["estimate"] for kernel in manifest["kernels"]]
    if any("predicted_seconds" not in (e or {}) for e in estimates):
        return None
    return sum(estimate["predicted_seconds"] for estimate in estimates)


def _loader(bundle: Bundle, pair: Pair, size: str) -> Callable[[], Call]:
    return lambda: polyblocks.load(bundle.program(pair, size))

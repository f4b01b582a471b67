"""Cost of a nest on a target: work, bytes per memory level, and the time of the slowest.

The cost model of one schedule: ``time = max over resources (work / rate)``, the resources being
every memory level and the arithmetic units, plus what it takes to start and join the threads. Of a
nest that says how it is written in vectors, the time is that of its loops, see
:mod:`polyblocks.affine.cost.phase_times`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any

from polyblocks.affine import operation_cost as cost
from polyblocks.affine.access import stride_along, strides
from polyblocks.affine.analysis.footprints import Level, analyze
from polyblocks.affine.cost import rates
from polyblocks.affine.cost.constants import CACHE_SHARE
from polyblocks.affine.cost.execution_order import in_execution_order
from polyblocks.affine.cost.phase_times import COMPUTE, predict
from polyblocks.affine.cost.traffic import traffic_of_loops
from polyblocks.affine.expr import Var
from polyblocks.affine.model import (
    Access,
    AffineAccess,
    Buffer,
    For,
    Index,
    IndirectAccess,
    Load,
    Nest,
    Node,
    Op,
    Value,
)
from polyblocks.target import MemoryLevel, TargetDescription

#: The resource of starting and joining threads.
LAUNCH = "launch"
#: The resource of waiting for loads, for barriers and for other threads, where that is predicted.
LATENCY = "latency"
#: Keys of an estimate in JSON that are absent where the prediction is unknown.
PREDICTION = ("predicted_seconds", "bound")


@dataclass(frozen=True)
class Estimate:
    """The cost model's numbers for one nest, or for several that run one after the other.

    Attributes:
        iterations: iterations of the innermost loops.
        flops: floating-point operations; elementary functions count as many as their polynomials.
        floor_bytes: compulsory: every element that it reads loaded once, every one that it writes
            stored once.
        moved_bytes: what it moves between the buffers' homes (the memory level that each is found
            in when the nest begins) and the level above; ``floor_bytes`` or more.
        bytes: memory level -> bytes that are loaded from it and stored to it.
        seconds: resource (a memory level, ``compute``, ``launch``) -> time; only those with a
            rate in the target's description.
        predicted_seconds: the largest of them, or the sum over the loops of a nest of what takes
            longest there, and ``launch`` on top; None if a rate is unknown.
        bound: the resource with the largest time; None if a rate is unknown.
    """

    iterations: int
    flops: int
    floor_bytes: int
    moved_bytes: int
    bytes: dict[str, int]
    seconds: dict[str, float]
    predicted_seconds: float | None
    bound: str | None

    def to_json(self) -> dict[str, Any]:
        """JSON values; times with four digits. None has no key."""
        numbers = {
            "iterations": self.iterations,
            "flops": self.flops,
            "floor_bytes": self.floor_bytes,
            "moved_bytes": self.moved_bytes,
            "bytes": self.bytes,
            "seconds": {name: _short(s) for name, s in self.seconds.items()},
        }
        if self.predicted_seconds is not None:
            numbers |= {"predicted_seconds": _short(self.predicted_seconds), "bound": self.bound}
        return numbers


def combine(estimates: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The numbers of several nests together, as :meth:`Estimate.to_json` gives them.

    None without any.
    """
    if not estimates:
        return None
    total: dict[str, Any] = dict(estimates[0])
    known = all("predicted_seconds" in e for e in estimates)
    for e in estimates[1:]:
        for key in ("iterations", "flops", "floor_bytes", "moved_bytes"):
            total[key] = total[key] + e[key]
        for key in ("bytes", "seconds"):
            total[key] = {name: total[key][name] + value for name, value in e[key].items()}
    total["seconds"] = {name: _short(s) for name, s in total["seconds"].items()}
    if known:
        total["predicted_seconds"] = _short(sum(e["predicted_seconds"] for e in estimates))
        total["bound"] = max(estimates, key=lambda e: e["predicted_seconds"])["bound"]
    else:
        total = {key: value for key, value in total.items() if key not in PREDICTION}
    return total


def without_work(estimate: dict[str, Any]) -> dict[str, Any]:
    """An estimate of the same form, of what takes no time."""
    nothing = dict.fromkeys(("iterations", "flops", "floor_bytes", "moved_bytes"), 0)
    tables = {key: dict.fromkeys(estimate[key], 0) for key in ("bytes", "seconds")}
    seconds = {"predicted_seconds": 0.0} if "predicted_seconds" in estimate else {}
    return estimate | nothing | tables | seconds


def mapped(
    estimate: dict[str, Any], prediction: Mapping[str, float | None], main: str
) -> dict[str, Any]:
    """An estimate with its prediction replaced by the one that chose its kernel.

    A nest's traffic and work do not depend on its mapping; its time does. Kernels are chosen by
    their requests to memory, which caches serve in part; compulsory traffic comes from the main
    memory and takes its time whatever is chosen.

    Args:
        estimate: as :meth:`Estimate.to_json` gives it.
        prediction: ``memory_seconds``, ``compute_seconds`` and ``latency_seconds``; None for what
            is unknown.
        main: name of the main memory.
    """
    out = {key: value for key, value in estimate.items() if key not in PREDICTION}
    parts = {name: prediction[f"{name}_seconds"] for name in ("memory", COMPUTE, LATENCY)}
    levels = {name: s for name, s in estimate["seconds"].items() if name in estimate["bytes"]}
    if parts["memory"] is not None and estimate["bytes"].get(main):
        # Tiles of a kernel may need less than the nest's own order, and nothing less than this.
        once = min(1.0, estimate["floor_bytes"] / estimate["bytes"][main])
        parts["memory"] = max(parts["memory"], levels.get(main, 0.0) * once)
    busy = {name: s for name in (COMPUTE, LATENCY) if (s := parts[name]) is not None}
    out["seconds"] = levels | {name: _short(s) for name, s in busy.items()}
    if LAUNCH in estimate["seconds"]:
        out["seconds"][LAUNCH] = estimate["seconds"][LAUNCH]
    known = {name: s for name, s in parts.items() if s is not None}
    if len(known) == len(parts):
        bound = max(known, key=lambda name: known[name])
        out |= {
            "predicted_seconds": _short(rates.overlapped(*known.values())),
            "bound": main if bound == "memory" else bound,
        }
    return out


def scaled(estimate: dict[str, Any], times: int) -> dict[str, Any]:
    """The numbers of ``times`` runs of a nest, from those of one by :meth:`Estimate.to_json`."""
    out = dict(estimate)
    for key in ("iterations", "flops", "floor_bytes", "moved_bytes"):
        out[key] = estimate[key] * times
    out["bytes"] = {name: value * times for name, value in estimate["bytes"].items()}
    out["seconds"] = {name: _short(s * times) for name, s in estimate["seconds"].items()}
    if "predicted_seconds" in estimate:
        out["predicted_seconds"] = _short(estimate["predicted_seconds"] * times)
    return out


class Estimator:
    """Estimates nests of one program.

    Args:
        target: its rates and sizes.
        buffers: all buffers of the program. Arguments are found in a cache only if
            all of them fit there together, since the whole program ran since the last call; an
            intermediate buffer is found where it fits with the others of its nest. Of what is
            found in the main memory the last cache keeps a part.
        launch: seconds that a parallel nest takes beside its work; by default those of a region.
        written: whether loops say how they are written in vectors; otherwise it is guessed.
    """

    def __init__(
        self,
        target: TargetDescription,
        buffers: Iterable[Buffer],
        launch: float | None = None,
        written: bool = False,
    ) -> None:
        self._target = target
        self._team = target.parallel_level("team") or next(iter(target.parallel), None)
        overhead = self._team.overhead if self._team is not None else 0.0
        self._launch = overhead if launch is None else launch
        simd = target.parallel_level("simd")
        self._lanes = simd.size if simd is not None else 1
        self._line = target.line
        self._in_a_word = {unit.name: unit.in_a_word for unit in target.matrix_units}
        self._unknown = rates.unknown_rates(target)
        self._written = written and not self._unknown
        self._all = sum(max(b.nbytes, 0) for b in set(buffers) if b.viewed is None)
        self._main = len(target.memory) - 1
        # Decisions between kinds of nests hope for less.
        self._lost = 1 - rates.kept_share(target, self._all) if self._written else 1.0

    def estimate(self, nest: Nest) -> Estimate:
        """The numbers of one nest."""
        body = in_execution_order(nest.body) if self._written else nest.body
        root = analyze(body, self._line)
        team = self._team
        parallel = next((level for level in root.walk() if level.parallel), None)
        available = team.size if team is not None else 1
        threads = max(1, min(available, parallel.trips)) if parallel is not None else 1
        work = _Work(0 if self._written else self._lanes, self._in_a_word)
        work.add(body, root, 1.0)
        together = sum(b.nbytes for b in {b.base for b in root.whole} if b.kind == "alloc")
        home = {b: self._home(b, together) for b in root.whole}
        # Traffic of each level with the one above it.
        levels = range(1, len(self._target.memory))
        traffic = {k: root.traffic(self._capacity(k - 1, threads)) for k in levels}
        moved = {
            # Data that is resident in a faster level does not come from here.
            level.name: round(
                sum(
                    n if root.whole[b].is_passed else n * self._share_of_traffic(home[b], k)
                    for b, n in traffic[k].items()
                )
            )
            if k
            else round(work.accessed)
            for k, level in enumerate(self._target.memory)
        }
        seconds: dict[str, float] = {}
        for level in self._target.memory:
            rate = rates.bandwidth(self._target, level, threads)
            if rate is not None:
                seconds[level.name] = moved[level.name] / rate
        launch = self._launch if threads > 1 else 0.0
        bound, predicted = None, None
        if self._written:
            traffic_of = [
                traffic_of_loops(
                    root,
                    self._capacity(k - 1, threads),
                    partial(self._part, home, k),
                    self._line if k == self._main else 0,
                )
                for k in levels
            ]
            uneven = 1.0 if parallel is None else _unevenness(parallel.trips, threads)
            predicted, busy = predict(root, body, self._target, threads, traffic_of, uneven)
            seconds.update(busy)
        else:
            arithmetic = rates.compute_seconds(self._target, work.operations)
            if arithmetic is not None:
                seconds[COMPUTE] = arithmetic * available / threads
            if not self._unknown:
                predicted = max(seconds.values())
        if predicted is not None:
            bound = max(seconds, key=lambda name: seconds[name])
            predicted += launch
        seconds[LAUNCH] = launch
        touched = root.whole.items()
        compulsory = {b: t.read + t.written for b, t in touched if b.kind != "local"}
        return Estimate(
            iterations=round(work.iterations),
            flops=round(work.flops),
            floor_bytes=sum(compulsory.values()),
            moved_bytes=sum(
                max(traffic[home[b]][b] if home[b] else 0, n) for b, n in compulsory.items()
            ),
            bytes=moved,
            seconds=seconds,
            predicted_seconds=predicted,
            bound=bound,
        )

    def _home(self, buffer: Buffer, together: int) -> int:
        """Index of the memory level where a buffer is found when the nest begins.

        Args:
            buffer: one that the nest touches.
            together: bytes of all intermediate buffers that it touches.
        """
        nbytes = {"alloc": together, "local": buffer.base.nbytes}.get(buffer.base.kind, self._all)
        return rates.found_in(self._target, nbytes)

    def _part(self, home: Mapping[Buffer, int], k: int, buffer: Buffer) -> float:
        return self._share_of_traffic(home[buffer], k)

    def _share_of_traffic(self, home: int, k: int) -> float:
        """The part of data found in level ``home`` that comes from level ``k`` or behind it."""
        return self._lost if home == k == self._main else float(home >= k)

    def _capacity(self, k: int, threads: int) -> int:
        """Bytes of a memory level for the data of one thread."""
        level: MemoryLevel = self._target.memory[k]
        return level.size // CACHE_SHARE // min(threads, level.shared_by)


def _unevenness(iterations: int, threads: int) -> float:
    """Iterations of the thread with most of them, over those of all threads on average."""
    return -(-iterations // threads) * threads / iterations if iterations else 1.0


@dataclass
class _Work:
    """Sums over all iterations.

    Attributes:
        lanes: elements of a vector instruction; 0 where operations are not asked for.
        in_a_word: numbers that a unit multiplies at a time, by its name.
        iterations: of the innermost loops.
        flops: floating-point operations.
        operations: lanes of vector instructions, idle ones among them.
        accessed: bytes loaded into registers and stored from them.
    """

    lanes: int
    in_a_word: Mapping[str, int]
    iterations: float = 0.0
    flops: float = 0.0
    operations: float = 0.0
    accessed: float = 0.0
    _loops: list[tuple[Var, float]] = field(default_factory=list)

    def add(self, nodes: list[Node], level: Level, times: float) -> None:
        """Add the nodes of a loop, or of the nest itself, that run ``times`` times."""
        straight: list[Node] = [n for n in nodes if not isinstance(n, For)]
        loops = [n for n in nodes if isinstance(n, For)]
        if not loops:
            self.iterations += times
        if self.lanes:
            wide = 1.0
            if self._loops and not loops:
                wide = lanes_per_element(straight, *self._loops[-1], self.lanes)
            self.operations += times * wide * cost.operations(straight)
        for node in straight:
            if isinstance(node, Op):
                self.flops += times * cost.flops(node, self.in_a_word)
            elif isinstance(node, Access):
                self.accessed += self._moves(node, times) * node.buffer.bytes_per_element
        for loop, inner in zip(loops, level.inner, strict=True):
            self._loops.append((loop.var, inner.mean))
            self.add(loop.body, inner, times * inner.mean)
            self._loops.pop()

    def _moves(self, node: Access, times: float) -> float:
        """How often an access runs once it has left the loops that do not move it."""
        if not isinstance(node, AffineAccess):
            return times
        used = {var for e in node.index for var in e.variables()}
        for var, trips in reversed(self._loops):
            if var in used:
                break
            times /= max(trips, 1.0)
        return times


def lanes_per_element(nodes: Iterable[Node], var: Var, trips: float, lanes: int) -> float:
    """Lanes that one iteration of an innermost loop takes.

    1 where its accesses are contiguous along the loop and it fills whole vectors; ``lanes`` where
    every iteration is computed by itself.
    """
    walks: dict[Value, int | None] = {}
    for node in nodes:
        if isinstance(node, Index):
            walks[node.result] = node.expr.coefficient(var)
            continue
        if isinstance(node, IndirectAccess):
            # Whole rows are copied in vectors, whatever row it is.
            *rows, column = [walks.get(v, 0) for v in node.index] or [0]
            if any(row != 0 for row in rows) or column not in (0, 1):
                return float(lanes)
        elif isinstance(node, AffineAccess) and not _contiguous(node, var):
            return float(lanes)
        moved = _depends(node, var, walks)
        walks.update(dict.fromkeys(node.defines, None if moved else 0))
    return ceil(trips / lanes) * lanes / trips if trips else 1.0


def _depends(node: Node, var: Var, walks: dict[Value, int | None]) -> bool:
    """Whether what a node defines differs among the iterations of ``var``."""
    if isinstance(node, Load):
        return any(var in set(e.variables()) for e in node.index)
    return any(walks.get(v, 0) != 0 for v in node.uses)


def _contiguous(node: AffineAccess, var: Var) -> bool:
    """Whether neighbouring iterations access the same element or neighbouring ones."""
    moved = [d for d, e in enumerate(node.index) if var in set(e.variables())]
    if not moved:
        return True
    if moved == [len(node.index) - 1] and (factor := node.index[-1].coefficient(var)) is not None:
        return factor * strides(node.buffer)[-1] == 1
    return stride_along(node.buffer, node.index, var) in (0, 1)


def _short(seconds: float) -> float:
    return float(f"{seconds:.4g}")

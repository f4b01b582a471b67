"""One case: every peer compiles it, its result is checked, then the peers take turns."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench import arrays, duels
from bench.engines import OURS, joined, takes_part, written_in
from bench.errors import max_error
from bench.silence import Silence
from bench.table import Arrays, Case

#: Seconds of silence before a peer's turn: OpenMP's threads spin 0.2 s after their last region
#: and would take the cores from whoever comes next.
IDLE_S = 0.3

#: Seconds of calls per peer and turn.
TURN_S = 0.15


class Peer(Protocol):
    """What is asked of :class:`bench.crew.Member`."""

    name: str

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Give an order, wait for the answer."""


@dataclass
class Score:
    """What was measured of one peer on one case.

    Attributes:
        peer: its name.
        first_call: seconds of the first call, which compiles.
        overhead: seconds of it that the framework's own capture takes; None if not known.
        samples: seconds of each later call.
        error: see :func:`bench.errors.max_error`; infinite for wrong shapes and NaNs.
        predicted: seconds of a call that its own model expects; None if there is none.
        ratios: of a rival, how many times as long as ours it took in each duel.
        shares: of ours, the part of the copy bandwidth that it reached in each turn.
        problem: why there is nothing, in one line.
    """

    peer: str
    first_call: float = math.nan
    overhead: float | None = None
    samples: list[float] = field(default_factory=list)
    error: float = math.nan
    predicted: float | None = None
    ratios: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True)
class Pace:
    """How long it takes.

    Attributes:
        rounds: turns of each peer.
        turn_s: seconds of calls in a turn.
        idle_s: seconds of silence before it.
        duels: further turns of ours beside each of the fastest rivals, and beside copies.
        decided: there are no duels where one is so many times as fast as the other anyway, and a
            rival that takes so many times as long as the fastest peer has no further turns.
    """

    rounds: int = 5
    turn_s: float = TURN_S
    idle_s: float = IDLE_S
    duels: int = 5
    decided: float = math.inf


def compare(
    case: Case,
    peers: Sequence[Peer],
    folder: Path,
    pace: Pace = Pace(),
    silence: Silence | None = None,
    copy: Callable[[], float | None] = lambda: None,
    ours: str = OURS,
) -> list[Score]:
    """Measure all peers on one case: turns of all, then duels of ours with the fastest.

    Args:
        case: what to compute.
        peers: who computes it.
        folder: where arguments and results are exchanged; emptied at the end.
        pace: how long it takes.
        silence: watches the machine before each turn.
        copy: measures the rate of copying, for a case that is held against it.
        ours: the peer that the others are compared with.
    """
    silence = silence or Silence()
    folder.mkdir(parents=True)
    inputs = case.inputs()
    for i, value in enumerate(inputs):
        np.save(folder / f"input{i:02d}.npy", value)
    expected = reference(case, inputs)
    del inputs
    peers = [peer for peer in peers if takes_part(peer.name, case.program)]
    scores = [_first_call(case, peer, folder, expected, pace, silence) for peer in peers]
    shutil.rmtree(folder)
    running = [
        (peer, score) for peer, score in zip(peers, scores, strict=True) if not score.problem
    ]
    for turn in range(pace.rounds):
        # Nobody always comes after the same other one.
        shift = turn % max(1, len(running))
        for peer, score in running[shift:] + running[:shift]:
            if score.peer == ours or not duels.beaten(score, running, pace.decided):
                duels.take_turn(peer, score, pace, silence)
    duels.fight(running, pace, silence, ours)
    if case.copy_share:
        duels.race_copies(running, case.floor_bytes, copy, pace, silence, ours)
    for peer, _ in running:
        peer.ask("drop")
    return scores


def reference(case: Case, inputs: Arrays) -> np.ndarray[Any, Any]:
    """The case's result in float64: PyTorch's own, from arguments that are converted first."""
    import torch

    arguments = [arrays.tensor(x) for x in inputs]
    arguments = [x.double() if x.is_floating_point() else x for x in arguments]
    function = written_in("in_torch", case.program)
    if isinstance(function, torch.nn.Module):
        function = function.double()
    with torch.no_grad():
        result = joined(function(*arguments))
    return result.astype(np.float64)


def _first_call(
    case: Case,
    peer: Peer,
    folder: Path,
    expected: np.ndarray[Any, Any],
    pace: Pace,
    silence: Silence,
) -> Score:
    score = Score(peer.name)
    silence.keep(pace.idle_s)
    answer = peer.ask("prepare", program=case.program, folder=str(folder))
    score.problem = answer.get("problem", "")
    if not score.problem:
        score.first_call = answer["first_call"]
        score.overhead = answer.get("overhead")
        score.predicted = answer.get("predicted")
        result = folder / f"{peer.name}.npy"
        score.error = max_error(arrays.load(result), expected, case.branches)
        result.unlink()
    return score

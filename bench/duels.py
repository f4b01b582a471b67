"""Duels: ours and a rival in turns right after each other.

A machine that is shared changes its speed within seconds, by more than what separates two peers
that are both bound by memory; the fastest of many peers' fastest calls is then whoever was lucky.
Neighbouring turns see nearly the same machine, so their ratio says more, and the median of a few
such ratios more still. What is held against the copy of the main memory duels with that.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bench.engines import OURS, VARIANTS
from bench.silence import Silence

if TYPE_CHECKING:
    from bench.contest import Pace, Peer, Score

#: Who takes at most so many times as long as the fastest rival may be the fastest.
NEAR = 1.5

#: Rivals that are fought at most, the fastest first.
RIVALS = 4

Running = Sequence[tuple["Peer", "Score"]]


def fight(running: Running, pace: Pace, silence: Silence, ours: str = OURS) -> None:
    """Let ours duel with the fastest rivals; their scores get :attr:`Score.ratios`.

    Of ours and its variants the one that was the fastest so far takes part.

    Args:
        running: the peers, and what was measured of them in the rounds.
        pace: how many duels with each rival, and how long a turn is.
        silence: before every turn.
        ours: name of ours.
    """
    us = fastest_way(running, ours)
    if us is None or decided(us[1], rivals(running, ours), pace.decided):
        return
    for number in range(pace.duels):
        for rival in rivals(running, ours):
            # Nobody is always the second one.
            first, second = (us, rival) if number % 2 else (rival, us)
            times = {s.peer: take_turn(p, s, pace, silence) for p, s in (first, second)}
            mine, theirs = times[us[1].peer], times[rival[1].peer]
            if mine is not None and theirs is not None:
                rival[1].ratios.append(theirs / mine)


def fastest_way(running: Running, ours: str) -> tuple[Peer, Score] | None:
    """Ours, or a variant of it that was faster so far; None if ours failed."""
    able = [(p, s) for p, s in running if not s.problem and s.samples]
    own = [pair for pair in able if pair[1].peer == ours]
    if own and ours == OURS:
        own += [pair for pair in able if pair[1].peer in VARIANTS]
    return min(own, key=lambda pair: min(pair[1].samples), default=None)


def decided(ours: Score, fastest: Running, times: float) -> bool:
    """Whether ours takes more than ``times`` as long as the fastest rival, or the reverse."""
    if not fastest or not ours.samples:
        return False
    ratio = min(ours.samples) / min(fastest[0][1].samples)
    return max(ratio, 1 / ratio) > times


def beaten(score: Score, running: Running, times: float) -> bool:
    """Whether a peer takes more than ``times`` as long as the fastest one so far, no variant."""
    able = (s for _, s in running if s.samples and s.peer not in VARIANTS)
    fastest = min((min(s.samples) for s in able), default=math.inf)
    return bool(score.samples) and min(score.samples) > times * fastest


def rivals(running: Running, ours: str = OURS) -> list[tuple[Peer, Score]]:
    """All but ours that are near the fastest of them, at most :data:`RIVALS`."""
    own = (ours, *VARIANTS)
    others = [(p, s) for p, s in running if s.peer not in own and not s.problem and s.samples]
    others.sort(key=lambda pair: min(pair[1].samples))
    return [pair for pair in others if min(pair[1].samples) <= NEAR * min(others[0][1].samples)][
        :RIVALS
    ]


def race_copies(
    running: Running,
    floor_bytes: int,
    copy: Callable[[], float | None],
    pace: Pace,
    silence: Silence,
    ours: str = OURS,
) -> None:
    """Hold ours against copies before and after each turn; its score gets :attr:`Score.shares`.

    Args:
        running: the peers; nothing happens if ours is not among them.
        floor_bytes: what the case moves at least.
        copy: measures the rate of copying, bytes per second read and written.
        pace: how many turns.
        silence: before every turn.
        ours: name of ours.
    """
    for peer, score in running:
        if score.peer != ours or score.problem:
            continue
        before = copy()
        for _ in range(pace.duels):
            seconds = take_turn(peer, score, pace, silence)
            after = copy()
            if seconds is not None and before and after:
                score.shares.append(floor_bytes / (seconds * (before + after) / 2))
            before = after


def take_turn(peer: Peer, score: Score, pace: Pace, silence: Silence) -> float | None:
    """One turn of one peer, kept in its score; the median call, None if it failed."""
    silence.keep(pace.idle_s)
    answer = peer.ask("turn", seconds=pace.turn_s)
    samples = answer.get("samples", [])
    score.samples += samples
    score.problem = score.problem or answer.get("problem", "")
    return statistics.median(samples) if samples else None

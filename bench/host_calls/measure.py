"""CPU time of the calling thread in calls of several functions that take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.orders import in_one_line

Json = dict[str, Any]

#: Seconds of calls in a turn, and the fewest and most calls.
TURN_S = 0.02
LEAST, MOST = 3, 20_000

#: Relative error of a right result: the sums of a thousand numbers differ in their order.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Call:
    """A compiled function and its arguments."""

    function: Callable[..., Any]
    positional: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)

    def once(self) -> Any:
        """Call it."""
        return self.function(*self.positional, **self.keywords)


@dataclass(frozen=True)
class Peer:
    """One way to run a case; ``make`` compiles it, as far as that is not left to the first call."""

    name: str
    make: Callable[[], Call]


def seconds_per_call(call: Call, number: int, wait: Callable[[Any], Any]) -> float:
    """Of CPU time of this thread; ``wait`` returns when the last result is there."""
    function, positional, keywords = call.function, call.positional, call.keywords
    begin = time.thread_time()
    for _ in range(number):
        result = function(*positional, **keywords)
    wait(result)
    return (time.thread_time() - begin) / number


def compare(
    peers: Sequence[Peer],
    expected: list[np.ndarray[Any, Any]],
    arrays_of: Callable[[Any], list[np.ndarray[Any, Any]]],
    wait: Callable[[Any], Any],
    rounds: int,
    turn_s: float = TURN_S,
) -> list[Json]:
    """Compile, check the first result, then take turns.

    Args:
        peers: in the order of the table.
        expected: what the first call is to return.
        arrays_of: the arrays in a result.
        wait: returns when a result is there.
        rounds: turns of each.
        turn_s: seconds of calls in a turn.

    Returns:
        For each peer ``peer``, and ``us`` (the least of the rounds) or a ``problem``.
    """
    rows: list[Json] = [{"peer": peer.name} for peer in peers]
    running: list[tuple[Json, Call, int]] = []
    for peer, row in zip(peers, rows, strict=True):
        try:
            call = peer.make()
            check(arrays_of(call.once()), expected)
            # What is decided at the second or third call is behind us then.
            guess = min(seconds_per_call(call, 20, wait) for _ in range(2))
            running.append((row, call, int(min(MOST, max(LEAST, turn_s / max(guess, 1e-9))))))
        except Exception as error:  # a peer that cannot is a row that says why
            row["problem"] = in_one_line(error)
    for turn in range(rounds):
        # No peer always comes after the same other one.
        shift = turn % max(1, len(running))
        for row, call, number in running[shift:] + running[:shift]:
            us = seconds_per_call(call, number, wait) * 1e6
            row["us"] = min(us, row.get("us", us))
    return rows


def check(found: list[np.ndarray[Any, Any]], expected: list[np.ndarray[Any, Any]]) -> None:
    """
    Raises:
        ValueError: the results are not those that are expected.
    """
    shapes = [np.shape(x) for x in found]
    if shapes != [x.shape for x in expected]:
        raise ValueError(f"wrong result: expected arrays of {[x.shape for x in expected]}, "
                         f"got {shapes}")  # fmt: skip
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if not np.allclose(one, other, rtol=TOLERANCE, atol=0):
            raise ValueError(f"wrong result {number}: expected {other}, got {one}")

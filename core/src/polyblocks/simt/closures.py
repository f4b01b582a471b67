"""The closures that segments are made of: ops on registers, and ends that move lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks.simt.program import Step

#: Makes the end of a segment once every segment has its number.
End = Callable[[dict[int, int]], Step]
#: (from, to) registers of the arguments of a block.
Moves = list[tuple[int, int]]


def plain(run: Callable[..., Any], ins: list[int], out: int, site: int) -> Step:
    """An op whose result is used in its own segment only: no lane keeps an older value."""
    if len(ins) == 1:
        (a,) = ins

        def unary(m: Any, r: list[Any]) -> None:
            m.site = site
            r[out] = run(m, r[a])

        return unary
    if len(ins) == 2:
        a, b = ins

        def binary(m: Any, r: list[Any]) -> None:
            m.site = site
            r[out] = run(m, r[a], r[b])

        return binary

    def step(m: Any, r: list[Any]) -> None:
        m.site = site
        r[out] = run(m, *[r[i] for i in ins])

    return step


def merging(run: Callable[..., Any], ins: list[int], out: int, site: int) -> Step:
    """An op whose result outlives its segment: lanes that do not execute keep theirs."""

    def step(m: Any, r: list[Any]) -> None:
        m.site = site
        r[out] = m.merge(run(m, *[r[i] for i in ins]), r[out])

    return step


def several(run: Callable[..., Any], ins: list[int], outs: list[int], site: int) -> Step:
    """An op with several results."""

    def step(m: Any, r: list[Any]) -> None:
        m.site = site
        for out, value in zip(outs, run(m, *[r[i] for i in ins]), strict=True):
            r[out] = m.merge(value, r[out])

    return step


def holding(step: Step, held: list[int]) -> Step:
    """An op that goes on reading registers; see :meth:`GroupProducts.hold`."""

    def run(m: Any, r: list[Any]) -> None:
        step(m, r)
        m.products.hold(m, r, held)

    return run


def effect(run: Callable[..., Any], ins: list[int], site: int) -> Step:
    """An op without a result."""

    def step(m: Any, r: list[Any]) -> None:
        m.site = site
        run(m, *[r[i] for i in ins])

    return step


def _move(m: Any, r: list[Any], moves: Moves) -> None:
    values = [r[source] for source, _ in moves]
    for (_, to), value in zip(moves, values, strict=True):
        r[to] = m.merge(value, r[to])


def branch(moves: Moves, target: int) -> End:
    """The executing lanes go to one segment."""

    def end(number: dict[int, int]) -> Step:
        to = number[target]

        def step(m: Any, r: list[Any]) -> None:
            _move(m, r, moves)
            m.go(to)

        return step

    return end


def conditional(condition: int, moves: list[Moves], targets: list[int]) -> End:
    """Lanes where the condition holds go to the first target, the others to the second."""

    def end(number: dict[int, int]) -> Step:
        (yes, no), (to_yes, to_no) = moves, (number[t] for t in targets)

        def step(m: Any, r: list[Any]) -> None:
            outer, active = m.mask, m.active
            taken = outer & r[condition]
            count = int(np.count_nonzero(taken))
            if count:
                if count < active:
                    m.set_mask(taken, count)
                _move(m, r, yes)
                m.go(to_yes)
            if count < active:
                if count:
                    m.set_mask(outer & ~taken, active - count)
                _move(m, r, no)
                m.go(to_no)

        return step

    return end


def switch(value: int, cases: list[int], moves: list[Moves], targets: list[int]) -> End:
    """The first target is the default, the others belong to the cases."""

    def end(number: dict[int, int]) -> Step:
        numbers = [number[t] for t in targets]

        def step(m: Any, r: list[Any]) -> None:
            left, chosen = m.mask, r[value]
            for case, move, to in zip(cases, moves[1:], numbers[1:], strict=True):
                taken = left & (chosen == case)
                count = int(np.count_nonzero(taken))
                if count:
                    m.set_mask(taken, count)
                    _move(m, r, move)
                    m.go(to)
                    left = left & ~taken
            count = int(np.count_nonzero(left))
            if count:
                m.set_mask(left, count)
                _move(m, r, moves[0])
                m.go(numbers[0])

        return step

    return end


def unreachable(site: int) -> End:
    """Reports that it was reached, and ends the lanes."""

    def end(number: dict[int, int]) -> Step:
        def step(m: Any, r: list[Any]) -> None:
            m.site = site
            m.report("trap", "reaches what should not be reachable")
            m.leave()

        return step

    return end

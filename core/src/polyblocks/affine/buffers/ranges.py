"""Between which numbers the elements of arrays of integers lie."""

from __future__ import annotations

from polyblocks.affine.analysis.intervals import Interval, Intervals
from polyblocks.affine.element import dtype_of
from polyblocks.affine.model import AnyLoad, Buffer, For, Load, Node
from polyblocks.affine.rewrites.inlining import Candidate
from polyblocks.affine.users import Users

#: Arrays that are computed from each other, at most.
DEPTH = 8


class ArrayRanges:
    """The ranges of arrays of integers that one nest writes as a whole, found when asked for.

    Args:
        users: of all arrays. Nests may change later, but not what they store.
    """

    def __init__(self, users: Users) -> None:
        self._users = users
        self._known: dict[Buffer, Interval | None] = {}

    def of_load(self, load: AnyLoad, depth: int = DEPTH) -> Interval | None:
        """The range of what a load yields; None if that may be any number of its type."""
        found = self._of(load.buffer, depth)
        if found is not None and isinstance(load, Load) and load.where:
            return found.join(Interval(0, 0, whole=True))
        return found

    def _of(self, buffer: Buffer, depth: int) -> Interval | None:
        if buffer not in self._known:
            self._known[buffer] = None
            if depth and dtype_of(buffer.element).is_whole:
                self._known[buffer] = self._stored(buffer, depth - 1)
        return self._known[buffer]

    def _stored(self, buffer: Buffer, depth: int) -> Interval | None:
        candidate = Candidate.of(self._users, buffer)
        if candidate is None:
            return None
        known = Intervals(lambda load: self.of_load(load, depth))
        value = candidate.store.value
        found = _learned(candidate.producer.body, known).get(value)
        return None if found == known.any_of(value) else found


def _learned(nodes: list[Node], known: Intervals) -> Intervals:
    """The intervals when some code has run; of values in a loop, for all of its iterations."""
    for node in nodes:
        if isinstance(node, For):
            known = _after_loop(node, known)
        else:
            known.learn(node)
    return known


def _after_loop(loop: For, known: Intervals) -> Intervals:
    """As :func:`_learned`, of a loop.

    A carried integer starts as it is given and may be what an iteration makes of that; where this
    does not end soon, it may be any number. So may all others: that one is a number in an iteration
    does not say so for the iterations before.
    """
    carried = {
        argument: known.get(init)
        for argument, init in zip(loop.arguments, loop.inits, strict=True)
        if dtype_of(argument.type).is_whole
    }
    for rounds_left in (2, 1, 0):
        trial = known.copy()
        for argument in loop.arguments:
            found = carried.get(argument)
            trial.set(argument, found if found and rounds_left else trial.any_of(argument))
        trial = _learned(loop.body, trial)
        made = dict(zip(loop.arguments, map(trial.get, loop.yields), strict=True))
        joined = {a: found.join(made[a]) for a, found in carried.items()}
        if joined == carried:
            break
        carried = joined
    for result, argument in zip(loop.results, loop.arguments, strict=True):
        trial.set(result, trial.get(argument))
    return trial

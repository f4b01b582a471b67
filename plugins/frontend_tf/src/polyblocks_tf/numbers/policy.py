"""Which Python numbers among a function's arguments are constants, and which change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Where more numbers change they are data, as in a list, and constants as in a ``tf.function``.
MOST = 16


class Policy:
    """The numbers of one kind of call: which of them have had several values.

    A number is a constant at first. With its second value it is one that changes, unless the
    function needs its value to be traced: then it is a constant for ever, with a variant for each
    value.

    Args:
        first: the values of the first call.
    """

    def __init__(self, first: Sequence[float]) -> None:
        self._first = [repr(value) for value in first]
        self._changing: set[int] = set()
        self._constant: set[int] = set()

    def changing(self, values: Sequence[float]) -> tuple[int, ...]:
        """Places of the numbers that have changed so far, with this call, and may."""
        for place, (first, value) in enumerate(zip(self._first, values, strict=True)):
            # 0.0 and -0.0 are equal, and no NaN equals itself; their texts tell.
            if place not in self._changing and repr(value) != first:
                self._changing.add(place)
        found = self._changing - self._constant
        return tuple(sorted(found)) if len(found) <= MOST else ()

    def fix(self, places: Iterable[int]) -> None:
        """These are constants for ever."""
        self._constant.update(places)

"""Names and marks of calls that a team of threads runs."""

from __future__ import annotations

from typing import Any

from polyblocks.codegen.memory import constant_index
from polyblocks.codegen.walk import nested

#: Unit attribute on a call: the first two operands are an iteration range to share among threads.
TEAM_CALL = "polyblocks.team"
#: Unit attribute on a call: every thread of a team makes it. The last two operands are the number
#: of the thread and how many there are.
EACH_CALL = "polyblocks.each"
#: Integer attribute on an outlined kernel: iterations that threads share; 1 for a serial one.
TRIPS = "polyblocks.trips"


def trips_of(call: Any) -> int | None:
    """Iterations that a call of a parallel kernel shares, if that is a constant."""
    begin, end = constant_index(call.operands[0]), constant_index(call.operands[1])
    return None if begin is None or end is None else end - begin


def is_shared(op: Any) -> bool:
    """Whether an operation is a call whose iterations threads share; not if there is but one."""
    return TEAM_CALL in op.attributes and trips_of(op) != 1


def has_shared(op: Any) -> bool:
    """Whether there is such a call in an operation."""
    return any(is_shared(inner) for inner in nested(op))


class Names:
    """The symbols of a module."""

    def __init__(self, module: Any) -> None:
        self._taken = {
            op.operation.attributes["sym_name"].value
            for op in module.body.operations
            if "sym_name" in op.operation.attributes
        }

    def new(self, name: str) -> str:
        """A name like the given one that no symbol has; it is taken from now on."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

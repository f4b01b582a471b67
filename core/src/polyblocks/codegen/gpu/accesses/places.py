"""Places in memory: sums of what is computed and constants, for which accesses have room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.codegen.gpu.emission.code import Code


@dataclass(frozen=True)
class Sum:
    """A number that is computed, and a constant."""

    value: Any
    plus: int = 0

    def whole(self, code: Code) -> Any:
        """Both together."""
        return code.plus(self.value, self.plus)


@dataclass(frozen=True)
class Source:
    """A piece in memory.

    Attributes:
        of_rows, of_steps: elements from the beginning of the buffer (of type index) by which the
            row (or column) and the step move it.
        plus: offset added to both.
        ahead: the part of it that is the same for all threads, as ``of_steps`` is, where threads
            know the places of steps in windows; then the rest is not negative.
        there: whether the piece is there, else it is zero; None: always.
    """

    of_rows: Any
    of_steps: Any
    plus: int
    ahead: int
    there: Any

"""Which tiles of a contraction start copies, where some of these go past the registers.

While a stage of the operands is used, others are on their way to shared memory. The loop copies
tiles whose steps all exist, so that no condition precedes the start of a copy; a tile that starts
the copy of other steps is written out. Those at the end, which start none, are a loop of their own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CopySchedule:
    """The tiles along the steps, behind the first one.

    Attributes:
        last: number of the last tile.
        whole: whether all of its steps exist.
        in_flight: groups of copies that may be pending when a tile is used.
        loop: tiles of the loop that starts copies.
        written_out: tiles behind it that are no loop.
        quiet_from: the first tile that starts no copy.
        quiet_loop: tiles of the loop that starts none.
    """

    last: int
    whole: bool
    in_flight: int
    loop: range
    written_out: tuple[int, ...]
    quiet_from: int
    quiet_loop: range

    @classmethod
    def of(cls, steps: int, depth: int, stages: int) -> CopySchedule:
        """The schedule of a reduction.

        Args:
            steps: of it.
            depth: of a tile.
            stages: tiles of each operand in shared memory.
        """
        last, rest = divmod(steps - 1, depth)
        whole = rest == depth - 1
        end, quiet = max(last - stages + whole + 1, 1), max(last - stages + 2, 1)
        alone = (last,) if quiet == last else ()
        return cls(
            last=last,
            whole=whole,
            in_flight=stages - 2,
            loop=range(1, end),
            written_out=(*range(end, quiet), *alone),
            quiet_from=quiet,
            quiet_loop=range(quiet, last + 1) if quiet < last else range(0),
        )

"""Parts of long reductions, which are read from memory once."""

from __future__ import annotations

#: Elements of a part, at least and at most.
_LEAST, _MOST = 256, 1 << 12


def part_of(count: int) -> int:
    """Neighbouring elements of the longest parts that ``count`` has wholly; 0 if there are none."""
    return next((n for n in range(min(count, _MOST), _LEAST - 1, -1) if count % n == 0), 0)

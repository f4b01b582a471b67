"""Whether two results of one program agree, as far as its own sensitivity lets one say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks.bisect.inputs import widen
from polyblocks.common_utils import TOLERANCES

Array = np.ndarray[Any, Any]

#: How much more than rounding the inputs may do the order of operations may do.
_SAFETY = 16.0
_HALVES = ("float16", "bfloat16")


@dataclass(frozen=True)
class Difference:
    """Where a result is not the expected one.

    Attributes:
        output: number of the output.
        name: its name in the signature.
        count: elements that differ.
        size: elements that there are.
        index: of the largest difference.
        got: the value there.
        expected: the value that it should have.
        error: the absolute difference there; infinite if one of the two is not finite.
    """

    output: int
    name: str
    count: int
    size: int
    index: tuple[int, ...]
    got: str
    expected: str
    error: float

    def __str__(self) -> str:
        place = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        return (
            f"output {self.output} ('{self.name}'): {self.count} of {self.size} elements; "
            f"{place or 'it'} is {self.got}, expected {self.expected}"
        )


class Expected:
    """The results of the first module.

    Args:
        rows: of the outputs.
        values: the outputs.
        neighbours: the outputs for inputs that differ in the last place. Where they are far apart,
            or two integers differ, rounding decides, and less can be asked.
    """

    def __init__(
        self,
        rows: Sequence[dict[str, Any]],
        values: Sequence[Array],
        neighbours: Sequence[Sequence[Array]] = (),
    ) -> None:
        self.rows = rows
        self.values = [widen(v, r["dtype"]) for v, r in zip(values, rows, strict=True)]
        self._allowed = [
            _allowed(row["dtype"], value, [widen(n[k], row["dtype"]) for n in neighbours])
            for k, (row, value) in enumerate(zip(rows, self.values, strict=True))
        ]

    def difference(self, outputs: Sequence[Array]) -> Difference | None:
        """The difference of the first output that is not as expected; None if all are."""
        for k, (row, want, output) in enumerate(zip(self.rows, self.values, outputs, strict=True)):
            off = _distance(widen(output, row["dtype"]), want)
            bad = off > self._allowed[k]
            if bad.any():
                at = np.unravel_index(int(np.argmax(np.where(bad, off, -1.0))), bad.shape)
                got = widen(output, row["dtype"])
                return Difference(
                    k,
                    row["name"],
                    int(bad.sum()),
                    int(bad.size),
                    tuple(int(i) for i in at),
                    _text(got[at]),
                    _text(want[at]),
                    float(off[at]),
                )
        return None


def _text(value: Any) -> str:
    return f"{value:.9g}" if value.dtype.kind in "fc" else str(value)


def _allowed(dtype: str, value: Array, neighbours: Sequence[Array]) -> Array:
    """The largest distance of each element that may be rounding."""
    relative, absolute = TOLERANCES.get(dtype, (0.0, 0.0))
    spread = np.zeros(value.shape)
    for neighbour in neighbours:
        spread = np.maximum(spread, _distance(neighbour, value))
    if value.dtype.kind not in "fc":
        return np.where(spread > 0, np.inf, 0.0)
    size = np.abs(value)
    size = np.where(np.isfinite(size), size, 0.0)
    allowed = absolute + relative * size + _SAFETY * spread
    if dtype in _HALVES:
        # Sums in this type lose more than a perturbation of the inputs shows.
        allowed = allowed + relative * size.max(initial=0.0)
    return np.asarray(allowed)


def _distance(got: Array, want: Array) -> Array:
    """Absolute differences; NaN is equal to NaN, and infinitely far from all else."""
    if want.dtype.kind not in "fc":
        off = np.zeros(want.shape)
        bad = np.asarray(got != want)
        # Python's integers neither wrap nor round.
        off[bad] = np.abs(got[bad].astype(object) - want[bad].astype(object)).astype(float)
        return off
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(got - want)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    return np.where(same, 0.0, np.where(np.isnan(off), np.inf, off))

"""What is asked of the times of our calls, and which of them a peer beats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.host_calls import cases
from bench.host_calls.cases import CASES, Case

Json = dict[str, Any]

DECORATED, LOADED, LIBRARY, LAUNCHES = "decorated", "loaded", "library", "launches"
OURS = (DECORATED, LOADED, LIBRARY, LAUNCHES)

#: The processor, as LLVM calls it, that bars in microseconds are for.
CHIP = "znver5"

#: The most that a decorated call may take, as a multiple of the framework's own compiler.
RIVALS = {"PyTorch": ("Inductor", 1.0), "JAX": ("jax.jit", 1.1), "TensorFlow": ("XLA", 0.5)}

#: Timer noise that is no loss against earlier results.
NOISE = 1.05


@dataclass(frozen=True)
class Bar:
    """One condition.

    Attributes:
        framework: of the call.
        case: its name.
        peer: one of :data:`OURS`.
        us: that it took.
        most: microseconds that are asked for.
        floor: that are acceptable.
        why: where they come from; empty: from the number of arrays.
    """

    framework: str
    case: str
    peer: str
    us: float
    most: float
    floor: float
    why: str = ""

    @property
    def verdict(self) -> str:
        """How it ended."""
        return "met" if self.us <= self.most else "floor" if self.us <= self.floor else "missed"

    @property
    def absolute(self) -> bool:
        """Whether it is for one chip only."""
        return not self.why


def bars(rows: Sequence[Json], before: Sequence[Json] = ()) -> Iterator[Bar]:
    """All conditions on what was measured.

    Args:
        rows: with ``framework``, ``case``, ``peer`` and ``us``; see :mod:`bench.host_calls.run`.
        before: earlier ones, of which a decorated call may be no slower.
    """
    by_name = {case.name: case for case in CASES}
    now, then = _times(rows), _times(before)
    asked = {key: row["bar"] for row in rows if (key := _key(row)) and "bar" in row}
    for (framework, case, peer), us in now.items():

        def bar(
            most: float,
            floor: float,
            why: str = "",
            key: tuple[str, str, str] = (framework, case, peer),
            us: float = us,
        ) -> Bar:
            return Bar(*key, us, most, floor, why)

        if (framework, case, peer) in asked:
            most = asked[framework, case, peer]
            yield bar(most, most)
        elif peer == LOADED:
            yield bar(*limits(by_name[case]))
        elif peer == DECORATED:
            if framework == "TensorFlow" and case in ("200 weights", "200 variables assigned"):
                yield bar(350, 350)
            rival, times = RIVALS[framework]
            if theirs := now.get((framework, case, rival)):
                yield bar(times * theirs, times * theirs, f"{times:g} × {rival}")
            if earlier := then.get((framework, case, peer)):
                yield bar(earlier, NOISE * earlier, "as before")


def limits(case: Case) -> tuple[float, float]:
    """Microseconds of a loaded call, and those that are acceptable."""
    if case.kind == cases.WEIGHTS:
        return 5.0, 5.0
    return 3 + 0.12 * case.count, 8 + 0.2 * case.count


def slower(rows: Sequence[Json]) -> list[str]:
    """Our calls that take longer than another peer's, in one line each."""
    now, found = _times(rows), []
    for (framework, case, peer), us in now.items():
        others = {
            p: t for (f, c, p), t in now.items() if (f, c) == (framework, case) and p not in OURS
        }
        if peer in OURS and others and us > (least := min(others.values())):
            best = next(name for name, time in others.items() if time == least)
            found.append(f"{framework}, {case}: {peer} {us / least:.2f} × {best}")
    return found


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["framework"], row["case"], row["peer"]


def _times(rows: Sequence[Json]) -> dict[tuple[str, str, str], float]:
    return {_key(row): row["us"] for row in rows if "us" in row}

"""Building blocks of the shuffles and votes of all targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyblocks.simt.machine import Machine
from polyblocks.simt.types import Array


def exchange(m: Machine, value: Array, source: Array, checked: Array | None = None) -> Array:
    """Each lane's view of ``value`` in lane ``source`` of its subgroup.

    Args:
        m: the machine.
        value: shape ``(…, lanes)``.
        source: lane numbers.
        checked: lanes that must not read one that does not take part; all if None. That is
            reported.
    """
    wrong = ~m.is_active(source)
    if checked is not None:
        wrong = wrong & checked
    wrong = wrong & m.mask
    if wrong.any():
        at = int(wrong.argmax())
        lane, other = int(m.lane[at]), int(np.broadcast_to(source, (m.lanes,))[at])
        m.report(
            "inactive lane",
            f"lane {lane} reads lane {other} of its subgroup, which does not take part",
            wrong,
        )
    return m.read_lanes(value, source)


def ballot(m: Machine, predicate: Array) -> Array:
    """Bit i is set where lane i executes and its predicate holds, int64 per lane."""
    bits = (np.broadcast_to(predicate, (m.lanes,)) & m.mask).astype(np.int64) << m.lane
    return np.repeat(m.by_subgroup(bits).sum(axis=-1), m.chip.subgroup_width)


def check_members(m: Machine, members: Array) -> None:
    """Report an op whose mask of members names lanes that do not execute it with the others."""
    members = np.broadcast_to(members, (m.lanes,)).astype(np.int64)
    here = ballot(m, np.ones(1, bool))
    gone = m.by_subgroup(m.exited().astype(np.int64) << m.lane).sum(axis=-1)
    missing = members & ~here & ~np.repeat(gone, m.chip.subgroup_width)
    missing &= (1 << m.chip.subgroup_width) - 1
    wrong = (missing != 0) & m.mask
    if wrong.any():
        lanes = _lanes_of(int(missing[int(wrong.argmax())]))
        m.report("inactive lane", f"waits for lanes {lanes} of its subgroup, which are elsewhere",
                 wrong)  # fmt: skip
    outside = ((members >> m.lane) & 1 == 0) & m.mask
    if outside.any():
        lane = int(m.lane[int(outside.argmax())])
        m.report("inactive lane", f"lane {lane} is not a member of its own mask", outside)


def reduce_lanes(m: Machine, value: Array, members: Array, ufunc: Any) -> Array:
    """Reduce ``value`` over the executing lanes among the members, per distinct mask."""
    members = np.broadcast_to(members, (m.lanes,)).astype(np.int64)
    table = m.by_subgroup(value)
    masks, active = m.by_subgroup(members), m.by_subgroup(m.mask)
    out = np.array(table)
    for lane in range(m.chip.subgroup_width):
        mine = (masks[:, lane, None] >> np.arange(m.chip.subgroup_width)) & 1
        chosen = active & (mine == 1)
        for row in np.flatnonzero(chosen[:, lane]):
            out[row, lane] = ufunc.reduce(table[row][chosen[row]])
    return out.reshape(-1)


def _lanes_of(bits: int) -> str:
    lanes = [str(lane) for lane in range(64) if bits >> lane & 1]
    return ", ".join(lanes[:8]) + (", …" if len(lanes) > 8 else "")

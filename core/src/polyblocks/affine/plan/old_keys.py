"""Schedules with keys that were called otherwise in the release before: read, with a warning.

===================================  =========================================================
old                                  now
===================================  =========================================================
``cache_block``                      ``block_tile``
``thread_tile``, ``threads`` (two)   ``register_tile``, ``block_tile`` (threads times tile)
``depth``                            ``k_block``
``unit = [name, dtype]``             ``unit = name``
``units_of_warp``, ``warps``         ``register_tile``, ``block_tile``, in elements
``calls``                            ``k_block``, in steps
``staging = {exchange = ...}``       ``staged``
===================================  =========================================================
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any

from polyblocks.affine.plan.schedule import Schedule
from polyblocks.affine.plan.tiles import Tiles
from polyblocks.errors import OldSpellingWarning
from polyblocks.target import TargetDescription


def read(given: Mapping[str, Any], name: str, target: TargetDescription) -> Schedule:
    """A schedule, with the keys of today.

    Args:
        given: the attribute.
        name: of the nest.
        target: the chip.

    Raises:
        UnsupportedError: an old key has no value that it may have, or stands beside the new one.
    """
    name = str(given.get("kernel") or name or "a nest")
    old = Schedule(given, name, f"{target.name}:{target.arch}")
    new, renamed = dict(given), {}
    if "cache_block" in old:
        renamed["block_tile"] = new.pop("cache_block")
    if "warps" in old or "units_of_warp" in old or "calls" in old:
        renamed |= _of_unit(old, new, target)
    elif "depth" in old:
        renamed["k_block"] = new.pop("depth")
    if "thread_tile" in old:
        renamed |= _of_lanes(old, new)
    if isinstance(unit := new.get("unit"), list) and len(unit) == 2:
        renamed["unit"] = unit[0]
        del new["unit"]
    if isinstance(staging := new.get("staging"), dict) and "exchange" in staging:
        new["staging"] = {k: v for k, v in staging.items() if k != "exchange"}
        renamed["staged"] = staging["exchange"]
    if not renamed:
        return old
    if twice := sorted(renamed.keys() & new.keys()):
        raise old.refuse(f"'{twice[0]}' is given twice, once by its old key; omit that")
    keys = ", ".join(f"'{key}'" for key in sorted(given) if given[key] != new.get(key))
    write = ", ".join(f"{key} = {json.dumps(renamed[key])}" for key in sorted(renamed))
    warnings.warn(
        f"schedule of '{name}': old spelling of {keys}, which the next release does not read; "
        f"write {write}",
        OldSpellingWarning,
        stacklevel=2,
    )
    return Schedule(new | renamed, old.name, old.chip)


def _of_lanes(old: Schedule, new: dict[str, Any]) -> dict[str, Any]:
    """Tiles of threads, and of blocks counted in threads; taken out of ``new``."""
    (r, c), (rows, columns) = old.pair("thread_tile"), old.pair("threads")
    del new["thread_tile"], new["threads"]
    return {"register_tile": [r, c], "block_tile": [r * rows, c * columns]}


def _of_unit(old: Schedule, new: dict[str, Any], target: TargetDescription) -> dict[str, Any]:
    """Tiles counted in units and calls of one; taken out of ``new``."""
    unit = old.given.get("unit")
    known = [u for u in target.matrix_units if unit in (u.name, [u.name, u.operands])]
    if not known:
        names = sorted({u.name for u in target.matrix_units})
        raise old.unexpected(f"one of {', '.join(names) or 'no names'} for 'unit'", repr(unit))
    m, n, k = known[0].shape
    (rows, columns), (i, j) = old.pair("warps"), old.pair("units_of_warp")
    depth = old.number("calls") * k
    for key in ("warps", "units_of_warp", "calls"):
        del new[key]
    return Tiles((i * m, j * n), (rows * i * m, columns * j * n), depth).schedule()

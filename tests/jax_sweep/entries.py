"""All entries, and the primitives that have none."""

from __future__ import annotations

import elementwise
import factorizations
import structure
from jax import lax
from samples import Entry

#: Primitives that no program of one device can hold, and those that are no computation.
NOT_SWEPT = {
    "collectives of several devices": """all_gather all_to_all axis_index pmax pmin ppermute psum
        ragged_all_to_all""",
    "they order effects and place arrays, and compute nothing": """after_all create_token dce_sink
        device_put sharding_constraint stage""",
}


def entries() -> list[Entry]:
    """Every entry, by name.

    Raises:
        ValueError: a primitive of ``jax.lax`` or ``jax.lax.linalg`` is neither swept nor in
            :data:`NOT_SWEPT`.
    """
    every = (*elementwise.ENTRIES, *factorizations.ENTRIES, *structure.ENTRIES)
    found = {entry.name: entry for entry in every}
    names = (*dir(lax), *dir(lax.linalg))
    named = {name.removesuffix("_p") for name in names if name.endswith("_p")}
    skipped = {name for names in NOT_SWEPT.values() for name in names.split()}
    missing = sorted(named - set(found) - skipped)
    if missing:
        raise ValueError(f"no entry for {', '.join(missing)}")
    return [found[name] for name in sorted(found)]

"""Where in the user's source an equation of a jaxpr comes from."""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import Any

from jax.extend import source_info_util

#: Packages whose lines are of no use to the user.
_LIBRARIES = ("jax", "jaxlib", "flax", "equinox", "optax", "polyblocks_jax")


# Our frames are no place in the user's source.
source_info_util.register_exclusion(os.path.dirname(__file__))


@functools.cache
def _prefixes() -> tuple[str, ...]:
    found = []
    for name in _LIBRARIES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(os.path.dirname(spec.origin) + os.sep)
    return tuple(found)


def source_location(eqn: Any) -> str:
    """``file:line`` of the innermost frame that is no library's; empty where unknown."""
    traceback = eqn.source_info.traceback
    if traceback is None:
        return ""
    for frame in traceback.frames:
        if not frame.file_name.startswith(_prefixes()) and not frame.file_name.startswith("<"):
            return f"{frame.file_name}:{frame.line_num}"
    return ""

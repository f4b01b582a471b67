"""Where in the user's source an equation of a jaxpr comes from."""

from __future__ import annotations

import functools
import importlib.util
import os
import traceback
from collections.abc import Iterable
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
    known = eqn.source_info.traceback
    frames = () if known is None else known.frames
    return _user_line((frame.file_name, frame.line_num) for frame in frames)


def is_library(jaxpr: Any) -> bool:
    """Whether a function is a library's, and not the user's."""
    file: str | None = jaxpr.debug_info.func_filename
    return file is not None and file.startswith(_prefixes())


def current_location() -> str:
    """The same of what Python runs now: where a function is called that JAX lowers."""
    return _user_line(
        (frame.f_code.co_filename, number) for frame, number in traceback.walk_stack(None)
    )


def _user_line(frames: Iterable[tuple[str, int]]) -> str:
    for file, line in frames:
        if not file.startswith(_prefixes()) and not file.startswith("<"):
            return f"{file}:{line}"
    return ""

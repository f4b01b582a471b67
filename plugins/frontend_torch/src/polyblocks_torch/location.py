"""Where in the user's source a node comes from."""

from __future__ import annotations

import functools
import os
import re

import torch
from torch import fx

_FRAME = re.compile(r'^\s*File "(.+)", line (\d+), in ', re.MULTILINE)


@functools.cache
def _library_prefixes() -> tuple[str, ...]:
    return (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(__file__) + os.sep)


def is_of_user(file: str) -> bool:
    """Whether a file of source code is neither PyTorch's nor this package's."""
    return not file.startswith(_library_prefixes())


def source_location(node: fx.Node) -> str | None:
    """``file:line`` of the innermost frame that is not PyTorch's own; None where unknown."""
    return _innermost(node.meta.get("stack_trace") or "")


@functools.lru_cache(1024)
def _innermost(trace: str) -> str | None:
    frames = _FRAME.findall(trace)
    for file, line in reversed(frames):
        if is_of_user(file):
            return f"{file}:{line}"
    return f"{frames[-1][0]}:{frames[-1][1]}" if frames else None

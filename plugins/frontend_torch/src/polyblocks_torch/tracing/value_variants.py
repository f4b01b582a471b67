"""How many variants a frame has that differ in values alone: strings, flags, members of an enum.

Dynamo compiles for each value that it guards. Integers and floats that change become arguments; of
others, a program that keeps meeting new ones would compile at every call. Variants that differ in
their tensors or modules are counted apart: they are few, or a log line says so
(:mod:`polyblocks.frontends.sizes`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from types import CodeType
from typing import Any

import torch
from torch._dynamo import guards
from torch._dynamo.convert_frame import _get_cache_entries_for_region
from torch._dynamo.eval_frame import get_eval_frame_isolate_recompiles_id
from torch._dynamo.utils import ExactWeakKeyDictionary
from torch.utils import _pytree as pytree

from polyblocks_torch.location import is_of_user

#: So many are compiled for equal tensors and modules.
VALUES = 16

#: Guards that fail for what is no value of the program's.
_OTHER = ("tensor ", "GLOBAL_STATE", "Duplicate tensor", "Unexpected recompilation", "BACKEND")
_VALUE = re.compile(r"___check_\w+\((.+), \d+\)|(?:len|set)\((.+?)\) == |(.+?) (?:==|!=|is|in) ")
_LINE = re.compile(r'File "(.+)", line (\d+), in |# +(\S+:\d+) in ')


class ValueVariants:
    """The variants of the frames of one decorated function."""

    def __init__(self) -> None:
        # By identity: code that Dynamo generates may hold constants without a hash.
        #: Compiled code -> the tensors and modules that it was compiled for.
        self._kinds = ExactWeakKeyDictionary()
        #: Frames' code -> tensors and modules for which no further value is compiled -> why, where.
        self._full = ExactWeakKeyDictionary()

    def compiled(self, frame: Any, code: CodeType) -> None:
        """Note what Dynamo has made of a frame."""
        self._kinds[code] = _kind_of(frame)

    def refused(self, frame: Any) -> tuple[str, str] | None:
        """Why and where a frame that Dynamo asks for is not compiled; None if it is.

        Returns:
            A reason, in one line, and ``file:line``.
        """
        entries = _get_cache_entries_for_region(
            frame.f_code, get_eval_frame_isolate_recompiles_id()
        )
        if len(entries) < VALUES:
            return None
        kind = _kind_of(frame)
        full: dict[Any, tuple[str, str]] = self._full.get(frame.f_code, {})
        if kind in full:
            return full[kind]
        alike = [entry for entry in entries if self._kinds.get(entry.code) == kind]
        if len(alike) < VALUES:
            return None
        failed = guards.get_and_maybe_log_recompilation_reasons(
            alike, frame, lambda: None, skip_logging=True
        )
        values = [text for text in map(_guard, failed) if not text.startswith(_OTHER)]
        if len(values) < VALUES:
            return None
        found = _described(values, frame.f_code)
        self._full[frame.f_code] = {**full, kind: found}
        return found


def _kind_of(frame: Any) -> tuple[Any, ...]:
    """The tensors and modules among a frame's variables."""
    found: list[Any] = [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]
    for value in pytree.tree_leaves(dict(frame.f_locals)):
        if isinstance(value, torch.Tensor):
            strides = value.stride() if value.layout == torch.strided else None
            shape = tuple(value.shape) if not value.is_nested else None
            found.append((shape, strides, value.dtype, value.device, value.requires_grad))
        elif isinstance(value, torch.nn.Module):
            found.append(id(value))
    return tuple(found)


def _guard(reason: str) -> str:
    """Without the number of the variant: ``0/3: k == 'a'``."""
    return re.sub(r"^\d+/\d+(_\d+)?: ", "", reason)


def _described(values: Iterable[str], code: CodeType) -> tuple[str, str]:
    names: dict[str, str] = {}
    for text in values:
        met = _VALUE.match(text)
        name = next(filter(None, met.groups()), "") if met else text.split("  ", 1)[0]
        names.setdefault(name, _line(text, code))
    first = min(names, key=len)
    others = f" (and {', '.join(sorted(set(names) - {first})[:3])})" if len(names) > 1 else ""
    reason = (
        f"what it computes depends on {first}{others}, and {VALUES} variants that differ in such "
        "values alone are compiled already; pass a tensor, or fewer values"
    )
    return reason, names[first]


def _line(text: str, code: CodeType) -> str:
    """``file:line`` of the user's that a guard comes from; the frame's own where it is not said."""
    for file, number, short in reversed(_LINE.findall(text)):
        path, _, line = short.rpartition(":") if short else (file, "", number)
        # PyTorch cuts off how long paths begin.
        if code.co_filename.endswith(path.removeprefix("...")):
            path = code.co_filename
        if os.path.isabs(path) and is_of_user(path):
            return f"{path}:{line}"
    return f"{code.co_filename}:{code.co_firstlineno}"

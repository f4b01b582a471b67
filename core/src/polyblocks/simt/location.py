"""MLIR locations as a user reads them."""

from __future__ import annotations

from typing import Any


def describe(location: Any) -> str:
    """A location in one line; empty where it says nothing.

    ``loc("add"("model.py":12:4))`` is ``model.py:12 (add)``, a fused location its parts with
    ``, ``, a call site ``callee, called from caller``.
    """
    from polyblocks.mlir import ir

    if isinstance(location, ir.FileLineColLoc):
        return f"{location.filename}:{location.start_line}"
    if isinstance(location, ir.NameLoc):
        inner, name = describe(location.child_loc), str(location.name_str)
        return f"{inner} ({name})" if inner else name
    if isinstance(location, ir.FusedLoc):
        parts = dict.fromkeys(describe(inner) for inner in location.locations)
        return ", ".join(part for part in parts if part)
    if isinstance(location, ir.CallSiteLoc):
        callee, caller = describe(location.callee), describe(location.caller)
        return f"{callee}, called from {caller}" if callee and caller else callee or caller
    return ""


def short_text(op: Any, limit: int = 160) -> str:
    """An op in one line, without its regions and location."""
    text = op.get_asm(use_local_scope=True, skip_regions=True)
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"

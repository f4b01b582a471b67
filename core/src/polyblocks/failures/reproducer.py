"""Reproducers: the module right before a pass that failed, in a file that the CLI takes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Older files beyond this many are removed, so that a failing loop cannot fill a disk.
KEEP = 50


def folder() -> Path:
    """``POLYBLOCKS_REPRODUCERS``, or a folder of this user below the temporary folder."""
    requested = os.environ.get("POLYBLOCKS_REPRODUCERS")
    if requested:
        return Path(requested)
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"polyblocks-reproducers-{user}"


def write(
    snapshot: bytes, stage: str, finished: Sequence[Any], name: str, context: Any
) -> str | None:
    """Write the module as it was before the pass ``name`` of a stage; returns the path, or None.

    It is marked so that compiling the file resumes with this pass. The stage's snapshot goes
    through the passes that had finished; should one of them fail this time, the file holds the
    snapshot itself. A folder that cannot be written is no second error.
    """
    from polyblocks import mlir
    from polyblocks.stages import STAGES, mark

    stages = list(STAGES)
    before = stages[: stages.index(stage)]
    done = before[-1] if before else None
    try:
        module = mlir.parse(snapshot, mlir.make_context())
        for p in finished:
            p.run(module, context)
            done = f"{stage}:{p.name}"
    except Exception:
        module = mlir.parse(snapshot, mlir.make_context())
        done = before[-1] if before else None
    mark(module, done)
    return save(str(module) + "\n", name)


def save(text: str, name: str) -> str | None:
    """Write ``text``, a marked module right before the pass ``name``; returns the path, or None."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    place = folder()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = place / f"before-{name}-{digest}.mlir"
        path.write_text(text)
        files = sorted(place.glob("before-*.mlir"), key=lambda f: f.stat().st_mtime)
        for old in files[:-KEEP]:
            old.unlink(missing_ok=True)
    except OSError:
        return None
    return str(path)

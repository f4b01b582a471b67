"""What every forked worker would import by itself, imported once."""

from __future__ import annotations

import importlib

from polyblocks import mlir
from polyblocks.registry.registry import get_registry


def preload(*targets: str) -> None:
    """Import MLIR, and what the targets compile with."""
    mlir.preload()
    for target in targets:
        for name in get_registry().target(target).hook.preload():
            importlib.import_module(name)

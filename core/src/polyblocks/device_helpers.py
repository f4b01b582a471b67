"""Helpers for devices, under the import path of the published documentation."""

from __future__ import annotations

import sys

__all__ = ["cuda_synchronize"]


def cuda_synchronize() -> None:
    """Wait until all work that compiled functions put on a GPU is done.

    Calls the hook ``synchronize`` of each loaded target. Without one there is nothing to wait for,
    and nothing happens; no plugin is loaded for this.
    """
    if "polyblocks.registry.registry" not in sys.modules:
        return
    from polyblocks.registry.registry import TARGETS, get_registry

    for plugin in get_registry().loaded(TARGETS):
        plugin.hook.synchronize()

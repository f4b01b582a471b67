"""The cases of each framework, and what runs one of them."""

from __future__ import annotations

import importlib
from typing import Any

from cases import Group, collected

#: Modules with groups of cases.
MODULES = {
    "torch": ("torch_memory", "torch_numbers", "torch_layers", "torch_state"),
    "jax": ("jax_programs",),
    "tf": ("tf_programs",),
}


def load(framework: str) -> tuple[Any, list[Group]]:
    """The function that checks a case, and all groups.

    Args:
        framework: torch, jax or tf.
    """
    modules = [importlib.import_module(name) for name in MODULES[framework]]
    return importlib.import_module(f"{framework}_run").check, collected(modules)

"""Imports that the documentation shows; they load all three frameworks."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from polyblocks import jax_polyblocks_compiler, tf_polyblocks_compiler, torch_polyblocks_compiler

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DECORATORS = [jax_polyblocks_compiler, tf_polyblocks_compiler, torch_polyblocks_compiler]


def imports(path: Path) -> list[tuple[str, str]]:
    """Module and names of each import from our packages in a text."""
    return re.findall(r"^ *from (polyblocks\S*) import ([\w, ]+)", path.read_text(), re.M)


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.name)
def test_imports_in_the_text_work(path: Path) -> None:
    for module, names in imports(path):
        loaded = importlib.import_module(module)
        for name in names.split(","):
            if not hasattr(loaded, name.strip()):
                importlib.import_module(f"{module}.{name.strip()}")


@pytest.mark.parametrize("module", DECORATORS, ids=lambda m: m.__name__)
def test_the_decorator_of_each_framework_is_imported_somewhere(module: object) -> None:
    shown = [name for path in TEXTS for name, _ in imports(path)]
    assert getattr(module, "__name__") in shown  # noqa: B009

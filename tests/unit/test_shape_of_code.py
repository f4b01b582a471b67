"""Sizes of classes and functions, and how often nodes are told apart by their classes."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.syntax import nodes

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core/src/polyblocks"
#: Lines of a class, and of a function: one that is longer does several things.
CLASS, FUNCTION = 400, 80
#: Read from top to bottom as it is.
LISTS = {"standard_pipeline"}
#: A function that tests for as many classes of nodes asks what the protocol of nodes should say.
CLASSES = 4
#: Such functions: what writes nodes, and what a class has no property for. The number may fall.
LADDERS = 15


@functools.cache
def all_nodes() -> dict[Path, tuple[ast.AST, ...]]:
    files = [*CORE.rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    assert len(files) > 1000
    return {path: nodes(path.read_text()) for path in files}


def defined(kind: type[ast.stmt]) -> Iterator[tuple[Path, ast.stmt]]:
    for path, found in all_nodes().items():
        yield from ((path, node) for node in found if isinstance(node, kind))


@pytest.mark.parametrize(("kind", "most"), [(ast.ClassDef, CLASS), (ast.FunctionDef, FUNCTION)])
def test_classes_and_functions_are_short(kind: type[ast.ClassDef], most: int) -> None:
    long = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path, node in defined(kind)
        if isinstance(node, kind)
        and node.name not in LISTS
        and (node.end_lineno or 0) - node.lineno >= most
    ]
    assert long == []


@functools.cache
def node_classes() -> frozenset[str]:
    """The names of all classes of nodes of the mid-level's model."""
    bases: dict[str, set[str]] = {}
    for path, node in defined(ast.ClassDef):
        assert isinstance(node, ast.ClassDef)
        if path.is_relative_to(CORE / "affine"):
            bases.setdefault(node.name, set()).update(map(ast.unparse, node.bases))
    found = {"Node"}
    while more := {name for name, of in bases.items() if of & found} - found:
        found |= more
    return frozenset(found)


def classes_asked(code: ast.AST) -> set[str]:
    """The classes of nodes that ``isinstance`` is asked about."""
    return {
        word.id
        for node in ast.walk(code)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        for word in ast.walk(node.args[1])
        if isinstance(word, ast.Name)
    } & node_classes()


def test_classes_of_nodes_are_found() -> None:
    assert {"For", "Load", "IndirectStore", "Multiply", "Barrier"} <= node_classes()
    code = ast.parse("def f(n):\n if isinstance(n, (For, Load)): pass\n elif isinstance(n, int): 1")
    assert classes_asked(code) == {"For", "Load"}


def test_few_functions_tell_many_classes_of_nodes_apart() -> None:
    ladders = [
        f"{path.relative_to(CORE)}: {node.name}"
        for path, node in defined(ast.FunctionDef)
        if path.is_relative_to(CORE) and isinstance(node, ast.FunctionDef)
        if len(classes_asked(node)) >= CLASSES
    ]
    assert len(ladders) <= LADDERS, ladders


def test_a_contraction_is_recognized_in_one_place() -> None:
    callers = {
        path.relative_to(CORE).as_posix()
        for path, found in all_nodes().items()
        for node in found
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "contraction_of"
    }
    assert callers == {"affine/analysis/facts.py"}

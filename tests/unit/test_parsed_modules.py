"""Modules that are parsed are kept by a name while their ops are used: ops do not keep them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.support.syntax import nodes

ROOT = Path(__file__).parents[2]
SOURCES = [*ROOT.glob("core/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]


def bodies_of_parsed(text: str) -> list[int]:
    """Lines where the body of a module is taken that only the expression holds."""
    return [
        node.lineno
        for node in nodes(text)
        if isinstance(node, ast.Attribute)
        and node.attr == "body"
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr == "parse"
    ]


def test_no_op_is_taken_out_of_a_module_without_a_name() -> None:
    assert bodies_of_parsed("op = mlir.parse(text).body.operations[0]") == [1]
    assert bodies_of_parsed("module = mlir.parse(text)\nop = module.body.operations[0]") == []
    assert len(SOURCES) > 100
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in SOURCES
        if ".parse(" in (text := path.read_text())
        for line in bodies_of_parsed(text)
    ]
    if found:
        pytest.fail(f"the module is freed before its ops are used: {', '.join(found)}")

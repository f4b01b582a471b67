"""The code of the packages as a tree, for tests that read all of it: parsed once in a process."""

from __future__ import annotations

import ast
import functools


@functools.cache
def tree(source: str) -> ast.Module:
    """The syntax tree of a module. All tests have the same one: none changes it."""
    return ast.parse(source)


@functools.cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, in the order of ``ast.walk``."""
    return tuple(ast.walk(tree(source)))

"""Operation -> lowering rule: the modules beside this one register their rules here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from polyblocks.stablehlo.array import Array

if TYPE_CHECKING:
    from polyblocks.stablehlo.lowering import Lowering

Rule = Callable[["Lowering", Any, list[Array]], "list[Array] | Array"]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the lowering of operations."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register

"""merge-kernels: kernels that differ only in what they are called with are one function."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks_cpu.passes.outline_kernels import SOURCES, TRIPS
from polyblocks_cpu.passes.walk import nested

#: How many calls of a kernel there are, on a kernel with more than one.
CALLS = "polyblocks.calls"


@dataclass(frozen=True)
class MergeKernelsPass:
    """Keep one of several equal kernels and call it everywhere.

    The layers of a network are mostly the same code on other buffers; compiled once, a network
    takes as long as its different layers. The kernel that stays remembers the sources of all.

    Before: ``func.call @relu(%a, %b)``, ``func.call @relu_2(%b, %c)`` with equal bodies; after:
    ``func.call @relu(%a, %b)``, ``func.call @relu(%b, %c)``.
    """

    name: ClassVar[str] = "merge-kernels"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the calls and erase the copies."""
        from polyblocks.mlir import ir

        del context
        kept: dict[str, Any] = {}
        replaced: dict[str, str] = {}
        sources: dict[str, list[Any]] = {}
        calls: dict[str, int] = {}
        with module.context, ir.Location.unknown():
            for function in [op.operation for op in module.body.operations]:
                if TRIPS not in function.attributes:
                    continue
                name = function.attributes["sym_name"].value
                key, origin = _key(function, name)
                first = kept.setdefault(key, function)
                keeper = first.attributes["sym_name"].value
                sources.setdefault(keeper, []).extend(origin)
                calls[keeper] = calls.get(keeper, 0) + 1
                if first is not function:
                    replaced[name] = keeper
                    function.erase()
            for function in kept.values():
                name = function.attributes["sym_name"].value
                unique = list(dict.fromkeys(sources[name]))
                function.attributes[SOURCES] = ir.ArrayAttr.get(unique)
                if calls[name] > 1:
                    i64 = ir.IntegerType.get_signless(64)
                    function.attributes[CALLS] = ir.IntegerAttr.get(i64, calls[name])
            if replaced:
                for op in list(nested(module.operation)):
                    if op.name == "func.call" and op.attributes["callee"].value in replaced:
                        target = replaced[op.attributes["callee"].value]
                        op.attributes["callee"] = ir.FlatSymbolRefAttr.get(target)


def _key(function: Any, name: str) -> tuple[str, list[Any]]:
    """The function's text without its name and its origin, and the origin."""
    attributes = function.attributes
    origin = list(attributes[SOURCES]) if SOURCES in attributes else []
    if SOURCES in attributes:
        del attributes[SOURCES]
    text = function.get_asm(use_local_scope=True)
    return re.sub(rf"@{re.escape(name)}\b", "@kernel", text, count=1), origin

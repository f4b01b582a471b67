"""merge-kernels: kernels that differ only in what they are called with are one function."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.codegen.walk import nested
from polyblocks_cpu.passes.outline_kernels import ESTIMATE, NESTS, SOURCES, TRIPS

#: How many calls of a kernel there are, on a kernel with more than one.
CALLS = "polyblocks.calls"
#: What the calls cost, an array with one entry for each.
ESTIMATES = "polyblocks.estimates"


@dataclass(frozen=True)
class MergeKernelsPass:
    """Keep one of several equal kernels and call it everywhere.

    The layers of a network are mostly the same code on other buffers; compiled once, a network
    takes as long as its different layers. The kernel that stays remembers the sources, names and
    costs of all.

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
        origins: dict[str, dict[str, list[Any]]] = {}
        calls: dict[str, int] = {}
        with module.context, ir.Location.unknown():
            for function in [op.operation for op in module.body.operations]:
                if TRIPS not in function.attributes:
                    continue
                name = function.attributes["sym_name"].value
                key, origin = _key(function, name)
                first = kept.setdefault(key, function)
                keeper = first.attributes["sym_name"].value
                gathered = origins.setdefault(keeper, {key: [] for key in origin})
                for attribute, values in origin.items():
                    gathered[attribute].extend(values)
                calls[keeper] = calls.get(keeper, 0) + 1
                if first is not function:
                    replaced[name] = keeper
                    function.erase()
            for function in kept.values():
                name = function.attributes["sym_name"].value
                origin = origins[name]
                unique = list(dict.fromkeys(origin[SOURCES]))
                function.attributes[SOURCES] = ir.ArrayAttr.get(unique)
                function.attributes[NESTS] = ir.ArrayAttr.get(origin[NESTS])
                function.attributes[ESTIMATES] = ir.ArrayAttr.get(origin[ESTIMATE])
                if calls[name] > 1:
                    i64 = ir.IntegerType.get_signless(64)
                    function.attributes[CALLS] = ir.IntegerAttr.get(i64, calls[name])
            if replaced:
                for op in list(nested(signature.main_of(module).operation)):
                    if op.name == "func.call" and op.attributes["callee"].value in replaced:
                        target = replaced[op.attributes["callee"].value]
                        op.attributes["callee"] = ir.FlatSymbolRefAttr.get(target)


def _key(function: Any, name: str) -> tuple[str, dict[str, list[Any]]]:
    """The function's text without its name and its origin, and the origin by attribute."""
    attributes = function.attributes
    origin: dict[str, list[Any]] = {SOURCES: [], NESTS: [], ESTIMATE: []}
    for key, values in origin.items():
        if key in attributes:
            values.extend([attributes[key]] if key == ESTIMATE else attributes[key])
            del attributes[key]
    text = function.get_asm(use_local_scope=True)
    return re.sub(rf"@{re.escape(name)}\b", "@kernel", text, count=1), origin

"""merge-kernels: kernels that differ only in what they are called with are one function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.attributes import (
    ESTIMATE_ATTRIBUTE,
    ESTIMATES_ATTRIBUTE,
    NESTS_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
)
from polyblocks.codegen.equal_kernels import EqualKernels
from polyblocks.codegen.walk import nested
from polyblocks_cpu.team.kernels import TRIPS

#: How many calls of a kernel there are, on a kernel with more than one.
CALLS = "polyblocks.calls"


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
        functions = [
            op.operation for op in module.body.operations if TRIPS in op.operation.attributes
        ]
        with module.context, ir.Location.unknown():
            equal = EqualKernels(
                functions, (SOURCES_ATTRIBUTE, NESTS_ATTRIBUTE, ESTIMATE_ATTRIBUTE)
            )
            for function in functions:
                if function.attributes["sym_name"].value in equal.replaced:
                    function.erase()
            for name, function in equal.keepers.items():
                unique = list(dict.fromkeys(equal.gathered(name, SOURCES_ATTRIBUTE)))
                function.attributes[SOURCES_ATTRIBUTE] = ir.ArrayAttr.get(unique)
                function.attributes[NESTS_ATTRIBUTE] = ir.ArrayAttr.get(
                    equal.gathered(name, NESTS_ATTRIBUTE)
                )
                function.attributes[ESTIMATES_ATTRIBUTE] = ir.ArrayAttr.get(
                    equal.gathered(name, ESTIMATE_ATTRIBUTE)
                )
                if (calls := len(equal.members[name])) > 1:
                    i64 = ir.IntegerType.get_signless(64)
                    function.attributes[CALLS] = ir.IntegerAttr.get(i64, calls)
            if equal.replaced:
                for op in list(nested(signature.main_of(module).operation)):
                    if op.name == "func.call" and op.attributes["callee"].value in equal.replaced:
                        target = equal.replaced[op.attributes["callee"].value]
                        op.attributes["callee"] = ir.FlatSymbolRefAttr.get(target)

"""merge-kernels: kernels that differ only in what they are launched with are one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.attributes import (
    ESTIMATE_ATTRIBUTE,
    ESTIMATES_ATTRIBUTE,
    NESTS_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
)
from polyblocks.codegen.equal_kernels import EqualKernels
from polyblocks.codegen.gpu.plan import kernels, read_launches, write_launches


@dataclass(frozen=True)
class MergeKernelsPass:
    """Keep one of several equal kernels, and launch it everywhere.

    The layers of a network are mostly the same code on other buffers; compiled once, a network
    takes as long as its different layers. The kernel that stays remembers the sources of all, and
    the name and the cost of each launch. Builds for the simulator keep all kernels, since its
    findings name the line of the very nest.

    Before: ``launches = [{kernel = "relu", ...}, {kernel = "relu_2", ...}]`` with equal bodies;
    after: ``launches = [{kernel = "relu", ...}, {kernel = "relu", ...}]``.
    """

    name: ClassVar[str] = "merge-kernels"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the plan and erase the copies."""
        from polyblocks.mlir import ir

        if context.options.simulate:
            return
        found = kernels(module)
        launches = read_launches(module)
        with module.context, ir.Location.unknown():
            equal = EqualKernels(found, (SOURCES_ATTRIBUTE, ESTIMATE_ATTRIBUTE))
            merged = set(equal.replaced.values())
            launched: dict[str, list[str]] = {}
            for row in launches:
                launched.setdefault(equal.keeper(row["kernel"]), []).append(row["kernel"])
            for keeper, kernel in equal.keepers.items():
                attributes = kernel.attributes
                sources = list(dict.fromkeys(equal.gathered(keeper, SOURCES_ATTRIBUTE)))
                if sources:
                    attributes[SOURCES_ATTRIBUTE] = ir.ArrayAttr.get(sources)
                if keeper not in merged:
                    for estimate in equal.origins[keeper][ESTIMATE_ATTRIBUTE]:
                        attributes[ESTIMATE_ATTRIBUTE] = estimate
                    continue
                nests = launched.get(keeper, [])
                names = [ir.StringAttr.get(nest) for nest in nests]
                costs = [e for nest in nests for e in equal.origins[nest][ESTIMATE_ATTRIBUTE]]
                attributes[NESTS_ATTRIBUTE] = ir.ArrayAttr.get(names)
                attributes[ESTIMATES_ATTRIBUTE] = ir.ArrayAttr.get(costs)
        for kernel in found:
            if kernel.attributes["sym_name"].value in equal.replaced:
                kernel.erase()
        if equal.replaced:
            write_launches(
                module, [row | {"kernel": equal.keeper(row["kernel"])} for row in launches]
            )

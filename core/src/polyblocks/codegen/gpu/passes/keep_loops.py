"""keep-loops: LLVM and assemblers leave those loops as they are that are written to be loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.attributes import LOOP_ATTRIBUTE
from polyblocks.codegen.gpu.plan import kernels

#: The attribute that LLVM's branches have themselves.
_OF_BRANCH = "loop_annotation"


@dataclass(frozen=True)
class KeepLoopsPass:
    """The mark of a loop of form K moves to the branch back to its begin.

    A loop of few iterations would be written out: as long as its iterations are together, and with
    registers for what they do at once.

    Before::

        llvm.br ^bb1(%i : i64) {llvm.loop_annotation = #llvm.loop_annotation<...>}

    After::

        llvm.br ^bb1(%i : i64) {loop_annotation = #llvm.loop_annotation<...>}
    """

    name: ClassVar[str] = "keep-loops"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite the kernels in place; returns whether there was such a loop."""
        del context
        found = False
        with module.context:
            for kernel in kernels(module):
                for block in kernel.regions[0].blocks:
                    branch = list(block.operations)[-1].operation
                    if LOOP_ATTRIBUTE in branch.attributes:
                        branch.attributes[_OF_BRANCH] = branch.attributes[LOOP_ATTRIBUTE]
                        del branch.attributes[LOOP_ATTRIBUTE]
                        found = True
        return found

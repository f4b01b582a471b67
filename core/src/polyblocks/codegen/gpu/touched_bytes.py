"""The memory that a launch touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyblocks.codegen.memory import static_bytes

Json = dict[str, Any]

#: Of an argument of a kernel that it does not store to.
READ_ONLY = "llvm.readonly"


@dataclass(frozen=True)
class TouchedBytes:
    """Bytes that a launch touches: of an argument of the program, or of the workspace, number -1.

    Attributes:
        argument: see above.
        first: the first of them.
        size: how many; None if that is not known.
        stores: whether some are stored.
    """

    argument: int
    first: int
    size: int | None
    stores: bool

    def conflicts(self, other: TouchedBytes) -> bool:
        """Whether one is stored to what the other one touches."""
        return (self.stores or other.stores) and self._overlaps(other)

    def _overlaps(self, other: TouchedBytes) -> bool:
        if self.argument != other.argument:
            return False
        if self.size is None or other.size is None:
            return True
        return self.first < other.first + other.size and other.first < self.first + self.size


def touched_bytes(kernel: Any, row: Json, status: int | None) -> list[TouchedBytes | None]:
    """The memory that a launch may touch, for each argument; None for numbers.

    Args:
        kernel: the ``gpu.func``.
        row: of the launch plan.
        status: number of the word that failed checks are reported in, which is touched in any
            order.
    """
    inputs = kernel.attributes["function_type"].value.inputs
    attributes: Any = [{}] * len(inputs)
    if "arg_attrs" in kernel.attributes:
        attributes = kernel.attributes["arg_attrs"]
    found: list[TouchedBytes | None] = []
    for argument, type_, given in zip(row["arguments"], inputs, attributes, strict=True):
        stores = READ_ONLY not in given
        if status is not None and argument == {"argument": status}:
            found.append(None)
        elif "argument" in argument:
            first = argument.get("offset", 0)
            found.append(TouchedBytes(argument["argument"], first, static_bytes(type_), stores))
        elif "workspace" in argument:
            found.append(TouchedBytes(-1, argument["workspace"], static_bytes(type_), stores))
        else:
            found.append(None)
    return found

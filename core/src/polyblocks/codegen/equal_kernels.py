"""Which kernels are the same code: they differ only in their name and in where they come from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

#: By attribute what a kernel had of it; nothing where it had none.
Origin = dict[str, list[Any]]


class EqualKernels:
    """Groups of equal kernels, each with the first one as its keeper.

    Attributes:
        keepers: the kernels that stay, by name.
        replaced: for each other kernel's name the name of its keeper.
        origins: the origin of every kernel, by its own name, in the given order.
        members: the names of the kernels of each group, in the given order, by its keeper's.

    Args:
        kernels: functions, in the order of the module; their attributes of origin are taken off.
        origin: attributes that say where a kernel comes from. The value of one is an array, whose
            elements count, or a single one.
    """

    def __init__(self, kernels: Iterable[Any], origin: Sequence[str]) -> None:
        self.keepers: dict[str, Any] = {}
        self.replaced: dict[str, str] = {}
        self.origins: dict[str, Origin] = {}
        self.members: dict[str, list[str]] = {}
        headers: dict[str, frozenset[tuple[str, Any]]] = {}
        found = list(kernels)
        for kernel in found:
            name = kernel.attributes["sym_name"].value
            self.origins[name] = _taken(kernel, origin)
            attributes = kernel.attributes
            headers[name] = frozenset((n, attributes[n]) for n in attributes if n != "sym_name")
        # Bodies are asked for where the headers do not tell kernels apart.
        counts = Counter(headers.values())
        first: dict[bytes, str] = {}
        for kernel, (name, header) in zip(found, headers.items(), strict=True):
            keeper = name
            if counts[header] > 1:
                keeper = first.setdefault(_text(kernel, name), name)
            self.members.setdefault(keeper, []).append(name)
            if keeper == name:
                self.keepers[name] = kernel
            else:
                self.replaced[name] = keeper

    def keeper(self, name: str) -> str:
        """The name under which a kernel's code stays."""
        return self.replaced.get(name, name)

    def gathered(self, keeper: str, attribute: str) -> list[Any]:
        """The values of an attribute in all kernels of a group."""
        return [value for name in self.members[keeper] for value in self.origins[name][attribute]]


def _taken(kernel: Any, origin: Sequence[str]) -> Origin:
    from polyblocks.mlir import ir

    found: Origin = {}
    for attribute in origin:
        found[attribute] = []
        if attribute in kernel.attributes:
            value = kernel.attributes[attribute]
            found[attribute] = list(value) if isinstance(value, ir.ArrayAttr) else [value]
            del kernel.attributes[attribute]
    return found


def _text(kernel: Any, name: str) -> bytes:
    # To verify it before would take a quarter of the time, and to make a string of it half.
    text: bytes = kernel.get_asm(use_local_scope=True, assume_verified=True, binary=True)
    return re.sub(rf"@{re.escape(name)}\b".encode(), b"@kernel", text, count=1)

"""The numbers by which a schedule calls the loops, accesses and buffers of a nest."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.model import Access, Alloca, Buffer, For, Nest, Node, program_buffers, walk


class Numbers:
    """How a schedule calls the parts of a nest; to be made before anything is changed in it.

    Attributes:
        statements: loops, loads and stores.
        local: buffers that live in an iteration.
        buffers: buffers of the program.
    """

    def __init__(self, nest: Nest) -> None:
        nodes = list(walk(nest.body))
        self.statements: list[Node] = [n for n in nodes if isinstance(n, (For, Access))]
        self.local: list[Buffer] = [n.buffer for n in nodes if isinstance(n, Alloca)]
        self.buffers: list[Buffer] = program_buffers(nest.body)
        self._of_statement = {n: i for i, n in enumerate(self.statements)}
        self._of_variable = {n.var: i for n, i in self._of_statement.items() if isinstance(n, For)}

    def __contains__(self, node: Node) -> bool:
        return node in self._of_statement

    def statement(self, node: Node) -> int:
        """The number of a loop, load or store."""
        return self._of_statement[node]

    def loops(self, variables: list[Any]) -> list[int]:
        """The numbers of the loops with these variables."""
        return [self._of_variable[v] for v in variables]

"""Code that runs ahead of other code, whose result that finds the same each time that it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from polyblocks.affine.model import Buffer, Nest, Node, clone, program_buffers


class Prologue(Protocol):
    """Code that runs once for all calls of a program, or for all iterations of a loop."""

    @property
    def lasting_bytes(self) -> int:
        """Bytes of all arrays that are the same each time."""

    def depends_on_constants(self, nodes: list[Node]) -> bool:
        """Whether code reads something that is the same each time, and nothing else."""

    def keep(self, buffer: Buffer) -> None:
        """From here on the code ahead fills a buffer, which may be a new one."""

    def append(self, nodes: list[Node], like: Nest, name: str, kind: str) -> Nest:
        """Add code to what runs ahead.

        Args:
            nodes: code as it would stand where it is read; it is copied.
            like: the nest that it is from.
            name: of the new nest.
            kind: of the new nest.
        """


def copied(
    nodes: list[Node], like: Nest, name: str, kind: str, buffer_of: Callable[[Buffer], Buffer]
) -> Nest:
    """A nest with a copy of code from elsewhere, see :meth:`Prologue.append`.

    Args:
        nodes: the code.
        like: the nest that it is from.
        name: of the new nest.
        kind: of the new nest.
        buffer_of: what a buffer of the code is where the new nest stands.
    """
    nest = Nest(clone(nodes, {}, {}, {b: buffer_of(b) for b in program_buffers(nodes)}), [])
    nest.replace()
    nest.name, nest.kind, nest.sources = name, kind, like.sources
    return nest

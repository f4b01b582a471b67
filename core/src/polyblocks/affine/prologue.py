"""Code that runs ahead of other code, whose result that finds the same each time that it runs."""

from __future__ import annotations

from typing import Protocol

from polyblocks.affine.model import Buffer, Nest, Node


class Prologue(Protocol):
    """What runs once for all calls of a program, or for all iterations of a loop."""

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

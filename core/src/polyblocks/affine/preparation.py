"""The branch of a program with what depends on constant arguments alone: seen from ``@main``."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.flat_views import FlatViews, is_flat
from polyblocks.affine.model import AnyLoad, Buffer, ControlFlow, Nest, Node, Sequence, walk, writes
from polyblocks.affine.prologue import copied
from polyblocks.attributes import PREPARATION, REGION_ATTRIBUTE


class Preparation:
    """The branch that :mod:`form-preparation <polyblocks.passes.bufferize.form_preparation>` makes,
    and what may be added to it.

    Args:
        sequence: of ``@main``.
        branch: the branch in it.
    """

    def __init__(self, sequence: Sequence, branch: ControlFlow) -> None:
        self._sequence = sequence
        self._branch = branch
        (self._body,) = branch.bodies
        self._inner = {b.outer: b for b in self._body.buffers if b.outer is not None}
        self._views = FlatViews(self._body)
        self._lasting = {b for b in sequence.buffers if b.lasting or b.kind == "global"}
        prepared = {b.base for b in writes(branch)}
        for item in sequence.items:
            if item is not branch:
                prepared -= {b.base for b in writes(item)}
        self._lasting |= prepared

    @classmethod
    def of(cls, sequence: Sequence) -> Preparation | None:
        """That of a program; None if it has no constant arguments."""
        for item in sequence.items:
            if isinstance(item, ControlFlow) and _is_preparation(item.operation):
                return cls(sequence, item)
        return None

    def lasts(self, buffer: Buffer) -> bool:
        """Whether a buffer holds the same at every call, and does so when ``@main`` begins."""
        return buffer.base in self._lasting

    @property
    def lasting_bytes(self) -> int:
        """Bytes of all arguments that hold the same at every call."""
        return sum(b.nbytes for b in self._sequence.buffers if b.lasting)

    def depends_on_constants(self, nodes: list[Node]) -> bool:
        """Whether code reads something that lasts, and nothing else that lives outside of it."""
        nodes = list(walk(nodes))
        if any(v.external is not None for node in nodes for v in node.uses):
            return False
        loads = [n for n in nodes if isinstance(n, AnyLoad)]
        if not all(n.buffer.viewed is None or is_flat(n.buffer) for n in loads):
            return False
        found = {n.buffer.base for n in loads if n.buffer.kind != "local"}
        return bool(found - {b for b in found if b.kind == "global"}) and found <= self._lasting

    def keep(self, buffer: Buffer) -> None:
        """From here on the branch fills an allocation of ``@main``, which may be a new one."""
        from polyblocks.mlir import dialect, ir

        if buffer not in self._sequence.buffers:
            self._sequence.buffers.append(buffer)
        if buffer.value is not None:
            self._put_first(buffer)
        else:
            # Nests of the branch are written before those around it, and refer to it.
            type_ = ir.MemRefType.get(list(buffer.shape), buffer.element)
            with ir.InsertionPoint.at_block_begin(self._sequence.block):
                buffer.value = dialect("memref").AllocOp(type_, [], []).result
        self._lasting.add(buffer)

    def _put_first(self, buffer: Buffer) -> None:
        """Let an allocation or a constant stand before the branch."""
        from polyblocks.mlir import ir

        owner = buffer.value.owner
        if not isinstance(owner, ir.Block):
            owner.operation.move_before(self._branch.operation)

    def append(self, nodes: list[Node], like: Nest, name: str, kind: str) -> Nest:
        """Add code to the end of the branch.

        Args:
            nodes: code of ``@main``, as it would stand there; it is copied.
            like: the nest that it is from.
            name: of the new nest.
            kind: of the new nest.
        """
        nest = copied(nodes, like, name, kind, self._inside)
        self._body.items.append(nest)
        return nest

    def _inside(self, buffer: Buffer) -> Buffer:
        """The buffer of the branch's body that a buffer of ``@main`` is."""
        if buffer.viewed is not None:
            # The only views of what lasts are flat ones.
            return self._views.of(self._inside(buffer.viewed))
        if buffer not in self._inner:
            if buffer.kind == "global":
                self._put_first(buffer)
            kind = "carried" if buffer.kind in ("alloc", "output") else buffer.kind
            inner = Buffer(
                *(buffer.shape, buffer.element, kind, buffer.value),
                bytes_per_element=buffer.bytes_per_element,
                memref_type=buffer.memref_type,
            )
            inner.constant, inner.lasting = buffer.constant, buffer.lasting
            inner.outer = buffer
            self._inner[buffer] = inner
            self._body.buffers.append(inner)
        return self._inner[buffer]


def _is_preparation(operation: Any) -> bool:
    attributes = operation.attributes
    return REGION_ATTRIBUTE in attributes and attributes[REGION_ATTRIBUTE].value == PREPARATION

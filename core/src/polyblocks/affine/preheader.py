"""The preheader of an outer loop: code that is invariant in its iterations."""

from __future__ import annotations

from polyblocks.affine.flat_views import FlatViews, is_flat
from polyblocks.affine.model import AnyLoad, Buffer, ControlFlow, Load, Nest, Node, Sequence, walk
from polyblocks.affine.prologue import copied

_LOOPS = ("affine.for", "scf.for", "scf.while")


class Preheader:
    """Code that moves out of a loop's body.

    It does for a loop what :class:`~polyblocks.affine.preparation.Preparation` does for the calls
    of a program.

    Args:
        around: the sequence that the loop is in.
        loop: the loop.
        body: the sequence of its body.
    """

    def __init__(self, around: Sequence, loop: ControlFlow, body: Sequence) -> None:
        self._around = around
        self._loop = loop
        self._body = body
        self._views = FlatViews(around)
        _, written = loop.effects()
        self._written = {b.base for b in written}

    @classmethod
    def of(cls, sequence: Sequence) -> Preheader | None:
        """That of the loop whose body a sequence is; None if it is not the body of a loop."""
        around = sequence.around
        if around is None:
            return None
        for item in around.items:
            if isinstance(item, ControlFlow) and sequence in item.bodies:
                return cls(around, item, sequence) if item.operation.name in _LOOPS else None
        return None

    @property
    def lasting_bytes(self) -> int:
        """Bytes of all arrays whose elements are the same reads in every iteration."""
        found: set[Buffer] = set()
        for nest in self._body.nests():
            found |= {
                node.buffer.base
                for node in walk(nest.body)
                if isinstance(node, Load)
                and self._lasts(node.buffer)
                and not any(v.value is not None for e in node.index for v in e.variables())
            }
        return sum(b.nbytes for b in found)

    def depends_on_constants(self, nodes: list[Node]) -> bool:
        """Whether code reads what the loop does not change, and nothing that it moves over."""
        nodes = list(walk(nodes))
        if any(v.external is not None for node in nodes for v in node.uses):
            return False
        if any(v.value is not None for node in nodes for v in node.variables()):
            return False
        loads = [n for n in nodes if isinstance(n, AnyLoad)]
        outer = [n.buffer for n in loads if n.buffer.kind != "local"]
        return bool(outer) and all(self._lasts(buffer) for buffer in outer)

    def keep(self, buffer: Buffer) -> None:
        """From here on code in front of the loop fills a buffer of the body, which is new."""
        from polyblocks.mlir import dialect, ir

        outer = buffer.like()
        type_ = ir.MemRefType.get(list(outer.shape), outer.element)
        with ir.InsertionPoint.at_block_begin(self._around.block):
            outer.value = dialect("memref").AllocOp(type_, [], []).result
        self._around.buffers.append(outer)
        buffer.kind, buffer.value, buffer.outer = "carried", outer.value, outer
        self._body.buffers.append(buffer)

    def append(self, nodes: list[Node], like: Nest, name: str, kind: str) -> Nest:
        """Add code to what stands in front of the loop.

        Args:
            nodes: code of the body, as it would stand there; it is copied.
            like: the nest that it is from.
            name: of the new nest.
            kind: of the new nest.
        """
        nest = copied(nodes, like, name, kind, self._outside)
        self._around.items.insert(self._around.items.index(self._loop), nest)
        return nest

    def _lasts(self, buffer: Buffer) -> bool:
        """Whether a buffer of the body is a whole one from outside, which the loop leaves."""
        if buffer.viewed is not None:
            return is_flat(buffer) and self._lasts(buffer.viewed)
        outer = buffer.outer
        return outer is not None and outer.viewed is None and outer not in self._written

    def _outside(self, buffer: Buffer) -> Buffer:
        """The buffer of the sequence around that a buffer of the body is."""
        if buffer.viewed is not None:
            return self._views.of(self._outside(buffer.viewed))
        assert buffer.outer is not None, "it lives outside of the loop"
        return buffer.outer

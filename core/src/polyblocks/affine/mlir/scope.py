"""MLIR values of one block and the blocks around it, as the model knows them."""

from __future__ import annotations

from typing import Any

from polyblocks.affine.element import element_bytes
from polyblocks.affine.expr import Expr
from polyblocks.affine.mlir.affine_maps import UnreadableError
from polyblocks.affine.mlir.views import IndexMap
from polyblocks.affine.model import Buffer
from polyblocks.mlir import ir


class Scope:
    """The values of a block that have a meaning in the model.

    Attributes:
        module: the module.
        outer: the scope of the block around; None for that of ``@main``.
        buffers: memrefs of the model.
        constants: ``arith.constant`` operations.
        exprs: values of type index that are affine in the variables of loops around the block.
        views: affine views: what they view, and the index there of an index in the view.
        aliases: memrefs of opaque operations, and the buffers that they may be.
    """

    def __init__(self, module: Any, outer: Scope | None = None) -> None:
        self.module = module
        self.outer = outer
        self.buffers: dict[Any, Buffer] = {}
        self.constants: dict[Any, Any] = dict(outer.constants) if outer else {}
        self.exprs: dict[Any, Expr] = dict(outer.exprs) if outer else {}
        self.views: dict[Any, tuple[Any, IndexMap]] = dict(outer.views) if outer else {}
        self.aliases: dict[Any, set[Buffer]] = {}
        if outer is not None:
            for value, buffers in outer.aliases.items():
                own = {self.find(b.value) for b in buffers}
                self.aliases[value] = {b for b in own if b is not None}

    def resolve(self, value: Any, index: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        """The buffer behind all views that are affine, and the index in it."""
        while value in self.views:
            value, resolve = self.views[value]
            index = resolve(index)
        return self.buffer(value), index

    def buffer(self, value: Any) -> Buffer:
        """The buffer of a memref; raises UnreadableError without one."""
        buffer = self.find(value)
        if buffer is None:
            raise UnreadableError
        return buffer

    def find(self, value: Any) -> Buffer | None:
        """The buffer of a memref; one of the block around has a buffer of its own here."""
        if value in self.buffers or self.outer is None:
            return self.buffers.get(value)
        outer = self.outer.find(value)
        if outer is None:
            return None
        base = None if outer.viewed is None else self.find(outer.viewed.value)
        kind = "carried" if outer.kind in ("alloc", "output") else outer.kind
        buffer = self.declare(value, kind, base)
        buffer.constant = outer.constant
        buffer.lasting = outer.lasting
        buffer.outer = outer
        return buffer

    def declare(self, value: Any, kind: str, base: Buffer | None = None) -> Buffer:
        """Make a buffer of a memref.

        Args:
            value: the memref.
            kind: see :class:`Buffer`.
            base: whose memory it is a view of.
        """
        type_ = ir.MemRefType(value.type)
        shape = tuple(type_.shape) if type_.has_static_shape else (-1,) * type_.rank
        buffer = Buffer(
            shape,
            type_.element_type,
            kind,
            value,
            bytes_per_element=element_bytes(type_.element_type),
            memref_type=type_,
            base=base,
        )
        self.buffers[value] = buffer
        return buffer

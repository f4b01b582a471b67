"""Copies of arrays in which one dimension is the innermost one."""

from __future__ import annotations

from polyblocks.affine.access import join_parts
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import Buffer, Load, Nest, Node, Store, Value, nested


def copied(buffer: Buffer, dimension: int, nest: Nest) -> tuple[Buffer, Nest]:
    """A copy ``[places, channels]`` for what a nest looks up, and the nest that makes it."""
    variables = [Var(extent) for extent in buffer.shape]
    channels = variables[dimension]
    others = [v for v in variables if v is not channels]
    place = place_of(buffer, dimension, tuple(map(Expr.of, variables)))
    shape, size = (buffer.numel // channels.extent, channels.extent), buffer.bytes_per_element
    new = Buffer(shape, buffer.element, "alloc", bytes_per_element=size)
    value = Value(buffer.element)
    load = Load(value, buffer, tuple(map(Expr.of, variables)))
    body: list[Node] = [load, Store(value, new, (place, Expr.of(channels)))]
    copy = Nest(nested([*others, channels], body), [], changed=True)
    copy.name, copy.kind, copy.sources = f"{nest.name}_rows", "copy", nest.sources
    return new, copy


def place_of(buffer: Buffer, dimension: int, index: tuple[Expr, ...]) -> Expr:
    """The row of a copy that an element of the buffer is in."""
    place = Expr(0)
    for d, expr in enumerate(index):
        if d != dimension:
            place = place * buffer.shape[d] + expr
    return join_parts(place)

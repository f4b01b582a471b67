"""normalize-nests: unit loops, constant loads and dead stores go; allocations come first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.mlir.regions import nested_regions
from polyblocks.affine.model import (
    AnyStore,
    Buffer,
    For,
    Load,
    Nest,
    Node,
    Op,
    Sequence,
    Value,
    reads,
    remove_dead,
    replace_values,
    writes,
)
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class NormalizeNestsPass(NestPass):
    """Bring every nest into the form that later passes expect.

    * ``memref.copy`` is a nest; a loop of one iteration is its body; a loop of none is nothing;
    * a load of a known constant is that constant;
    * a nest that writes only what nothing reads is gone;
    * allocations stand at the beginning of ``@main``, so that nests can move.

    Before::

        affine.for %i = 0 to 1 { %w = affine.load %weights[%i] ... }

    After::

        %w = arith.constant 2.500000e-01 : f32
    """

    name: ClassVar[str] = "normalize-nests"

    def prepare(self, module: Any) -> None:
        """Hoist allocations."""
        hoist_allocations(module)

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Normalize every nest, then drop dead ones."""
        del context
        for nest in sequence.nests():
            body = splice_loops(nest.body)
            _fold_constant_loads(body)
            remove_dead(body)
            # Re-writing is cheap, and gives every nest the same spelling.
            nest.replace(body)
        drop_dead_nests(sequence)


def hoist_allocations(module: Any) -> None:
    """Move static allocations, constants and views of them to the beginning of ``@main``.

    In the body of a loop or branch, to the beginning of the body; there also what is computed from
    variables of loops around alone.
    """
    from polyblocks import signature

    main = signature.main_of(module).body.blocks[0]
    blocks = [main]
    for op in nested_regions(main):
        blocks.extend(block for region in op.regions for block in region.blocks)
    for block in blocks:
        _hoist(block, block == main)


def _hoist(block: Any, is_main: bool) -> None:
    from polyblocks.affine.mlir.views import VIEWS

    movable = VIEWS | {"memref.alloc", "memref.get_global", "arith.constant"}
    if not is_main:
        movable |= {"affine.apply"}
    hoisted: set[Any] = set(block.arguments)

    def stands(value: Any) -> bool:
        """Whether a value is there where the block begins."""
        return value in hoisted or (not is_main and _block_of(value) != block)

    last: Any = None
    for op in list(block.operations):
        o = op.operation
        if o.name not in movable or not all(map(stands, o.operands)):
            continue
        hoisted.update(o.results)
        if last is None:
            first = block.operations[0].operation
            if first != o:
                o.move_before(first)
        else:
            o.move_after(last)
        last = o


def _block_of(value: Any) -> Any:
    from polyblocks.mlir import ir

    owner = value.owner
    return owner if isinstance(owner, ir.Block) else owner.operation.block


def splice_loops(nodes: list[Node]) -> list[Node]:
    """The nodes, where a loop of one iteration is its body, and one of none is nothing."""
    mapping: dict[Value, Value] = {}
    nodes = _splice(nodes, mapping)
    if mapping:
        replace_values(nodes, mapping)
    return nodes


def _splice(nodes: list[Node], mapping: dict[Value, Value]) -> list[Node]:
    out: list[Node] = []
    for node in nodes:
        if not isinstance(node, For):
            out.append(node)
            continue
        if node.trips == 0:
            mapping.update(zip(node.results, node.inits, strict=True))
            continue
        node.body = _splice(node.body, mapping)
        if node.var.extent == 1 and not node.bounded:
            mapping.update(zip(node.arguments, node.inits, strict=True))
            mapping.update(zip(node.results, node.yields, strict=True))
            out.extend(node.body)
        else:
            out.append(node)
    return out


def _fold_constant_loads(nodes: list[Node]) -> None:
    for i, node in enumerate(nodes):
        if isinstance(node, For):
            _fold_constant_loads(node.body)
        elif isinstance(node, Load) and node.buffer.constant is not None:
            constant = fold_constant_load(node)
            if constant is not None:
                nodes[i] = constant


def fold_constant_load(load: Load) -> Op | None:
    """The ``arith.constant`` that a load from a constant buffer is, if its index is constant."""
    buffer = load.buffer
    if buffer.constant is None:
        return None
    equal = all(v == buffer.constant[0] for v in buffer.constant[1:])
    if not equal and not all(e.is_constant for e in load.index):
        return None
    position = 0
    if not equal:
        for expr, extent in zip(load.index, buffer.shape, strict=True):
            position = position * extent + expr.const
    if not buffer.constant:
        return None
    return Op("arith.constant", [], {"value": buffer.constant[position]}, [load.result])


def drop_dead_nests(sequence: Sequence) -> None:
    """Remove stores to allocations that nothing reads, and what was done for them."""
    while True:
        # A view may be read instead of its base.
        read: set[Buffer] = {b.base for item in sequence.items for b in reads(item)}
        again = False
        for nest in sequence.nests():
            dead = {b for b in writes(nest) if b.base.kind == "alloc" and b.base not in read}
            if not dead:
                continue
            _drop_stores(nest.body, dead)
            remove_dead(nest.body)
            nest.replace()
            again = True
        sequence.items[:] = [i for i in sequence.items if not isinstance(i, Nest) or i.body]
        if not again:
            return


def _drop_stores(nodes: list[Node], buffers: set[Buffer]) -> None:
    nodes[:] = [n for n in nodes if not (isinstance(n, AnyStore) and n.buffer in buffers)]
    for node in nodes:
        if isinstance(node, For):
            _drop_stores(node.body, buffers)


__all__ = ["NormalizeNestsPass", "drop_dead_nests", "fold_constant_load", "splice_loops"]

"""normalize-nests: unit loops, constant loads and dead stores go; allocations come first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.affine.cleanup.constant_loads import fold_constant_load
from polyblocks.affine.cleanup.dead_nests import drop_dead_nests
from polyblocks.affine.cleanup.powers import multiply_powers
from polyblocks.affine.cleanup.splicing import splice_loops
from polyblocks.affine.mlir.regions import nested_regions
from polyblocks.affine.model import (
    For,
    Load,
    Node,
    Sequence,
    remove_dead,
)
from polyblocks.passes import facts
from polyblocks.passes.base import NestPass


@dataclass(frozen=True)
class NormalizeNestsPass(NestPass):
    """Bring every nest into the form that later passes expect.

    * ``memref.copy`` is a nest; a loop of one iteration is its body; a loop of none is nothing;
    * a load of a known constant is that constant, a square or a cube is a product;
    * a nest that writes only what nothing reads is gone;
    * allocations stand at the beginning of ``@main``, so that nests can move.

    Before::

        affine.for %i = 0 to 1 { %w = affine.load %weights[%i] ... }

    After::

        %w = arith.constant 2.500000e-01 : f32
    """

    name: ClassVar[str] = "normalize-nests"
    needs: ClassVar[frozenset[str]] = frozenset({facts.AFFINE_LOOPS})
    establishes: ClassVar[frozenset[str]] = frozenset(
        {facts.NESTS, facts.UNFUSED, facts.UNTILED, facts.WHOLE_LOOPS}
    )

    def prepare(self, module: Any) -> None:
        """Hoist allocations."""
        hoist_allocations(module)

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Normalize every nest, then drop dead ones."""
        del context
        for nest in sequence.nests():
            body = splice_loops(nest.body)
            _fold_constant_loads(body)
            multiply_powers(body)
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


def _fold_constant_loads(nodes: list[Node]) -> None:
    for i, node in enumerate(nodes):
        if isinstance(node, For):
            _fold_constant_loads(node.body)
        elif isinstance(node, Load) and node.buffer.constant is not None:
            constant = fold_constant_load(node)
            if constant is not None:
                nodes[i] = constant

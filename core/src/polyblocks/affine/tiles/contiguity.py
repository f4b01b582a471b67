"""Whether accesses walk a buffer as its loops count, so that an element belongs to an iteration."""

from __future__ import annotations

from collections.abc import Iterable

from polyblocks.affine.access import address
from polyblocks.affine.expr import Expr, Var
from polyblocks.affine.model import AffineAccess, Buffer, For, Node
from polyblocks.affine.tiles.fusion_stages import FusionStage

#: Iterations of one thread that are written out, so that the elements it keeps have registers.
TURNS = 32
#: Nodes of all of these iterations together.
NODES = 640


def written_out(sizes: Iterable[int]) -> int:
    """How many iterations of bodies with these numbers of nodes may be unrolled."""
    return min(TURNS, NODES // max((*sizes, 1)))


def held_by_iterations(stages: list[FusionStage], buffer: Buffer) -> bool:
    """Whether the stages touch each element of a buffer in the same iteration.

    The thread that runs that iteration of one of them can then run that of the others, and keep
    the element. They do if all walk the buffer as their loops count, or all of them in the same
    way; loops that outer ones do not change count through whole rows.
    """
    if any(buffer in stage.gathered for stage in stages):
        return False
    found = [a for stage in stages for a in _accesses(stage.nest.body, buffer, [])]
    if all(_in_order(access, loops) for access, loops in found):
        return True
    return len({_way(access, loops) for access, loops in found}) == 1


def _way(access: AffineAccess, loops: list[Var]) -> tuple[object, ...]:
    """How an access walks, whatever its loops are called."""
    place: dict[Var, int] = {v: n for n, v in enumerate(loops)}
    terms = []
    for expr in access.index:
        plain = [(place[a], c) for a, c in expr.terms if isinstance(a, Var) and a in place]
        if len(plain) != len(expr.terms):
            return (id(access),)
        terms.append((expr.const, tuple(sorted(plain))))
    return tuple(terms), tuple(v.extent for v in loops)


def _accesses(
    nodes: list[Node], buffer: Buffer, around: list[Var]
) -> list[tuple[AffineAccess, list[Var]]]:
    found: list[tuple[AffineAccess, list[Var]]] = []
    for node in nodes:
        if isinstance(node, For):
            found += _accesses(node.body, buffer, [*around, node.var])
        elif isinstance(node, AffineAccess) and node.buffer is buffer:
            found.append((node, around))
    return found


def _in_order(access: AffineAccess, loops: list[Var]) -> bool:
    number = Expr(0)
    for var in loops:
        number = number * var.extent + var
    return address(access.buffer, access.index) == number

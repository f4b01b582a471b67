"""Where nests stand: alone, or one after the other inside the loops of a tile.

After tile fusion the body of a nest may be tile loops around several sub-nests, which share
buffers of the tile's size; so may nests of the program be. The innermost of the loops around is
marked (``For.tile``), and a pass on nests works on each sub-nest as if it stood alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from polyblocks.affine.model import (
    AffineAccess,
    Alloca,
    For,
    Load,
    Nest,
    Node,
    Pure,
    Sequence,
    Store,
    remove_dead,
    walk,
)

#: Gets a sub-nest's nodes and the tile loops around it (none for a nest that stands alone);
#: returns the nodes that take their place, or None to leave them.
Change = Callable[[list[Node], list[For]], "list[Node] | None"]


def parallel_shell(nodes: list[Node]) -> tuple[list[For], list[Node]]:
    """The perfectly nested loops that carry no values, from the outside in, and what they hold."""
    loops: list[For] = []
    while len(nodes) == 1 and isinstance(nodes[0], For) and not nodes[0].inits:
        loops.append(nodes[0])
        nodes = nodes[0].body
    return loops, nodes


def perfect_loops(nodes: list[Node]) -> tuple[list[For], list[Node]]:
    """The loops that are nested perfectly from the outside in, and the innermost body."""
    loops: list[For] = []
    while len(nodes) == 1 and isinstance(nodes[0], For):
        loops.append(nodes[0])
        nodes = nodes[0].body
    return loops, nodes


def tile_of(nodes: list[Node]) -> tuple[list[For], list[Node]]:
    """The loops around the tile of a nest, from the outside in, and what the tile holds.

    Beside the loop over tiles there may be others that fill panels for them.
    """
    loops: list[For] = []
    while True:
        more, nodes = parallel_shell(nodes)
        loops += more
        inner = [n for n in nodes if isinstance(n, For) and _goes_over_tiles(n)]
        if len(inner) != 1:
            return loops, nodes
        nodes = [*inner]


def _goes_over_tiles(loop: For) -> bool:
    """Whether the tiles of a loop have buffers of their own; a product in a tile is one piece."""
    loops, inner = parallel_shell([loop])
    if not loops or loops[0].trips < 2 or not loops[-1].tile:
        return False
    return any(isinstance(n, Alloca) for n in inner)


def straight_loops(
    nodes: list[Node], *without: type[Node], bounded: bool = False
) -> tuple[list[For], list[Node]] | None:
    """The loops of a perfect nest that carries no values, and the straight-line code in them.

    Args:
        nodes: of a nest.
        without: classes of nodes that the code must not have.
        bounded: whether loops may run over a part of their variables' values.

    Returns:
        None for any other nest.
    """
    loops, body = perfect_loops(nodes)
    if any(loop.inits or (loop.bounded and not bounded) for loop in loops):
        return None
    return None if any(isinstance(n, (For, *without)) for n in body) else (loops, body)


def is_affine_code(nodes: Iterable[Node], *also: type[Node]) -> bool:
    """Whether nodes are arithmetic and affine accesses, or of the classes ``also``."""
    return all(isinstance(n, (Pure, AffineAccess, *also)) for n in nodes)


def copy_of(nodes: list[Node]) -> tuple[list[For], Load, Store] | None:
    """The loops, the load and the store of a nest that does nothing but copy; None of others."""
    found = straight_loops(nodes)
    if found is None or len(found[1]) != 2:
        return None
    loops, (load, store) = found
    if not isinstance(load, Load) or not isinstance(store, Store) or load.where:
        return None
    return (loops, load, store) if store.value is load.result else None


def has_register_tile(nodes: list[Node]) -> bool:
    """Whether some of these nodes are made for registers, and stay as they are."""
    return any(isinstance(n, For) and (n.lanes or n.unit) for n in walk(nodes))


def mark_tiles(nodes: list[Node]) -> None:
    """Mark the loops whose bodies hold sub-nests and not just one computation."""
    loops, inner = parallel_shell(nodes)
    # A register tile is one computation.
    if not _several(inner) or any(loop.lanes or loop.unit for loop in loops):
        return
    if loops:
        loops[-1].tile = True
    for node in inner:
        if isinstance(node, For):
            mark_tiles([node])


def _several(nodes: list[Node]) -> bool:
    """Whether these nodes are sub-nests and not just one computation."""
    loops = [n for n in nodes if isinstance(n, For)]
    if any(isinstance(n, Alloca) for n in nodes) or len(loops) > 1:
        return bool(loops)
    return bool(loops) and len(nodes) > 1 and not loops[0].inits


def change_subnests(nest: Nest, change: Change) -> bool:
    """Offer every sub-nest to ``change``; whether any of them changed.

    A sub-nest is a loop in a tile with all that it contains; a nest that is no tile is its own
    only sub-nest.
    """
    new = _change(nest.body, [], change)
    if new is None:
        return False
    nest.replace(new)
    return True


def _change(nodes: list[Node], around: list[For], change: Change) -> list[Node] | None:
    loops, inner = parallel_shell(nodes)
    tile = loops[-1].tile if loops else _several(inner)
    if not tile:
        return None if has_register_tile(nodes) else change(nodes, around)
    out: list[Node] = []
    changed = False
    for node in inner:
        new = _change([node], [*around, *loops], change) if isinstance(node, For) else None
        out.extend([node] if new is None else new)
        changed = changed or new is not None
    if not changed:
        return None
    # In place: the loops around hold this list.
    inner[:] = out
    return nodes


def separate_loops(sequence: Sequence, nest: Nest) -> list[Nest]:
    """Make a nest of its own of each loop, if a nest's body is nothing but independent loops.

    Returns all of them, in order; the first one is ``nest``.
    """
    if len(nest.body) < 2 or not all(isinstance(n, For) and not n.inits for n in nest.body):
        return [nest]
    first, *rest = nest.body
    nest.replace([first])
    nests = [nest]
    for loop in rest:
        tail = Nest([loop], [], changed=True)
        tail.name, tail.kind, tail.sources = f"{nest.name}_tail", nest.kind, nest.sources
        sequence.items.insert(sequence.items.index(nests[-1]) + 1, tail)
        nests.append(tail)
    for each in nests:
        remove_dead(each.body)
        each.replace()
    return nests

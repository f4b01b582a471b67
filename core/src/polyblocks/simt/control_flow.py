"""The order in which waiting lanes are served.

A weak topological order (Bourdoncle, "Efficient chaotic iteration strategies with widenings",
1993): the blocks of a loop are contiguous and start with its header, everything else is in
topological order. Running the lowest waiting block first then lets lanes that left a loop or took
a short branch wait until the others have caught up.
"""

from __future__ import annotations

from collections.abc import Sequence


def serving_order(successors: Sequence[Sequence[int]], entry: int = 0) -> list[int]:
    """The reachable blocks in the order in which they are served.

    Args:
        successors: of each block.
        entry: the block that runs first.
    """
    out: list[int] = []
    _order(set(range(len(successors))), [entry], successors, out)
    return out


def _order(
    nodes: set[int], entries: Sequence[int], successors: Sequence[Sequence[int]], out: list[int]
) -> None:
    for component in reversed(_components(nodes, entries, successors)):
        # The search came in through the one that it finished last: a loop's header.
        header = component[-1]
        out.append(header)
        if len(component) > 1:
            _order(set(component) - {header}, successors[header], successors, out)


def _components(
    nodes: set[int], entries: Sequence[int], successors: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Strongly connected components reachable from the entries, in the order they are finished.

    Tarjan's algorithm without recursion; each component lists the one it was entered by last.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    held: set[int] = set()
    found: list[list[int]] = []
    # Several entries are searched from the last one on, so that the first comes first in the order.
    work: list[tuple[int, int]] = [(entry, 0) for entry in entries if entry in nodes]
    while work:
        node, position = work.pop()
        if position == 0:
            if node in index:
                continue
            index[node] = low[node] = len(index)
            stack.append(node)
            held.add(node)
        following = [s for s in successors[node] if s in nodes]
        for at in range(position, len(following)):
            other = following[at]
            if other not in index:
                work.append((node, at + 1))
                work.append((other, 0))
                break
            if other in held:
                low[node] = min(low[node], index[other])
        else:
            if low[node] == index[node]:
                component = []
                while True:
                    member = stack.pop()
                    held.discard(member)
                    component.append(member)
                    if member == node:
                        break
                found.append(component)
            if work and work[-1][1] > 0:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
    return found

"""Register tiles in the order in which they run: lanes of vectors and of units innermost."""

from __future__ import annotations

from dataclasses import replace

from polyblocks.affine.model import For, Node
from polyblocks.affine.multiply import UnitTile


def in_execution_order(nodes: list[Node]) -> list[Node]:
    """The nodes with the lanes of register tiles inside of the loops over rows and steps.

    A tile is written as a loop over lanes around loops over rows and steps, all of whose code is
    done for all lanes at once: lanes touch the lines of an operand together, and not one after the
    other. A tile of a matrix unit is done step by step. The result is for counting instructions and
    accesses: nodes keep their operands, even if these are not defined in front of them any more::

        lanes { rows { A; steps { B }; C } }   ->   rows { lanes { A; C }; steps { lanes { B } } }
        rows { columns { A; steps { B }; C } } ->   steps { rows { columns { B } } }

    Nodes without such loops are returned as they are.
    """
    out: list[Node] = []
    changed = False
    for node in nodes:
        new = _ordered(node) if isinstance(node, For) else [node]
        changed = changed or new != [node]
        out += new
    return out if changed else nodes


def _ordered(loop: For) -> list[Node]:
    if loop.lanes:
        return _inside(loop, loop.body)
    if loop.unit and not loop.inits:
        tile = UnitTile.of(loop)
        columns = For(tile.column, [tile.a, tile.b, tile.multiply])
        return [For(tile.step, [For(tile.row, [columns])], unit=loop.unit)]
    body = in_execution_order(loop.body)
    return [loop] if body is loop.body else [replace(loop, body=body)]


def _inside(lanes: For, nodes: list[Node]) -> list[Node]:
    """The nodes of a loop over lanes, each straight part in a loop over them of its own."""
    straight: list[Node] = [n for n in nodes if not isinstance(n, For)]
    inner: list[Node] = [
        replace(n, body=_inside(lanes, n.body)) for n in nodes if isinstance(n, For)
    ]
    return [*([replace(lanes, body=straight)] if straight or not inner else []), *inner]

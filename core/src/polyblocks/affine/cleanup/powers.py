"""Powers of small exponents are products, whose costs and sums every pass knows, or the base."""

from __future__ import annotations

from polyblocks.affine.element import F32, F64, dtype_of
from polyblocks.affine.model import For, Node, Op, Value, replace_values
from polyblocks.affine.ops import Ops

#: Exponents. Halves would round twice in a cube.
_EXPONENTS = (2.0, 3.0)
_TYPES = (F32, F64)


def multiply_powers(nodes: list[Node]) -> int:
    """Make ``math.powf`` of constant exponents products, in place; how many there were."""
    count, same = 0, dict[Value, Value]()
    constants = {
        n.results[0]: n.attributes["value"]
        for n in nodes
        if isinstance(n, Op) and n.name == "arith.constant"
    }
    for node in list(nodes):
        if isinstance(node, For):
            count += multiply_powers(node.body)
        elif isinstance(node, Op) and node.name == "math.powf":
            base, exponent = node.operands
            number = getattr(constants.get(exponent), "value", None)
            if number == 1.0:
                same[node.results[0]] = base
                count += 1
                continue
            if number not in _EXPONENTS or dtype_of(base.type) not in _TYPES:
                continue
            ops = Ops(location=node.location)
            first = base if number == 2.0 else ops.op("arith.mulf", [base, base])
            product = Op("arith.mulf", [first, base], {}, node.results, node.location)
            at = nodes.index(node)
            nodes[at : at + 1] = [*ops.out, product]
            count += 1
    # One may be the base of another one, or stand in a loop.
    if same:
        replace_values(nodes, same)
    return count

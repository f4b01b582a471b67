"""Operations of nodes: the work that the cost model converts to time, on any target."""

from __future__ import annotations

from collections.abc import Mapping

from polyblocks.affine.model import For, IndirectAccess, Node, Op, Value
from polyblocks.affine.multiply import Multiply
from polyblocks.affine.ops import is_constant
from polyblocks.attributes import GCD

#: Nodes of one straight-line body: more spill registers and take long to compile.
MAX_NODES = 600
#: Operations per result of scalar ops that are not one instruction, from the lengths of the
#: generated expansions.
OPERATIONS = {
    "arith.constant": 0,
    "arith.divf": 4,
    "arith.remf": 20,
    "arith.divsi": 20,
    "arith.divui": 20,
    "arith.remsi": 20,
    "arith.remui": 20,
    "arith.extf": 1,
    "arith.select": 1,
    "arith.bitcast": 0,
    "arith.index_cast": 0,
    "arith.extsi": 1,
    "math.absf": 1,
    "math.cttz": 3,
    "math.fma": 2,
    "math.sqrt": 4,
    "math.rsqrt": 6,
    "math.floor": 1,
    "math.ceil": 1,
    "math.copysign": 2,
    # Measured by `python -m bench.vector_math`, in multiply-adds of a vector, times two.
    "math.expm1": 30,
    "math.log": 27,
    "math.log2": 27,
    "math.log10": 30,
    "math.log1p": 50,
    "math.sin": 32,
    "math.cos": 32,
    "math.tan": 60,
    "math.asin": 46,
    "math.acos": 46,
    "math.atan": 42,
    "math.atan2": 57,
    "math.sinh": 40,
    "math.cosh": 28,
    "math.tanh": 30,
    "math.asinh": 90,
    "math.acosh": 90,
    "math.atanh": 90,
    "math.erf": 38,
    "math.erfc": 80,
    "math.cbrt": 120,
    "math.powf": 150,
    # Of numbers of some digits; those of all bits take six times as long.
    GCD: 120,
}
#: Any other function of the math dialect: an exponential, or a power that is mostly constant.
FUNCTION = 20
#: Operations of a function for each number that it has in it, such as a coefficient.
PER_CONSTANT = 4

#: Floating-point ops of the arith dialect that count as one operation each.
_FLOPS = frozenset(
    f"arith.{name}"
    for name in "addf subf mulf divf remf negf maximumf minimumf maxnumf minnumf".split()
)
#: Floating-point ops of the math dialect that chips do in an instruction or two.
_SIMPLE = {"math.fma": 2, "math.sqrt": 1, "math.absf": 1, "math.floor": 1, "math.ceil": 1}


def operations(nodes: list[Node]) -> int:
    """Instructions of one execution of straight-line nodes (loops inside count once).

    A product that only sums use is part of a fused multiply-add.
    """
    products = {n.results[0] for n in nodes if isinstance(n, Op) and n.name == "arith.mulf"}
    summed: set[Value] = set()
    used: set[Value] = set()
    for node in nodes if products else ():
        sums = isinstance(node, Op) and node.name in ("arith.addf", "arith.subf")
        (summed if sums else used).update(products.intersection(node.uses))
    total = -operation_cost("arith.mulf") * len(summed - used)
    for node in nodes:
        if isinstance(node, Op):
            total += operation_cost(node.name)
        elif isinstance(node, IndirectAccess):
            total += 4
        elif isinstance(node, For):
            total += operations(node.body)
    return total


def depth(nodes: list[Node]) -> int:
    """Instructions on the longest chain of straight-line nodes that wait for each other."""
    at: dict[Value, int] = {}
    longest = 0
    for node in nodes:
        if not isinstance(node, Op):
            continue
        end = operation_cost(node.name) + max((at.get(v, 0) for v in node.operands), default=0)
        longest = max(longest, end)
        at.update(dict.fromkeys(node.results, end))
    return longest


def constants(nodes: list[Node]) -> int:
    """Numbers that the functions in straight-line nodes have in them, about; each function once."""
    names = {n.name for n in nodes if isinstance(n, Op) and n.name.startswith("math.")}
    return sum(operation_cost(name) // PER_CONSTANT for name in names)


def alive(nodes: list[Node]) -> int:
    """Values of straight-line nodes that are still needed, where these are most; no constants."""
    made = {r for n in nodes if not is_constant(n) for r in n.defines}
    needed: set[Value] = set()
    most = 0
    for node in reversed(nodes):
        needed -= set(node.defines)
        needed |= made & set(node.uses)
        most = max(most, len(needed))
    return most


def operation_cost(name: str) -> int:
    """Scalar operations of one op."""
    if name in OPERATIONS:
        return OPERATIONS[name]
    return FUNCTION if name.startswith("math.") else 1


def work(nodes: list[Node]) -> int:
    """Nodes executed, all iterations of all loops together."""
    total = 0
    for node in nodes:
        if isinstance(node, For):
            total += node.trips * work(node.body)
        elif isinstance(node, Op):
            total += max(1, operation_cost(node.name))
        else:
            total += 1
    return total


def flops(op: Op, in_a_word: Mapping[str, int]) -> int:
    """Floating-point operations of one op.

    Args:
        op: the op.
        in_a_word: numbers that a matrix unit multiplies at a time, by its name.
    """
    if isinstance(op, Multiply):
        return 2 * in_a_word.get(op.unit, 1)
    if op.name in _FLOPS:
        return 1
    if op.name in _SIMPLE:
        return _SIMPLE[op.name]
    return operation_cost(op.name) if op.name.startswith("math.") else 0

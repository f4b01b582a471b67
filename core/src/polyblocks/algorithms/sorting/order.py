"""The order that the comparator of a ``tm_tensor.sort`` describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Order:
    """Elements are sorted by some bits of the first operand, read as one integer.

    Attributes:
        bits: width of the first operand's type.
        shift: bits below this one are not part of the key.
        signed: whether the key is signed.
        descending: whether large keys come first.
        infinity: the key of infinity, where keys are floating-point numbers in IEEE 754's total
            order and are compared as numbers: zeros are equal, and so are NaN, the greatest; else
            0.
    """

    bits: int
    shift: int = 0
    signed: bool = True
    descending: bool = False
    infinity: int = 0

    def before(self, first: Any, second: Any) -> Any:
        """Whether a key comes before another one, at the insertion point."""
        from polyblocks.algorithms.sorting import tensors as t

        predicate = ("s" if self.signed else "u") + ("gt" if self.descending else "lt")
        return t.compare(predicate, self.compared(first), self.compared(second))

    def compared(self, key: Any) -> Any:
        """The number of an element of the first operand that is compared, as code."""
        from polyblocks.algorithms.sorting import loops as w
        from polyblocks.algorithms.sorting import tensors as t

        if self.shift:
            key = w.operation("ShRSIOp", key, t.constant(key.type, self.shift))
        if not self.infinity:
            return key
        minus = t.constant(key.type, -1)
        key = t.select(t.compare("eq", key, minus), t.constant(key.type, 0), key)
        # -infinity becomes the least number, which lets NaN with a sign come behind the other ones.
        least = -(1 << (self.bits - 1))
        key = w.operation("AddIOp", key, t.constant(key.type, least + self.infinity + 1))
        return w.operation("MinSIOp", key, t.constant(key.type, least + 2 * self.infinity + 2))


#: Attribute of a sort: :attr:`Order.infinity`.
INFINITY = "polyblocks.infinity"
#: Attribute of a sort: the number of the operand whose elements the keys are, as they are or, if it
#: is of floating-point numbers, in their total order.
KEYED = "polyblocks.keyed"


def create_sort(tensors: list[Any], dim: int, order: Order, keyed: int | None = None) -> list[Any]:
    """A ``tm_tensor.sort``, at the insertion point.

    Args:
        tensors: keys and what is sorted with them, of one shape.
        dim: the dimension along which rows lie.
        order: of the keys.
        keyed: the number of the tensor whose elements the keys are, if there is one.

    Returns:
        The sorted tensors.
    """
    from polyblocks.mlir import ir

    i64 = ir.IntegerType.get_signless(64)
    attributes = {
        "dimension": ir.IntegerAttr.get(i64, dim),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(tensors)]),
    }
    if order.infinity:
        attributes[INFINITY] = ir.IntegerAttr.get(i64, order.infinity)
    if keyed is not None:
        attributes[KEYED] = ir.IntegerAttr.get(i64, keyed)
    op = ir.Operation.create(
        "tm_tensor.sort",
        results=[tensor.type for tensor in tensors],
        operands=tensors,
        attributes=attributes,
        regions=1,
    )
    types = [tensor.type.element_type for tensor in tensors for _ in range(2)]
    where = ir.Location.current
    block = ir.Block.create_at_start(op.regions[0], types, arg_locs=[where] * len(types))
    with ir.InsertionPoint(block):
        before = order.before(*list(block.arguments)[:2])
        ir.Operation.create("tm_tensor.yield", operands=[before])
    return list(op.results)


def order_of(op: Any) -> Order | None:
    """The order of a ``tm_tensor.sort``; None if its comparator is of another form.

    Forms are ``cmpi slt``, ``sgt``, ``ult`` and ``ugt`` of the first operand's two elements, which
    may both be shifted to the right by a constant before; and, with the attribute
    :data:`INFINITY`, what :meth:`Order.compared` makes of these.
    """
    from polyblocks.mlir import dialect, ir

    block = op.regions[0].blocks[0]
    left, right = list(block.arguments)[:2]
    (value,) = block.operations[len(block.operations) - 1].operation.operands
    if isinstance(value, ir.BlockArgument) or value.owner.operation.name != "arith.cmpi":
        return None
    compare = value.owner.operation
    predicates = dialect("arith").CmpIPredicate
    known = {
        predicates.slt: (True, False),
        predicates.sgt: (True, True),
        predicates.ult: (False, False),
        predicates.ugt: (False, True),
    }
    direction = known.get(predicates(ir.IntegerAttr(compare.attributes["predicate"]).value))
    if INFINITY in op.attributes and direction is not None:
        infinity = ir.IntegerAttr(op.attributes[INFINITY]).value
        return Order(left.type.width, 0, *direction, infinity)
    sources = [_shifted(operand) for operand in compare.operands]
    if direction is None or sources[0][1] != sources[1][1]:
        return None
    if [source for source, _ in sources] != [left, right]:
        return None
    return Order(left.type.width, sources[0][1], *direction)


def _shifted(value: Any) -> tuple[Any, int]:
    """A value and by how many bits it was shifted to the right, keeping its sign."""
    from polyblocks.mlir import ir

    if isinstance(value, ir.BlockArgument) or value.owner.operation.name != "arith.shrsi":
        return value, 0
    source, amount = value.owner.operation.operands
    if isinstance(amount, ir.BlockArgument) or amount.owner.operation.name != "arith.constant":
        return value, 0
    return source, int(ir.IntegerAttr(amount.owner.operation.attributes["value"]).value)

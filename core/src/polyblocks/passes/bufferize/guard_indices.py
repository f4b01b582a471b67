"""guard-indices: an index that is computed at run time is checked before memory is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.passes import facts

LOOPS = {"affine.for", "affine.parallel", "scf.for", "scf.parallel", "scf.forall"}
#: Casts that keep the numbers that fit.
CASTS = {"arith.index_cast", "arith.index_castui", "arith.extsi", "arith.trunci"}
#: How many casts, and conditions joined by "and", to look through.
DEPTH = 4

Range = tuple[int, int]
_ALL: Range = (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class GuardIndicesPass:
    """Put an assertion in front of every load and store at run-time indices.

    Loop variables, and affine expressions of them, are in bounds by construction, and so is what
    was clamped, or what assertions before it keep there. Runs while accesses go through views: an
    index of a view may be out of its bounds and meet another element of what it is a view of.

    Before::

        %x = memref.load %table[%i] : memref<10xf32>

    After::

        %ok = arith.cmpi ult, %i, %c10 : index
        cf.assert %ok, "index out of range: it must be at least 0 and less than 10"
        %x = memref.load %table[%i] : memref<10xf32>
    """

    name: ClassVar[str] = "guard-indices"
    needs: ClassVar[frozenset[str]] = frozenset({facts.AFFINE_LOOPS})

    def run(self, module: Any, context: Any) -> None:
        """Rewrite in place."""
        from polyblocks.mlir import ir

        del context
        accesses: list[tuple[int, Any]] = []
        checks = _Checks()
        on = ir.WalkResult.ADVANCE
        order = 0

        def visit(op: Any) -> Any:
            nonlocal order
            order += 1
            name = op.name
            if name in ("memref.load", "memref.store"):
                accesses.append((order, op))
            elif name == "cf.assert":
                checks.add(order, op)
            return on

        module.operation.walk(visit)
        with module.context, ir.Location.unknown():
            for place, op in accesses:
                first = 1 if op.name == "memref.load" else 2
                shape = op.operands[first - 1].type.shape
                known = checks.before(place, op)
                seen: dict[Any, int] = {}
                for index, extent in zip(list(op.operands)[first:], shape, strict=True):
                    if extent < 0 or seen.get(index, extent + 1) <= extent or _by_loops(index):
                        continue
                    low, high = _range(index, known)
                    if low < 0 or high >= extent:
                        seen[index] = extent
                        _guard(op, index, extent)


class _Checks:
    """Ranges of values from assertions."""

    def __init__(self) -> None:
        #: Value -> of each assertion, its place in the order of the program, block, and bounds.
        self._found: dict[Any, list[tuple[int, Any, Range]]] = {}

    def add(self, order: int, op: Any) -> None:
        """Take note of an assertion."""
        for value, bounds in _bounds(op.operands[0]):
            self._found.setdefault(value, []).append((order, op.block, bounds))

    def before(self, order: int, op: Any) -> Callable[[Any], list[Range]]:
        """The ranges of a value at an operation, as a function of the value."""
        blocks = _blocks_of(op) if self._found else []

        def known(value: Any) -> list[Range]:
            found = self._found.get(value, ())
            return [bounds for at, block, bounds in found if at < order and block in blocks]

        return known


def _bounds(condition: Any, depth: int = DEPTH) -> Iterator[tuple[Any, Range]]:
    """Values that a condition compares with numbers, and what they are where it holds."""
    from polyblocks.mlir import dialect, ir

    if depth == 0 or isinstance(condition, ir.BlockArgument):
        return
    op = condition.owner.operation
    if op.name == "arith.andi":
        for operand in op.operands:
            yield from _bounds(operand, depth - 1)
    if op.name != "arith.cmpi":
        return
    predicates = dialect("arith").CmpIPredicate
    predicate = predicates(ir.IntegerAttr(op.attributes["predicate"]).value)
    value, number = op.operands[0], _number(op.operands[1])
    if number is None:
        return
    known = {
        predicates.eq: (number, number),
        predicates.slt: (_ALL[0], number - 1),
        predicates.sle: (_ALL[0], number),
        predicates.sgt: (number + 1, _ALL[1]),
        predicates.sge: (number, _ALL[1]),
        # Read without a sign, a negative number is larger than one that is not.
        **({predicates.ult: (0, number - 1), predicates.ule: (0, number)} if number >= 0 else {}),
    }
    if predicate in known:
        yield value, known[predicate]


def _number(value: Any) -> int | None:
    from polyblocks.mlir import ir

    if isinstance(value, ir.BlockArgument) or value.owner.operation.name != "arith.constant":
        return None
    attribute = value.owner.operation.attributes["value"]
    return int(ir.IntegerAttr(attribute).value) if isinstance(attribute, ir.IntegerAttr) else None


def _range(value: Any, known: Callable[[Any], list[Range]], depth: int = DEPTH) -> Range:
    """The range of an integer.

    Args:
        value: the integer.
        known: what assertions say of a value.
        depth: how many casts to look through.
    """
    from polyblocks.affine.mlir.value_ranges import range_of
    from polyblocks.mlir import ir

    ranges = [range_of(value) or _ALL, *known(value)]
    if depth and not isinstance(value, ir.BlockArgument):
        op = value.owner.operation
        if op.name in CASTS:
            inner = _range(op.operands[0], known, depth - 1)
            limit = 1 << (_width(value) - 1)
            least = 0 if op.name == "arith.index_castui" else -limit
            if least <= inner[0] and inner[1] < limit:
                ranges.append(inner)
    return max(r[0] for r in ranges), min(r[1] for r in ranges)


def _width(value: Any) -> int:
    from polyblocks.mlir import ir

    return int(value.type.width) if isinstance(value.type, ir.IntegerType) else 64


def _blocks_of(op: Any) -> list[Any]:
    """The blocks that an operation is in, from the inside out."""
    from polyblocks.mlir import ir

    blocks = []
    while op is not None and not isinstance(op, ir.Module) and op.name != "builtin.module":
        blocks.append(op.block)
        op = op.parent.operation if op.parent is not None else None
    return blocks


def _by_loops(value: Any) -> bool:
    """Whether an index is a loop's variable, or an affine expression of such."""
    from polyblocks.mlir import ir

    if isinstance(value, ir.BlockArgument):
        return value.owner.owner.operation.name in LOOPS and value.arg_number == 0
    op = value.owner.operation
    return op.name == "affine.apply" and all(
        _by_loops(operand) or _number(operand) is not None for operand in op.operands
    )


def _guard(op: Any, index: Any, extent: int) -> None:
    from polyblocks.mlir import dialect, ir

    arith, cf = dialect("arith"), dialect("cf")
    with ir.InsertionPoint(op):
        limit = arith.ConstantOp(ir.IndexType.get(), extent)
        # As an unsigned number, a negative index is too large as well.
        fits = arith.CmpIOp(arith.CmpIPredicate.ult, index, limit)
        message = f"index out of range: it must be at least 0 and less than {extent}"
        cf.AssertOp(fits, message, loc=op.location)

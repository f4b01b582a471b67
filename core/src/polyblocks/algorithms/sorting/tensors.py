"""Short forms for the tensor code of sorts: ``linalg.generic`` and integer arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.mlir import dialect, ir

#: A tensor and the index of the element that a body reads or updates: numbers of loops, or
#: affine expressions of them.
Operand = tuple[Any, Sequence[Any]]


def integer(bits: int) -> Any:
    """The signless integer type of a width."""
    return ir.IntegerType.get_signless(bits)


def constant(kind: Any, value: int) -> Any:
    """A constant of an integer type or of index."""
    return dialect("arith").ConstantOp(kind, value).result


def greatest(kind: Any) -> int:
    """The greatest signed number of an integer type."""
    return (1 << (int(kind.width) - 1)) - 1


def compare(predicate: str, x: Any, y: Any) -> Any:
    """``arith.cmpi``."""
    arith = dialect("arith")
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), x, y).result


def select(condition: Any, x: Any, y: Any) -> Any:
    """``condition ? x : y``."""
    return dialect("arith").SelectOp(condition, x, y).result


def loop_index(loop: int, kind: Any) -> Any:
    """The number of a loop's iteration as an integer, in the body of a generic."""
    return as_integer(dialect("linalg").IndexOp(loop).result, kind)


def as_integer(index: Any, kind: Any) -> Any:
    """A number of type index as an integer."""
    return dialect("arith").IndexCastOp(kind, index).result


def as_index(value: Any, extent: int) -> Any:
    """An integer that is at least 0 and less than ``extent`` as an index.

    It is clamped, so that no check of it is needed.
    """
    arith = dialect("arith")
    safe = arith.MinUIOp(value, constant(value.type, extent - 1)).result
    return arith.IndexCastUIOp(ir.IndexType.get(), safe).result


def extract(tensor: Any, index: Sequence[Any]) -> Any:
    """The element of a tensor at a run-time index."""
    return dialect("tensor").ExtractOp(tensor, list(index)).result


def filled(shape: Sequence[int], kind: Any, value: int) -> Any:
    """A tensor of one number."""
    empty = dialect("tensor").EmptyOp(list(shape), kind).result
    return dialect("linalg").fill(constant(kind, value), outs=[empty])


def generic(
    extents: Sequence[int],
    reduced: int,
    inputs: Sequence[Operand],
    outs: Sequence[Operand],
    body: Callable[[list[Any], list[Any]], list[Any]],
) -> list[Any]:
    """A ``linalg.generic``.

    Args:
        extents: of the loops.
        reduced: how many of them, the last ones, are reductions.
        inputs, outs: the operands.
        body: from the scalars of the inputs and of the outs to those of the results.

    Returns:
        The results, one for each of ``outs``.
    """
    linalg, tensor = dialect("linalg"), dialect("tensor")
    count, read = len(extents), len(inputs)
    known = {index for _, indices in (*inputs, *outs) for index in indices if _is_loop(index)}
    unknown = [loop for loop in range(count) if loop not in known]
    if unknown:
        # Its shape says how many iterations the other loops have.
        shape = tensor.EmptyOp([extents[loop] for loop in unknown], integer(1)).result
        inputs = [*inputs, (shape, unknown)]
    maps = [
        ir.AffineMapAttr.get(ir.AffineMap.get(count, 0, [_expr(index) for index in indices]))
        for _, indices in (*inputs, *outs)
    ]
    kinds = ["parallel"] * (count - reduced) + ["reduction"] * reduced
    op = linalg.GenericOp(
        [value.type for value, _ in outs],
        [value for value, _ in inputs],
        [value for value, _ in outs],
        ir.ArrayAttr.get(maps),
        ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in kinds]),
    )
    types = [value.type.element_type for value, _ in (*inputs, *outs)]
    where = ir.Location.current
    block = ir.Block.create_at_start(op.regions[0], types, arg_locs=[where] * len(types))
    scalars = list(block.arguments)
    with ir.InsertionPoint(block):
        linalg.YieldOp(body(scalars[:read], scalars[len(inputs) :]))
    return list(op.results)


def computed(
    shape: Sequence[int],
    kinds: Sequence[Any],
    inputs: Sequence[Operand],
    body: Callable[[list[Any]], list[Any]],
) -> list[Any]:
    """Tensors of one shape and of these element types, computed element by element."""
    tensor = dialect("tensor")
    loops = list(range(len(shape)))
    outs = [(tensor.EmptyOp(list(shape), kind).result, loops) for kind in kinds]
    return generic(shape, 0, inputs, outs, lambda scalars, _: body(scalars))


def _is_loop(index: Any) -> bool:
    return isinstance(index, int)


def _expr(index: Any) -> Any:
    return ir.AffineDimExpr.get(index) if isinstance(index, int) else index

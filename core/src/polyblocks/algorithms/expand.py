"""Calls of algorithms in a program on tensors become their loops.

While a frontend lowers a program, a call is a ``linalg.generic`` whose body means nothing: what
rewrites programs on tensors leaves it as it is::

    %l, %info = linalg.generic {maps, iterators}
        ins(%a) outs(%empty, %none) attrs = {polyblocks.algorithm = "cholesky"}

:func:`expand` replaces it by loops on buffers::

    %b = bufferization.to_buffer %a read_only
    %m = memref.alloc() : memref<8x3x3xf32>
    affine.for %i = 0 to 8 { ... }
    %l = bufferization.to_tensor %m restrict writable
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from polyblocks import mlir
from polyblocks.affine.element import element_bytes
from polyblocks.affine.mlir.writer import write_nodes
from polyblocks.affine.model import Buffer
from polyblocks.algorithms.code import Code
from polyblocks.algorithms.factorizations.bidiagonal_qr import singular_vectors
from polyblocks.algorithms.factorizations.cholesky import cholesky
from polyblocks.algorithms.factorizations.implicit_qr import symmetric_eigen
from polyblocks.algorithms.factorizations.lu import lu, permutation
from polyblocks.algorithms.factorizations.qr import householder, reflections
from polyblocks.algorithms.factorizations.systems import invert, solve
from polyblocks.algorithms.factorizations.triangular import triangular_solve
from polyblocks.algorithms.factorizations.tridiagonal import singular_values, symmetric_values
from polyblocks.attributes import REGION_ATTRIBUTE

#: Attribute of a call: the name of the algorithm.
ALGORITHM = "polyblocks.algorithm"

#: Writes the loops of an algorithm, from its input and output buffers.
Writer = Callable[[Code, Sequence[Buffer], Sequence[Buffer]], None]

#: The algorithms by name, and how many of the last dimensions of each input, and of each output,
#: are not of a batch.
ALGORITHMS: dict[str, tuple[Writer, tuple[int, ...], tuple[int, ...]]] = {
    "cholesky": (cholesky, (2,), (2, 0)),
    "householder": (householder, (2,), (2, 1)),
    "invert": (invert, (2,), (2, 0)),
    "lu": (lu, (2,), (2, 1, 0)),
    "permutation": (permutation, (1,), (1, 1)),
    "reflections": (reflections, (2, 1), (2,)),
    "singular_values": (singular_values, (2,), (1,)),
    "singular_vectors": (singular_vectors, (2,), (1, 2, 2)),
    "solve": (solve, (2, 2), (2, 2, 1, 0)),
    "symmetric_eigen": (symmetric_eigen, (2,), (1, 2)),
    "symmetric_values": (symmetric_values, (2,), (1,)),
    **{
        f"solve_{side}{diagonal}": (
            functools.partial(triangular_solve, upper=side == "upper", unit=bool(diagonal)),
            (2, 2),
            (2,),
        )
        for side in ("lower", "upper")
        for diagonal in ("", "_unit")
    },
}


def call(name: str, operands: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """Call an algorithm at the insertion point.

    Args:
        name: of :data:`ALGORITHMS`.
        operands: tensors.
        results: types of the results.

    Returns:
        The results.
    """
    ir, linalg, tensor = mlir.ir, mlir.dialect("linalg"), mlir.dialect("tensor")
    outs = [tensor.EmptyOp(list(kind.shape), kind.element_type).result for kind in results]
    values = [*operands, *outs]
    # Every dimension of every operand is a loop of its own.
    ranks = [len(value.type.shape) for value in values]
    loops = sum(ranks)
    maps = []
    for number, rank in enumerate(ranks):
        first = sum(ranks[:number])
        dims = [ir.AffineDimExpr.get(first + d) for d in range(rank)]
        maps.append(ir.AffineMapAttr.get(ir.AffineMap.get(loops, 0, dims)))
    reduction = ir.Attribute.parse("#linalg.iterator_type<reduction>")
    kinds = ir.ArrayAttr.get([reduction] * loops)
    generic = linalg.GenericOp(list(results), list(operands), outs, ir.ArrayAttr.get(maps), kinds)
    generic.operation.attributes[ALGORITHM] = ir.StringAttr.get(name)
    types = [value.type.element_type for value in values]
    where = [ir.Location.current] * len(types)
    block = ir.Block.create_at_start(generic.regions[0], types, arg_locs=where)
    with ir.InsertionPoint(block):
        linalg.YieldOp(list(block.arguments)[len(operands) :])
    return list(generic.results)


def expand(module: Any) -> None:
    """Replace calls of algorithms by their loops, in place."""
    from polyblocks.passes.tensor.control_flow import besides_bodies

    ir = mlir.ir
    calls = [op for op in besides_bodies(module) if ALGORITHM in op.attributes]
    with module.context:
        for op in calls:
            with ir.InsertionPoint(op), op.location:
                _expand(op, op.attributes[ALGORITHM].value)
            op.erase()


def _expand(op: Any, name: str) -> None:
    writer, inner, outer = ALGORITHMS[name]
    inputs = [_input(value, dims) for value, dims in zip(op.operands, inner, strict=False)]
    outputs = [_output(value.type, dims) for value, dims in zip(op.results, outer, strict=True)]
    code = Code(op.location)
    writer(code, inputs, outputs)
    for node, written in zip(code.nodes, write_nodes(code.nodes, op), strict=True):
        if any(node is loop for loop in code.repeated):
            # Unlike the names of the program's own loops, which are numbered.
            written.attributes[REGION_ATTRIBUTE] = mlir.ir.StringAttr.get(f"{name}_steps")
    for result, buffer in zip(op.results, outputs, strict=True):
        result.replace_all_uses_with(_result(buffer, result.type))


def _input(value: Any, dims: int) -> Buffer:
    """An operand's buffer, with one dimension of the batch."""
    ir = mlir.ir
    shape = list(value.type.shape)
    flat = _flat(shape, dims)
    element = value.type.element_type
    value = _reshaped(value, ir.RankedTensorType.get(flat, element), dims)
    source = ir.Operation.create(
        "bufferization.to_buffer",
        results=[ir.MemRefType.get(flat, element)],
        operands=[value],
        attributes={"read_only": ir.UnitAttr.get()},
    )
    return _buffer(flat, element, "input", source.result)


def _output(kind: Any, dims: int) -> Buffer:
    """A new buffer for a result, with one dimension of the batch."""
    ir = mlir.ir
    flat = _flat(list(kind.shape), dims)
    type_ = ir.MemRefType.get(flat, kind.element_type)
    value = mlir.dialect("memref").AllocOp(type_, [], []).result
    return _buffer(flat, kind.element_type, "alloc", value)


def _result(buffer: Buffer, kind: Any) -> Any:
    """The tensor in a buffer."""
    ir = mlir.ir
    made = ir.Operation.create(
        "bufferization.to_tensor",
        results=[ir.RankedTensorType.get(list(buffer.shape), buffer.element)],
        operands=[buffer.value],
        attributes={"restrict": ir.UnitAttr.get(), "writable": ir.UnitAttr.get()},
    )
    return _reshaped(made.result, kind, len(buffer.shape) - 1)


def _buffer(shape: list[int], element: Any, kind: str, value: Any) -> Buffer:
    size = element_bytes(element)
    return Buffer(tuple(shape), element, kind, value, bytes_per_element=size)


def _flat(shape: list[int], dims: int) -> list[int]:
    batch = len(shape) - dims
    return [prod(shape[:batch]), *shape[batch:]]


def _reshaped(value: Any, kind: Any, dims: int) -> Any:
    """A tensor with other dimensions of the batch, in front of the last ``dims``."""
    ir = mlir.ir
    old, new = list(value.type.shape), list(kind.shape)
    if old == new:
        return value
    longer, shorter = (old, new) if len(old) > len(new) else (new, old)
    leading = len(longer) - dims
    groups = [list(range(leading)), *([d] for d in range(leading, len(longer)))]
    if len(shorter) == dims:
        # No batch: its one dimension is joined with the first of the others.
        groups = [[0, 1], *([d] for d in range(2, len(longer)))] if dims else []
    i64 = ir.IntegerType.get_signless(64)
    attributes = {
        "reassociation": ir.ArrayAttr.get(
            [ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in group]) for group in groups]
        )
    }
    name = "tensor.collapse_shape" if len(old) > len(new) else "tensor.expand_shape"
    if name == "tensor.expand_shape":
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(new)
    return ir.Operation.create(name, results=[kind], operands=[value], attributes=attributes).result

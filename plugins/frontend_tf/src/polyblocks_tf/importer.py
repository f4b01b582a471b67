"""TfCapture -> Program. Runs on a cache miss only, in an isolated process."""

from __future__ import annotations

import re
from typing import Any

from polyblocks import events, stablehlo
from polyblocks.errors import UnsupportedError
from polyblocks.program import DTYPES, Argument, ArraySpec, Program, Result
from polyblocks_tf.capture import Captured, TfCapture
from polyblocks_tf.export import STAGE
from polyblocks_tf.operations import algorithms, checks
from polyblocks_tf.operations.marks import follow_kernel, is_concerned

#: The first of the names in a location.
_NAME = re.compile(r'"([^"]+)"')

#: Operations of XLA's own dialect that are also in CHLO, which is read like StableHLO.
_ALSO_CHLO = {"mhlo.erf": "chlo.erf"}

_ALIASES = "mhlo.input_output_alias"


def import_capture(capture: TfCapture) -> Program:
    """Lower and describe.

    Raises:
        UnsupportedError: with the operation, the reason and the user's source line.
    """
    capture.prepare_import()
    with events.timed_pass(STAGE, "parse"):
        try:
            module = stablehlo.parse(capture.stablehlo)
        except ValueError as error:
            # Attributes of dialects that only XLA has, of calls into its library.
            raise UnsupportedError(f"what XLA's bridge made cannot be read: {error}") from None
        updates = _updates(module)
        _simplify(module)
        _locate(module, capture)
        results = _results(capture, module, updates)
    with events.timed_pass(STAGE, "lower"):
        module = stablehlo.lower(module)
    empty = _drop_empty(module, results)
    # A warm start must know, too, which variable a result is the new value of, and which results
    # have no elements.
    count = len(capture.concrete.graph.outputs)
    assigned = [updates[index] for index in range(count, len(results))]
    arguments = []
    for position, argument in enumerate(capture.arguments):
        assert argument.spec is not None
        if argument.spec.numel:
            lasts = capture.keeps and position not in assigned and _lasts(argument)
            arguments.append(Argument(argument.name, argument.spec, lasts))
    metadata = {"ops": capture.where.listed(), "assigned": assigned, "empty": empty}
    kept = tuple(result for result in results if result.spec.numel)
    return Program(capture.name, module, tuple(arguments), kept, metadata)


def _drop_empty(module: Any, results: tuple[Result, ...]) -> dict[str, Any]:
    """Take arrays without elements out of the signature; nothing reads or writes them.

    Returns:
        Number of a result without elements -> its dtype and shape.
    """
    from polyblocks import mlir, signature
    from polyblocks.mlir import ir

    with module.context, ir.Location.unknown():
        function = signature.main_of(module)
        block = function.body.blocks[0]
        for index in reversed(range(len(block.arguments))):
            argument = block.arguments[index]
            type_ = ir.RankedTensorType(argument.type)
            if 0 in type_.shape:
                with ir.InsertionPoint.at_block_begin(block):
                    made = mlir.dialect("tensor").empty(list(type_.shape), type_.element_type)
                argument.replace_all_uses_with(made)
                block.erase_argument(index)
        last = block.operations[len(block.operations) - 1]
        kept = [v for v, r in zip(last.operands, results, strict=True) if r.spec.numel]
        with ir.InsertionPoint(last):
            mlir.dialect("func").return_(kept)
        last.operation.erase()
        types = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in kept])
        function.attributes["function_type"] = ir.TypeAttr.get(types)
    return {
        str(index): [result.spec.dtype, list(result.spec.shape)]
        for index, result in enumerate(results)
        if not result.spec.numel
    }


def _lasts(argument: Captured) -> bool:
    """Whether a captured array is known to be the same as long as its address is.

    Scalars are read as values, which have no memory of their own.
    """
    assert argument.spec is not None
    return argument.kind == "array" or (argument.kind == "variable" and argument.spec.shape != ())


def _updates(module: Any) -> dict[int, int]:
    """Result -> the argument (a variable's value) whose new value it is."""
    from polyblocks.mlir import ir

    attributes = module.operation.attributes
    found: dict[int, int] = {}
    if _ALIASES not in attributes:
        return found
    for row in ir.ArrayAttr(attributes[_ALIASES]):
        pair = ir.DictAttr(row)
        output = list(ir.DenseI64ArrayAttr(pair["output_index"]))
        parameter = ir.IntegerAttr(ir.DictAttr(pair["alias"])["parameter_number"]).value
        found[output[0] if output else 0] = parameter
    return found


def _simplify(module: Any) -> None:
    """Remove what the bridge adds and what says nothing here.

    It copies what it returns in a variable's memory; here results have memory of their own. And it
    says of some arrays how large a dimension is in this call; a size that is the whole dimension
    is no news, another one means that shapes depend on values.
    """
    from polyblocks.mlir import ir

    found: list[tuple[Any, str]] = []
    barriers: list[Any] = []

    def collect(op: Any) -> Any:
        if op.name == "mhlo.copy" or _says_whole_size(op):
            found.append((op, ""))
        elif op.name in _ALSO_CHLO:
            found.append((op, _ALSO_CHLO[op.name]))
        elif op.name == "stablehlo.optimization_barrier":
            barriers.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for op, name in found:
        value = op.operands[0]
        if name:
            with op.location, ir.InsertionPoint(op):
                types = [result.type for result in op.results]
                value = ir.Operation.create(name, types, list(op.operands)).result
        op.results[0].replace_all_uses_with(value)
        op.erase()
    for op in barriers:
        _form_call(op)


def _form_call(barrier: Any) -> None:
    """Make a call of what passed through the bridge as a barrier.

    A check of :mod:`polyblocks_tf.operations.checks`, or an algorithm of
    :mod:`polyblocks_tf.operations.algorithms`.
    """
    from polyblocks.algorithms.expand import ALGORITHMS
    from polyblocks.mlir import ir
    from polyblocks.stablehlo import extensions

    text = _text(barrier)
    operands = list(barrier.operands)[:-1]
    first, results = 0, operands[:1]
    if text.startswith(checks.MARK):
        message = text.removeprefix(checks.MARK)
        attributes = {"call_target_name": extensions.CHECK, "backend_config": message}
    elif text.startswith(algorithms.MARK):
        name = text.removeprefix(algorithms.MARK)
        first = len(ALGORITHMS[name][1])
        operands, results = operands[:first], operands[first:]
        attributes = {"call_target_name": extensions.ALGORITHM, "backend_config": name}
    else:
        return
    with barrier.location, ir.InsertionPoint(barrier):
        made = ir.Operation.create(
            "stablehlo.custom_call",
            [result.type for result in results],
            operands,
            {name: ir.StringAttr.get(text) for name, text in attributes.items()},
        )
    values = list(barrier.operands)
    values[first : first + len(results)] = made.results
    for old, value in zip(barrier.results, values, strict=True):
        old.replace_all_uses_with(value)
    barrier.erase()


def _text(barrier: Any) -> str:
    """The text in a barrier's last operand; empty if it is another array."""
    from polyblocks.mlir import ir

    maker = barrier.operands[len(barrier.operands) - 1].owner
    if not isinstance(maker, ir.Operation | ir.OpView):
        return ""
    if maker.name != "stablehlo.constant":
        return ""
    elements = maker.attributes["value"]
    if not isinstance(elements, ir.DenseIntElementsAttr):
        return ""
    return bytes(int(v) & 255 for v in elements).decode(errors="replace")


def _locate(module: Any, capture: TfCapture) -> None:
    """Give operations the user's lines; the bridge knows TensorFlow's names of them alone.

    And give them the meaning that TensorFlow's kernels have, where it is another one.
    """
    from polyblocks.mlir import ir

    known: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    concerned: list[tuple[Any, str]] = []

    def visit(op: Any) -> Any:
        match = _NAME.search(str(op.location))
        name = match[1] if match else ""
        if name not in known:
            known[name] = None
            kind, place = capture.where.find(name)
            kinds[name] = kind
            file, _, line = place.rpartition(":")
            if kind:
                # Without a line of the user's the bridge names one of TensorFlow's.
                where = ir.Location.file(file, int(line), 0) if file else ir.Location.unknown()
                known[name] = ir.Location.name(kind, where)
        if known[name] is not None:
            op.location = known[name]
        if is_concerned(op.name, kinds[name]):
            concerned.append((op, kinds[name]))
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(visit)
        for op, kind in concerned:
            follow_kernel(op, kind)


def _says_whole_size(op: Any) -> bool:
    from polyblocks.mlir import ir

    if op.name != "stablehlo.set_dimension_size":
        return False
    operand, size = op.operands
    maker = size.owner
    if not isinstance(maker, ir.Operation | ir.OpView) or maker.name != "stablehlo.constant":
        return False
    dimension = ir.IntegerAttr(op.attributes["dimension"]).value
    value = ir.DenseIntElementsAttr(maker.attributes["value"])[0]
    return bool(operand.type == op.results[0].type and operand.type.shape[dimension] == value)


def _results(capture: TfCapture, module: Any, updates: dict[int, int]) -> tuple[Result, ...]:
    from polyblocks import signature
    from polyblocks.mlir import ir

    dtypes = [tensor.dtype.name for tensor in capture.concrete.graph.outputs]
    with module.context:
        types = signature.main_of(module).type
        if len(types.inputs) != len(capture.arguments):
            raise UnsupportedError(
                f"XLA's bridge made {len(types.inputs)} arguments of {len(capture.arguments)}"
            )
        results = []
        for index, type_ in enumerate(types.results):
            if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
                raise UnsupportedError("the shape of a result depends on values")
            name = f"output{index}"
            if index < len(dtypes):
                dtype = dtypes[index]
            elif index in updates:
                variable = capture.arguments[updates[index]]
                assert variable.spec is not None
                name, dtype = f"new {variable.name}", variable.spec.dtype
            else:
                raise UnsupportedError("XLA's bridge made a result that belongs to no variable")
            if dtype not in DTYPES:
                raise UnsupportedError(f"a result of dtype {dtype}")
            results.append(Result(name, ArraySpec.contiguous(tuple(type_.shape), dtype)))
    return tuple(results)

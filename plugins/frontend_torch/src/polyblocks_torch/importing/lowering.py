"""FX graph -> linalg on tensors, through torch-mlir.

The graph comes from AOTAutograd with
:func:`~polyblocks_torch.importing.decompositions.decomposition_table`: functional, aten only, every
node with ``meta["val"]``. Here it is rewritten where torch-mlir lacks or miscompiles something,
imported, and lowered; whatever stays illegal becomes an UnsupportedError that names the op and the
user's line.
"""

from __future__ import annotations

import logging
import operator
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from polyblocks import mlir
from polyblocks.algorithms.expand import expand
from polyblocks.errors import UnsupportedError
from polyblocks.passes.tensor.casts import unequal_cast
from polyblocks_torch.algorithms.factorizations import CALLS
from polyblocks_torch.algorithms.repeated_squares import SQUARES
from polyblocks_torch.control_flow.importing import node_importer
from polyblocks_torch.control_flow.operators import is_control_flow
from polyblocks_torch.control_flow.reversed_scans import fold_reversals
from polyblocks_torch.elementwise import element_type
from polyblocks_torch.graphs import drop_unused, graph_module
from polyblocks_torch.importing.fourier import FOURIERS, take_calls, write_calls
from polyblocks_torch.importing.hidden_operations import disguised, hidden
from polyblocks_torch.importing.padding import PADDINGS, mark_products
from polyblocks_torch.importing.products import PRODUCTS
from polyblocks_torch.importing.refusals import refusal
from polyblocks_torch.importing.scans import SCANS
from polyblocks_torch.importing.selection import SELECTIONS
from polyblocks_torch.importing.sorting import SORTS
from polyblocks_torch.importing.torch_dialect import (
    find_ops,
    from_builtin,
    load_conversion_dialect,
    lower_ops,
)
from polyblocks_torch.importing.windows import WINDOWS
from polyblocks_torch.location import source_location
from polyblocks_torch.rewrites import rewrite_graph

_TO_BACKEND = "builtin.module(torchdynamo-export-to-torch-backend-pipeline{})"
_TO_LINALG = "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline)"
#: The last pass of that: a check of what the others leave.
_CHECK = "torch-verify-linalg-on-tensors-backend-contract"

_MLIR_NAME = re.compile(r'name = "torch\.([\w.]+)"|\'torch\.((?:aten|prims)\.[\w.]+)\'')


#: Of ops that torch-mlir does not lower, or not as well.
_LOWERINGS = {
    **CALLS,
    **FOURIERS,
    **PADDINGS,
    **PRODUCTS,
    **SCANS,
    **SELECTIONS,
    **SORTS,
    **SQUARES,
    **WINDOWS,
}


def lower_graph(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any] = (), *, consume: bool = False
) -> Any:
    """Lower a captured graph to a module with ``@main`` at linalg-on-tensors level.

    Args:
        gm: functional aten graph; placeholders are tensors of static shape, results are tensors or
            None (a None is not a result of ``@main``).
        example_inputs: not needed; shapes and dtypes are those of the nodes' ``meta["val"]``.
        consume: whether the graph may be changed; else a copy is.

    Returns:
        The MLIR module. Each op's location is ``loc("aten.op"("file":line:0))``.

    Raises:
        UnsupportedError: with the op, the reason and the user's source line.
    """
    from torch_mlir.extras import fx_importer

    work = gm if consume else _copy(gm)
    _prepare(work)
    context = mlir.make_context(every_dialect=False)
    context.emit_error_diagnostics = False
    mlir.register_torch(context)
    load_conversion_dialect(context)
    constants: list[Any] = []
    importer = fx_importer.FxImporter(
        context=context,
        hooks=_hooks(constants),
        config_check=False,
        graph_node_importer_cls=node_importer(),
    )
    importer._cc = _context_cache(context, importer._py_attr_tracker)
    try:
        importer.import_stateless_graph(work.graph, func_name="main")
    except Exception as error:  # the importer raises whatever its Python runs into
        raise _import_error(work.graph, importer, error) from error
    module = importer.module
    try:
        with context:
            lower_ops(module, _LOWERINGS)
            with hidden(module, constants):
                _run(module, _TO_BACKEND)
                _run(module, _without_check(_TO_LINALG))
                transforms = take_calls(module)
                with disguised(module):
                    _run(module, f"builtin.module({_CHECK})")
            write_calls(transforms)
            expand(module)
            mark_products(module)
            module.operation.verify()
            found = find_ops(module, frozenset({"cf.assert", "tensor.cast"}))
            _check_casts([op for op in found if op.name == "tensor.cast"])
            assertions = [op for op in found if op.name == "cf.assert"]
    except mlir.ir.MLIRError as error:
        raise _lowering_error(module, error) from None
    _check_signature(module, work.graph)
    _check_assertions(assertions)
    return module


def _run(module: Any, pipeline: str) -> None:
    manager = mlir.passmanager.PassManager.parse(pipeline)
    # Once, at the end: it takes as long as the passes do.
    manager.enable_verifier(False)
    manager.run(module.operation)


def _without_check(pipeline: str) -> str:
    """A pipeline's passes but for the check at their end, which calls would not pass."""
    passes = str(mlir.passmanager.PassManager.parse(pipeline))
    end = f",{_CHECK})"
    assert passes.endswith(end), passes
    return passes[: -len(end)] + ")"


def _prepare(gm: torch.fx.GraphModule) -> None:
    """Make of a graph, in place, what torch-mlir can import; of those of control flow, too."""
    _keep_results(gm.graph)
    check_supported(gm.graph)
    rewrite_graph(gm)
    fold_reversals(gm.graph)
    _one_constant_per_use(gm.graph)
    for inner in gm.children():
        if isinstance(inner, torch.fx.GraphModule):
            _prepare(inner)


def check_supported(graph: torch.fx.Graph) -> None:
    """Refuse what must not reach torch-mlir.

    Raises:
        UnsupportedError: an op of :mod:`polyblocks_torch.importing.refusals`, a symbolic shape, a
        sparse or
            quantized tensor, or a value that is no tensor.
    """
    for node in graph.nodes:
        if node.op in ("placeholder", "call_function"):
            reason = refusal(node)
            if reason is not None:
                raise UnsupportedError(reason, op=op_name(node), location=source_location(node))


def op_name(node: torch.fx.Node) -> str:
    """The framework's name of a node's op, e.g. ``aten.add.Tensor``."""
    return str(node.target) if node.op == "call_function" else node.op


def _copy(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A copy that shares the tensors but no graph."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    copied = graph_module(gm, graph)
    for name, inner in list(copied.named_children()):
        if isinstance(inner, torch.fx.GraphModule):
            setattr(copied, name, _copy(inner))
    return copied


def _keep_results(graph: torch.fx.Graph) -> None:
    """Let a graph return a tuple, without None."""
    output = graph.output_node()
    results = output.args[0]
    if not isinstance(results, (tuple, list)):
        results = (results,)
    output.args = (tuple(result for result in results if result is not None),)


def _one_constant_per_use(graph: torch.fx.Graph) -> None:
    """Give every use of a constant a node of its own: torch-mlir imports it again at each use."""

    def fresh(node: torch.fx.Node) -> torch.fx.Node:
        if node.op != "get_attr" or not isinstance(node.meta.get("val"), torch.Tensor):
            return node
        copied = graph.get_attr(str(node.target))
        copied.meta = dict(node.meta)
        return copied

    if not graph.find_nodes(op="get_attr"):
        return
    for node in list(graph.nodes):
        if any(operand.op == "get_attr" for operand in node.all_input_nodes):
            with graph.inserting_before(node):
                node.args = torch.fx.map_arg(node.args, fresh)
                node.kwargs = torch.fx.map_arg(node.kwargs, fresh)
    drop_unused(graph)


def _context_cache(context: Any, tracker: Any) -> Any:
    """torch-mlir's context cache, with locations that name the op and the user's line."""
    from torch_mlir.extras import fx_importer

    ir = mlir.ir
    locations: dict[Any, Any] = {}
    types: dict[Any, Any] = {}

    class Cache(fx_importer.ContextCache):
        def get_node_location(self, node: torch.fx.Node) -> Any:
            where = source_location(node)
            name = op_name(node) if node.op == "call_function" else node.name
            found = locations.get((where, name))
            if found is None:
                child = None
                if where is not None:
                    file, _, line = where.rpartition(":")
                    child = ir.Location.file(file, int(line), 0, context=self._c)
                found = locations[where, name] = ir.Location.name(name, child, context=self._c)
            return found

        def get_vtensor_type(self, shape: Any, dtype: torch.dtype, **options: Any) -> Any:
            key = (shape, dtype, options.get("mutable", False))
            found = types.get(key)
            if found is None:
                found = types[key] = super().get_vtensor_type(shape, dtype, **options)
            return found

    return Cache(context, py_attr_tracker=tracker)


def _hooks(constants: list[Any]) -> Any:
    """Import constants as builtin tensors, whose operations are added to a list."""
    from torch_mlir.extras import fx_importer

    ir = mlir.ir

    class Hooks(fx_importer.FxImporterHooks):
        def resolve_literal(self, gni: Any, literal: Any, info: Any) -> Any:
            if not isinstance(literal, torch.Tensor) or literal.dtype not in _DENSE:
                return None
            with unset_fake_temporarily():
                array = literal.detach().contiguous().cpu()
                # NumPy has no bfloat16: its bytes.
                words = array.view(torch.int16) if literal.dtype is torch.bfloat16 else array
            shaped = ir.RankedTensorType.get(list(literal.shape), element_type(literal.dtype))
            attribute = ir.DenseElementsAttr.get(words.numpy(), type=shaped)
            constant = mlir.dialect("arith").ConstantOp(shaped, attribute)
            constants.append(constant)
            return from_builtin(constant.result, gni._cc.tensor_to_vtensor_type(literal))

    return Hooks()


_DENSE = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)


def _import_error(graph: torch.fx.Graph, importer: Any, error: Exception) -> UnsupportedError:
    """Name the first op that the importer did not know, from its message."""
    text = str(error).split("\n", 1)[0] or type(error).__name__
    logging.getLogger(__name__).debug("import failed", exc_info=error)
    for node in graph.nodes:
        if node.op == "call_function" and _unimportable(node):
            return UnsupportedError(
                f"torch-mlir cannot import it ({text})",
                op=op_name(node),
                location=source_location(node),
            )
    return UnsupportedError(f"torch-mlir cannot import the graph ({type(error).__name__}: {text})")


def _unimportable(node: torch.fx.Node) -> bool:
    """Whether a node is not a plain aten or prims op."""
    namespace = getattr(node.target, "namespace", None)
    if is_control_flow(node) or node.target is operator.getitem:
        return False
    return namespace not in ("aten", "prims")


def _lowering_error(module: Any, error: Any) -> UnsupportedError:
    """Turn a failed pipeline into one line: the op that stayed illegal, else MLIR's message."""
    logging.getLogger(__name__).debug("lowering failed: %s", error)
    diagnostics = error.error_diagnostics
    message = str(diagnostics[0].message).split("\n", 1)[0] if diagnostics else str(error)
    location = str(diagnostics[0].location) if diagnostics else ""
    if "failed to legalize" not in message:
        op, where = _split_location(location)
        return UnsupportedError(f"torch-mlir: {message[:200]}", op=op, location=where)
    named = _MLIR_NAME.search(message)
    if named is None:
        # A constant was left over because the op that reads it was: find that one.
        left = _illegal_ops(module)
        location = next((place for name, place in left if name == "torch.operator"), location)
    op, where = _split_location(location)
    if op is None and named is not None:
        op = named.group(1) or named.group(2)
    return UnsupportedError(
        "torch-mlir has no lowering for it with these operands", op=op, location=where
    )


def _illegal_ops(module: Any) -> list[tuple[str, str]]:
    """Names and locations of the torch ops on tensors that are left in a module."""
    ir = mlir.ir
    found: list[tuple[str, str]] = []

    def visit(op: Any) -> Any:
        name = op.operation.name
        if name.startswith("torch.") and any("vtensor" in str(r.type) for r in op.results):
            found.append((name, str(op.location)))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _split_location(text: str) -> tuple[str | None, str | None]:
    """``loc("aten.op"("file":12:0))`` -> ("aten.op", "file:12")."""
    name = re.match(r'loc\("([^"]+)"[()]', text)
    where = re.search(r'"([^"]+)":(\d+):\d+', text)
    is_op = name is not None and "." in name.group(1) and "/" not in name.group(1)
    return (
        name.group(1) if name is not None and is_op else None,
        f"{where.group(1)}:{where.group(2)}" if where else None,
    )


def _check_signature(module: Any, graph: torch.fx.Graph) -> None:
    """Results must have the shapes and dtypes that PyTorch says they have."""
    ir = mlir.ir
    (main,) = (op for op in module.body.operations if op.operation.name == "func.func")
    types = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).results
    output = next(node for node in graph.nodes if node.op == "output")
    for result, kind in zip(output.args[0], types, strict=True):
        if not isinstance(result, torch.fx.Node):
            continue
        value = result.meta["val"]
        with main.location:
            expected = ir.RankedTensorType.get(list(value.shape), element_type(value.dtype))
        if kind != expected:
            raise UnsupportedError(
                f"torch-mlir lowered a result of {expected} to {kind}",
                op=op_name(result),
                location=source_location(result),
            )


def _check_casts(casts: Sequence[Any]) -> None:
    """Refuse a lowering that takes a tensor for one of another size."""
    unequal = unequal_cast(casts)
    if unequal is not None:
        cast, source, result = unequal
        op, where = _split_location(str(cast.location))
        raise UnsupportedError(
            f"torch-mlir takes a result of type {source} for one of {result}", op=op, location=where
        )


def _check_assertions(assertions: Sequence[Any]) -> None:
    """Refuse a lowering that would find out at run time that it does not cover the data.

    Such a failure (a matrix that needs pivoting, a zero) is not the user's mistake.
    """
    for assertion in assertions:
        message = assertion.attributes["msg"].value
        if message.startswith("unimplemented"):
            op, where = _split_location(str(assertion.location))
            raise UnsupportedError(
                f"torch-mlir: {message}, checked at run time", op=op, location=where
            )

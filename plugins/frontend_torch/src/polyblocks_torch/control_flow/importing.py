"""Import of control flow: ``scf`` on builtin tensors, with the torch dialect inside.

``scan`` becomes::

    %r:2 = scf.for %t = %c0 to %c5 step %c1 iter_args(%h = %h0, %ys = %empty)
        -> (tensor<3x4xf32>, tensor<5x3x4xf32>) {
      %x = tensor.extract_slice %xs[%t, 0, 0] [1, 3, 4] [1, 1, 1]
      %0 = torch_c.from_builtin_tensor %h : tensor<3x4xf32> -> !torch.vtensor<[3,4],f32>
      ...                                                            // the graph of one step
      %y = torch_c.to_builtin_tensor %9 : !torch.vtensor<[3,4],f32> -> tensor<3x4xf32>
      %w = tensor.insert_slice %y into %ys[%t, 0, 0] [1, 3, 4] [1, 1, 1]
      scf.yield %y, %w : tensor<3x4xf32>, tensor<5x3x4xf32>
    }

so that torch-mlir's pipelines lower what is inside together with all else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from polyblocks import mlir
from polyblocks.errors import UnsupportedError
from polyblocks_torch.control_flow.operators import (
    COND,
    SCAN,
    WHILE_LOOP,
    ControlFlow,
    graphs_of,
)
from polyblocks_torch.control_flow.reversed_scans import BACKWARD
from polyblocks_torch.importing.torch_dialect import from_builtin, tensor_type, to_builtin
from polyblocks_torch.location import source_location

#: Runs a graph on builtin tensors, at the current insertion point, and casts its results to types.
Run = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def node_importer() -> Any:
    """The class that imports the nodes of a graph, extended by control flow."""
    from polyblocks_torch.importing.node_importer import NodeImporter

    class Nodes(NodeImporter):
        def _control_flow(self, loc: Any, node: fx.Node, hop: Any) -> None:
            del hop
            flow = ControlFlow.of(node)
            operands = [self._import_argument(loc, operand) for operand in flow.operands]
            kinds = [self._cc.tensor_to_vtensor_type(value) for value in node.meta["val"]]
            owner = node.graph.owning_module
            assert owner is not None, "the graph is that of a module"
            with loc:
                runs = [self._run_of(graph) for graph in graphs_of(owner, node)]
                results = _WRITERS[flow.kind](
                    node,
                    [to_builtin(operand) for operand in operands],
                    [tensor_type(kind) for kind in kinds],
                    runs,
                )
                results = [from_builtin(r, kind) for r, kind in zip(results, kinds, strict=True)]
            self._multi_result_nodes.add(node)
            for number, result in enumerate(results):
                self.bind_node_value(node, result, number)

        _import_hop_cond = _import_hop_while_loop = _import_hop_scan = _control_flow

        def _run_of(self, graph: fx.GraphModule) -> Run:
            def run(arguments: Sequence[Any], types: Sequence[Any]) -> list[Any]:
                point = mlir.ir.InsertionPoint.current
                inner = Nodes(self.fx_importer, self._c, self._cc, point.block)
                placeholders = graph.graph.find_nodes(op="placeholder")
                for node, value in zip(placeholders, arguments, strict=True):
                    kind = self._cc.tensor_to_vtensor_type(node.meta["val"])
                    inner.bind_node_value(node, from_builtin(value, kind))
                inner.import_nodes(graph.graph.nodes, skip_placeholders_outputs=True)
                output = graph.graph.output_node()
                results = [
                    to_builtin(inner._import_argument(mlir.ir.Location.current, result))
                    for result in output.args[0]  # type: ignore[union-attr]
                ]
                for value, kind, node in zip(results, types, output.all_input_nodes, strict=False):
                    if value.type != kind:
                        raise UnsupportedError(
                            f"a graph of it gives {value.type}, where {kind} was expected",
                            op=str(node.target),
                            location=source_location(node),
                        )
                return results

            return run

    return Nodes


def _scalar(value: Any) -> Any:
    """The element of a tensor that has one."""
    position = [_index(0)] * len(value.type.shape)
    return mlir.dialect("tensor").ExtractOp(value, position).result


def _index(number: int) -> Any:
    return mlir.dialect("arith").ConstantOp(mlir.ir.IndexType.get(), number).result


def _cond(node: fx.Node, operands: list[Any], types: list[Any], runs: list[Run]) -> list[Any]:
    del node
    scf = mlir.dialect("scf")
    chosen = scf.IfOp(_scalar(operands[0]), types, has_else=True)
    for block, run in zip((chosen.then_block, chosen.else_block), runs, strict=True):
        with mlir.ir.InsertionPoint(block):
            scf.YieldOp(run(operands[1:], types))
    return list(chosen.results)


def _while_loop(node: fx.Node, operands: list[Any], types: list[Any], runs: list[Run]) -> list[Any]:
    ir, scf = mlir.ir, mlir.dialect("scf")
    condition, body = runs
    count = ControlFlow.of(node).carried
    carried, others = operands[:count], operands[count:]
    loop = scf.WhileOp(types, carried)
    places = [ir.Location.current] * len(types)
    before = ir.Block.create_at_start(loop.before, types, arg_locs=places)
    after = ir.Block.create_at_start(loop.after, types, arg_locs=places)
    truth = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))
    with ir.InsertionPoint(before):
        (goes_on,) = condition([*before.arguments, *others], [truth])
        scf.ConditionOp(_scalar(goes_on), list(before.arguments))
    with ir.InsertionPoint(after):
        scf.YieldOp(body([*after.arguments, *others], types))
    return list(loop.results)


def _scan(node: fx.Node, operands: list[Any], types: list[Any], runs: list[Run]) -> list[Any]:
    scf, tensor = mlir.dialect("scf"), mlir.dialect("tensor")
    (step,) = runs
    flow = ControlFlow.of(node)
    reads_back, writes_back = node.meta.get(BACKWARD, ((), ()))
    count, end = flow.carried, flow.carried + flow.scanned
    carried, scanned, others = operands[:count], operands[count:end], operands[end:]
    stacked = [tensor.EmptyOp(t.shape, t.element_type).result for t in types[count:]]
    length = scanned[0].type.shape[0]
    loop = scf.ForOp(_index(0), _index(length), _index(1), [*carried, *stacked])
    with mlir.ir.InsertionPoint(loop.body):
        inner = list(loop.inner_iter_args)
        now = loop.induction_variable
        back = None
        if reads_back or writes_back:
            back = mlir.dialect("arith").SubIOp(_index(length - 1), now).result
        read = [
            _slice(value, back if number in reads_back else now)
            for number, value in enumerate(scanned, count)
        ]
        made = [*types[:count], *(_slice_type(kind) for kind in types[count:])]
        results = step([*inner[:count], *read, *others], made)
        written = [
            _written(results[number], inner[number], back if number in writes_back else now)
            for number in range(count, len(results))
        ]
        scf.YieldOp([*results[:count], *written])
    return list(loop.results)


def _slice_type(whole: Any) -> Any:
    return mlir.ir.RankedTensorType.get(whole.shape[1:], whole.element_type)


def _slice(value: Any, position: Any) -> Any:
    """``value[position]``."""
    extract = mlir.dialect("tensor").ExtractSliceOp
    where = _one_of_first_dimension(list(value.type.shape))
    return extract(_slice_type(value.type), value, [position], [], [], *where).result


def _written(value: Any, whole: Any, position: Any) -> Any:
    """``whole`` with ``whole[position]`` replaced by ``value``."""
    insert = mlir.dialect("tensor").InsertSliceOp
    where = _one_of_first_dimension(list(whole.type.shape))
    return insert(value, whole, [position], [], [], *where).result


def _one_of_first_dimension(shape: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Offsets, sizes and strides of a slice that begins at a position that is no constant."""
    offset = mlir.ir.ShapedType.get_dynamic_stride_or_offset()
    return [offset, *[0] * (len(shape) - 1)], [1, *shape[1:]], [1] * len(shape)


_WRITERS: dict[str, Callable[[fx.Node, list[Any], list[Any], list[Run]], list[Any]]] = {
    COND: _cond,
    WHILE_LOOP: _while_loop,
    SCAN: _scan,
}

"""Graph of AOTAutograd -> TorchCapture: numbers, updates and aliases out of the graph."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from polyblocks.errors import UnsupportedError
from polyblocks.program import Argument, ArraySpec, Result
from polyblocks_torch.arguments.number_limits import refused_number
from polyblocks_torch.arguments.overlaps import read_memory_of_views
from polyblocks_torch.capture import (
    FromConstant,
    FromInput,
    Source,
    TorchCapture,
)
from polyblocks_torch.flex_attention.operators import drop_block_tables
from polyblocks_torch.graphs import graph_module
from polyblocks_torch.importing.checks import CHECK, STATIC_CHECKS, message_of
from polyblocks_torch.location import source_location
from polyblocks_torch.partitioning.node_rules import (
    unsupported_reason,
)
from polyblocks_torch.recording.graph_editor import GraphEditor
from polyblocks_torch.recording.outputs import OutputPlanner
from polyblocks_torch.recording.random_draws import drop_metadata_edges, split_dropout
from polyblocks_torch.recording.result_strides import outputs_as_in_eager
from polyblocks_torch.recording.shared_memory import is_lazy, view_root
from polyblocks_torch.specs import is_dense, problem_with, spec_of

aten = torch.ops.aten

#: Constants up to this size (bytes) stay inside the program, where they can be folded.
INLINE_CONSTANT_BYTES = 4096


def capture_graph(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    name: str,
    weights: Sequence[bool] = (),
) -> TorchCapture:
    """Canonicalize an AOT graph; ``gm`` is left as it is.

    Args:
        gm: a graph of ATen ops whose nodes carry ``meta["val"]``.
        example_inputs: one value per placeholder; tensors may be fake.
        name: the user's function.
        weights: which inputs are the same from call to call, as is checked then. One for each
            input: their places distinguish them.
    """
    return _Canonicalizer(gm, example_inputs, name, weights).run()


class _Canonicalizer:
    def __init__(
        self, gm: fx.GraphModule, example_inputs: Sequence[Any], name: str, weights: Sequence[bool]
    ) -> None:
        self.gm = gm
        known = weights if len(weights) == len(example_inputs) else ()
        self.weights = {position for position, is_weight in enumerate(known) if is_weight}
        self.inputs = list(example_inputs)
        self.name = name
        self.editor = GraphEditor(gm.graph)
        self.graph, self.position = self.editor.graph, self.editor.position
        self.placeholders = self.editor.placeholders
        self.constants: dict[fx.Node, torch.Tensor] = {}
        self.problem: UnsupportedError | None = None

    def run(self) -> TorchCapture:
        if len(self.placeholders) != len(self.inputs):
            raise UnsupportedError(
                f"{len(self.placeholders)} placeholders but {len(self.inputs)} example inputs"
            )
        for node, value in zip(self.placeholders, self.inputs, strict=True):
            if isinstance(value, torch.Tensor):
                # The value of tracing shares memory with the views in the graph; keep it.
                node.meta.setdefault("val", value)
        editor = self.editor
        self._literal_arguments()
        self._static_checks()
        self._conjugated_numbers()
        self._constants()
        self._refused_numbers()
        drop_block_tables(self.graph)
        split_dropout(editor)
        drop_metadata_edges(editor)
        for old, new in read_memory_of_views(
            self.graph, editor.call, editor.constant, view_root, self._reject
        ):
            editor.replace_returned(old, new)
        outputs_as_in_eager(self.graph, editor.returned)
        planner = OutputPlanner(editor, self._spec, self.constants)
        outputs = planner.plan(self._updates())
        result_nodes = planner.results
        returned = [node for node, _, _ in result_nodes] + planner.opaque
        out = self.graph.output(tuple(returned))
        out.meta["val"] = tuple(node.meta.get("val") for node in returned)
        self.graph.eliminate_dead_code()
        arguments, sources, resolve = self._arguments(
            {p for _, _, p in result_nodes if p is not None}
        )
        index = {s.position: i for i, s in enumerate(sources) if isinstance(s, FromInput)}
        results = [
            Result(node.name, spec, None if position is None else index[position])
            for node, spec, position in result_nodes
        ]
        module = graph_module(editor.inline | _submodules(self.gm, self.graph), self.graph)
        self._look_for_problems()
        return TorchCapture(
            self.name,
            module,
            tuple(arguments),
            tuple(results),
            tuple(sources),
            tuple(resolve),
            tuple(outputs),
            len(self.inputs),
            self.problem,
        )

    def _literal_arguments(self) -> None:
        """Numbers are specialized: Dynamo guards on them."""
        for node, value in zip(self.placeholders, self.inputs, strict=True):
            if isinstance(value, torch.Tensor) or not node.users:
                continue
            if isinstance(value, (int, float, bool, complex)) or value is None:
                for user in list(node.users):
                    user.replace_input_with(node, value)
                self.editor.replace_returned(node, value)
            else:
                self._reject(f"an argument of type {type(value).__name__}")

    def _static_checks(self) -> None:
        """Checks in one form, and only those of data.

        Tracing has checked what is asserted of types, shapes and numbers that are known.
        """
        for node in list(self.graph.nodes):
            if node.target is aten._assert_async.default:
                node.target = CHECK
                node.args = (node.args[0], message_of(node.args[0].meta["val"]))
            if node.target is CHECK:
                node.meta.setdefault("val", None)
            known = node.target in STATIC_CHECKS and not isinstance(node.args[0], fx.Node)
            if known or node.target is aten._assert_tensor_metadata.default:
                self.graph.erase_node(node)

    def _conjugated_numbers(self) -> None:
        """Numbers are conjugated here; PyTorch would give a lazy tensor, and infers another."""
        for node in list(self.graph.nodes):
            if node.target not in (aten._conj.default, aten._conj_physical.default):
                continue
            if isinstance(node.args[0], complex) and node not in self.editor.returned:
                node.replace_all_uses_with(node.args[0].conjugate())
                self.graph.erase_node(node)

    def _constants(self) -> None:
        last = self.placeholders[-1] if self.placeholders else None
        made: dict[str, fx.Node] = {}
        for node in list(self.graph.nodes):
            if node.op == "get_attr":
                value = _attribute(self.gm, node.target)
                if not isinstance(value, torch.Tensor):
                    continue
                node.meta.setdefault("val", value)
                if isinstance(value, torch._subclasses.FakeTensor):
                    self._reject("a constant without data")
                elif problem_with(value) is None and (
                    value.numel() * value.element_size() <= INLINE_CONSTANT_BYTES
                ):
                    target = f"constant{len(self.editor.inline)}"
                    self.editor.inline[target] = value.detach().resolve_conj().resolve_neg()
                    node.target = target
                elif node.target in made:
                    node.replace_all_uses_with(made[node.target])
                    self.editor.replace_returned(node, made[node.target])
                    self.graph.erase_node(node)
                else:
                    with self.graph.inserting_after(last) if last else self.editor.at_begin():
                        argument = self.graph.placeholder(f"constant_{len(self.constants)}")
                    argument.meta = dict(node.meta, val=value)
                    self.constants[argument] = value.detach()
                    last = argument
                    made[node.target] = argument
                    node.replace_all_uses_with(argument)
                    self.editor.replace_returned(node, argument)
                    self.graph.erase_node(node)
            elif node.target in (aten.lift_fresh_copy.default, aten.lift_fresh.default):
                # The copy protects the constant from updates, and this graph has none.
                node.replace_all_uses_with(node.args[0])
                self.editor.replace_returned(node, node.args[0])
                self.graph.erase_node(node)

    def _refused_numbers(self) -> None:
        """Eager mode would raise an error where an operation has such a number."""
        for node in list(self.graph.nodes):
            message = refused_number(node) if node.op == "call_function" else None
            if message is None:
                continue
            false = self.editor.constant(torch.tensor(False))
            with self.graph.inserting_before(node):
                check = self.graph.call_function(CHECK, (false, message))
            check.meta = {k: v for k, v in node.meta.items() if k == "stack_trace"} | {"val": None}

    def _updates(self) -> dict[int, fx.Node]:
        """Take the final ``copy_`` to arguments out of the graph."""
        found: dict[int, fx.Node] = {}
        for node in list(self.graph.nodes):
            if node.target is not aten.copy_.default:
                continue
            target, value = node.args[0], node.args[1]
            position = self.position.get(target)
            if position is None or position in found or not isinstance(value, fx.Node):
                continue
            if problem_with(target.meta["val"]) is not None:
                # It stays, and with it the framework runs the graph.
                continue
            same = _same_array(target.meta["val"], value.meta.get("val"))
            if not same:
                value = self._converted(node, value, target.meta["val"])
            found[position] = value
            self.editor.replace_returned(node, target)
            later = [user for user in node.users if user.op != "output"]
            for user in later:
                user.replace_input_with(node, value)
            self.graph.erase_node(node)
        return found

    def _converted(self, before: fx.Node, value: fx.Node, like: torch.Tensor) -> fx.Node:
        """``copy_`` broadcasts and converts; the result must have the argument's type already."""
        with self.graph.inserting_before(before):
            if value.meta["val"].dtype != like.dtype:
                value = self.editor.call(aten._to_copy.default, value, dtype=like.dtype)
            if tuple(value.meta["val"].shape) != tuple(like.shape):
                value = self.editor.call(aten.expand.default, value, list(like.shape))
        return value

    def _spec(self, node: fx.Node) -> ArraySpec | None:
        value: Any = node.meta.get("val")
        reason = problem_with(value)
        if reason is not None:
            self._reject(reason, node)
            return None
        spec = spec_of(value)
        if node in self.position and is_lazy(value) and not is_dense(spec):
            # It is copied before it is passed.
            return ArraySpec.contiguous(spec.shape, spec.dtype)
        return spec

    def _arguments(self, updated: set[int]) -> tuple[list[Argument], list[Source], list[bool]]:
        arguments: list[Argument] = []
        sources: list[Source] = []
        resolve: list[bool] = []
        for node in [n for n in self.graph.nodes if n.op == "placeholder"]:
            if not node.users and self.position.get(node) not in updated:
                self.graph.erase_node(node)
                continue
            spec = self._spec(node)
            held = node in self.constants
            sources.append(
                FromConstant(self.constants[node]) if held else FromInput(self.position[node])
            )
            value = node.meta["val"]
            resolve.append(isinstance(value, torch.Tensor) and is_lazy(value))
            position = self.position.get(node)
            # A program that updates arguments may know one of them by two names.
            constant = not updated and not resolve[-1] and position in self.weights
            arguments.append(Argument(node.name, spec or ArraySpec((), "float32", ()), constant))
        return arguments, sources, resolve

    def _look_for_problems(self) -> None:
        for node in self.graph.nodes:
            if node.op != "call_function" or node.target is operator.getitem:
                continue
            reason = unsupported_reason(node)
            if reason is not None:
                self._reject(reason, node)

    def _reject(self, reason: str, node: fx.Node | None = None) -> None:
        if self.problem is not None:
            return
        op = str(node.target) if node is not None and node.op == "call_function" else None
        self.problem = UnsupportedError(
            reason, op=op, location=source_location(node) if node is not None else None
        )


def _same_array(target: Any, value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and target.dtype == value.dtype
        and tuple(target.shape) == tuple(value.shape)
    )


def _attribute(gm: fx.GraphModule, target: str) -> Any:
    value: Any = gm
    for part in target.split("."):
        value = getattr(value, part)
    return value


def _submodules(gm: fx.GraphModule, graph: fx.Graph) -> dict[str, Any]:
    """Graph modules that higher-order operations refer to."""
    return {
        node.target: _attribute(gm, node.target)
        for node in graph.nodes
        if node.op == "get_attr" and not isinstance(node.meta.get("val"), torch.Tensor)
    }

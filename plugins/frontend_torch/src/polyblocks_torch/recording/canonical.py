"""Graph of AOTAutograd -> TorchCapture: numbers, updates and aliases out of the graph."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from polyblocks.errors import UnsupportedError
from polyblocks.program import Argument, ArraySpec, Result
from polyblocks_torch.arguments.number_limits import refused_number
from polyblocks_torch.arguments.overlaps import may_overlap, memory_of, read_memory_of_views
from polyblocks_torch.capture import (
    EmptyOutput,
    FromConstant,
    FromInput,
    InputOutput,
    LiteralOutput,
    OpaqueOutput,
    Output,
    ResultOutput,
    Source,
    TorchCapture,
    View,
)
from polyblocks_torch.graphs import graph_module
from polyblocks_torch.importing.checks import CHECK, STATIC_CHECKS, message_of
from polyblocks_torch.location import source_location
from polyblocks_torch.partitioning.node_rules import (
    fills_fresh_memory,
    is_random,
    unsupported_reason,
)
from polyblocks_torch.recording.result_strides import outputs_as_in_eager
from polyblocks_torch.specs import is_dense, memory_key, problem_with, spec_of, storage_key

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
            input: they are told apart by their places.
    """
    return _Canonicalizer(gm, example_inputs, name, weights).run()


@dataclass(eq=False)
class _Update:
    """``argument.copy_(value)`` at the end of the graph."""

    position: int
    node: fx.Node


class _Canonicalizer:
    def __init__(
        self, gm: fx.GraphModule, example_inputs: Sequence[Any], name: str, weights: Sequence[bool]
    ) -> None:
        self.gm = gm
        known = weights if len(weights) == len(example_inputs) else ()
        self.weights = {position for position, is_weight in enumerate(known) if is_weight}
        self.inputs = list(example_inputs)
        self.name = name
        self.graph = fx.Graph()
        returned = self.graph.graph_copy(gm.graph, {}, return_output_node=False)
        self.returned = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        self.placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        self.position = {node: i for i, node in enumerate(self.placeholders)}
        self.constants: dict[fx.Node, torch.Tensor] = {}
        self.inline: dict[str, torch.Tensor] = {}
        self.opaque: list[fx.Node] = []
        self.problem: UnsupportedError | None = None

    def run(self) -> TorchCapture:
        if len(self.placeholders) != len(self.inputs):
            raise UnsupportedError(
                f"{len(self.placeholders)} placeholders but {len(self.inputs)} example inputs"
            )
        for node, value in zip(self.placeholders, self.inputs, strict=True):
            if isinstance(value, torch.Tensor):
                # What tracing recorded shares memory with the views in the graph; keep that.
                node.meta.setdefault("val", value)
        self._literal_arguments()
        self._static_checks()
        self._conjugated_numbers()
        self._constants()
        self._refused_numbers()
        self._split_dropout()
        self._forget_data_of_metadata_only_operands()
        for old, new in read_memory_of_views(
            self.graph, self._call, self._constant, _view_root, self._reject
        ):
            self._replace_returned(old, new)
        outputs_as_in_eager(self.graph, self.returned)
        updates = self._updates()
        outputs, result_nodes = self._outputs(updates)
        returned = [node for node, _, _ in result_nodes] + self.opaque
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
        module = graph_module(self.inline | _submodules(self.gm, self.graph), self.graph)
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
                self.returned = [value if r is node else r for r in self.returned]
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
            if isinstance(node.args[0], complex) and node not in self.returned:
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
                    target = f"constant{len(self.inline)}"
                    self.inline[target] = value.detach().resolve_conj().resolve_neg()
                    node.target = target
                elif node.target in made:
                    node.replace_all_uses_with(made[node.target])
                    self._replace_returned(node, made[node.target])
                    self.graph.erase_node(node)
                else:
                    with self.graph.inserting_after(last) if last else self._at_begin():
                        argument = self.graph.placeholder(f"constant_{len(self.constants)}")
                    argument.meta = dict(node.meta, val=value)
                    self.constants[argument] = value.detach()
                    last = argument
                    made[node.target] = argument
                    node.replace_all_uses_with(argument)
                    self._replace_returned(node, argument)
                    self.graph.erase_node(node)
            elif node.target in (aten.lift_fresh_copy.default, aten.lift_fresh.default):
                # The copy protects the constant from updates, and this graph has none.
                node.replace_all_uses_with(node.args[0])
                self._replace_returned(node, node.args[0])
                self.graph.erase_node(node)

    def _refused_numbers(self) -> None:
        """Eager mode would raise an error where an operation has such a number."""
        for node in list(self.graph.nodes):
            message = refused_number(node) if node.op == "call_function" else None
            if message is None:
                continue
            false = self._constant(torch.tensor(False))
            with self.graph.inserting_before(node):
                check = self.graph.call_function(CHECK, (false, message))
            check.meta = {k: v for k, v in node.meta.items() if k == "stack_trace"} | {"val": None}

    def _at_begin(self) -> Any:
        return self.graph.inserting_before(next(iter(self.graph.nodes)))

    def _replace_returned(self, old: fx.Node, new: Any) -> None:
        self.returned = [new if r is old else r for r in self.returned]

    def _split_dropout(self) -> None:
        """``native_dropout`` -> a draw and arithmetic, so that only the draw is the framework's.

        The same operations in the same order as PyTorch's CPU kernel, bit for bit
        (aten/src/ATen/native/Dropout.cpp, native_dropout_cpu).
        """
        for node in list(self.graph.nodes):
            if node.target is not aten.native_dropout.default:
                continue
            operand, p, train = node.args
            value = operand.meta["val"]
            if train is False or problem_with(value) is not None:
                continue
            with self.graph.inserting_before(node):
                shaped = self._call(aten.empty_like.default, operand, dtype=torch.bool)
                mask = self._call(aten.bernoulli.p, shaped, 1.0 - p)
                kept = self._call(aten._to_copy.default, mask, dtype=value.dtype)
                product = self._call(aten.mul.Tensor, operand, kept)
                scale = 0.0 if p == 1.0 else 1.0 / (1.0 - p)
                scaled = self._call(aten.mul.Scalar, product, scale)
            for made in (shaped, mask, kept, product, scaled):
                made.meta.update({k: v for k, v in node.meta.items() if k == "stack_trace"})
            for user in list(node.users):
                new = (scaled, mask)[user.args[1]]
                # Views of the result recorded its memory, by which they are recognized.
                new.meta["val"] = user.meta["val"]
                user.replace_all_uses_with(new)
                self._replace_returned(user, new)
                self.graph.erase_node(user)
            self.graph.erase_node(node)

    def _forget_data_of_metadata_only_operands(self) -> None:
        """``empty_like(x)`` needs the shape of x alone: cut the edge.

        Random draws hang on such edges (``bernoulli(empty_like(x))`` is what dropout becomes), and
        every edge into a draw would split the graph once more.
        """
        for node in list(self.graph.nodes):
            value = node.meta.get("val")
            if node.target is aten.empty_like.default and problem_with(value) is None:
                fresh = self._fresh(node, value)
                node.replace_all_uses_with(fresh)
                self._replace_returned(node, fresh)
                self.graph.erase_node(node)
            elif fills_fresh_memory(node):
                # Drawn in place (see partitioned_call.py), so it has the layout of that memory.
                node.meta["val"] = node.args[0].meta["val"]
            elif is_random(node) and _op_name(node).endswith("_like"):
                operand = node.args[0]
                value = operand.meta.get("val")
                if problem_with(value) is None:
                    node.replace_input_with(operand, self._fresh(node, value))

    def _fresh(self, before: fx.Node, like: torch.Tensor) -> fx.Node:
        """A node that allocates what looks as ``like`` does."""
        with self.graph.inserting_before(before):
            node = self.graph.call_function(
                aten.empty_strided.default,
                (list(like.shape), list(like.stride())),
                {"dtype": like.dtype, "device": like.device},
            )
        node.meta = {k: v for k, v in before.meta.items() if k == "stack_trace"}
        node.meta["val"] = like
        return node

    def _updates(self) -> dict[int, _Update]:
        """Take the final ``copy_`` to arguments out of the graph."""
        found: dict[int, _Update] = {}
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
            found[position] = _Update(position, value)
            self._replace_returned(node, target)
            later = [user for user in node.users if user.op != "output"]
            for user in later:
                user.replace_input_with(node, value)
            self.graph.erase_node(node)
        return found

    def _converted(self, before: fx.Node, value: fx.Node, like: torch.Tensor) -> fx.Node:
        """``copy_`` broadcasts and converts; the result must have the argument's type already."""
        with self.graph.inserting_before(before):
            if value.meta["val"].dtype != like.dtype:
                value = self._call(aten._to_copy.default, value, dtype=like.dtype)
            if tuple(value.meta["val"].shape) != tuple(like.shape):
                value = self._call(aten.expand.default, value, list(like.shape))
        return value

    def _call(self, op: Any, operand: fx.Node, *args: Any, **kwargs: Any) -> fx.Node:
        """Add a call, with its value as tracing would have recorded it."""
        node = self.graph.call_function(op, (operand, *args), kwargs)
        node.meta = {k: v for k, v in operand.meta.items() if k == "stack_trace"}
        values = [a.meta["val"] if isinstance(a, fx.Node) else a for a in (operand, *args)]
        mode = getattr(values[0], "fake_mode", None)
        with mode if mode is not None else contextlib.nullcontext():
            node.meta["val"] = op(*values, **kwargs)
        return node

    def _outputs(
        self, updates: dict[int, _Update]
    ) -> tuple[list[Output], list[tuple[fx.Node, ArraySpec, int | None]]]:
        """Decide how each output of the caller is made; returns the results to compute too."""
        nodes: list[tuple[fx.Node, ArraySpec, int | None]] = []
        for update in updates.values():
            target = self.placeholders[update.position]
            spec = self._spec(target)
            if spec is not None and spec.numel != 0 and update.node is not target:
                nodes.append((update.node, spec, update.position))
        written = {position for _, _, position in nodes}
        index_of: dict[fx.Node, int] = {}
        bases = _Bases()
        plan: list[Output | None] = []
        pending: list[tuple[int, fx.Node, ArraySpec]] = []
        for number, value in enumerate(self.returned):
            plan.append(None)
            if not isinstance(value, fx.Node):
                plan[number] = LiteralOutput(value)
                continue
            if value in self.position:
                plan[number] = InputOutput(self.position[value])
                continue
            if value in self.constants or value.op == "get_attr":
                # The caller may write to what it gets.
                value = self._call(aten.clone.default, value)
            spec = self._spec(value)
            if spec is None:
                plan[number] = OpaqueOutput(len(self.opaque))
                self.opaque.append(value)
                continue
            if spec.numel == 0:
                plan[number] = EmptyOutput(spec)
                continue
            aliased = self._view_of_argument(value, spec, written)
            if aliased is not None:
                plan[number] = aliased
                continue
            pending.append((number, value, spec))
        # The widest array of each group that shares memory is computed, the others are its views.
        for root in _hidden_roots(pending):
            spec = spec_of(root.meta["val"])
            bases.add(root, spec, len(nodes))
            nodes.append((root, spec, None))
        for number, value, spec in sorted(pending, key=_widest_first):
            if value in index_of:
                plan[number] = ResultOutput(index_of[value])
                continue
            view = bases.find(value, spec)
            if view is not None:
                plan[number] = view
                continue
            node, stored, expanded = self._without_overlap(value, spec)
            index = len(nodes)
            nodes.append((node, stored, None))
            plan[number] = ResultOutput(index, expanded)
            if expanded is None:
                index_of[value] = index
                bases.add(value, stored, index)
        return [p for p in plan if p is not None], nodes

    def _spec(self, node: fx.Node) -> ArraySpec | None:
        value: Any = node.meta.get("val")
        reason = problem_with(value)
        if reason is not None:
            self._reject(reason, node)
            return None
        spec = spec_of(value)
        if node in self.position and _is_lazy(value) and not is_dense(spec):
            # It is copied before it is passed.
            return ArraySpec.contiguous(spec.shape, spec.dtype)
        return spec

    def _view_of_argument(
        self, node: fx.Node, spec: ArraySpec, written: set[int | None]
    ) -> InputOutput | None:
        base = _base_placeholder(node)
        if base is None or base not in self.position:
            return None
        position = self.position[base]
        if position in written:
            return None
        view = _relative_view(spec, node.meta["val"], base.meta["val"])
        # AOTAutograd makes those that read it as another type, but for several views at once.
        made_later = view is not None and view.dtype is not None and not _is_one_of_several(node)
        return None if view is None or made_later else InputOutput(position, view)

    def _without_overlap(
        self, node: fx.Node, spec: ArraySpec
    ) -> tuple[fx.Node, ArraySpec, View | None]:
        """What to compute for an output so that no two elements share a place.

        An expanded output is computed once per place and then viewed. So is any other one with
        overlaps (sliding windows), if it is no view of something that can be computed instead.
        """
        repeated = [
            d
            for d, (n, s) in enumerate(zip(spec.shape, spec.strides, strict=True))
            if n > 1 and s == 0
        ]
        if repeated:
            for dim in repeated:
                node = self._call(aten.slice.Tensor, node, dim, 0, 1)
            shape = tuple(1 if d in repeated else n for d, n in enumerate(spec.shape))
            single = ArraySpec(shape, spec.dtype, spec.strides)
            node, stored, view = self._without_overlap(node, single)
            laid = stored.strides if view is None else view.strides
            strides = tuple(0 if d in repeated else s for d, s in enumerate(laid))
            return node, stored, View(spec.shape, strides, 0)
        if may_overlap(spec):
            # What reads a view relies on its strides: the backward graph does.
            memory = memory_of(node, self._call, self._constant)
            stored = ArraySpec.contiguous((spec.span,), spec.dtype)
            return memory, stored, View(spec.shape, spec.strides, 0)
        return node, spec, None

    def _constant(self, value: torch.Tensor) -> fx.Node:
        """Add a constant to the program."""
        target = f"constant{len(self.inline)}"
        self.inline[target] = value
        with self._at_begin():
            node = self.graph.get_attr(target)
        known = (n.meta.get("val") for n in self.graph.nodes)
        mode = next((v.fake_mode for v in known if isinstance(v, FakeTensor)), None)
        node.meta["val"] = value if mode is None else mode.from_tensor(value, static_shapes=True)
        return node

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
            resolve.append(isinstance(value, torch.Tensor) and _is_lazy(value))
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


class _Bases:
    """Results whose memory other outputs may view."""

    def __init__(self) -> None:
        self._by_storage: dict[int, list[tuple[torch.Tensor, ArraySpec, int]]] = {}

    def add(self, node: fx.Node, spec: ArraySpec, index: int) -> None:
        key = storage_key(node.meta["val"])
        if key is not None and is_dense(spec):
            self._by_storage.setdefault(key, []).append((node.meta["val"], spec, index))

    def find(self, node: fx.Node, spec: ArraySpec) -> ResultOutput | None:
        value = node.meta["val"]
        for base, base_spec, index in self._by_storage.get(memory_key(value) or -1, ()):
            view = _relative_view(spec, value, base)
            if view is not None and _is_inside(view, spec, base_spec):
                return ResultOutput(index, view)
        return None


def _widest_first(item: tuple[int, fx.Node, ArraySpec]) -> tuple[int, bool]:
    """Orders outputs so that those come first of which others are views."""
    _, node, spec = item
    return -spec.nbytes, _is_lazy(node.meta["val"])


def _hidden_roots(pending: Sequence[tuple[int, fx.Node, ArraySpec]]) -> list[fx.Node]:
    """What outputs are views of, where it is no output itself: several, or one with overlaps."""
    groups: dict[int, list[tuple[fx.Node, ArraySpec]]] = {}
    for _, node, spec in pending:
        key = memory_key(node.meta["val"])
        if key is not None:
            groups.setdefault(key, []).append((node, spec))
    roots = []
    for group in groups.values():
        root = _view_root(group[0][0], memory_key)
        outputs = {node for node, _ in group}
        alone = len(outputs) < 2 and not may_overlap(group[0][1])
        if alone or root in outputs or root.op != "call_function":
            continue
        value = root.meta["val"]
        if problem_with(value) is not None or not is_dense(spec_of(value)) or _is_lazy(value):
            continue
        whole = spec_of(value)
        views = [(_relative_view(spec, node.meta["val"], value), spec) for node, spec in group]
        widest = max(
            (
                spec.nbytes
                for node, spec in group
                if is_dense(spec) and not _is_lazy(node.meta["val"])
            ),
            default=0,
        )
        if widest < whole.nbytes and all(
            v is not None and _is_inside(v, s, whole) for v, s in views
        ):
            roots.append(root)
    return roots


def _view_root(node: fx.Node, key_of: Callable[[Any], int | None] = storage_key) -> fx.Node:
    """The node that a chain of views starts from, which are views if they have equal keys."""
    key = key_of(node.meta.get("val"))
    while key is not None and node.op != "placeholder":
        base: Any = node.meta.get("view_of")
        known = base is not None and base.graph is node.graph
        # Views that one operation gives together (split, unbind) are elements of its tuple.
        maker: Any = node.args[0] if node.target is operator.getitem else node
        inputs: list[fx.Node] = [base] if known else maker.all_input_nodes
        same = [n for n in inputs if key_of(n.meta.get("val")) == key]
        if not same:
            break
        node = same[0]
    return node


def _is_one_of_several(node: fx.Node) -> bool:
    """Whether a view is an element of what one operation gives (split, unbind)."""
    return node.target is operator.getitem


def _base_placeholder(node: fx.Node) -> fx.Node | None:
    """The argument that a chain of views starts from."""
    root = _view_root(node)
    is_argument = root.op == "placeholder" and storage_key(node.meta.get("val")) is not None
    return root if is_argument else None


def _relative_view(spec: ArraySpec, value: torch.Tensor, base: torch.Tensor) -> View | None:
    """What makes ``value`` of ``base``, which shares its memory."""
    if value.device != base.device:
        return None
    begin = value.storage_offset() * value.itemsize - base.storage_offset() * base.itemsize
    offset, rest = divmod(int(begin), value.itemsize)
    if offset < 0 or rest or (base.numel() * base.itemsize) % value.itemsize:
        return None
    dtype = None if value.dtype == base.dtype else spec.dtype
    conj, neg = value.is_conj() != base.is_conj(), value.is_neg() != base.is_neg()
    return View(spec.shape, spec.strides, offset, dtype, conj, neg)


def _is_inside(view: View, spec: ArraySpec, base: ArraySpec) -> bool:
    itemsize = spec.nbytes // spec.span
    return view.offset * itemsize + spec.nbytes <= base.nbytes


def _is_lazy(value: torch.Tensor) -> bool:
    return value.is_conj() or value.is_neg()


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


def _op_name(node: fx.Node) -> str:
    """``aten::rand_like``; what runs a draw with a saved state is named otherwise."""
    schema = getattr(node.target, "_schema", None)
    return schema.name if schema is not None else str(node.target)

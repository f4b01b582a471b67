"""Apply a decomposition table to a captured graph, after AOTAutograd and not inside it.

Doing it here, on a cache miss only, keeps the graph of a warm start as short as PyTorch's own, and
keeps the strides that eager mode would give (those of the undecomposed ops) as the layout of the
outputs. A node that no decomposition touches is copied; each of the others is recorded on the
values that the graph has for its operands.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._guards import tracing
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from polyblocks.errors import PolyBlocksError, UnsupportedError
from polyblocks_torch.control_flow.operators import is_control_flow
from polyblocks_torch.decomp.registry import ROUNDED
from polyblocks_torch.flex_attention.operators import is_flex_attention
from polyblocks_torch.graphs import drop_unused, graph_module
from polyblocks_torch.importing.opmath import (
    in_float32,
    in_steps,
    need_not_round,
    rounds_between,
    with_rounded_integers,
)
from polyblocks_torch.location import source_location
from polyblocks_torch.recording.recorder import CannotRecord, Recorder, Writes, is_composite, like

Decompositions = Mapping[Any, Callable[..., Any]]


def decompose(gm: fx.GraphModule, table: Decompositions) -> tuple[fx.GraphModule, list[Any]]:
    """A new graph without the ops that ``table`` replaces, and its (fake) example inputs.

    Tensors that the graph holds stay attributes of it, so that they can still be folded. Source
    locations (``stack_trace``) carry over.

    Raises:
        UnsupportedError: the graph changes a tensor in place, or a decomposition fails or gives
            results of another shape or dtype than the op.
    """
    # AOTAutograd compiles under modes of its own; none of them may see this.
    with _disable_current_modes(), tracing(None), torch.no_grad():
        mode = _common_mode(gm.graph)
        if mode is not None:
            return _Decomposer(gm, table, mode, anew=False).run()
        return _Decomposer(gm, table, FakeTensorMode(allow_non_fake_inputs=True), anew=True).run()


class _Decomposer:
    """One run over a graph.

    Args:
        gm: the graph; not changed.
        table: the decompositions.
        mode: of the new graph's values.
        anew: whether every node is run, on values made like the arguments; else the values that
            ``gm`` has, which are ``mode``'s, stay true for all nodes that are not replaced.
    """

    def __init__(
        self, gm: fx.GraphModule, table: Decompositions, mode: FakeTensorMode, *, anew: bool
    ) -> None:
        self.gm = gm
        self.table = table
        self.mode = mode
        self.anew = anew
        self.graph = fx.Graph()
        self.attributes: dict[str, Any] = {}
        self.recorder = Recorder(self.graph, mode, table, self.attributes)
        #: Node of the old graph -> its replacement; several for a node that returns a tuple.
        self.made: dict[fx.Node, Any] = {}
        #: Ops whose decompositions write into what they have made.
        self.writing: set[Any] = set()

    def run(self) -> tuple[fx.GraphModule, list[Any]]:
        for node in self.gm.graph.nodes:
            self.made[node] = self._new(node)
        drop_unused(self.graph)
        inputs = [n.meta["val"] for n in self.graph.nodes if n.op == "placeholder"]
        return graph_module(self.attributes, self.graph), inputs

    def _new(self, node: fx.Node) -> Any:
        if node.op in ("placeholder", "get_attr"):
            return self._leaf(node)
        if node.op == "output":
            return self._copy(node)
        if node.target is operator.getitem:
            producer = self.made[node.args[0]]  # type: ignore[index]
            if not isinstance(producer, fx.Node):
                return producer[node.args[1]]
        if _is_mutable(node.target):
            raise UnsupportedError(
                "changes its operand in place", op=str(node.target), location=source_location(node)
            )
        if is_control_flow(node):
            return self._control_flow(node)
        if self.anew or _may_change(node, self.table):
            try:
                return self._expand(node)
            except PolyBlocksError:
                raise
            except Exception as error:  # whatever a decomposition of PyTorch's raises
                first = str(error).split("\n", 1)[0]
                raise UnsupportedError(
                    f"cannot be decomposed ({type(error).__name__}: {first})",
                    op=str(node.target),
                    location=source_location(node),
                ) from error
        return self._copy(node)

    def _control_flow(self, node: fx.Node) -> fx.Node:
        """A loop or a branch as it is; its graphs are decomposed by themselves."""
        copied = self._copy(node)
        if self.anew:
            copied.meta["val"] = pytree.tree_map_only(
                torch.Tensor, lambda value: like(self.mode, value), node.meta["val"]
            )
        return copied

    def _leaf(self, node: fx.Node) -> fx.Node:
        copied = self._copy(node)
        value = node.meta.get("val")
        if node.op == "get_attr":
            value = _attribute(self.gm, str(node.target))
            # Those of flex attention are recorded with other operands.
            if isinstance(value, fx.GraphModule) and not any(map(is_flex_attention, node.users)):
                value, _ = decompose(value, self.table)
            self.attributes[str(node.target)] = value
        if isinstance(value, torch.Tensor) and (self.anew or not isinstance(value, FakeTensor)):
            copied.meta["val"] = like(self.mode, value)
        return copied

    def _copy(self, node: fx.Node) -> fx.Node:
        return self.graph.node_copy(node, self.made.__getitem__)

    def _expand(self, node: fx.Node) -> Any:
        """Append the decomposition of ``node`` to the new graph."""
        self.recorder.begin(node)
        args = fx.map_arg(node.args, self._value_of)
        kwargs = fx.map_arg(node.kwargs, self._value_of)
        rounds = is_flex_attention(node) or node.target in ROUNDED
        function = _function_of(node)
        result = self._run(node, function, args, kwargs)
        if not rounds and rounds_between(self.recorder.made):
            # Nothing uses what was recorded so far.
            self.recorder.begin(node)
            computed = in_float32(function, node.meta["val"])
            result = self._run(node, computed, args, kwargs)
        if node.target is not torch.ops.aten._to_copy.default:
            for made in self.recorder.made:
                need_not_round(made)
        _check_kinds(node, result)
        if isinstance(result, torch.Tensor):
            return self.recorder.node_of(result)
        return pytree.tree_map_only(torch.Tensor, self.recorder.node_of, result)

    def _run(self, node: fx.Node, function: Any, args: Any, kwargs: Any) -> Any:
        """Record ``function`` for a node, as a function without side effects."""
        if node.target not in self.writing:
            try:
                return self._record(node, function, args, kwargs)
            except Writes:
                # Nodes recorded so far have no users. Remembered, so that it is detected once.
                self.writing.add(node.target)
        tensors, functional = self._functional(function, args, kwargs)
        return self._record(node, functional, tensors, {})

    def _value_of(self, old: fx.Node) -> Any:
        """The value, or values, of what a node of the old graph has become."""
        new = self.made[old]
        if isinstance(new, fx.Node):
            return self._value(new)
        return pytree.tree_map_only(fx.Node, self._value, new)

    def _value(self, node: fx.Node) -> Any:
        """The value of a node of the new graph, known to the recorder as that node's."""
        if node.op == "get_attr" and isinstance(self.attributes[str(node.target)], fx.GraphModule):
            return self.attributes[str(node.target)]
        value: torch.Tensor = node.meta["val"]
        known = self.recorder.node_for(value)
        if known is not node:
            if known is not None:
                # Two nodes may have one object for their values, since they share the memory.
                value = node.meta["val"] = value.detach()
            self.recorder.track(value, node)
        return value

    def _functional(
        self, function: Any, args: Any, kwargs: Any
    ) -> tuple[list[torch.Tensor], Callable[..., Any]]:
        """A function of tensors that does what one does, in which its updates are functional."""
        leaves, spec = pytree.tree_flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

        def run(*tensors: torch.Tensor) -> Any:
            given = dict(zip(places, tensors, strict=True))
            args, kwargs = pytree.tree_unflatten(
                [given.get(i, leaf) for i, leaf in enumerate(leaves)], spec
            )
            return function(*args, **kwargs)

        tensors = [leaves[i] for i in places]
        with self.mode:
            # In one pass the table would apply below the functionalization.
            traced = _trace(run, tensors, self.table)
            traced = _trace(
                torch.func.functionalize(fx.Interpreter(traced).run, remove="mutations"),
                tensors,
                self.table,
            )
        return tensors, fx.Interpreter(traced).run

    def _record(self, node: fx.Node, function: Any, args: Any, kwargs: Any) -> Any:
        try:
            with self.mode, self.recorder:
                return function(*args, **kwargs)
        except CannotRecord as error:
            if isinstance(error, Writes) and node.target not in self.writing:
                raise
            raise UnsupportedError(
                f"decomposes into something that is not functional ({error})",
                op=str(node.target),
                location=source_location(node),
            ) from error


def _function_of(node: fx.Node) -> Callable[..., Any]:
    """The function that runs for a node."""
    if is_flex_attention(node):
        from polyblocks_torch.flex_attention.written_out import written_out

        return written_out(node)
    if node.target is torch.ops.aten.view.default:
        # The tensor may have been replaced by one with other strides.
        return torch.ops.aten.reshape.default
    return with_rounded_integers(node)


def _trace(
    function: Callable[..., Any], inputs: Sequence[torch.Tensor], table: Decompositions
) -> fx.GraphModule:
    return make_fx(function, decomposition_table=dict(table), tracing_mode="real")(*inputs)


def _common_mode(graph: fx.Graph) -> FakeTensorMode | None:
    """The mode of all values of a graph; None if they must not be built on.

    Arguments are resolved before they are passed. A value that is a lazy conjugate of one, or was
    derived from such an argument, says something else.
    """
    modes = set()
    for node in graph.nodes:
        known = node.meta.get("val")
        if node.op == "output" or (node.op == "get_attr" and known is None):
            continue
        # Ops of several results give None for those that were not asked for.
        values = (
            [v for v in known if v is not None] if isinstance(known, (list, tuple)) else [known]
        )
        for value in values:
            if isinstance(value, FakeTensor):
                modes.add(value.fake_mode)
            if not isinstance(value, torch.Tensor):
                return None
            if node.op == "placeholder" and (value.is_conj() or value.is_neg()):
                return None
    return modes.pop() if len(modes) == 1 else None


def _may_change(node: fx.Node, table: Decompositions) -> bool:
    """Whether running a node may record something else in its place."""
    if node.target is operator.getitem:
        return False
    if not isinstance(node.target, torch._ops.OpOverload):
        return True
    return node.target in table or is_composite(node.target) or in_steps(node)


def _is_mutable(target: Any) -> bool:
    return isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable


def _check_kinds(node: fx.Node, results: Any) -> None:
    """Hold what an operation is made of against what PyTorch says that it gives.

    Raises:
        UnsupportedError: a result that is used has another shape or dtype.
    """
    expected = node.meta.get("val")
    if isinstance(expected, torch.Tensor):
        pairs = [(results, expected)]
    elif isinstance(expected, (list, tuple)) and len(results) == len(expected):
        used = {u.args[1] for u in node.users if u.target is operator.getitem and u.users}
        pairs = [(results[i], expected[i]) for i in used]  # type: ignore[index]
    else:
        pairs = [] if expected is None else [(results, expected)]
    for result, value in pairs:
        if isinstance(value, torch.Tensor) and (
            not isinstance(result, torch.Tensor)
            or result.dtype != value.dtype
            or result.shape != value.shape
        ):
            raise UnsupportedError(
                f"its decomposition gives {_kind(result)} instead of {_kind(value)}",
                op=str(node.target),
                location=source_location(node),
            )


def _kind(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


def _attribute(gm: fx.GraphModule, target: str) -> Any:
    value: Any = gm
    for part in target.split("."):
        value = getattr(value, part)
    return value

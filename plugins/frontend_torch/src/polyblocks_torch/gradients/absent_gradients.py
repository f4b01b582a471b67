"""Results that no gradient flows into: they do not take part in the backward graph.

Behind a graph break, a result of a part is often not used any more, or by code without gradients.
PyTorch hands a backward graph zeros for the gradient of such a result, and ``0 * inf`` is NaN where
eager mode computes nothing: ``x.sqrt()`` that is only printed spoils the gradient of ``x`` at 0.
Here autograd hands over None instead, and a backward graph without these gradients is compiled when
it is first needed.

A backward graph is linear in the gradients that come in, so a node is zero whose operands that
depend on them are all zero. A user's function (``torch.autograd.Function``) need not be linear:
see :class:`_UserFunctions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.runtime_wrappers import RuntimeWrapper
from torch._functorch._aot_autograd.schemas import PlainTensorMeta, ViewAndMutationMeta
from torch.utils import _pytree as pytree

from polyblocks_torch.gradients.plain_functions import call_plainly, is_plain
from polyblocks_torch.gradients.second_gradients import refuse_second_gradients

aten = torch.ops.aten

Call = Callable[[list[Any]], Any]
Compiler = Callable[[fx.GraphModule, Sequence[Any]], Call]

_active: ContextVar[bool] = ContextVar("polyblocks_absent_gradients", default=False)

_theirs = RuntimeWrapper.post_compile


@contextmanager
def absent_gradients_told() -> Iterator[None]:
    """Backward graphs that AOTAutograd captures inside get None for a gradient that is absent."""
    token = _active.set(True)
    try:
        yield
    finally:
        _active.reset(token)


def _post_compile(
    self: RuntimeWrapper,
    compiled_fn: Callable[..., Any],
    *args: Any,
    runtime_metadata: ViewAndMutationMeta,
    **options: Any,
) -> Any:
    if self.trace_joint and _active.get():
        # The ``apply`` of the autograd function that AOTAutograd makes of the two graphs.
        function = compiled_fn.__self__  # type: ignore[attr-defined]
        refuse_second_gradients(function)
        may_be_absent = _may_be_absent(runtime_metadata)
        if may_be_absent:
            _tell(function)
        made = _theirs(self, compiled_fn, *args, runtime_metadata=runtime_metadata, **options)
        if may_be_absent and not self.disable_amp and is_plain(function, runtime_metadata):
            return call_plainly(function, made, runtime_metadata, self.indices_of_inps_to_detach)
        return made
    return _theirs(self, compiled_fn, *args, runtime_metadata=runtime_metadata, **options)


RuntimeWrapper.post_compile = _post_compile  # type: ignore[method-assign]


def _tell(function: Any) -> None:
    forward, key = function.forward, function._compiled_autograd_key

    def without_zeros(ctx: Any, *args: Any) -> Any:
        ctx.set_materialize_grads(False)
        return forward(ctx, *args)

    def asked(ctx: Any) -> Any:
        # Compiled autograd is about to trace the whole backward graph, which takes no None.
        ctx.set_materialize_grads(True)
        return key(ctx)

    function.forward, function._compiled_autograd_key = (
        staticmethod(without_zeros),
        staticmethod(asked),
    )


def _may_be_absent(metadata: ViewAndMutationMeta) -> bool:
    """Whether a backward graph can stand in zeros of its own: it knows the shapes."""
    return all(isinstance(m, PlainTensorMeta) for m in metadata.subclass_tangent_meta) and not any(
        t._has_symbolic_sizes_strides for t in metadata.traced_tangents
    )


def without_absent_gradients(compile_: Compiler) -> Compiler:
    """A compiler of backward graphs that leaves out what depends on absent gradients alone.

    Args:
        compile_: takes a graph of ATen operations, which it may change, and one value per
            placeholder; gives a function of the list of arguments, which it empties.
    """

    def compiler(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Call:
        untouched = without_tangents(gm, frozenset())
        assert untouched is not None, "no gradient is absent"
        nodes = [node for node in untouched.graph.nodes if node.op == "placeholder"]
        tangents = [i for i, node in enumerate(nodes) if _is_tangent(node)]
        variants: dict[tuple[int, ...], Call] = {(): compile_(gm, example_inputs)}

        def compiled_without(absent: tuple[int, ...]) -> Call:
            reduced = without_tangents(untouched, {nodes[i].name for i in absent})
            if reduced is not None:
                return compile_(reduced, example_inputs)
            return _with_zeros(variants[()], {i: nodes[i].meta["val"] for i in absent})

        def run(arguments: list[Any]) -> Any:
            absent = tuple(i for i in tangents if arguments[i] is None)
            call = variants.get(absent)
            if call is None:
                call = variants[absent] = compiled_without(absent)
            return call(arguments)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return compiler


def _with_zeros(call: Call, values: dict[int, torch.Tensor]) -> Call:
    def run(arguments: list[Any]) -> Any:
        for i, value in values.items():
            arguments[i] = torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device=value.device
            ).zero_()
        return call(arguments)

    return run


def _is_tangent(node: fx.Node) -> bool:
    # Others are None at every call.
    return node.name.startswith("tangents") and not node.name.startswith("tangents_token")


def without_tangents(gm: fx.GraphModule, absent: Set[str]) -> fx.GraphModule | None:
    """A backward graph in which some incoming gradients are zero; None if it is not linear in them.

    Args:
        gm: whose nodes have ``meta["val"]``; it stays as it is.
        absent: names of placeholders.
    """
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    dependent: set[fx.Node] = set()
    zero: set[fx.Node] = set()
    functions = _UserFunctions(gm.graph)
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            dependent |= {node} if _is_tangent(node) else set()
            zero |= {node} if node.name in absent else set()
        elif node.op == "call_function" and (node in functions or not _reads_shapes_alone(node)):
            operands = [n for n in node.all_input_nodes if n in dependent]
            if operands:
                dependent.add(node)
                if all(n in zero for n in operands) and functions.may_leave_out(node, zero):
                    if not _may_be_zero(node):
                        return None
                    zero.add(node)
        if node.op == "output":
            # Nothing flows on to these either.
            kept: dict[fx.Node, fx.Node | None] = {**copies, **dict.fromkeys(zero)}
            copies[node] = graph.output(
                pytree.tree_map_only(fx.Node, kept.__getitem__, node.args[0])
            )
            copies[node].meta = dict(node.meta)
        else:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    for node, copy in copies.items():
        if node in zero and not all(user in zero or user.op == "output" for user in node.users):
            _replace_by_zeros(graph, node, copy, {copies[n] for n in zero})
    graph.eliminate_dead_code()
    return fx.GraphModule(gm, graph)


class _UserFunctions:
    """The nodes of a backward graph that the user has written, as backward of a Function.

    Eager mode calls that where any of its gradients is there, with zeros for the others, which it
    may use in any way; and not at all where none is.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self._calls: dict[int, list[fx.Node]] = {}
        self._call_of: dict[fx.Node, int] = {}
        for node in graph.nodes:
            # Nodes that one node of autograd has made have one number.
            stack, number = node.meta.get("source_fn_stack") or (), node.meta.get("seq_nr")
            written = any("autograd.Function" in entry for entry in stack)
            if written and number is not None and node.meta.get("autograd_backward"):
                self._calls.setdefault(number, []).append(node)
                self._call_of[node] = number

    def __contains__(self, node: fx.Node) -> bool:
        return node in self._call_of

    def may_leave_out(self, node: fx.Node, zero: Set[fx.Node]) -> bool:
        """Whether a node is zero or not computed; of its operands those from gradients are zero."""
        if node not in self or _keeps_zeros(node, zero):
            return True
        call = self._call_of[node]
        given = {n for member in self._calls[call] for n in member.all_input_nodes}
        return all(n in zero or not _is_gradient(n) for n in given if self._call_of.get(n) != call)


def _is_gradient(node: fx.Node) -> bool:
    return _is_tangent(node) or bool(node.meta.get("autograd_backward"))


#: Linear in each of their operands.
_PRODUCTS = frozenset({aten.mul, aten.mm, aten.bmm})

#: Linear in their first operand.
_LINEAR = frozenset({aten._to_copy, aten.clone, aten.div, aten.mean, aten.neg, aten.sum})


def _keeps_zeros(node: fx.Node, zero: Set[fx.Node]) -> bool:
    """Whether a node is certainly zero, some of its operands being zero."""
    packet = getattr(node.target, "overloadpacket", None)
    linear = packet in _LINEAR or getattr(node.target, "is_view", False)
    others = any(n in zero for n in node.all_input_nodes[1:])
    return packet in _PRODUCTS or (linear and node.args[0] in zero and not others)


def _reads_shapes_alone(node: fx.Node) -> bool:
    name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
    return name.endswith("_like") or name.startswith(("new_", "sym_"))


def _may_be_zero(node: fx.Node) -> bool:
    """Whether a linear operation can be proved zero: it only returns tensors of numbers."""
    if node.is_impure():
        return False
    values = pytree.tree_leaves(node.meta.get("val"))
    return all(
        isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
        for value in values
        if value is not None
    )


def _replace_by_zeros(graph: fx.Graph, node: fx.Node, copy: fx.Node, zero: set[fx.Node]) -> None:
    value: Any = node.meta["val"]
    if not isinstance(value, torch.Tensor):
        return  # its elements are replaced
    with graph.inserting_after(copy):
        zeros = graph.call_function(
            aten.full.default,
            (list(value.shape), 0),
            {"dtype": value.dtype, "device": value.device, "pin_memory": False},
        )
    zeros.meta = {"val": value.new_full(tuple(value.shape), 0)}
    copy.replace_all_uses_with(zeros, delete_user_cb=lambda user: user not in zero)

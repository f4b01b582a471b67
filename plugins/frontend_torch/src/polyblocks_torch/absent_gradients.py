"""Results that no gradient flows into: they do not take part in the backward graph.

Behind a graph break, a result of a part is often not used any more, or by code without gradients.
PyTorch hands a backward graph zeros for the gradient of such a result, and ``0 * inf`` is NaN where
eager mode computes nothing: ``x.sqrt()`` that is only printed spoils the gradient of ``x`` at 0.
Here a hook learns which gradients there are, and a backward graph without the others is compiled
when it is first needed. Autograd calls the hook right before the graph, on the same thread.

A backward graph is linear in the gradients that come in, so a node is zero whose operands that
depend on them are all zero.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

aten = torch.ops.aten

Call = Callable[[list[Any]], Any]
Compiler = Callable[[fx.GraphModule, Sequence[Any]], Call]

#: So many sets of absent gradients have graphs of their own.
VARIANTS = 8

_local = threading.local()


def marking(call: Callable[..., Any]) -> Callable[..., Any]:
    """A forward function whose results say later which of them got no gradient.

    Args:
        call: of AOTAutograd; returns a sequence.
    """

    def run(*args: Any) -> Any:
        results = call(*args)
        if not torch.is_grad_enabled():
            return results
        joined: dict[Any, set[int]] = {}
        for value in results:
            if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                joined.setdefault(value.grad_fn, set()).add(value.output_nr)
        for function, numbers in joined.items():
            # Not of arguments, nor of views that autograd has made of results.
            if (
                len(numbers) > 1
                and function.name() == "CompiledFunctionBackward"
                and not any(getattr(x, "grad_fn", None) is function for x in args)
            ):
                function.register_prehook(_noting(sorted(numbers)))
        return results

    return run


def _noting(numbers: Sequence[int]) -> Callable[[Sequence[Any]], None]:
    """A hook that notes, for the graph that runs next, which of its gradients are absent."""

    def hook(gradients: Sequence[Any]) -> None:
        absent = tuple(i for i, number in enumerate(numbers) if gradients[number] is None)
        _local.noted = (len(numbers), absent) if absent else None

    return hook


def without_absent_gradients(compile_: Compiler) -> Compiler:
    """A compiler of backward graphs that leaves out what depends on absent gradients alone.

    Args:
        compile_: takes a graph of ATen operations, which it leaves as it is, and one value per
            placeholder; gives a function of the list of arguments, which it empties.
    """

    def compiler(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Call:
        nodes = [node for node in gm.graph.nodes if node.op == "placeholder"]
        tangents = [node.name for node in nodes if node.name.startswith("tangents")]
        # A graph of symbols is changed when it is compiled.
        plain = not any(isinstance(value, torch.SymInt) for value in example_inputs)
        ordinary = compile_(gm, example_inputs)
        variants: dict[tuple[int, ...], Call] = {}

        def run(arguments: list[Any]) -> Any:
            noted = getattr(_local, "noted", None)
            if noted is None:
                return ordinary(arguments)
            _local.noted = None
            count, absent = noted
            if count != len(tangents) or not plain:
                # Some of its results are no results of the program.
                return ordinary(arguments)
            if absent not in variants and len(variants) < VARIANTS:
                reduced = without_tangents(gm, {tangents[i] for i in absent})
                variants[absent] = (
                    ordinary if reduced is None else compile_(reduced, example_inputs)
                )
            return variants.get(absent, ordinary)(arguments)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return compiler


def without_tangents(gm: fx.GraphModule, absent: set[str]) -> fx.GraphModule | None:
    """A backward graph in which some incoming gradients are zero; None if it is not linear in them.

    Args:
        gm: whose nodes have ``meta["val"]``; it stays as it is.
        absent: names of placeholders.
    """
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    dependent: set[fx.Node] = set()
    zero: set[fx.Node] = set()
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            dependent |= {node} if node.name.startswith("tangents") else set()
            zero |= {node} if node.name in absent else set()
        elif node.op == "call_function" and not _reads_shapes_alone(node):
            operands = [n for n in node.all_input_nodes if n in dependent]
            if operands:
                dependent.add(node)
                if all(n in zero for n in operands):
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


def _reads_shapes_alone(node: fx.Node) -> bool:
    name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
    return name.endswith("_like") or name.startswith(("new_", "sym_"))


def _may_be_zero(node: fx.Node) -> bool:
    """Whether a linear operation can be told to be zero: it gives tensors of numbers."""
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

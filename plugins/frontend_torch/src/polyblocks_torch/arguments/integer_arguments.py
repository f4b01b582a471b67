"""Integers among the arguments of a compiled graph, passed as tensors without dimensions.

Integers among the results are Python's: ``n + 1`` of a counter is added by Python at each call,
with integers of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from polyblocks_torch.arguments.number_arguments import is_integer
from polyblocks_torch.launch.launcher import boxed

aten = torch.ops.aten

Compiler = Callable[[fx.GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]


def with_integers(compile_: Compiler) -> Compiler:
    """A compiler of graphs that takes those with integers among the arguments, too.

    An argument that is an integer is read by ``scalar_tensor``, and by arithmetic of integers whose
    results are returned, and by nothing else: see
    :mod:`polyblocks_torch.arguments.number_arguments`.

    Args:
        compile_: takes a graph of ATen operations and one value per placeholder; gives a function
            of the list of arguments, which it empties, returning the tuple of outputs.
    """

    def compiler(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        inputs = list(example_inputs)
        nodes = [node for node in gm.graph.nodes if node.op == "placeholder"]
        places = [i for i, value in enumerate(inputs) if isinstance(value, torch.SymInt)]
        if not places:
            return compile_(gm, inputs)
        returned = _take_out_of_results(gm.graph, [nodes[i] for i in places])
        passed = []
        for i in places:
            tensor = _as_tensor(nodes[i])
            if tensor is not None:
                passed.append(i)
            inputs[i] = tensor
        gm.recompile()
        return _call(compile_(gm, inputs), places, passed, returned)

    return compiler


def _call(
    call: Callable[[list[Any]], Any],
    places: Sequence[int],
    passed: Sequence[int],
    returned: tuple[list[int], Callable[..., Any]] | None,
) -> Callable[[list[Any]], Any]:
    def run(arguments: list[Any]) -> Any:
        numbers = {i: arguments[i] for i in places}
        for i in places:
            arguments[i] = None
        for i in passed:
            arguments[i] = _tensor(numbers[i])
        results = call(arguments)
        if returned is not None:
            results = list(results)
            positions, compute = returned
            for position, number in zip(positions, compute(*numbers.values()), strict=True):
                results[position] = number
        return results

    return boxed(run)


def _tensor(number: int) -> torch.Tensor:
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError(
            f"a Python integer that changes from call to call is passed as int64, which does not "
            f"hold {number}; pass a float, or a tensor"
        )
    return torch.tensor(number)


def _take_out_of_results(
    graph: fx.Graph, numbers: Sequence[fx.Node]
) -> tuple[list[int], Callable[..., Any]] | None:
    """Let a graph return no integers.

    Args:
        graph: changed in place.
        numbers: its arguments that are integers.

    Returns:
        Positions of the results that were integers, and a function of the integer arguments that
        gives these results; None where there are none.
    """
    output = next(iter(reversed(graph.nodes)))
    results = list(output.args[0])
    found = {k: n for k, n in enumerate(results) if isinstance(n, fx.Node) and is_integer(n)}
    if not found:
        return None
    arithmetic = fx.Graph()
    copies = {node: arithmetic.placeholder(f"n{i}") for i, node in enumerate(numbers)}
    for node in graph.nodes:
        if node.op == "call_function" and is_integer(node):
            copies[node] = arithmetic.node_copy(node, copies.__getitem__)
    arithmetic.output([copies[node] for node in found.values()])
    arithmetic.eliminate_dead_code()
    for k in found:
        results[k] = None
    output.args = (tuple(results),)
    # Arithmetic that was returned alone: what is left of integers is read by scalar_tensor.
    for node in reversed(graph.nodes):
        if node.op == "call_function" and is_integer(node) and not node.users:
            graph.erase_node(node)
    return list(found), fx.GraphModule({}, arithmetic).forward


def _as_tensor(node: fx.Node) -> torch.Tensor | None:
    """Make an argument the tensor that holds the integer; None if nothing reads it."""
    value = None
    for user in list(node.users):
        assert user.target is aten.scalar_tensor.default, f"{user} reads an integer"
        value = user.meta["val"]
        user.replace_all_uses_with(node)
        user.graph.erase_node(user)
    if value is not None:
        node.meta["val"] = value
        node.meta.pop("tensor_meta", None)
    return value

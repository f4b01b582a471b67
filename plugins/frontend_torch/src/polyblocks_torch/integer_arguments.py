"""Integers among the arguments of a compiled graph, passed as tensors without dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from polyblocks_torch.launcher import boxed

aten = torch.ops.aten

Compiler = Callable[[fx.GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]


def with_integers(compile_: Compiler) -> Compiler:
    """A compiler of graphs that takes those with integers among the arguments, too.

    An argument that is an integer is read by ``scalar_tensor``, or returned, and by nothing else:
    see :mod:`polyblocks_torch.number_arguments`.

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
        returned = _take_out_of_results(gm.graph, {nodes[i]: i for i in places})
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
    returned: Sequence[tuple[int, int]],
) -> Callable[[list[Any]], Any]:
    def run(arguments: list[Any]) -> Any:
        numbers = {i: arguments[i] for i in places}
        for i in places:
            arguments[i] = None
        for i in passed:
            arguments[i] = _tensor(numbers[i])
        results = call(arguments)
        if returned:
            results = list(results)
            for position, i in returned:
                results[position] = numbers[i]
        return results

    return boxed(run)


def _tensor(number: int) -> torch.Tensor:
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError(
            f"a Python integer that changes from call to call is passed as int64, which does not "
            f"hold {number}; pass a float, or a tensor"
        )
    return torch.tensor(number)


def _take_out_of_results(graph: fx.Graph, numbers: dict[fx.Node, int]) -> list[tuple[int, int]]:
    """Where the graph returns arguments: positions of the result and of the argument."""
    output = next(iter(reversed(graph.nodes)))
    results = list(output.args[0])
    found = [(k, numbers[node]) for k, node in enumerate(results) if node in numbers]
    for k, _ in found:
        results[k] = None
    output.args = (tuple(results),)
    return found


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

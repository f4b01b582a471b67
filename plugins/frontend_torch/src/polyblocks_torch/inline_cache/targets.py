"""The function that a cached call runs: the graph itself where the code around it adds nothing.

Dynamo's code for a function that is one graph calls the graph and picks the results out of what it
returns. To find out which arguments it passes and what it makes of the results, it is run once
with objects in their places that have no meaning.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from polyblocks_torch.inline_cache import code as cache_code
from polyblocks_torch.launch.graph_call import GraphCall


@dataclass(frozen=True)
class Target:
    """A function for the arguments of a call, and how its result is given.

    Attributes:
        target: an object of Python; of machine code its ``self``.
        function: the address of machine code; 0: the target is called as Python calls.
        picks: numbers of the arguments that are passed; None: all, in order.
        unwraps: whether the result is the single element of the tuple that it returns.
        argument: the number of the argument that is the result, and nothing is called.
        alive: is kept as long as the target may be called.
    """

    target: Any
    function: int = 0
    picks: tuple[int, ...] | None = None
    unwraps: bool = False
    argument: int = cache_code.NO_ARGUMENT
    alive: Any = None


class _Stand:
    """Stands for an argument or a result."""


def target_of(function: FunctionType, name: str, graph: GraphCall | None, count: int) -> Target:
    """The target of a variant.

    Args:
        function: Dynamo's code, with positional arguments.
        name: the global name by which it calls the graph.
        graph: what that name stands for; None: no function of the graph's arguments alone.
        count: arguments of the call.
    """
    plain = Target(function)
    if graph is None:
        return plain
    arguments = [_Stand() for _ in range(count)]
    results = tuple(_Stand() for _ in range(graph.output_count))
    passed: list[Sequence[Any]] = []

    def stand_in(*values: Any) -> tuple[Any, ...]:
        passed.append(values)
        return results

    scope = {"__builtins__": builtins, name: stand_in}
    run = FunctionType(function.__code__, scope, "run", None, function.__closure__)
    try:
        returned = run(*arguments)
    except Exception:  # it does something else with them
        return plain
    numbers = {id(each): k for k, each in enumerate(arguments)}
    if len(passed) != 1 or not all(id(each) in numbers for each in passed[0]):
        return plain
    picks = tuple(numbers[id(each)] for each in passed[0])
    in_order = picks == tuple(range(count))
    whole = type(returned) is tuple and _same(returned, results)
    single = len(results) == 1 and returned is results[0]
    if not whole and not single:
        return plain
    if single and graph.forwarded is not None:
        return Target(None, argument=picks[graph.forwarded])
    call: Any = graph.call
    target = call.__self__ if graph.machine_code else call
    chosen = None if in_order else picks
    return Target(target, graph.machine_code, chosen, single, alive=call)


def _same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(some) == len(others) and all(map(lambda a, b: a is b, some, others))

"""Graphs of Dynamo that PyTorch runs as they are.

Compiled code would lose what arguments carry, or AOTAutograd something else that it must know.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._dynamo.guards import GuardBuilder
from torch._dynamo.source import GlobalStateSource, RandomValueSource
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import is_fake
from torch.autograd import forward_ad

from polyblocks.errors import InputError
from polyblocks_torch.arguments.overlapping_updates import overlapping_update
from polyblocks_torch.location import source_location
from polyblocks_torch.report import TANGENTS


def reason_to_run_eagerly(gm: fx.GraphModule) -> tuple[str, str, str] | None:
    """The operation or argument of a graph that cannot be compiled, why, and where.

    None if nothing is.

    Dynamo does not guard whether forward-mode differentiation is on; this makes it do so.
    """
    context = TracingContext.try_get()
    if context is not None:
        level = GlobalStateSource().make_guard(GuardBuilder.DUAL_LEVEL)
        context.guards_context.dynamo_guards.add(level)
    if forward_ad._current_level >= 0:
        return "torch.autograd.forward_ad", TANGENTS, ""
    for argument in _arguments(gm):
        value = getattr(argument, "example", None)
        if isinstance(value, torch.Tensor) and is_fake(value):
            return "fake tensors", "they have no data; call it outside of FakeTensorMode", ""
    update = overlapping_update(gm)
    if update is not None:
        return "update in place", _OVERLAPS, source_location(update) or ""
    return None


_OVERLAPS = (
    "it updates a tensor whose elements overlap in memory (a sliding window, or expanded), or a "
    "view of one; update a copy (.clone())"
)


def check_draws(gm: fx.GraphModule) -> None:
    """Refuse numbers that Dynamo draws from generators of Python or NumPy, but not as they do.

    The decorators end graphs at such draws; here the settings are the caller's.

    Raises:
        InputError: a graph holds one; says what to do.
    """
    draws = InstructionTranslator.current_tx().output.random_calls if _draws(gm) else ()
    for function, _, _ in draws:
        if "call_random_meth" in getattr(function, "__qualname__", ""):
            raise InputError(
                "the function draws from a random.Random object, and Dynamo would repeat its first "
                "number at every call; draw outside of the compiled function"
            )
    for node in gm.graph.nodes:
        called: Any = getattr(node.target, "f", None)
        if getattr(called, "__module__", "") == "torch._numpy.random":
            raise InputError(
                f"the function calls numpy.random.{called.__name__}, which Dynamo replaces by "
                "another generator; set torch._dynamo.config.use_numpy_random_stream"
            )


def _draws(gm: fx.GraphModule) -> bool:
    return any(isinstance(a.source, RandomValueSource) for a in _arguments(gm))


def _arguments(gm: fx.GraphModule) -> list[Any]:
    found = (n.meta.get("grapharg") for n in gm.graph.nodes if n.op == "placeholder")
    return [argument for argument in found if argument is not None]

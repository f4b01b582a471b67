"""Gradients of the gradients of a compiled function, taken outside of it: an error, never zeros.

AOTAutograd's backward graph is not differentiable. A node that raises is behind its results, but
is joined to what the forward graph has saved, which need not lead to the arguments: autograd then
finds no way from a gradient to an argument, and ``torch.autograd.functional.hessian`` takes the
second derivative for zero. Here the node is joined to the arguments.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from polyblocks.errors import ExecutionError

_REASON = (
    "gradients of the gradients of a compiled function cannot be taken outside of it; expected the "
    "first ones to be taken in the function, by torch.autograd.grad(..., create_graph=True), or by "
    "torch.func.grad"
)


def refuse_second_gradients(function: Any) -> None:
    """Let second derivatives through AOTAutograd's autograd function raise.

    Args:
        function: a subclass of ``torch.autograd.Function``, changed in place. Its backward raises
            an ExecutionError where its results are differentiated.
    """
    forward = function.forward

    def noting(ctx: Any, *args: Any) -> Any:
        # The caller that asks for the gradient of an argument keeps it.
        ctx.differentiable = [
            weakref.ref(x) for x in args if isinstance(x, torch.Tensor) and x.requires_grad
        ]
        return forward(ctx, *args)

    def joined(ctx: Any, backward: Callable[[Any], Any], saved: list[Any]) -> Any:
        class CompiledFunctionBackward(torch.autograd.Function):
            _aot_id = function._aot_id

            @staticmethod
            def forward(inner: Any, *_: Any) -> Any:
                return backward(inner)

            @staticmethod
            def backward(_: Any, *gradients: Any) -> None:
                raise ExecutionError(_REASON)

        CompiledFunctionBackward._compiled_autograd_key = function._compiled_autograd_key  # type: ignore[method-assign]
        arguments = [x for reference in ctx.differentiable if (x := reference()) is not None]
        # Not one may be left: the results say that they need gradients.
        return CompiledFunctionBackward.apply(
            torch.empty(0, requires_grad=True), *saved, *arguments
        )

    function.forward, function._double_backward = staticmethod(noting), staticmethod(joined)

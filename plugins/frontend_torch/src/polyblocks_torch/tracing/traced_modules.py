"""PyTorch's own Python code that Dynamo cannot trace as it is, or not to what eager mode gives.

``Optimizer.step`` asks for a graph break before and after its work, so that Inductor sees the
updates of parameters in a graph apart from training. Here updates stay in whichever graph
they are in, and the two breaks are left out.

``nn.TransformerEncoder`` looks at a padding mask to decide whether it drops what is padded; while
Dynamo traces, it never does, and gives other numbers where eager mode gives zeros. Here the look
becomes a part of the graph. It also looks whether a mask is causal, which matters for speed alone.

``Tensor.backward`` ends the graph. Dynamo would trace it for the leaves among the arguments, and
guards not which of them are leaves.

``torch.jit.isinstance`` of a class is Python's, where Dynamo ends the graph: spectrograms of
torchaudio call it.

Draws from Python's generators end the graph, where Dynamo draws once, or in another type.

An operation that fails while it is traced fails the frame, which Python then runs with all that it
calls. From PyTorch 2.15 on Dynamo forgets that where the error leaves a ``with`` block, and traces
what the frame calls, with transforms of torch.func that are open.

All holds for what this package traces only, not for other users of Dynamo.
"""

from __future__ import annotations

import ast
import math
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch._dynamo
from torch import Tensor
from torch._dynamo.exc import TorchRuntimeError, Unsupported, unimplemented
from torch._dynamo.symbolic_convert import InstructionTranslatorBase
from torch._dynamo.variables import misc, user_defined
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.functions import SkipFunctionVariable, UserFunctionVariable
from torch._dynamo.variables.tensor import TensorVariable
from torch.nn import TransformerEncoder
from torch.nn import functional as F
from torch.nn.modules.transformer import _detect_is_causal_mask
from torch.optim import optimizer

from polyblocks_torch.gradients import inner_gradients
from polyblocks_torch.tracing import traced_checks

_active: ContextVar[bool] = ContextVar("polyblocks_traces", default=False)

_skipped_call = SkipFunctionVariable.call_function
_inlined_call = InstructionTranslatorBase.inline_user_function_return
_encoder_forward = TransformerEncoder.forward


@contextmanager
def traceable() -> Iterator[None]:
    """Let Dynamo trace as described above inside of the block."""
    token = _active.set(True)
    try:
        yield
    finally:
        _active.reset(token)


def is_tracing() -> bool:
    """Whether this package traces, and no other user of Dynamo."""
    return _active.get()


def _without_breaks(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
    if (
        self.value is torch._dynamo.graph_break
        and _active.get()
        and tx.f_code.co_filename == optimizer.__file__
    ):
        return ConstantVariable.create(None)
    if (
        self.value is torch.jit.isinstance
        and _active.get()
        and not kwargs
        and _is_of_classes(*args)
    ):
        return VariableTracker.build(tx, isinstance).call_function(tx, args, {})
    return _skipped_call(self, tx, args, kwargs)


def _is_of_classes(value: Any, kind: Any) -> bool:
    """Whether ``torch.jit.isinstance`` does what Python's does: not of containers."""
    del value
    if not kind.is_python_constant():
        return False
    kinds = kind.as_python_constant()
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    return all(isinstance(k, type) and k not in (dict, list, tuple) for k in kinds)


def _inlined(self: Any, fn: Any, args: Any, kwargs: Any, **options: Any) -> Any:
    if isinstance(fn, UserFunctionVariable) and _active.get():
        if fn.fn is _detect_is_causal_mask:
            fn = VariableTracker.build(self, _is_said_to_be_causal)
        elif fn.fn is _encoder_forward:
            values = ("mask", "src_key_padding_mask", "is_causal")
            given = dict(zip(values, args[2:], strict=False)) | kwargs
            padding = given.get("src_key_padding_mask")
            if padding is not None and padding.is_tensor():
                fn = VariableTracker.build(self, _padded_encoder_forward)
    return _inlined_call(self, fn, args, kwargs, **options)


def _is_said_to_be_causal(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """Without a look at the mask, which is applied as it is where this says no."""
    return is_causal is True


def _padded_encoder_forward(
    self: TransformerEncoder,
    src: Tensor,
    mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool | None = None,
) -> Tensor:
    """``TransformerEncoder.forward`` with a padding mask, which eager mode turns into nesting.

    It does so if every row is padded at its end alone. Rows of a nested tensor end where the
    padding begins: nothing sees what is padded, and it comes out as zeros before the last norm.
    """
    padding: Any = F._canonical_mask(
        mask=src_key_padding_mask,
        mask_name="src_key_padding_mask",
        other_type=F._none_or_dtype(mask),
        other_name="mask",
        target_type=src.dtype,
    )
    mask = F._canonical_mask(
        mask=mask,
        mask_name="mask",
        other_type=None,
        other_name="",
        target_type=src.dtype,
        check_other=False,
    )
    first = self.layers[0]
    nests = (
        torch.backends.mha.get_fastpath_enabled()
        and self.use_nested_tensor
        and not first.training
        and src.dim() == 3
        and mask is None
        and not torch.is_autocast_enabled()
        and not (
            torch.is_grad_enabled()
            and (src.requires_grad or any(p.requires_grad for p in first.parameters()))
        )
    )
    padded = padding != 0
    if nests:
        at_end = (padded[:, 1:] | ~padded[:, :-1]).all() & getattr(self, "mask_check", True)
        nested = padded & at_end
        padding = torch.where(nested, -math.inf, padding)
    output = src
    for layer in self.layers:
        output = layer(
            output,
            src_mask=mask,
            is_causal=_is_said_to_be_causal(mask, is_causal),
            src_key_padding_mask=padding,
        )
    if nests:
        output = torch.where(nested.unsqueeze(-1), 0.0, output)
    if self.norm is not None:
        output = self.norm(output)
    return output


def trace_method(name: str, traced: Callable[..., Any]) -> None:
    """Let Dynamo trace a method of tensors so.

    Args:
        name: of the method.
        traced: takes the tensor, Dynamo's translator and the arguments; what gives None is put into
            the graph as it is.
    """
    setattr(TensorVariable, f"method_{name}", traced)
    # From PyTorch 2.15 on Dynamo looks methods up in a table, and not by their names.
    table = getattr(TensorVariable, "tp_methods", None)
    if table is not None:
        made = type(next(iter(table.values())))(traced)
        TensorVariable.tp_methods = {**table, name: made}  # type: ignore[attr-defined]


_traced_backward = TensorVariable.method_backward


def _backward(self: Any, tx: Any, *args: Any, **kwargs: Any) -> Any:
    if _active.get():
        unimplemented(
            gb_type="Tensor.backward() in a compiled function",
            context=f"call_method {self} backward",
            explanation="which tensors get gradients depends on where the arguments come from",
            hints=["Call backward() outside, or take gradients with torch.autograd.grad."],
        )
    return _traced_backward(self, tx, *args, **kwargs)


_traced_draw = user_defined.call_random_fn

#: Their results are int64 in Dynamo as in Python, and each call draws them anew.
_DRAWN_IN_GRAPHS = (random.randint, random.randrange)


def _draw(tx: Any, fn: Any, args: Any, kwargs: Any, *replays: Any) -> Any:
    limits = [value.as_python_constant() for value in (*args, *kwargs.values())]
    if _active.get() and not (
        fn in _DRAWN_IN_GRAPHS and all(abs(limit) < 1 << 62 for limit in limits)
    ):
        unimplemented(
            gb_type="draw from a generator of Python",
            context=f"{getattr(fn, '__qualname__', fn)}",
            explanation="the next call must draw the next number",
            hints=["Draw outside of the compiled function, or with PyTorch's generator."],
        )
    # From PyTorch 2.15 on how a graph draws again may be said, too.
    return _traced_draw(tx, fn, args, kwargs, *replays)


_handled = InstructionTranslatorBase.exception_handler
#: How Dynamo shows an error of an operation that no code of the user's handles.
_FAILED = re.compile(r"raised exception RuntimeError\((.*failed to run FX node .*)\)$", re.M)


def _handle(self: Any, raised: Any) -> None:
    try:
        _handled(self, raised)
    except Unsupported as error:
        failed = _FAILED.search(str(error)) if _active.get() else None
        if failed is None:
            raise
        text = ast.literal_eval(failed[1])
        raise TorchRuntimeError(text, getattr(error, "real_stack", None)) from None


trace_method("backward", _backward)
InstructionTranslatorBase.exception_handler = _handle  # type: ignore
user_defined.call_random_fn = _draw
misc.call_random_fn = _draw
SkipFunctionVariable.call_function = _without_breaks  # type: ignore[method-assign]
InstructionTranslatorBase.inline_user_function_return = _inlined  # type: ignore
traced_checks.install(_active.get)
inner_gradients.install(_active.get)

"""Dynamo's indexing with integer tensors without dimensions, see :mod:`.operators`.

Only where the polyblocks decorator compiles: the functions that stand in the graph are replaced
again where a copy of the element is not what a view would be (:mod:`.copies`).
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch._dynamo.utils import (
    _disable_saved_tensors_hooks_during_tracing,
    get_fake_value,
    proxy_args_kwargs,
)
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import wrap_fx_proxy
from torch._dynamo.variables.builtin import BuiltinVariable
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.lists import SliceVariable, TupleVariable
from torch._dynamo.variables.tensor import TensorVariable
from torch.overrides import _get_current_function_mode_stack

from polyblocks_torch.elements.copies import VERSION, version_of
from polyblocks_torch.elements.operators import PLACES, element, store_element

_active: ContextVar[bool] = ContextVar("polyblocks_elements", default=False)

_getitem = TensorVariable.method___getitem__
_insert = BuiltinVariable._handle_insert_op_in_graph
_setitem = TensorVariable.method___setitem__
#: Whether PyTorch asks for it if the value is a tensor, as 2.13 and 2.14 do.
_TOLD_OF_VALUE = (
    "has_tensor_arg" in inspect.signature(TensorVariable._sync_if_inplace_mutation).parameters
)


@contextmanager
def elements_gathered() -> Iterator[None]:
    """Dynamo traces elements as said above, in the block."""
    token = _active.set(True)
    try:
        yield
    finally:
        _active.reset(token)


def _is_place(item: VariableTracker) -> bool:
    if type(item) is not TensorVariable or item.ndim != 0 or item.dtype not in PLACES:
        return False
    # A constant's number is known to PyTorch.
    return getattr(item.proxy.node.meta.get("example_value"), "constant", None) is None


def _is_basic(item: VariableTracker) -> bool:
    if isinstance(item, SliceVariable):
        return item.is_python_constant()
    if not item.is_python_constant():
        return False
    value = item.as_python_constant()
    return value is None or value is Ellipsis or type(value) is int


def _takes(x: Any, key: VariableTracker) -> bool:
    """Whether a key has places in tensors, and nothing else that is no view."""
    x = x.realize()
    if not _active.get() or type(x) is not TensorVariable or not x.ndim:
        return False
    # Functions of flex_attention's scores and masks have their own way, gradients included.
    if any(isinstance(m, TransformGetItemToIndex) for m in _get_current_function_mode_stack()):
        return False
    key = key.realize()
    items = [i.realize() for i in (key.items if isinstance(key, TupleVariable) else [key])]
    return any(map(_is_place, items)) and all(_is_place(i) or _is_basic(i) for i in items)


def _got(tx: Any, x: Any, key: Any) -> Any:
    """The variable of ``x[key]``; None where it is traced as ever."""
    if not _takes(x, key):
        return None
    x = x.realize()
    proxy = tx.output.create_proxy("call_function", element, *proxy_args_kwargs([x, key], {}))
    made = wrap_fx_proxy(tx, proxy)
    proxy.node.meta[VERSION] = tuple(map(version_of, (x.proxy.node, proxy.node)))
    return made


def _method(self: Any, tx: Any, *args: Any, **kwargs: Any) -> Any:
    made = _got(tx, self, args[0]) if len(args) == 1 and not kwargs else None
    return _getitem(self, tx, *args, **kwargs) if made is None else made


def _inserted(self: Any, tx: Any, args: Any, kwargs: Any) -> Any:
    made = _got(tx, *args) if self.fn is operator.getitem and not kwargs else None
    return _insert(self, tx, args, kwargs) if made is None else made


def _set(self: Any, tx: Any, key: Any, value: Any) -> Any:
    if not _takes(self, key):
        return _setitem(self, tx, key, value)
    proxy = tx.output.create_proxy(
        "call_function", store_element, *proxy_args_kwargs([self, key, value], {})
    )
    # As Dynamo does it with operator.setitem.
    before = self._get_fake_version()
    shapes = tx.fake_mode.shape_env if tx.fake_mode else None
    fresh = shapes.ignore_fresh_unbacked_symbols() if shapes else nullcontext()
    with _disable_saved_tensors_hooks_during_tracing(), fresh:
        get_fake_value(proxy.node, tx, allow_non_graph_fake=False)
    self._sync_if_inplace_mutation(tx, before, *([value.is_tensor()] if _TOLD_OF_VALUE else []))
    return ConstantVariable.create(None)


TensorVariable.method___getitem__ = _method  # type: ignore[method-assign]
TensorVariable.method___setitem__ = _set  # type: ignore[method-assign]
BuiltinVariable._handle_insert_op_in_graph = _inserted  # type: ignore[method-assign]
# Dynamo may have been at work before this was imported.
BuiltinVariable.call_function_handler_cache.clear()

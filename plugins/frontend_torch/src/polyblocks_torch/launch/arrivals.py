"""Tensors that enter compiled code, in the form that it was compiled for.

Compiled code gets addresses. The arrays there have the dtype, shape and strides of an
:class:`~polyblocks.program.ArraySpec`, and neither a lazy conjugation nor a lazy negation. Dynamo
guards all that of a function's arguments, but for lazy bits, which are compiled for, and for
memory: ZeroTensors and freed storages have none. Nothing guards what a backward gets (incoming
gradients, what hooks make of saved tensors) and what operations give that PyTorch runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._C._dynamo.guards import TensorGuards
from torch._subclasses.fake_tensor import is_fake

from polyblocks.errors import ExecutionError, InputError
from polyblocks.program import ArraySpec
from polyblocks_torch.launch.memory_of import has_memory
from polyblocks_torch.specs import TORCH_DTYPES


@dataclass(frozen=True)
class Form:
    """The form of the array that compiled code expects at one address.

    Attributes:
        spec: dtype, shape and strides.
        device: where it lies.
        name: what errors call it.
        inferred: whether PyTorch inferred the dtype of the operation that gives it: another
            one is then an error, and is converted otherwise.
    """

    spec: ArraySpec
    device: torch.device
    name: str
    inferred: bool = False

    @property
    def dtype(self) -> torch.dtype:
        """PyTorch's dtype."""
        return TORCH_DTYPES[self.spec.dtype]


def in_form(value: Any, form: Form) -> torch.Tensor:
    """``value`` if it has the form, else a copy that has.

    Raises:
        InputError: it has no memory.
        ExecutionError: it has another shape, device or layout, or another dtype than an operation
            was said to give; or it differs where the form has one element for several.
    """
    spec = form.spec
    if not isinstance(value, torch.Tensor):
        raise ExecutionError(f"{form.name}: expected a tensor, got {type(value).__name__}")
    if (
        value.layout != torch.strided
        or value.device != form.device
        or tuple(value.shape) != spec.shape
        or (form.inferred and value.dtype != form.dtype)
    ):
        expected = _described(spec.dtype, spec.shape, form.device)
        actual = _described(_name(value.dtype), value.shape, value.device)
        if value.layout != torch.strided:
            actual = f"{_name(value.layout)} {actual}"
        hint = "; make register_fake give what the operation gives" if form.inferred else ""
        raise ExecutionError(f"{form.name}: expected {expected}, got {actual}{hint}")
    if value.dtype == form.dtype and _lies_as(value, spec) and not _is_lazy(value):
        _check_memory(value, form)
        return value
    return _copied(value, form)


def with_memory(forms: Sequence[Form], updated: Collection[int]) -> Callable[..., Any]:
    """A function of tensors, also of such without an address, that gives tensors with addresses.

    Args:
        forms: of the tensors.
        updated: which of them compiled code writes to.
    """

    def materialize(*values: torch.Tensor) -> list[torch.Tensor]:
        found = []
        for number, (value, form) in enumerate(zip(values, forms, strict=True)):
            if value._is_zerotensor() and number not in updated:
                found.append(_copied(value, form))
            else:
                _check_memory(value, form)
                found.append(value)
        return found

    return materialize


class Arrivals:
    """Converts several tensors to their forms, at each call.

    Attributes:
        known: whether tensors look as those of an earlier call that had their forms; takes 0.1 µs
            and another 0.06 µs for each.

    Args:
        forms: of the tensors.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = forms
        self.known: Callable[..., bool] = lambda *_: False

    def __call__(self, *values: Any) -> list[torch.Tensor]:
        """The tensors, or copies of them, in their forms; see :func:`in_form`."""
        found = [in_form(value, form) for value, form in zip(values, self._forms, strict=True)]
        if all(new is value for new, value in zip(found, values, strict=True)):
            guards = TensorGuards(*values, dynamic_dims_sizes=None, dynamic_dims_strides=None)
            self.known = guards.check
        return found


def _is_lazy(value: torch.Tensor) -> bool:
    return value.is_conj() or value.is_neg() or value._is_zerotensor()


def _lies_as(value: torch.Tensor, spec: ArraySpec) -> bool:
    strides = value.stride()
    return strides == spec.strides or all(
        actual == stride or extent == 1
        for actual, stride, extent in zip(strides, spec.strides, spec.shape, strict=True)
    )


def _check_memory(value: torch.Tensor, form: Form) -> None:
    if is_fake(value):
        raise InputError(f"{form.name} is a fake tensor; expected one with data")
    if value.numel() and not has_memory(value):
        why = "of a ZeroTensor" if value._is_zerotensor() else "its storage was freed"
        raise InputError(f"{form.name} has no memory ({why}); expected a tensor with data")


@torch.no_grad()
def _copied(value: torch.Tensor, form: Form) -> torch.Tensor:
    spec = form.spec
    if not value._is_zerotensor():
        _check_memory(value, form)
    made = torch.empty_strided(spec.shape, spec.strides, dtype=form.dtype, device=form.device)
    target, source = made, value
    for dim, (extent, stride) in enumerate(zip(spec.shape, spec.strides, strict=True)):
        if stride == 0 and extent > 1:
            target, source = target.narrow(dim, 0, 1), source.narrow(dim, 0, 1)
    target.copy_(source)
    if spec.span < spec.numel and not _are_equal(made, value):
        raise ExecutionError(
            f"{form.name}: expected elements that share memory (strides {spec.strides}), got "
            "different ones"
        )
    return made


def _are_equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _described(dtype: str, shape: Sequence[int], device: torch.device) -> str:
    return f"{dtype}{list(shape)} on {device}"


def _name(value: torch.dtype | torch.layout) -> str:
    return str(value).removeprefix("torch.")

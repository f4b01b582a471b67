"""Fourier transforms along one dimension: two ops, and their lowering to the core's loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from polyblocks import mlir
from polyblocks.algorithms.fourier import Kind, transform
from polyblocks_torch.importing.torch_dialect import (
    Lowering,
    find_ops,
    from_builtin,
    tensor_type,
    to_builtin,
)

_library = torch.library.Library("polyblocks", "FRAGMENT")
_library.define(
    "fourier(Tensor re, Tensor? im, int n, int sign, float scale, bool half) -> (Tensor, Tensor)"
)
_library.define("fourier_to_real(Tensor re, Tensor im, int n, int sign, float scale) -> Tensor")


def _eager(
    re: Tensor, im: Tensor | None, n: int, sign: int, scale: float, half: bool
) -> tuple[Tensor, Tensor]:
    x = torch.complex(re, torch.zeros_like(re) if im is None else im)
    along = {"dim": 1, "norm": "forward" if sign > 0 else "backward"}
    y = (torch.fft.ifft if sign > 0 else torch.fft.fft)(x, **along) * scale
    y = y[:, : n // 2 + 1] if half else y
    return y.real.contiguous(), y.imag.contiguous()


def _shape(
    re: Tensor, im: Tensor | None, n: int, sign: int, scale: float, half: bool
) -> tuple[Tensor, Tensor]:
    shape = [re.shape[0], n // 2 + 1 if half else n, re.shape[2]]
    return re.new_empty(shape), re.new_empty(shape)


def _eager_to_real(re: Tensor, im: Tensor, n: int, sign: int, scale: float) -> Tensor:
    x = torch.complex(re, im)
    y = torch.fft.irfft(x if sign > 0 else x.conj(), n, dim=1, norm="forward")
    return y * scale


def _shape_to_real(re: Tensor, im: Tensor, n: int, sign: int, scale: float) -> Tensor:
    return re.new_empty([re.shape[0], n, re.shape[2]])


_library.impl("fourier", _eager, "CompositeExplicitAutograd")
_library.impl("fourier", _shape, "Meta")
_library.impl("fourier_to_real", _eager_to_real, "CompositeExplicitAutograd")
_library.impl("fourier_to_real", _shape_to_real, "Meta")

#: ``(re, im or None, n, sign, scale, half)``: real and imaginary parts of
#: ``scale * sum(x[j] exp(sign 2 pi i j k / n))`` along dimension 1 of [outer, n, inner]; with
#: ``half`` the first n / 2 + 1 of them, for ``im`` None.
FOURIER = torch.ops.polyblocks.fourier.default

#: ``(re, im, n, sign, scale)``: the same of a Hermitian sequence, given as its first n / 2 + 1
#: numbers. The result is real.
FOURIER_TO_REAL = torch.ops.polyblocks.fourier_to_real.default


#: On a function that is declared: which transform its calls stand for.
_ATTRIBUTE = "polyblocks.transform"


def _replace(op: Any) -> None:
    *tensors, n, sign, scale, half = op.operands
    _call(op, Kind.REAL if _value(half) else Kind.COMPLEX, tensors, n, sign, scale)


def _replace_to_real(op: Any) -> None:
    *tensors, n, sign, scale = op.operands
    _call(op, Kind.HALF, tensors, n, sign, scale)


def _call(op: Any, kind: Kind, tensors: Any, n: Any, sign: Any, scale: Any) -> None:
    """Call a function that is only declared: torch-mlir refuses loops, and buffers."""
    ir, func = mlir.ir, mlir.dialect("func")
    module = _module(op)
    i64 = ir.IntegerType.get_signless(64)
    with ir.InsertionPoint(op), op.location:
        operands = [to_builtin(t) for t in tensors if str(t.type) != "!torch.none"]
        results = [tensor_type(r.type) for r in op.results]
        name = f"polyblocks.fourier.{len(module.body.operations)}"
        with ir.InsertionPoint.at_block_begin(module.body):
            declared = func.FuncOp(
                name, ([v.type for v in operands], results), visibility="private"
            )
        declared.attributes[_ATTRIBUTE] = ir.DictAttr.get(
            {
                "kind": ir.StringAttr.get(kind.name),
                "n": ir.IntegerAttr.get(i64, int(_value(n))),
                "sign": ir.IntegerAttr.get(i64, int(_value(sign))),
                "scale": ir.FloatAttr.get(ir.F64Type.get(), float(_value(scale))),
            }
        )
        call = func.CallOp(results, name, operands)
        for old, result in zip(op.results, call.results, strict=True):
            old.replace_all_uses_with(from_builtin(result, old.type))
    op.erase()


def _module(op: Any) -> Any:
    """The module around an operation."""
    while op.parent is not None:
        op = op.parent
    return op.opview


@dataclass(frozen=True)
class Call:
    """A call that :func:`write_calls` replaces by loops.

    Attributes:
        places: operations whose results stand for the transform's.
        operands: real parts, and imaginary parts if there are any.
        what: the attributes of the transform.
    """

    places: list[Any]
    operands: list[Any]
    what: Any


def take_calls(module: Any) -> list[Call]:
    """Replace calls of transforms by empty tensors, for a while.

    Args:
        module: after torch-mlir's conversions, before the check of what they leave.
    """
    ir, tensor = mlir.ir, mlir.dialect("tensor")
    declared = {
        op.name.value: op for op in module.body.operations if _ATTRIBUTE in op.operation.attributes
    }
    taken = []
    for call in find_ops(module, frozenset({"func.call"})) if declared else ():
        function = declared.get(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
        if function is None:
            continue
        places = []
        with ir.InsertionPoint(call), call.location:
            for result in call.results:
                kind = ir.RankedTensorType(result.type)
                places.append(tensor.EmptyOp(list(kind.shape), kind.element_type).operation)
                result.replace_all_uses_with(places[-1].results[0])
        what = ir.DictAttr(function.attributes[_ATTRIBUTE])
        taken.append(Call(places, list(call.operands), what))
        call.erase()
    for function in declared.values():
        function.operation.erase()
    return taken


def write_calls(calls: list[Call]) -> None:
    """Write the loops of transforms whose places are empty tensors."""
    ir = mlir.ir
    # The operands of one may be the results of another.
    made: dict[Any, Any] = {}
    for call in calls:
        first = call.places[0]
        re, *im = (made.get(v, v) for v in call.operands)
        with ir.InsertionPoint(first), first.location:
            results = transform(
                Kind[ir.StringAttr(call.what["kind"]).value],
                re,
                im[0] if im else None,
                ir.IntegerAttr(call.what["n"]).value,
                ir.IntegerAttr(call.what["sign"]).value,
                ir.FloatAttr(call.what["scale"]).value,
            )
        for place, result in zip(call.places, results, strict=False):
            made[place.results[0]] = result
            place.results[0].replace_all_uses_with(result)
    for call in calls:
        for place in call.places:
            place.erase()


def _value(constant: Any) -> Any:
    """The number of a ``torch.constant``."""
    return constant.owner.attributes["value"].value


#: Op name -> its lowering.
FOURIERS = {
    "polyblocks.fourier": Lowering(_replace),
    "polyblocks.fourier_to_real": Lowering(_replace_to_real),
}

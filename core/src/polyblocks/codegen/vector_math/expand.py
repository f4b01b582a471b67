"""`expand_math`: the walk over a module and the table of expansions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyblocks.codegen.vector_math import (
    erf,
    exp_log,
    hyperbolic,
    inverse_hyperbolic,
    inverse_trig,
    power,
    trig,
)
from polyblocks.codegen.vector_math.builder import Builder, Val
from polyblocks.mlir import ir

Expansion = Callable[..., "Val | Sequence[Val]"]

_BOTH: dict[str, Expansion] = {
    "math.exp": exp_log.exp,
    "math.exp2": exp_log.exp2,
    "math.expm1": exp_log.expm1,
    "math.log": exp_log.log,
    "math.log2": exp_log.log2,
    "math.log10": exp_log.log10,
    "math.log1p": exp_log.log1p,
    "math.sin": trig.sin,
    "math.cos": trig.cos,
    "math.sincos": trig.sincos,
    "math.tan": trig.tan,
    "math.sinh": hyperbolic.sinh,
    "math.cosh": hyperbolic.cosh,
    "math.tanh": hyperbolic.tanh,
    "math.asin": inverse_trig.asin,
    "math.acos": inverse_trig.acos,
    "math.atan": inverse_trig.atan,
    "math.atan2": inverse_trig.atan2,
    "math.asinh": inverse_hyperbolic.asinh,
    "math.acosh": inverse_hyperbolic.acosh,
    "math.atanh": inverse_hyperbolic.atanh,
    "math.erf": erf.erf,
    "math.erfc": erf.erfc,
    "math.powf": power.powf,
    "math.fpowi": power.fpowi,
    "math.cbrt": power.cbrt,
    "math.rsqrt": power.rsqrt,
}

_INTEGERS = ("i8", "i16", "i32", "i64", "index")

#: Expansion by operation and by the float type that it computes in.
_EXPANSIONS: dict[str, dict[str, Expansion]] = {
    name: {"f32": expansion, "f64": expansion} for name, expansion in _BOTH.items()
}
_EXPANSIONS["math.ipowi"] = dict.fromkeys(_INTEGERS, power.ipowi)

_HALF = ("f16", "bf16")


@dataclass(frozen=True)
class _Shape:
    element: str
    shape: tuple[int, ...] | None
    scalable: tuple[bool, ...] | None


def _shape_of(type_: Any) -> _Shape:
    if isinstance(type_, ir.VectorType):
        scalable = tuple(type_.scalable_dims) if type_.scalable else None
        return _Shape(str(type_.element_type), tuple(type_.shape), scalable)
    return _Shape(str(type_), None, None)


def expand_math(module: Any, *, fma: bool = True) -> int:
    """Replace every math operation that would become a library call by generated code.

    Works on scalars and vectors of f32, f64, f16 and bf16 (the last two compute in f32), in
    place; operations with hardware instructions (sqrt, fma, absf, floor, ...) stay. Run it after
    fastmath flags are set on the user's operations: what it creates must not have them.

    Args:
        module: an MLIR module (or any operation wrapper with ``.operation``).
        fma: the target has fused multiply-add; without it no ``math.fma`` is created.

    Returns:
        How many operations were replaced.

    Raises:
        NotImplementedError: an operation in the table has an element type without expansion.
    """
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name in _EXPANSIONS:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    constants: dict[int, tuple[Any, dict[tuple[object, ...], Any]]] = {}
    with module.context:
        for operation in found:
            block = operation.block
            _, cache = constants.setdefault(hash(block), (block, {}))
            _expand(operation, block, cache, fma)
    return len(found)


def _expand(
    operation: Any, block: Any, constants: dict[tuple[object, ...], Any], fma: bool
) -> None:
    shapes = [_shape_of(operand.type) for operand in operation.operands]
    element = shapes[0].element
    compute = "f32" if element in _HALF else element
    expansion = _EXPANSIONS[operation.name].get(compute)
    if expansion is None:
        raise NotImplementedError(f"{operation.name} on {element} has no expansion")
    with operation.location, ir.InsertionPoint(operation):
        builder = Builder(shapes[0].shape, shapes[0].scalable, block, constants, fma)
        arguments = [
            Val(builder, operand, shape.element)
            for operand, shape in zip(operation.operands, shapes, strict=True)
        ]
        if element in _HALF:
            arguments = [a.to("f32") if a.kind in _HALF else a for a in arguments]
        results = expansion(builder, *arguments)
        if isinstance(results, Val):
            results = (results,)
        for old, new in zip(operation.results, results, strict=True):
            old.replace_all_uses_with((new.to(element) if element in _HALF else new).value)
    operation.erase()

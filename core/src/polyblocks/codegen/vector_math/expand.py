"""`expand_math`: the walk over a module and the table of expansions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.attributes import GCD
from polyblocks.codegen.builder import Builder, Scale, Table, Val
from polyblocks.codegen.greatest_divisors import gcd
from polyblocks.codegen.rewrite import Expansion, expand_ops
from polyblocks.codegen.vector_math import (
    classify,
    erf,
    exp_log,
    hyperbolic,
    inverse_hyperbolic,
    inverse_trig,
    power,
    trig,
)
from polyblocks.mlir import constant_number

#: Takes operands in float32 or float64, gives the result or results in the same.
Formula = Callable[..., "Val | Sequence[Val]"]

_FLOAT: dict[str, Formula] = {
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
    "math.cbrt": power.cbrt,
    "math.rsqrt": power.rsqrt,
}

_CLASSES = ("isnan", "isinf", "isfinite", "isnormal")
_HALF = ("f16", "bf16")

#: Names of the operations that :func:`expand_math` replaces.
EXPANDED = frozenset(
    {
        *_FLOAT,
        *(f"math.{name}" for name in ("powf", "fpowi", "ipowi", "clampf", *_CLASSES)),
        GCD,
    }
)


def expand_math(
    module: Any,
    *,
    fma: bool = True,
    ldexp: bool = False,
    scale: Scale | None = None,
    table: Table | None = None,
) -> int:
    """Replace every math operation that would become a library call by generated code.

    Works on scalars and vectors of f32, f64, f16 and bf16 (the last two compute in f32), in
    place; operations with hardware instructions (sqrt, fma, absf, floor, ...) stay. Run it after
    fastmath flags are set on the user's operations: what it creates must not have them.

    Args:
        module: an MLIR module (or any operation wrapper with ``.operation``).
        fma: the target has fused multiply-add; without it no ``math.fma`` is created.
        ldexp: the target multiplies by powers of two in one instruction, and what comes after
            understands LLVM's ``ldexp`` intrinsic.
        scale: the target's own instruction for that, where the power is a float already.
        table: the target's own instruction for looking numbers up.

    Returns:
        How many operations were replaced.

    Raises:
        NotImplementedError: an operation in the table has an element type without expansion.
    """
    expansions = {name: _float_expansion(expansion) for name, expansion in _FLOAT.items()}
    expansions["math.powf"] = _power(power.powf)
    expansions["math.fpowi"] = _power(power.fpowi)
    expansions["math.ipowi"] = _expand_ipowi
    expansions["math.clampf"] = classify.clampf
    expansions[GCD] = gcd
    for name in _CLASSES:
        expansions[f"math.{name}"] = classify.classify
    return expand_ops(module, expansions, fma=fma, ldexp=ldexp, scale=scale, table=table)


def _float_expansion(expansion: Formula) -> Expansion:
    def expand(b: Builder, operation: Any, operands: Sequence[Val]) -> Sequence[Val]:
        kind = operands[0].kind
        if kind not in ("f32", "f64", *_HALF):
            raise NotImplementedError(f"{operation.name} on {kind} has no expansion")
        if kind in _HALF:
            operands = [x.to("f32") if x.kind == kind else x for x in operands]
        results = expansion(b, *operands)
        if isinstance(results, Val):
            results = (results,)
        return [result.to(kind) for result in results]

    return expand


def _power(general: Formula) -> Expansion:
    """powf and fpowi: constant exponents that products, a quotient or a root serve are apart."""

    def expand(b: Builder, operation: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
        exponent = constant_number(operation.operands[1])

        def formula(b: Builder, x: Val, y: Val) -> Val | Sequence[Val]:
            simple = None if exponent is None else power.constant_power(b, x, float(exponent))
            return general(b, x, y) if simple is None else simple

        return _float_expansion(formula)(b, operation, operands)

    return expand


def _expand_ipowi(b: Builder, operation: Any, operands: Sequence[Val]) -> Sequence[Val]:
    exponent = constant_number(operation.operands[1])
    if exponent is not None and exponent >= 0:
        return [power.constant_ipowi(b, operands[0], int(exponent))]
    return [power.ipowi(b, *operands)]

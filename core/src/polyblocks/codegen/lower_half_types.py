"""lower-half-types: arithmetic on f16 and bf16 computes in f32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import mlir
from polyblocks.attributes import FREE_ROUNDING_ATTRIBUTE
from polyblocks.codegen.builder import Builder, Val
from polyblocks.codegen.rewrite import element, expand_ops
from polyblocks.codegen.walk import nested

_HALVES = ("bf16", "f16")
#: Functions with jumps: a little more precision may make a great difference.
_STEPS = frozenset(
    "arith.cmpf arith.fptosi arith.fptoui arith.remf math.ceil math.floor math.round "
    "math.roundeven math.trunc".split()
)
_OF_INTEGERS = frozenset({"arith.sitofp", "arith.uitofp"})


@dataclass(frozen=True)
class LowerHalfTypesPass:
    """Leave of f16 and bf16 only loads, stores, selects and conversions from and to f32.

    Conversions between f64 and a half type go through f32, as PyTorch's do: no instruction of
    common CPUs does it in one step, and LLVM would call a library.

    Before::

        %r = arith.addf %a, %b : f16

    After::

        %a32 = arith.extf %a : f16 to f32
        %b32 = arith.extf %b : f16 to f32
        %r32 = arith.addf %a32, %b32 : f32
        %r = arith.truncf %r32 : f32 to f16

    Attributes:
        expand_bf16: bf16 conversions become integer operations, which LLVM vectorizes on every
            chip.
    """

    name: ClassVar[str] = "lower-half-types"

    expand_bf16: bool = True

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the module in place."""
        _flag_free_roundings(module)
        mlir.run_textual(
            module,
            "arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32},"
            "math-extend-to-supported-types{extra-types=f32 target-type=f32}",
        )
        _keep_roundings(module, everywhere=context.options.mlir_disable_fast_math)
        expand_ops(module, {"arith.extf": _extend, "arith.truncf": _truncate})
        if self.expand_bf16:
            mlir.run_textual(module, "func.func(arith-expand{include-bf16=true})")


def _flag_free_roundings(module: Any) -> None:
    """Say it upstream's way, by ``contract`` on both conversions, that a rounding may be left out.

    So do the conversions that upstream adds, and its folds look for it.
    """
    with module.context:
        contract = mlir.ir.Attribute.parse("#arith.fastmath<contract>")
        for op in nested(module.operation):
            if FREE_ROUNDING_ATTRIBUTE in op.attributes:
                del op.attributes[FREE_ROUNDING_ATTRIBUTE]
                op.attributes["fastmath"] = contract


def _keep_roundings(module: Any, everywhere: bool) -> None:
    """Take off the flag with which upstream lets a conversion there and back disappear.

    A value that is compared is always rounded: it may have been rounded when it was stored
    somewhere, and an arg-max would not find the maximum among values that are more precise. An
    integer becomes a number that the type holds, which may be an infinity.
    """
    with module.context:
        plain = mlir.ir.Attribute.parse("#arith.fastmath<none>")
        for op in nested(module.operation):
            if op.name not in ("arith.extf", "arith.truncf") or "fastmath" not in op.attributes:
                continue
            if (
                everywhere
                or getattr(op.operands[0].owner, "name", None) in _OF_INTEGERS
                or any(use.owner.name in _STEPS for use in op.results[0].uses)
            ):
                op.attributes["fastmath"] = plain


def _extend(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
    (x,) = operands
    if x.kind not in _HALVES or element(op.results[0].type) != "f64":
        return None
    return (x.to("f32").to("f64"),)


def _truncate(b: Builder, op: Any, operands: Sequence[Val]) -> Sequence[Val] | None:
    (x,) = operands
    target = element(op.results[0].type)
    if x.kind != "f64" or target not in _HALVES:
        return None
    return (x.to("f32").to(target),)

"""hold-halves-as-integers: values and memory of bf16 (and f16) become i16 with the same bits."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.walk import nested

#: Ops that move values without looking at them, besides those of the structural dialects.
_MOVES = frozenset({"arith.bitcast", "arith.constant", "arith.select", "ub.poison"})
_STRUCTURAL = ("affine.", "builtin.", "func.", "memref.", "omp.", "scf.", "vector.")

_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|-?\d+\.\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class HoldHalvesAsIntegersPass:
    """Hide a type from LLVM that the chip has no conversion for.

    Runs when no arithmetic on the type is left. LLVM promotes selects, loop-carried values and
    vectors of such a type to f32 where it likes, and calls a library to come back.

    Before::

        %r = arith.select %p, %a, %b : bf16

    After::

        %r = arith.select %p, %a, %b : i16

    Attributes:
        kinds: which of ``bf16`` and ``f16``.
    """

    name: ClassVar[str] = "hold-halves-as-integers"

    kinds: tuple[str, ...] = ("bf16",)

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the module in place.

        Raises:
            ValueError: an op that computes with the type is left.
        """
        from polyblocks.mlir import ir

        del context
        # Quicker than looking at every type; a name that holds such letters does no harm.
        text = str(module)
        if not any(kind in text for kind in self.kinds):
            return
        with module.context, ir.Location.unknown():
            for op in list(nested(module.operation)):
                self._rewrite(op)

    def _rewrite(self, op: Any) -> None:
        values = [*op.operands, *op.results]
        touched = [v for v in values if _as_integers(v.type, self.kinds) is not None]
        if touched and op.name not in _MOVES and not op.name.startswith(_STRUCTURAL):
            raise ValueError(f"{op.name} still computes with {touched[0].type}")
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    _retype(argument, self.kinds)
        if op.name == "func.func":
            self._retype_function(op)
        elif op.name in ("arith.constant", "memref.global"):
            self._retype_constant(op)
        for result in op.results:
            _retype(result, self.kinds)
        if op.name == "arith.bitcast" and op.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()

    def _retype_function(self, op: Any) -> None:
        from polyblocks.mlir import ir

        old = op.attributes["function_type"].value
        inputs, results = (
            [_as_integers(t, self.kinds) or t for t in types] for types in (old.inputs, old.results)
        )
        op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))

    def _retype_constant(self, op: Any) -> None:
        from polyblocks.mlir import ir

        if op.name == "memref.global":
            type_ = _as_integers(op.attributes["type"].value, self.kinds)
            key = "initial_value"
            if type_ is None:
                return
            kind = str(op.attributes["type"].value.element_type)
            op.attributes["type"] = ir.TypeAttr.get(type_)
        else:
            type_ = _as_integers(op.results[0].type, self.kinds)
            key = "value"
            if type_ is None:
                return
            kind = str(getattr(op.results[0].type, "element_type", op.results[0].type))
        if key in op.attributes and not isinstance(op.attributes[key], ir.UnitAttr):
            op.attributes[key] = ir.Attribute.parse(integer_literal(str(op.attributes[key]), kind))


def integer_literal(text: str, kind: str) -> str:
    """An attribute of ``kind`` as MLIR prints it, with the bits of its numbers as ``i16``."""
    body, colon, type_ = text.rpartition(" : ")
    if '"' in body:  # a large one, printed as its bytes
        return f"{body}{colon}{type_.replace(kind, 'i16')}"

    def bits(match: re.Match[str]) -> str:
        number = match[0]
        if number.startswith("0x"):
            value = int(number, 16)
        elif kind == "bf16":
            # MLIR prints as few digits as tell which number is the nearest.
            single = struct.unpack("<I", struct.pack("<f", float(number)))[0]
            value = (single + 0x7FFF + (single >> 16 & 1)) >> 16
        else:
            value = struct.unpack("<H", struct.pack("<e", float(number)))[0]
        return str(value - (1 << 16) if value >= 1 << 15 else value)

    return f"{_NUMBER.sub(bits, body)}{colon}{type_.replace(kind, 'i16')}"


def _retype(value: Any, kinds: tuple[str, ...]) -> None:
    type_ = _as_integers(value.type, kinds)
    if type_ is not None:
        value.set_type(type_)


def _as_integers(type_: Any, kinds: tuple[str, ...]) -> Any:
    """The type with ``kinds`` replaced by i16; None if there is nothing to replace."""
    from polyblocks.mlir import ir

    i16 = ir.IntegerType.get_signless(16)
    if str(type_) in kinds:
        return i16
    element = getattr(type_, "element_type", None)
    if element is None or str(element) not in kinds:
        return None
    if isinstance(type_, ir.MemRefType):
        return ir.MemRefType.get(type_.shape, i16, type_.layout, type_.memory_space)
    if isinstance(type_, ir.VectorType):
        scalable = list(type_.scalable_dims) if type_.scalable else None
        return ir.VectorType.get(list(type_.shape), i16, scalable=scalable)
    return None

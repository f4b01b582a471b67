"""Scalar-style expressions that become arith and math operations at one place of a module.

An expansion is written once, as Python arithmetic on `Val`; the builder gives every value the
shape of the operation being replaced (scalar, or vector of any shape), caches constants per
block, and knows whether the target has a fused multiply-add.

No operation created here carries fastmath flags: error-free transformations and the
round-by-adding-a-big-number idiom must not be reassociated.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from polyblocks.attributes import RARE_ATTRIBUTE
from polyblocks.mlir import dialect, ir

#: Positions of the predicates in ``arith.cmpf``/``arith.cmpi`` enumerations.
_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13, "uno": 14}
_CMPI = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5, "ult": 6}

#: Bits of the integer types.
INT_WIDTH = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
_FLOAT_OF = {"i32": "f32", "i64": "f64"}
#: The integer type with the bits of a float type.
INT_OF = {"f32": "i32", "f64": "i64"}
_PACK = {"f32": ("<f", "<I"), "f64": ("<d", "<Q")}

Number = int | float


def bits_of(kind: str, value: float) -> int:
    """The IEEE-754 bit pattern of ``value`` in ``f32`` or ``f64``, as an unsigned integer."""
    pack, unpack = _PACK[kind]
    return int(struct.unpack(unpack, struct.pack(pack, value))[0])


class Val:
    """One SSA value with Python operators.

    Attributes:
        value: the ``ir.Value``.
        kind: element type: ``f32``, ``f64``, ``i1``, ``i32``, ``i64``, ….
    """

    __slots__ = ("b", "kind", "value")

    def __init__(self, b: Builder, value: Any, kind: str) -> None:
        self.b = b
        self.value = value
        self.kind = kind

    # Arithmetic. Python numbers become constants of this value's kind.
    def _binary(self, float_op: str, int_op: str, other: Val | Number) -> Val:
        name = float_op if self.kind[0] in "fb" else int_op
        return self.b.op(name, self.kind, self, self.b.lift(other, self.kind))

    def __add__(self, other: Val | Number) -> Val:
        return self._binary("arith.addf", "arith.addi", other)

    def __sub__(self, other: Val | Number) -> Val:
        return self._binary("arith.subf", "arith.subi", other)

    def __mul__(self, other: Val | Number) -> Val:
        return self._binary("arith.mulf", "arith.muli", other)

    def __truediv__(self, other: Val | Number) -> Val:
        return self.b.op("arith.divf", self.kind, self, self.b.lift(other, self.kind))

    def __radd__(self, other: Number) -> Val:
        return self.b.const(self.kind, other) + self

    def __rsub__(self, other: Number) -> Val:
        return self.b.const(self.kind, other) - self

    def __rmul__(self, other: Number) -> Val:
        return self.b.const(self.kind, other) * self

    def __rtruediv__(self, other: Number) -> Val:
        return self.b.const(self.kind, other) / self

    def __neg__(self) -> Val:
        return self.b.op("arith.negf", self.kind, self)

    def negated(self) -> Val | None:
        """``-self``, if it is a negation, or a product of one that has no other use; else None.

        Exact, since rounding to nearest is symmetric. LLVM moves a negation in front of a product
        to one of its factors, where no multiply-add takes it in.
        """
        op = self.value.owner
        name = getattr(op, "name", "")
        if name == "arith.negf":
            return Val(self.b, op.operands[0], self.kind)
        if name != "arith.mulf" or len(list(op.results[0].uses)) > 1:
            return None
        factors = [Val(self.b, operand, self.kind) for operand in op.operands]
        for factor, other in (factors, reversed(factors)):
            positive = factor.negated()
            if positive is not None:
                return positive * other
        return None

    # Bits.
    def __and__(self, other: Val | Number) -> Val:
        return self._binary("", "arith.andi", other)

    def __or__(self, other: Val | Number) -> Val:
        return self._binary("", "arith.ori", other)

    def __xor__(self, other: Val | Number) -> Val:
        return self._binary("", "arith.xori", other)

    def __lshift__(self, other: Val | Number) -> Val:
        return self._binary("", "arith.shli", other)

    def __rshift__(self, other: Val | Number) -> Val:
        """Arithmetic shift to the right."""
        return self._binary("", "arith.shrsi", other)

    def shr_u(self, other: Val | Number) -> Val:
        """Logical shift to the right."""
        return self._binary("", "arith.shrui", other)

    def __invert__(self) -> Val:
        return self ^ (1 if self.kind == "i1" else -1)

    # Comparisons: ordered for floats (false on NaN), signed for integers.
    def compare(self, predicate: str, other: Val | Number) -> Val:
        """``i1`` of ``self <predicate> other``; predicates eq ne lt le gt ge uno ult."""
        is_float = self.kind[0] in "fb"
        name, table = ("arith.cmpf", _CMPF) if is_float else ("arith.cmpi", _CMPI)
        attribute = self.b.i64_attr(table[predicate])
        right = self.b.lift(other, self.kind)
        return self.b.op(name, "i1", self, right, attributes={"predicate": attribute})

    def __lt__(self, other: Val | Number) -> Val:
        return self.compare("lt", other)

    def __le__(self, other: Val | Number) -> Val:
        return self.compare("le", other)

    def __gt__(self, other: Val | Number) -> Val:
        return self.compare("gt", other)

    def __ge__(self, other: Val | Number) -> Val:
        return self.compare("ge", other)

    def eq(self, other: Val | Number) -> Val:
        """Equal; false on NaN."""
        return self.compare("eq", other)

    def ne(self, other: Val | Number) -> Val:
        """Not equal; true on NaN."""
        return self.compare("ne", other)

    def is_nan(self) -> Val:
        """True on NaN."""
        return self.compare("uno", self)

    # Unary functions that every target has as instructions.
    def __abs__(self) -> Val:
        return self.b.op("math.absf", self.kind, self)

    def sqrt(self) -> Val:
        """Correctly rounded square root."""
        return self.b.op("math.sqrt", self.kind, self)

    def copysign(self, sign: Val) -> Val:
        """The magnitude of ``self`` with the sign of ``sign``."""
        return self.b.op("math.copysign", self.kind, self, sign)

    # Conversions.
    def bits(self) -> Val:
        """The bit pattern of a float as an integer."""
        return self.b.op("arith.bitcast", INT_OF[self.kind], self)

    def as_float(self) -> Val:
        """The float with this bit pattern."""
        return self.b.op("arith.bitcast", _FLOAT_OF[self.kind], self)

    def to(self, kind: str) -> Val:
        """Convert among float types, among integer types (sign-extending), int to float."""
        if kind == self.kind:
            return self
        source_is_float, target_is_float = self.kind[0] in "fb", kind[0] in "fb"
        if source_is_float and target_is_float:
            widths = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
            name = "arith.extf" if widths[kind] > widths[self.kind] else "arith.truncf"
        elif source_is_float:
            name = "arith.fptosi"
        elif target_is_float:
            name = "arith.sitofp"
        else:
            wider = INT_WIDTH[kind] > INT_WIDTH[self.kind]
            name = "arith.extsi" if wider else "arith.trunci"
        return self.b.op(name, kind, self)

    def zext(self, kind: str) -> Val:
        """Zero-extend an integer."""
        return self.b.op("arith.extui", kind, self)


#: A target's instruction for ``x * 2^floor(n)``, rounded once, for a finite float ``n`` of any
#: size; NaN if either is NaN. Returns None for types that it does not serve.
Scale = Callable[["Builder", Val, Val], "Val | None"]
#: A target's instruction that picks one of 16 float32 numbers by the lowest four bits of an i32.
#: Takes the numbers, returns what picks; None for shapes that it does not serve.
Table = Callable[["Builder", Sequence[float]], "Callable[[Val], Val] | None"]


class Builder:
    """Creates operations at the current insertion point, shaped like the replaced operation.

    Args:
        shape: dimensions of the vector type, None for scalars.
        scalable: which dimensions are scalable (one bool per dimension), for vectors.
        block: the block whose beginning receives constants.
        constants: cache of constants of that block, shared among expansions.
        fma: the target has a fused multiply-add instruction.
        ldexp: the target has an instruction for multiplying by a power of two.
        scale: see `Scale`; asked before ``ldexp`` is used.
        table: see `Table`.
    """

    def __init__(
        self,
        shape: Sequence[int] | None,
        scalable: Sequence[bool] | None,
        block: Any,
        constants: dict[tuple[object, ...], Any],
        fma: bool,
        ldexp: bool = False,
        scale: Scale | None = None,
        table: Table | None = None,
    ) -> None:
        self.shape = None if shape is None else tuple(shape)
        self.scalable = None if scalable is None else tuple(scalable)
        self.block = block
        self.constants = constants
        self.has_fma = fma
        # LLVM's intrinsic takes neither vectors of several dimensions nor scalable ones everywhere.
        self.has_ldexp = ldexp and (self.shape is None or len(self.shape) == 1) and not scalable
        #: Whether the target has an instruction of its own for it, with the exponent as a float.
        self.has_scale = scale is not None
        self._scale = scale
        self._table = table
        self._types: dict[str, Any] = {}
        self._i64_attrs: dict[int, Any] = {}

    def element_type(self, kind: str) -> Any:
        """The scalar MLIR type called ``kind``."""
        if kind in ("f16", "f32", "f64", "bf16"):
            return {
                "f16": ir.F16Type,
                "bf16": ir.BF16Type,
                "f32": ir.F32Type,
                "f64": ir.F64Type,
            }[kind].get()
        if kind == "index":
            return ir.IndexType.get()
        return ir.IntegerType.get_signless(INT_WIDTH[kind])

    def type(self, kind: str) -> Any:
        """The MLIR type with element ``kind`` and this builder's shape."""
        found = self._types.get(kind)
        if found is None:
            found = self.element_type(kind)
            if self.shape is not None:
                found = ir.VectorType.get(list(self.shape), found, scalable=self.scalable)
            self._types[kind] = found
        return found

    def i64_attr(self, value: int) -> Any:
        """A 64-bit integer attribute (how enumerations are stored)."""
        found = self._i64_attrs.get(value)
        if found is None:
            found = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
            self._i64_attrs[value] = found
        return found

    def op(
        self, name: str, kind: str, *operands: Val, attributes: dict[str, Any] | None = None
    ) -> Val:
        """One operation with one result."""
        created = ir.Operation.create(
            name,
            results=[self.type(kind)],
            operands=[operand.value for operand in operands],
            attributes=attributes,
        )
        return Val(self, created.result, kind)

    def const(self, kind: str, value: Number) -> Val:
        """A constant, splatted for vectors; integers wrap to their width."""
        # 0.0 == -0.0, so the sign is part of the key.
        key = (kind, self.shape, self.scalable, value, math.copysign(1.0, value))
        found = self.constants.get(key)
        if found is None:
            element = self.element_type(kind)
            if kind[0] in "fb":
                attribute = ir.FloatAttr.get(element, float(value))
            else:
                width = INT_WIDTH[kind]
                wrapped = int(value) & ((1 << width) - 1)
                if width > 1 and wrapped >> (width - 1):
                    wrapped -= 1 << width
                attribute = ir.IntegerAttr.get(element, wrapped)
            if self.shape is not None:
                attribute = ir.DenseElementsAttr.get_splat(self.type(kind), attribute)
            found = ir.Operation.create(
                "arith.constant",
                results=[self.type(kind)],
                attributes={"value": attribute},
                ip=ir.InsertionPoint.at_block_begin(self.block),
            ).result
            self.constants[key] = found
        return Val(self, found, kind)

    def lift(self, value: Val | Number, kind: str) -> Val:
        """``value`` itself, or a constant of ``kind``."""
        return value if isinstance(value, Val) else self.const(kind, value)

    def select(self, condition: Val, yes: Val | Number, no: Val | Number) -> Val:
        """``yes`` where ``condition`` holds, else ``no``; at least one of them is a `Val`."""
        kind = yes.kind if isinstance(yes, Val) else no.kind  # type: ignore[union-attr]
        return self.op("arith.select", kind, condition, self.lift(yes, kind), self.lift(no, kind))

    def fma(self, x: Val, y: Val | Number, z: Val | Number) -> Val:
        """``x*y + z``: fused where the target has it, otherwise rounded twice.

        For places where the fused form is only more accurate; use `exact` products of
        `double_double` where the error term itself is wanted.
        """
        y, z = self.lift(y, x.kind), self.lift(z, x.kind)
        return self.op("math.fma", x.kind, x, y, z) if self.has_fma else x * y + z

    def fnma(self, x: Val, y: Val | Number, z: Val | Number) -> Val:
        """``z - x*y`` with a constant or a value ``y``; see `fma`."""
        if isinstance(y, Val):
            y, z = self.lift(y, x.kind), self.lift(z, x.kind)
            return self.fma(-x, y, z) if self.has_fma else z - x * y
        return self.fma(x, -y, z)

    def scaled(self, x: Val, exponent: Val) -> Val | None:
        """``x * 2^exponent`` by the target's own instruction; None if it has none for the type.

        ``exponent`` is a float like ``x``; it is rounded down to an integer.
        """
        return None if self._scale is None else self._scale(self, x, exponent)

    def table(self, numbers: Sequence[float]) -> Callable[[Val], Val] | None:
        """A function that picks one of 16 float32 ``numbers`` by the lowest four bits of an i32.

        None if the target has no instruction for it, or not for this shape.
        """
        return None if self._table is None else self._table(self, numbers)

    def ldexp(self, x: Val, exponent: Val) -> Val:
        """``x * 2^exponent``, rounded once; only where `has_ldexp`.

        ``exponent`` is an integer as wide as ``x``; a loop vectorizer knows the operation.
        """
        # The dialect's own ldexp op takes no vectors.
        attributes = {
            "intrin": ir.StringAttr.get("llvm.ldexp"),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        return self.op("llvm.call_intrinsic", x.kind, x, exponent, attributes=attributes)

    def horner(self, x: Val, coefficients: Sequence[float]) -> Val:
        """Polynomial in ``x``; ``coefficients[i]`` belongs to ``x**i``."""
        result = self.const(x.kind, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(result, x, coefficient)
        return result

    def clamp(self, x: Val, low: float | None, high: float | None) -> Val:
        """``x`` limited to ``[low, high]``; NaN stays NaN."""
        if high is not None:
            x = self.select(x > high, high, x)
        if low is not None:
            x = self.select(x < low, low, x)
        return x

    def any_lane(self, condition: Val) -> Any:
        """A scalar ``i1`` value: whether ``condition`` holds in any lane."""
        if self.shape is None:
            return condition.value
        kind = dialect("vector").CombiningKind.OR
        value = condition.value
        i1 = ir.IntegerType.get_signless(1)
        if len(self.shape) != 1:
            flat = ir.VectorType.get(
                [_product(self.shape)], i1, scalable=[True] if any(self.scalable or ()) else None
            )
            value = ir.Operation.create(
                "vector.shape_cast", results=[flat], operands=[value]
            ).result
        some = dialect("vector").ReductionOp(i1, kind, value).result
        # Lanes without a reader may hold what was never written, on which LLVM must not branch.
        return ir.Operation.create("llvm.freeze", results=[i1], operands=[some]).result

    def when_any(
        self, condition: Val, rare: Callable[[], Sequence[Val]], common: Sequence[Val]
    ) -> list[Val]:
        """``rare()`` in lanes where ``condition`` holds, ``common`` in the others.

        The rare code stands in an ``scf.if``, skipped when no lane needs it. It is straight-line
        and has no side effects, so a loop vectorizer may turn the branch into selects.
        """
        results = [value.value.type for value in common]
        some = self.any_lane(condition)
        vectors = self.shape is not None
        branch = ir.Operation.create(
            "scf.if",
            results=results,
            operands=[rarely(some) if vectors else some],
            attributes={RARE_ATTRIBUTE: ir.UnitAttr.get()} if vectors else None,
            regions=2,
        )
        then_block = branch.regions[0].blocks.append()
        else_block = branch.regions[1].blocks.append()
        with ir.InsertionPoint(then_block):
            values = list(rare())
            if self.shape is not None:
                values = [
                    self.select(condition, new, old)
                    for new, old in zip(values, common, strict=True)
                ]
            ir.Operation.create("scf.yield", operands=[value.value for value in values])
        with ir.InsertionPoint(else_block):
            ir.Operation.create("scf.yield", operands=[value.value for value in common])
        return [
            Val(self, result, value.kind)
            for result, value in zip(branch.results, common, strict=True)
        ]

    def while_any(
        self,
        condition: Callable[[Sequence[Val]], Val],
        step: Callable[[Sequence[Val]], Sequence[Val]],
        initial: Sequence[Val],
    ) -> list[Val]:
        """Repeat ``step`` while ``condition`` holds in any lane; ``step`` serves all lanes.

        A lane whose condition is false must not be harmed by further steps.
        """
        kinds = [value.kind for value in initial]
        types = [value.value.type for value in initial]
        loop = ir.Operation.create(
            "scf.while", results=types, operands=[v.value for v in initial], regions=2
        )
        before = loop.regions[0].blocks.append(*types)
        after = loop.regions[1].blocks.append(*types)
        with ir.InsertionPoint(before):
            values = [Val(self, a, k) for a, k in zip(before.arguments, kinds, strict=True)]
            again = self.any_lane(condition(values))
            ir.Operation.create("scf.condition", operands=[again, *before.arguments])
        with ir.InsertionPoint(after):
            values = [Val(self, a, k) for a, k in zip(after.arguments, kinds, strict=True)]
            ir.Operation.create("scf.yield", operands=[v.value for v in step(values)])
        return [Val(self, r, k) for r, k in zip(loop.results, kinds, strict=True)]


def rarely(condition: Any) -> Any:
    """An ``i1`` value that LLVM takes to be false, most of the time."""
    false = ir.Operation.create(
        "arith.constant",
        results=[condition.type],
        attributes={"value": ir.IntegerAttr.get(condition.type, 0)},
    ).result
    return ir.Operation.create(
        "llvm.intr.expect", results=[condition.type], operands=[condition, false]
    ).result


def _product(shape: Sequence[int]) -> int:
    result = 1
    for extent in shape:
        result *= extent
    return result

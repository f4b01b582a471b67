"""Placeholders of changing Python numbers while a function is traced.

A tensor would not do: Python gives numbers their dtype where they meet one, and a function may do
with a number what it cannot do with a tensor. So this is an object that calls itself a float or an
int, becomes a tensor of the dtype that is wanted, and knows the arithmetic that is the same in
tensors. Whatever else is asked of it (its value, foremost) raises :class:`NeedsValue`: then each
value of the number is a constant.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import tensor_conversion_registry

#: Integers up to this size are floats without rounding.
_EXACT = 1 << 53
#: Dtypes that a float is rounded to as Python's own conversion does it.
_FLOATS = (tf.float32, tf.float64)
_INTEGERS = tuple(
    getattr(tf, name) for name in "int8 int16 int32 int64 uint8 uint16 uint32".split()
)

Value = Callable[[Sequence[float]], Any]


class NeedsValue(BaseException):
    """The function asks for the value of a number. No Exception: user code must not catch it.

    Attributes:
        numbers: places of the numbers that are asked for.
    """

    def __init__(self, numbers: frozenset[int]) -> None:
        super().__init__()
        self.numbers = numbers


class Trace:
    """One trace with numbers.

    Attributes:
        conditions: of the numbers' values; the traced function is right where all hold.
        open: whether it goes on. A number that the function left somewhere is dead afterwards.
    """

    def __init__(self) -> None:
        self.conditions: list[Callable[[Sequence[float]], bool]] = []
        self.open = True

    def number(self, place: int, kind: type, tensor: Any) -> Number:
        """The placeholder of the number at a place; the tensor is a scalar of float64 or int64."""
        return Number(kind, tensor, lambda values: values[place], frozenset((place,)), self)

    def holds_for(self, values: Sequence[float]) -> bool:
        """Whether the traced function is right for these values."""
        try:
            return all(condition(values) for condition in self.conditions)
        except ArithmeticError:
            return False  # Python's own arithmetic raises it, so the function has to


class Number:
    """A number that changes, or what arithmetic made of some.

    Args:
        kind: ``float`` or ``int``.
        tensor: a scalar of dtype float64 or int64.
        value: computes it of the values of all numbers, as Python does.
        numbers: places of those that it depends on.
        trace: what it is part of.
    """

    __array_ufunc__ = None

    def __init__(
        self, kind: type, tensor: Any, value: Value, numbers: frozenset[int], trace: Trace
    ) -> None:
        self._kind, self._tensor, self._value = kind, tensor, value
        self._numbers, self._trace = numbers, trace
        if kind is int:
            self._within(value, tf.int64.min, tf.int64.max)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._kind

    def _within(self, value: Value, low: float, high: float) -> None:
        self._trace.conditions.append(lambda values: low <= value(values) <= high)

    def _needs_value(self, *_: Any, **__: Any) -> Any:
        if self._trace.open:
            raise NeedsValue(self._numbers)
        raise TypeError("a number of a function that was traced has no value")

    __float__ = __int__ = __index__ = __complex__ = __bool__ = __array__ = _needs_value
    __lt__ = __le__ = __gt__ = __ge__ = _needs_value
    __round__ = __trunc__ = __floor__ = __ceil__ = __str__ = __format__ = _needs_value
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _needs_value
    is_integer = bit_length = conjugate = as_integer_ratio = _needs_value
    real = imag = numerator = denominator = property(_needs_value)

    def __eq__(self, other: object) -> Any:
        return self._needs_value() if self._trace.open else self is other

    def __hash__(self) -> int:
        return int(self._needs_value()) if self._trace.open else id(self)

    def __repr__(self) -> str:
        return str(self._needs_value()) if self._trace.open else "<changing number>"

    def __add__(self, other: Any) -> Any:
        return self._combined(operator.add, other)

    def __radd__(self, other: Any) -> Any:
        return self._combined(operator.add, other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self._combined(operator.sub, other)

    def __rsub__(self, other: Any) -> Any:
        return self._combined(operator.sub, other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._combined(operator.mul, other)

    def __rmul__(self, other: Any) -> Any:
        return self._combined(operator.mul, other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return self._combined(operator.truediv, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._combined(operator.truediv, other, swapped=True)

    def __pow__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, tf.Tensor | tf.Variable) else self._needs_value()

    __rpow__ = __pow__

    def __neg__(self) -> Any:
        return self._number(self._kind, -self._tensor, lambda values: -self._value(values))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._number(self._kind, tf.abs(self._tensor), lambda v: abs(self._value(v)))

    def _number(self, kind: type, tensor: Any, value: Value, numbers: Any = None) -> Number:
        return Number(kind, tensor, value, numbers or self._numbers, self._trace)

    def _combined(self, operation: Any, other: Any, swapped: bool = False) -> Any:
        if isinstance(other, tf.Tensor | tf.Variable):
            return NotImplemented  # the tensor converts this number
        if not self._trace.open or type(other) not in (Number, float, int):
            return self._needs_value()
        if type(other) is not Number:
            constant = other
            kind = type(constant)
            if kind is int and not tf.int64.min <= constant <= tf.int64.max:
                return self._needs_value()
            tensor = tf.constant(constant, tf.float64 if kind is float else tf.int64)
            other = self._number(kind, tensor, lambda _: constant)
        left, right = (other, self) if swapped else (self, other)
        divides = operation is operator.truediv
        if divides:
            self._trace.conditions.append(lambda values: right._value(values) != 0)
        if divides or left._kind is not right._kind:
            left, right = left._as_float(), right._as_float()
        return self._number(
            left._kind,
            operation(left._tensor, right._tensor),
            lambda values: operation(left._value(values), right._value(values)),
            left._numbers | right._numbers,
        )

    def _as_float(self) -> Number:
        if self._kind is float:
            return self
        self._within(self._value, -_EXACT, _EXACT)
        tensor = tf.cast(self._tensor, tf.float64)
        return self._number(float, tensor, lambda values: float(self._value(values)))

    def to_tensor(self, dtype: tf.DType | None) -> Any:
        """As TensorFlow makes a tensor of a Python number.

        Raises:
            TypeError: a float is no integer.
            NeedsValue: other dtypes than those that a conversion rounds to as Python does.
        """
        if not self._trace.open:
            self._needs_value()
        if dtype is None:
            dtype = tf.float32 if self._kind is float else tf.int32
        dtype = dtype.base_dtype
        if self._kind is float and (dtype.is_integer or dtype.is_bool):
            raise TypeError(f"a float is no {dtype.name}")
        if self._kind is int and dtype in _INTEGERS:
            self._within(self._value, dtype.min, dtype.max)
        elif dtype not in _FLOATS:
            self._needs_value()
        return tf.cast(self._tensor, dtype)


def _convert(number: Number, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
    del name, as_ref
    return number.to_tensor(dtype)


tensor_conversion_registry.register_tensor_conversion_function(Number, _convert)

"""Operations of PyTorch × pairs of types × where the second operand comes from, against eager mode.

An operand that is made in the function takes other ways through the importer than an argument does,
and a Python number others again. Each pair of types is one program of all operations that eager
mode has for it.
"""

from __future__ import annotations

import logging
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)
NUMBERS: tuple[Any, ...] = (True, -1, 0, 2.5, 300, 2**40, 255, -0.0)
#: Where the second operand comes from.
SOURCES = ("argument", "constant", "uniform", "scalar")

Function = Callable[[Any, Any], Any]

#: Two operands, of which the second is never zero or negative (where eager mode raises).
DIVISIONS: dict[str, Function] = {
    "//": operator.floordiv,
    "%": operator.mod,
    "fmod": torch.fmod,
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "gcd": torch.gcd,
}

ELEMENTWISE: dict[str, Function] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "add alpha": lambda x, y: torch.add(x, y, alpha=-2),
    "sub alpha": lambda x, y: torch.sub(x, y, alpha=3),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "shift far": lambda x, y: (x << (y | 64), x >> (y | 64)),
    "logical and": torch.logical_and,
    "logical or": torch.logical_or,
    "logical xor": torch.logical_xor,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "clamp min": lambda x, y: torch.clamp(x, min=y),
    "clamp max": lambda x, y: torch.clamp(x, max=y),
    "where": lambda x, y: torch.where(x == x, x, y),
    "where else": lambda x, y: torch.where(x != x, x, y),
    "atan2": torch.atan2,
    "copysign": torch.copysign,
    "hypot": torch.hypot,
    "heaviside": torch.heaviside,
    "xlogy": torch.xlogy,
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=2),
    "lerp": lambda x, y: torch.lerp(x, y, 0.5),
    "isclose": torch.isclose,
    "masked fill": lambda x, y: x.masked_fill(x == x, y),
}

#: Of two tensors of one dimension and eight elements.
JOINING: dict[str, Function] = {
    "cat": lambda x, y: torch.cat([x, y]),
    "cat turned": lambda x, y: torch.cat([y, x]),
    "stack": lambda x, y: torch.stack([x, y]),
    "index put": lambda x, y: x.index_put((_index(),), y[:3]),
    "index put add": lambda x, y: x.index_put((_index(),), y[:3], accumulate=True),
    "index copy": lambda x, y: x.index_copy(0, _index(), y[:3]),
    "index add": lambda x, y: x.index_add(0, _index(), y[:3]),
    "scatter": lambda x, y: x.scatter(0, _index(), y[:3]),
    "scatter add": lambda x, y: x.scatter_add(0, _index(), y[:3]),
    **{
        f"scatter {kind}": lambda x, y, kind=kind: x.scatter_reduce(0, _index(), y[:3], kind)
        for kind in ("amax", "amin", "sum", "prod", "mean")
    },
    "select scatter": lambda x, y: torch.select_scatter(x.reshape(2, 4), y[:4], 0, -1),
    "slice scatter": lambda x, y: torch.slice_scatter(x, y[:4], 0, 0, 8, 2),
    "diagonal scatter": lambda x, y: torch.diagonal_scatter(x.reshape(2, 4), y[:2]),
    "masked scatter": lambda x, y: x.masked_scatter(x == x, y),
    "set item": lambda x, y: _updated(x, y),
    "dot": lambda x, y: torch.dot(x, y),
    "isin": torch.isin,
    # Boundaries increase, which NaN does not.
    "bucketize": lambda x, y: torch.bucketize(x, y.nan_to_num(nan=7).sort()[0]),
}

#: Of one tensor, and a type to convert to.
CONVERTING: dict[str, Function] = {
    "to": lambda x, dtype: x.to(dtype),
    "sum": lambda x, dtype: x.sum(dtype=dtype),
    "prod": lambda x, dtype: x.prod(dtype=dtype),
    "mean": lambda x, dtype: x.mean(dtype=dtype),
    "cumsum": lambda x, dtype: x.cumsum(0, dtype=dtype),
    "cumprod": lambda x, dtype: x.cumprod(0, dtype=dtype),
    "softmax": lambda x, dtype: x.softmax(0, dtype=dtype),
    "to of a result": lambda x, dtype: (x + x).to(dtype),
}

UNARY: dict[str, Function] = {
    **{
        name: lambda x, _, name=name: getattr(torch, name)(x)
        for name in """abs neg sign sgn floor ceil round trunc frac sqrt rsqrt exp expm1 log1p sin
        tanh sigmoid relu square reciprocal isnan isinf isfinite signbit bitwise_not logical_not
        sum mean prod amax amin argmax argmin any all max min count_nonzero median var std
        logsumexp ravel nonzero_static erf atan deg2rad positive""".split()
        if name not in ("nonzero_static", "logsumexp")
    },
    "cummax": lambda x, _: x.cummax(0)[0],
    "cummin": lambda x, _: x.cummin(0),
    "sort": lambda x, _: x.sort(stable=True),
    "topk": lambda x, _: x.topk(3)[0],
    "mode": lambda x, _: x.mode()[0],
    "max pool": lambda x, _: functional.max_pool1d(x.reshape(1, 8), 3, 2, 1),
    "average pool": lambda x, _: functional.avg_pool1d(x.reshape(1, 8), 2),
    "pad": lambda x, _: functional.pad(x, (1, 2), value=7),
    "pad reflecting": lambda x, _: functional.pad(x.reshape(1, 8), (1, 2), mode="reflect"),
    "round decimals": lambda x, _: torch.round(x, decimals=2),
    "softmax": lambda x, _: x.softmax(0),
    "mm": lambda x, _: x.reshape(2, 4) @ x.reshape(4, 2),
    "fill": lambda x, _: torch.full_like(x, 3) + x,
    "max dim": lambda x, _: x.reshape(2, 4).max(1),
    "kth": lambda x, _: x.kthvalue(3)[0],
    "diff": lambda x, _: torch.diff(x),
    "clamp": lambda x, _: x.clamp(-1, 100),
    "gather": lambda x, _: x.gather(0, _index()),
    "flip": lambda x, _: x.flip(0),
    "roll": lambda x, _: x.roll(3),
    "tril": lambda x, _: x.reshape(2, 4).tril(),
    "var": lambda x, _: x.var(0, correction=0),
    "norm": lambda x, _: torch.linalg.vector_norm(x),
}


def _index() -> Tensor:
    return torch.tensor([1, 0, 5])


def _updated(x: Tensor, y: Tensor) -> Tensor:
    x = x.clone()
    x[1:5] = y[:4]
    return x


#: What differs between a kernel's vectors and what is left over of them, or between devices: sums
#: with numbers are computed in 16 bits in the one, in 32 in the other.
_OPEN = {
    **dict.fromkeys([(torch.float16, "+"), (torch.float16, "-")], (2**40,)),
    **{
        (dtype, f"{name} alpha"): (300, 2**40)
        for dtype in (torch.float16, torch.bfloat16)
        for name in ("add", "sub")
    },
}


def values(dtype: torch.dtype) -> list[Any]:
    """Eight elements of a type: its bounds, both zeros, NaN, and what rounds."""
    if dtype is torch.bool:
        return [True, False, True, True, False, False, True, False]
    if dtype.is_complex:
        return [0j, 1 + 2j, -1.5j, -2.0, 0.25 - 3j, 3.0, 1j, -1 + 1j]
    if dtype.is_floating_point:
        return [0.0, -0.0, -1.5, float("nan"), 2.5, 100.3, float("-inf"), 1e-3]
    limits = torch.iinfo(dtype)
    return [limits.max, limits.min, limits.max // 2 + 1, 0, 1, 3, limits.max - 7, limits.min + 5]


def divisors(dtype: torch.dtype) -> list[Any]:
    """Eight small positive elements of a type."""
    if dtype is torch.bool:
        return [True] * 8
    return [1, 2, 3, 7, 5, 1, 2, 4]


def modest(dtype: torch.dtype) -> list[Any]:
    """Eight elements that every type but booleans and unsigned ones holds, some of them halves."""
    if dtype is torch.bool or dtype.is_complex:
        return values(dtype)
    if dtype.is_floating_point:
        return [0.0, -0.0, -1.5, 2.5, 100.25, -7.0, 0.5, 1.0]
    return [0, 1, 2, 100, 7, 5, 3, 1] if dtype is torch.uint8 else [0, -1, 2, 100, -7, 5, 3, 1]


class Case:
    """One operation: of the argument ``x`` and of a second operand from a source."""

    def __init__(
        self,
        name: str,
        function: Function,
        operand: Any,
        *,
        first: Any = None,
        turned: bool = False,
    ) -> None:
        self.name = name
        self.function = function
        self.operand = operand
        #: Another first operand than ``x``.
        self.first = first
        self.turned = turned

    def __call__(self, x: Tensor, y: Tensor, z: Tensor) -> Any:
        first = {None: x, "divided": z}[self.first]
        second = self.operand(y) if callable(self.operand) else self.operand
        return self.function(second, first) if self.turned else self.function(first, second)


def cases(first: torch.dtype, second: torch.dtype | None) -> Iterator[Case]:
    """All cases of a pair of types; with None, those of numbers and of one operand."""
    if second is None:
        yield from (Case(name, f, None) for name, f in UNARY.items())
        for number in NUMBERS:
            for name, function in ELEMENTWISE.items():
                if (first, name) in _OPEN and number in _OPEN[first, name]:
                    continue
                yield Case(f"{name} {number}", function, number)
                yield Case(f"{name} {number} turned", function, number, turned=True)
        for number in (3, 2.5, True):
            for name, function in DIVISIONS.items():
                yield Case(f"{name} {number}", function, number, first="divided")
        return
    for name, function in CONVERTING.items():
        yield Case(f"{name} {second}", function, second, first="divided")
    for source in SOURCES:
        for name, function in {**ELEMENTWISE, **JOINING}.items():
            if source in ("argument", "constant") or name in ELEMENTWISE:
                yield Case(f"{name} {source}", function, _source(source, values(second), second))
        for name, function in DIVISIONS.items():
            operand = _source(source, divisors(second), second, least=1)
            yield Case(f"{name} {source}", function, operand, first="divided")


def _source(source: str, elements: list[Any], dtype: torch.dtype, least: int | None = None) -> Any:
    if source == "argument":
        if least is None:
            return lambda y: y
        if dtype.is_floating_point:
            # Quarters, which need not be rounded.
            return lambda y: (y.abs() % 5 * 4).floor() / 4 + 1
        return lambda y: y.abs() % 5 + 1
    if source == "constant":
        return lambda y: torch.tensor(elements, dtype=dtype)
    if source == "uniform":
        return lambda y: torch.full((8,), elements[2], dtype=dtype)
    return lambda y: torch.tensor(elements[4], dtype=dtype)


def arguments(first: torch.dtype, second: torch.dtype | None) -> tuple[Tensor, Tensor, Tensor]:
    """The arguments of the programs of a pair of types."""
    y = torch.tensor(values(second or first), dtype=second or first)
    return torch.tensor(values(first), dtype=first), y, torch.tensor(modest(first), dtype=first)


def defined(chosen: Iterator[Case], given: Sequence[Tensor]) -> list[tuple[Case, Any]]:
    """The cases that eager mode and tracing have, with the results of eager mode."""
    known = []
    mode = FakeTensorMode()
    fakes = [mode.from_tensor(x) for x in given]
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in chosen:
            try:
                with mode:
                    case(*fakes)
                known.append((case, case(*(x.clone() for x in given))))
            except (ArithmeticError, AttributeError, RuntimeError, TypeError, ValueError):
                continue
    return known


def program(chosen: Sequence[Case]) -> Callable[..., list[Any]]:
    """A function that computes all of some cases."""

    def run(x: Tensor, y: Tensor, z: Tensor) -> list[Any]:
        return [case(x, y, z) for case in chosen]

    return run


def difference(ours: Any, eager: Any) -> str | None:
    """What differs: integers and booleans bit by bit, floats by some units of their type."""
    if not isinstance(eager, Tensor):
        if isinstance(eager, tuple):
            found = [difference(a, b) for a, b in zip(ours, eager, strict=True)]
            return next((f for f in found if f is not None), None)
        return None if ours == eager else f"got {ours}, expected {eager}"
    if (ours.dtype, ours.shape) != (eager.dtype, eager.shape):
        return f"got {ours.dtype}{list(ours.shape)}, expected {eager.dtype}{list(eager.shape)}"
    exact = not (eager.is_floating_point() or eager.is_complex())
    epsilon = 0.0 if exact else 16 * torch.finfo(eager.dtype).eps
    close = torch.isclose(ours, eager, rtol=epsilon, atol=epsilon, equal_nan=True)
    if eager.is_complex():
        # Eager mode multiplies by alpha = 1 + 0i, so that no part of a number is finite any more
        # if the other one is not.
        close |= ~eager.isfinite() & ~ours.isfinite()
    return None if bool(close.all()) else f"got {ours.tolist()}, expected {eager.tolist()}"

"""Orthogonal polynomials whose degrees are numbers of a tensor: a loop over the degrees.

Every element takes steps of its three-term recurrence up to its own degree. Closed forms of high
degrees and values at the ends of the interval are taken where eager mode has them; the loop
does not count these elements, and ends when all others are NaN, however high their degrees are.
NaN gives NaN, where eager mode returns unwritten memory.

Abramowitz and Stegun, Handbook of Mathematical Functions, 22.4, 22.3.15 and 22.7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from polyblocks_torch.decomp.registry import decomposition
from polyblocks_torch.recording.loops import while_loop_op

aten = torch.ops.aten

#: Hermite polynomials of higher degrees are NaN, as in eager mode.
_HERMITE_LIMITS = {torch.float32: 128, torch.float64: 512}
#: Steps between two looks at what is NaN by now, each of which takes as long as a step.
STEPS = 64


@dataclass(frozen=True)
class _Family:
    """Polynomials, of whose degree 0 the value is 1.

    Attributes:
        first: the polynomial of degree 1.
        step: of x, a degree and the two polynomials before, the one of that degree.
        ends: of x and degrees, where the value is known, and the value.
        closed: of x and degrees, where there is a closed form, and its value.
    """

    first: Callable[[Tensor], Tensor]
    step: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
    ends: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None
    closed: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None

    def value(self, x: Tensor, degrees: Tensor) -> Tensor:
        """The polynomials at ``x``, 0 for negative degrees.

        Args:
            x: float32 or float64, of the same shape as ``degrees``.
            degrees: int64.
        """
        known = [part(x, degrees) for part in (self.ends, self.closed) if part is not None]
        left = degrees
        for where, _ in known:
            left = torch.where(where, 0, left)

        def up_to_it(degree: Tensor, *others: Tensor) -> Tensor:
            return degree <= others[-1]

        def step(
            degree: Tensor, before: Tensor, now: Tensor, x: Tensor, left: Tensor, end: Tensor
        ) -> tuple[Tensor, ...]:
            del end
            following = self.step(x, degree.to(x.dtype), now, before)
            taken = degree <= left
            return degree + 1, torch.where(taken, now, before), torch.where(taken, following, now)

        def goes_on(degree: Tensor, last: Tensor, *others: Tensor) -> Tensor:
            return degree <= last

        def steps(
            degree: Tensor, last: Tensor, before: Tensor, now: Tensor, x: Tensor, left: Tensor
        ) -> tuple[Tensor, ...]:
            end = torch.minimum(degree + (STEPS - 1), last)
            start: Any = (degree, before, now)
            degree, before, now = while_loop_op(up_to_it, step, start, (x, left, end))
            return degree, _last(now, left), before, now

        one, first = torch.ones_like(x), self.first(x)
        last = _last(first, left)
        start: Any = (torch.full_like(last, 2), last, one, first)
        _, _, _, value = while_loop_op(goes_on, steps, start, (x, left))
        value = torch.where(degrees == 0, one, value)
        for where, found in reversed(known):
            value = torch.where(where, found, value)
        return torch.where(degrees < 0, 0.0, value)


def _last(now: Tensor, left: Tensor) -> Tensor:
    """The highest degree that an element takes: what is NaN stays so."""
    left = torch.where(now.isnan(), 0, left)
    return left.amax() if left.numel() else left.new_zeros(())


def _even(n: Tensor) -> Tensor:
    return n % 2 == 0


def _signed(positive: Tensor, value: Tensor) -> Tensor:
    return torch.where(positive, value, -value)


def _double(x: Tensor, degree: Tensor, now: Tensor, before: Tensor) -> Tensor:
    del degree
    return (x + x) * now - before


def _inside(x: Tensor, n: Tensor, least: int) -> Tensor:
    """Where a closed form in the angle is taken."""
    return (n > least) & (x.abs() < 1)


def _angle(x: Tensor) -> Tensor:
    return x.clamp(-1, 1).acos()


def _chebyshev(
    kind: str, least: int
) -> tuple[
    Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
]:
    """Values at both ends of [-1, 1], and between them for degrees above ``least``."""

    def ends(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        wide = (n + n + 1).to(x.dtype)
        one = torch.ones_like(wide)
        right, left = {
            "t": (one, one),
            "u": ((n + 1).to(x.dtype), (n + 1).to(x.dtype)),
            "v": (one, wide),
            "w": (wide, one),
        }[kind]
        return x.abs() == 1, torch.where(x > 0, right, _signed(_even(n), left))

    def closed(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        angle, degree = _angle(x), n.to(x.dtype)
        value = {
            "t": lambda: (degree * angle).cos(),
            "u": lambda: ((degree + 1) * angle).sin() / angle.sin(),
            "v": lambda: ((degree + 0.5) * angle).cos() / (angle / 2).cos(),
            "w": lambda: ((degree + 0.5) * angle).sin() / (angle / 2).sin(),
        }[kind]()
        return _inside(x, n, least), value

    return ends, closed


_FIRST: dict[str, Callable[[Tensor], Tensor]] = {
    "t": lambda x: x,
    "u": lambda x: x + x,
    "v": lambda x: x + x - 1,
    "w": lambda x: x + x + 1,
}


def _legendre_ends(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    return x.abs() == 1, _signed((x > 0) | _even(n), torch.ones_like(x))


def _laguerre(x: Tensor, degree: Tensor, now: Tensor, before: Tensor) -> Tensor:
    k = degree - 1
    return ((k + k + (1 - x)) * now - k * before) / degree


def _legendre(x: Tensor, degree: Tensor, now: Tensor, before: Tensor) -> Tensor:
    k = degree - 1
    return ((k + k + 1) * x * now - k * before) / degree


def _register(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    packet = getattr(aten, f"special_{name}")

    def polynomial(x: Any, n: Any) -> Tensor:
        tensors = [t for t in (x, n) if isinstance(t, Tensor)]
        dtype = torch.result_type(x, n)
        if not dtype.is_floating_point:
            dtype = torch.get_default_dtype()
        if dtype not in _HERMITE_LIMITS:
            return NotImplemented
        x, n = (torch.as_tensor(t, device=tensors[0].device) for t in (x, n))
        x, n = torch.broadcast_tensors(x.to(dtype), n.to(dtype).to(torch.int64))
        return function(x.contiguous(), n.contiguous())

    decomposition(packet.default, packet.x_scalar, packet.n_scalar)(polynomial)


def _limited(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def value(x: Tensor, n: Tensor) -> Tensor:
        high = n > _HERMITE_LIMITS[x.dtype]
        return torch.where(high, torch.nan, function(x, torch.where(high, 0, n)))

    return value


def _shifted(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, n: function(x + x - 1, n)


for _kind, _first in _FIRST.items():
    for _name, _least in (("chebyshev", 6 if _kind == "t" else 8), ("shifted_chebyshev", 6)):
        _ends, _closed = _chebyshev(_kind, _least)
        _value = _Family(_first, _double, _ends, _closed).value
        _is_shifted = _name == "shifted_chebyshev"
        _register(f"{_name}_polynomial_{_kind}", _shifted(_value) if _is_shifted else _value)
_register(
    "hermite_polynomial_h",
    _limited(
        _Family(
            lambda x: x + x,
            lambda x, degree, now, before: (x + x) * now - 2 * (degree - 1) * before,
        ).value
    ),
)
_register(
    "hermite_polynomial_he",
    _limited(
        _Family(lambda x: x, lambda x, degree, now, before: x * now - (degree - 1) * before).value
    ),
)
_register("laguerre_polynomial_l", _Family(lambda x: 1 - x, _laguerre).value)
_register("legendre_polynomial_p", _Family(lambda x: x, _legendre, _legendre_ends).value)

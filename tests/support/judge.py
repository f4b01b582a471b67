"""How exact a result is beside eager's, by the result of the same operation in a wider type."""

from __future__ import annotations

import torch
from torch import Tensor

#: What is near to a result is judged by the same operation in this type.
WIDER = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
    torch.complex32: torch.complex128,
}

#: Types of so few bits that a rounding more than eager's counts; they are judged by
#: :func:`twice_as_inexact`, the others by :func:`much_less_exact`.
NARROW = frozenset({torch.float16, torch.bfloat16})

#: Results of 32 bits are as exact as eager's when their error is at most this many times eager's.
SLACK = 4.0


def less_exact(mine: Tensor, theirs: Tensor, best: Tensor) -> str:
    """How ours is less exact than eager's may be; empty if it is not.

    Args:
        mine: ours; of a type that has a wider one.
        theirs: eager's; same shape and dtype.
        best: of the wider type.
    """
    best = best.to(WIDER[mine.dtype])
    finite = best.isfinite() & theirs.isfinite() & mine.isfinite()
    # Eager may overflow on the way; what is finite and right is better.
    better = ~theirs.isfinite() & best.isfinite() & _rounds_to(best, mine)
    if not torch.equal(mine.isfinite(), theirs.isfinite() | better):
        return "not finite in other places than eager's"
    ours, eager, exact = (_special(x)[~mine.isfinite()] for x in (mine, theirs, best))
    # Kernels of eager's that take several elements together make NaN of infinities.
    if not bool(((ours == eager) | (ours == exact)).all()):
        return "NaN or infinities that eager does not give"
    if not bool(finite.any()):
        return ""
    mine, theirs, best = mine[finite], theirs[finite], best[finite]
    if mine.dtype in NARROW:
        return twice_as_inexact(mine, theirs, best)
    return much_less_exact(mine, theirs, best)


def twice_as_inexact(mine: Tensor, theirs: Tensor, best: Tensor) -> str:
    """Whether our errors are more than twice eager's; half a unit in the last place is no error.

    That is asked of every element, for most operations round each by itself. Two things excuse:

    - Sums are computed in float32, in any order. One rounding of the largest number in that type
      is no error either.
    - Where terms cancel that were rounded before, the error of an element is chance, for eager as
      for us. As many elements as eager computes that much less exactly than we do, and one of a
      hundred besides, may have twice the largest error of eager's.

    Args:
        mine, theirs: finite, of 16 bits.
        best: finite, float64.
    """
    unit, noise = _unit(best, mine.dtype), torch.finfo(torch.float32).eps * best.abs().max()
    ours, eager = (mine.double() - best).abs(), (theirs.double() - best).abs()
    no_error = torch.maximum(unit / 2, noise)
    over = ours > 2 * torch.maximum(eager, no_error)
    excused = int((eager > 2 * torch.maximum(ours, no_error)).sum()) + max(1, mine.numel() // 100)
    if int(over.sum()) <= excused and bool((ours[over] <= 2 * eager.max()).all()):
        return ""
    worst = int(torch.where(over, ours / unit, 0).argmax())
    return (
        f"{int(over.sum())} of {mine.numel()} with more than twice eager's error: "
        f"{mine[worst]:.6g} is off by {ours[worst] / unit[worst]:.3g} units in the last place, "
        f"eager's {theirs[worst]:.6g} by {eager[worst] / unit[worst]:.3g}"
    )


def much_less_exact(mine: Tensor, theirs: Tensor, best: Tensor) -> str:
    """Whether our error is several times eager's largest, and some roundings of the largest number.

    Args:
        mine, theirs: finite, of a type with 32 bits, or a pair of such or of smaller ones.
        best: finite, of the wider type.
    """
    ours, eager = (mine - best).abs(), (theirs - best).abs()
    allowed = SLACK * eager.max() + 8 * torch.finfo(mine.dtype).eps * best.abs().max()
    over = ours > allowed
    return f"{int(over.sum())} of {mine.numel()} much less exact than eager" if over.any() else ""


def _unit(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The unit in the last place of numbers, in a type that they are rounded to."""
    limits = torch.finfo(dtype)
    exponent = torch.frexp(x).exponent - 1
    unit = torch.ldexp(torch.full_like(x, limits.eps), exponent)
    return unit.clamp(min=limits.smallest_normal * limits.eps)


def _rounds_to(best: Tensor, mine: Tensor) -> Tensor:
    """Which elements of ours are finite and as near to the exact ones as their type allows."""
    near = (mine - best).abs() <= 2 * torch.finfo(mine.dtype).eps * best.abs()
    return mine.isfinite() & near


def _special(x: Tensor) -> Tensor:
    """0 for NaN, else the sign; of complex numbers 0, for there are many ways to be infinite."""
    if x.is_complex():
        return torch.zeros_like(x.real)
    return torch.where(x.isnan(), 0, x.sign())

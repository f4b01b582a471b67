"""Elementwise functions and reductions, out of PyTorch's own database of operators."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, ReductionOpInfo, UnaryUfuncInfo

from bench.cliffs.case import Array, Case, Draw, rows

#: Entries that are another one's spelling, that no CPU runs, that draw random numbers, and the
#: families of polynomials, which cost eager seconds.
_LEFT_OUT = frozenset(
    """positive conj imag real cdouble cfloat chalf fill jiterator_unary jiterator_binary
    jiterator_binary_return_by_ref nn.functional.rrelu nn.functional.silu.complex hash_tensor
    nn.functional.prelu round.decimals_0 round.decimals_neg_3 sgn isinf isposinf isneginf isreal
    bool byte char double float half int short deg2rad mvlgamma.mvlgamma_p_1 mvlgamma.mvlgamma_p_5
    polygamma.polygamma_n_0 polygamma.polygamma_n_2 polygamma.polygamma_n_3
    polygamma.polygamma_n_4 special.polygamma.special_polygamma_n_0 true_divide clamp_max clamp_min
    ge gt le ne logical_or logical_xor bitwise_or bitwise_xor max.binary min.binary rsub
    std.unbiased var.unbiased masked.amin masked.argmin masked.norm masked.std any amin argmin
    __radd__ __rdiv__ __rmul__ __rand__ __ror__ __rxor__ __rmod__ __rpow__ __rsub__""".split()
)
_FAMILIES = ("polynomial", "special.modified", "special.scaled", "special.bessel")
#: Those whose gradients are asked for; the others' are formulas of the same kinds.
_GRADIENTS = frozenset(
    """exp log tanh erf lgamma digamma sqrt sigmoid sinc angle nn.functional.silu nn.functional.mish
    nn.functional.softplus nn.functional.elu logit mul div.no_rounding_mode pow atan2 hypot maximum
    xlogy sum mean std prod amax linalg.vector_norm masked.sum nansum""".split()
)
#: Reductions of everything to one number.
_TO_ONE = frozenset("sum mean std prod amax argmax count_nonzero all linalg.vector_norm".split())
#: Elements of a row that is reduced.
_ROW = 1024


def _named(op: Any) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def _floating(op: Any) -> bool:
    return torch.float32 in op.dtypes


def _values(op: Any, draw: Draw, *shape: int) -> Array:
    """Numbers in the domain of an elementwise function."""
    if not _floating(op):
        return draw.integers(1, 31, *shape)
    low, high = getattr(op, "domain", None) or (None, None)
    low = -4.0 if low is None else low + 1e-3
    high = max(4.0, low + 4) if high is None else high - 1e-3
    return draw.uniform(low, high, *shape)


def _unary(op: Any) -> Case:
    # Of several allowed sets of keywords the function gets the first.
    keywords, _ = op.sample_kwargs("cpu", torch.float32, torch.ones(1))
    function = functools.partial(op.op, **keywords)
    return Case(
        _named(op), function, lambda draw, n: (_values(op, draw, n),), _named(op) in _GRADIENTS
    )


def _binary(op: Any) -> Case:
    mode = {"trunc_rounding": "trunc", "floor_rounding": "floor"}.get(op.variant_test_name)
    function = functools.partial(op.op, rounding_mode=mode) if mode else op.op

    def operands(draw: Draw, n: int) -> tuple[Array, ...]:
        if not _floating(op):
            return draw.integers(1, 31, n), draw.integers(1, 31, n)
        if op.name == "ldexp":
            return draw.normal(n), draw.integers(-8, 8, n, dtype="int32")
        # All of them are defined for positive numbers; `zeta` only above 1.
        return draw.uniform(1.1, 4, n), draw.uniform(0.1, 4, n)

    return Case(_named(op), function, operands, _named(op) in _GRADIENTS)


def _reductions(op: Any) -> Iterator[Case]:
    for dim, what in ((1, "rows"), (0, "columns"), (None, "all")):
        if dim is None and _named(op) not in _TO_ONE:
            continue
        if dim == 0 and op.name.startswith("masked"):
            continue
        keywords = {} if dim is None else {"dim": dim}
        yield Case(
            f"{_named(op)} of {what}",
            functools.partial(op.op, **keywords),
            lambda draw, n: (draw.uniform(0.5, 1.5, *rows(n, _ROW)),),
            _named(op) in _GRADIENTS and what == "rows",
        )


def _cases() -> Iterator[Case]:
    for op in op_db:
        if _named(op) in _LEFT_OUT or any(family in op.name for family in _FAMILIES):
            continue
        if isinstance(op, UnaryUfuncInfo):
            yield _unary(op)
        elif isinstance(op, BinaryUfuncInfo):
            yield _binary(op)
        elif isinstance(op, ReductionOpInfo):
            yield from _reductions(op)


CASES = tuple(_cases())

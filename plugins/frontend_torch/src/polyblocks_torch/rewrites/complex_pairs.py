"""Complex tensors become pairs of real ones; only arguments and results stay complex.

torch-mlir lowers few operations on complex numbers. An argument is read through ``view_as_real``, a
result is put together by ``aten.complex``; everything in between is arithmetic on the parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils import _pytree as pytree

from polyblocks.errors import UnsupportedError
from polyblocks_torch.rewrites import fourier
from polyblocks_torch.rewrites.emitter import Emitter

aten = torch.ops.aten

_PARTS = {torch.complex64: torch.float32, torch.complex128: torch.float64}


@dataclass(frozen=True)
class Pair:
    """Real and imaginary parts, of equal shape and dtype."""

    re: fx.Node
    im: fx.Node


def expand_complex(gm: fx.GraphModule) -> None:
    """Rewrite the graph of a module that holds complex tensors, in place.

    Raises:
        UnsupportedError: an operation on complex tensors that is not known here.
    """
    emitter = Emitter(gm)
    values: dict[fx.Node, Any] = {}
    for node in gm.graph.nodes:
        emitter.begin(node)
        values[node] = _rewrite(emitter, node, values)
    gm.graph = emitter.graph


def _is_complex(node: fx.Node) -> bool:
    leaves = pytree.tree_leaves(node.meta.get("val"))
    return any(isinstance(leaf, torch.Tensor) and leaf.is_complex() for leaf in leaves)


def _rewrite(emitter: Emitter, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
    if node.op == "output":
        results = pytree.tree_map_only(fx.Node, lambda n: values[n], node.args[0])
        return emitter.graph.output(
            pytree.tree_map_only(Pair, lambda pair: _join(emitter, pair), results)
        )
    if node.op == "get_attr" and _is_complex(node):
        return _constant_parts(emitter, node)
    if node.op in ("placeholder", "get_attr"):
        new = emitter.copy(node, values)
        return _parts(emitter, new) if _is_complex(node) else new
    if not _is_complex(node) and not any(_is_complex(n) for n in node.all_input_nodes):
        return emitter.copy(node, values)
    if node.target.__name__ == "getitem":  # type: ignore[union-attr]
        return values[node.args[0]][node.args[1]]  # type: ignore[index]
    args, kwargs = pytree.tree_map_only(fx.Node, lambda n: values[n], (node.args, node.kwargs))
    rule = _RULES.get(node.target)
    if rule is None and node.target in _BY_PARTS:
        rule = _by_parts
    if rule is None:
        raise UnsupportedError("no rule for it on complex numbers", op=str(node.target))
    try:
        return rule(_Call(emitter, node), *args, **kwargs)
    except UnsupportedError as error:
        raise UnsupportedError(error.reason, op=str(node.target)) from error
    except (TypeError, AttributeError) as error:
        raise UnsupportedError(
            "no rule for it on complex numbers with these operands", op=str(node.target)
        ) from error


@dataclass(frozen=True)
class _Call:
    """One call that is being rewritten."""

    emitter: Emitter
    node: fx.Node

    def emit(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        return self.emitter.emit(target, *args, **kwargs)

    @property
    def part_dtype(self) -> torch.dtype:
        """dtype of the parts of the result."""
        return _PARTS[self.node.meta["val"].dtype]

    def pair(self, value: Any) -> Pair:
        """A pair of a pair, a real tensor or a number, with parts of the result's dtype."""
        dtype = self.part_dtype
        if isinstance(value, Pair):
            return Pair(self.as_type(value.re, dtype), self.as_type(value.im, dtype))
        if isinstance(value, fx.Node):
            re = self.as_type(value, dtype)
            return Pair(re, self.emit(aten.zeros_like.default, re))
        number = complex(value)
        re = self.emit(aten.full.default, [], number.real, dtype=dtype)
        return Pair(re, self.emit(aten.full.default, [], number.imag, dtype=dtype))

    def as_type(self, value: fx.Node, dtype: torch.dtype) -> fx.Node:
        if value.meta["val"].dtype == dtype:
            return value
        return self.emit(aten._to_copy.default, value, dtype=dtype)


def _parts(emitter: Emitter, value: fx.Node) -> Pair:
    real = emitter.emit(aten.view_as_real.default, value)
    return _split_last(emitter, real)


def _constant_parts(emitter: Emitter, node: fx.Node) -> Pair:
    with unset_fake_temporarily():
        value = attrgetter(str(node.target))(emitter.module).resolve_conj()
        parts = [part.clone() for part in (value.real, value.imag)]
    return Pair(*(emitter.constant(part, part.dtype) for part in parts))


def _split_last(emitter: Emitter, real: fx.Node) -> Pair:
    last = real.meta["val"].dim() - 1
    return Pair(
        emitter.emit(aten.select.int, real, last, 0), emitter.emit(aten.select.int, real, last, 1)
    )


def _join(emitter: Emitter, pair: Pair) -> fx.Node:
    return emitter.emit(aten.complex.default, pair.re, pair.im)


#: Ops that move elements or add them up: done on each part by itself.
_BY_PARTS = frozenset(
    {
        aten.view.default, aten._unsafe_view.default, aten.permute.default, aten.transpose.int,
        aten.t.default, aten.unsqueeze.default, aten.squeeze.default, aten.squeeze.dim,
        aten.squeeze.dims, aten.expand.default, aten.slice.Tensor, aten.select.int,
        aten.clone.default, aten.alias.default, aten.detach.default, aten.flip.default,
        aten.roll.default, aten.repeat.default, aten.index.Tensor, aten.index_select.default,
        aten.gather.default, aten.diagonal.default, aten.neg.default, aten.cat.default,
        aten.stack.default, aten.sum.default, aten.sum.dim_IntList, aten.mean.default,
        aten.mean.dim, aten.as_strided.default,
        aten.split_with_sizes.default, aten.split.Tensor, aten.unbind.int,
        aten.tril.default, aten.triu.default, aten.cumsum.default, aten.lift_fresh_copy.default,
        aten.slice_scatter.default, aten.select_scatter.default,
        torch.ops.prims.squeeze.default,
    }
)  # fmt: skip


#: Those whose operands may be real where the result is complex.
_PROMOTING = frozenset(
    {
        aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim,
        aten.cumsum.default, aten.slice_scatter.default, aten.select_scatter.default,
    }
)  # fmt: skip


def _by_parts(call: _Call, *args: Any, **kwargs: Any) -> Any:
    def take(which: str) -> Any:
        picked, options = pytree.tree_map_only(
            Pair, lambda pair: getattr(pair, which), (args, kwargs)
        )
        if isinstance(options.get("dtype"), torch.dtype) and options["dtype"].is_complex:
            options["dtype"] = _PARTS[options["dtype"]]
        return call.emit(call.node.target, *picked, **options)

    if call.node.target in (aten.cat.default, aten.stack.default):
        args = ([call.pair(item) for item in args[0]], *args[1:])
    elif call.node.target in _PROMOTING and not _is_complex(call.node):
        # Operands of a real sum are converted to its type first.
        x, dtype = args[0], call.node.meta["val"].dtype
        return call.emit(call.node.target, _real_as(call, x, dtype), *args[1:], **kwargs)
    elif call.node.target in _PROMOTING:
        # Operands that are real have no imaginary part.
        args = tuple(call.pair(a) if isinstance(a, (Pair, fx.Node)) else a for a in args)
    re, im = take("re"), take("im")
    if isinstance(call.node.meta["val"], (tuple, list)):
        return [Pair(_item(call, re, i), _item(call, im, i)) for i in range(len(re.meta["val"]))]
    return Pair(re, im)


def _item(call: _Call, value: fx.Node, index: int) -> fx.Node:
    import operator

    return call.emit(operator.getitem, value, index)


_RULES: dict[Any, Callable[..., Any]] = {}


def _rule(*targets: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for target in targets:
            _RULES[target] = function
        return function

    return register


@_rule(aten.view_as_real.default)
def _view_as_real(call: _Call, x: Pair) -> fx.Node:
    last = x.re.meta["val"].dim()
    parts = [call.emit(aten.unsqueeze.default, part, last) for part in (x.re, x.im)]
    return call.emit(aten.cat.default, parts, last)


@_rule(aten.view_as_complex.default)
def _view_as_complex(call: _Call, x: fx.Node) -> Pair:
    return _split_last(call.emitter, x)


@_rule(aten.complex.default)
def _complex(call: _Call, re: fx.Node, im: fx.Node) -> Pair:
    shape = list(call.node.meta["val"].shape)
    return Pair(
        call.emit(aten.expand.default, re, shape), call.emit(aten.expand.default, im, shape)
    )


@_rule(aten.polar.default)
def _polar(call: _Call, magnitude: fx.Node, angle: fx.Node) -> Pair:
    mul = aten.mul.Tensor
    return Pair(
        call.emit(mul, magnitude, call.emit(aten.cos.default, angle)),
        call.emit(mul, magnitude, call.emit(aten.sin.default, angle)),
    )


@_rule(aten.real.default)
def _real(call: _Call, x: Pair) -> fx.Node:
    return x.re


@_rule(aten.imag.default)
def _imag(call: _Call, x: Pair) -> fx.Node:
    return x.im


@_rule(aten._conj.default, aten._conj_physical.default, aten.conj_physical.default)
def _conj(call: _Call, x: Pair) -> Pair:
    return Pair(x.re, call.emit(aten.neg.default, x.im))


@_rule(aten.resolve_conj.default, aten.resolve_neg.default)
def _resolve(call: _Call, x: Pair) -> Pair:
    return x


@_rule(aten._to_copy.default)
def _to_copy(call: _Call, x: Any, dtype: torch.dtype | None = None, **options: Any) -> Any:
    if dtype is None or dtype.is_complex:
        return call.pair(x)
    return _real_as(call, x, dtype)


def _real_as(call: _Call, x: Pair, dtype: torch.dtype) -> fx.Node:
    """A pair in a real type: its real part, of booleans whether it is anything but zero."""
    return _truth(call, x) if dtype is torch.bool else call.as_type(x.re, dtype)


@_rule(aten.add.Tensor, aten.sub.Tensor, aten.add.Scalar, aten.sub.Scalar)
def _add(call: _Call, x: Any, y: Any, alpha: complex = 1) -> Pair:
    a, b = call.pair(x), call.pair(y)
    if alpha != 1:
        b = _mul(call, b, alpha)
    target = aten.add.Tensor if "add" in str(call.node.target) else aten.sub.Tensor
    return Pair(call.emit(target, a.re, b.re), call.emit(target, a.im, b.im))


def _part_by_part(call: _Call, target: Any, x: Pair, y: Any) -> Pair:
    """Both parts with a real tensor or number, in the type of the result's parts."""
    x = call.pair(x)
    y = call.as_type(y, call.part_dtype) if isinstance(y, fx.Node) else y
    return Pair(call.emit(target, x.re, y), call.emit(target, x.im, y))


@_rule(aten.mul.Tensor, aten.mul.Scalar)
def _mul(call: _Call, x: Any, y: Any) -> Pair:
    for factor, other in ((x, y), (y, x)):
        if not isinstance(factor, (Pair, complex)) and isinstance(other, Pair):
            return _part_by_part(call, aten.mul.Tensor, other, factor)
    a, b = call.pair(x), call.pair(y)
    mul, emit = aten.mul.Tensor, call.emit
    re = emit(aten.sub.Tensor, emit(mul, a.re, b.re), emit(mul, a.im, b.im))
    return Pair(re, emit(aten.add.Tensor, emit(mul, a.re, b.im), emit(mul, a.im, b.re)))


@_rule(aten.div.Tensor, aten.div.Scalar)
def _div(call: _Call, x: Any, y: Any) -> Pair:
    if isinstance(x, Pair) and not isinstance(y, (Pair, complex)):
        return _part_by_part(call, aten.div.Tensor, x, y)
    return _quotient(call, call.pair(x), call.pair(y))


def _quotient(call: _Call, x: Pair, y: Pair) -> Pair:
    """Smith's method (CACM 5(8), 1962), as in eager mode: nothing is squared."""

    def op(target: Any, *operands: Any) -> fx.Node:
        return call.emit(target, *operands)

    mul, div, where = aten.mul.Tensor, aten.div.Tensor, aten.where.self
    sizes = [op(aten.abs.default, part) for part in (y.re, y.im)]
    real = op(aten.ge.Tensor, *sizes)
    large, small = op(where, real, y.re, y.im), op(where, real, y.im, y.re)
    ratio = op(div, small, large)
    scale = op(aten.add.Tensor, large, op(mul, small, ratio))
    # x / (c + di): ((a + b r) + (b - a r) i) / s for r = d / c, ((a r + b) + (b r - a) i) / s for
    # r = c / d.
    turned = [op(mul, x.re, ratio), op(mul, x.im, ratio)]
    re = op(where, real, op(aten.add.Tensor, x.re, turned[1]), op(aten.add.Tensor, turned[0], x.im))
    im = op(where, real, op(aten.sub.Tensor, x.im, turned[0]), op(aten.sub.Tensor, turned[1], x.re))
    # By 0 + 0i each part is divided on its own.
    zero = op(aten.eq.Scalar, op(aten.add.Tensor, *sizes), 0.0)
    scale = op(where, zero, op(aten.zeros_like.default, scale), scale)
    re, im = op(where, zero, x.re, re), op(where, zero, x.im, im)
    return Pair(op(div, re, scale), op(div, im, scale))


@_rule(aten.abs.default)
def _abs(call: _Call, x: Pair) -> fx.Node:
    # Scaled by the larger part, so that squares neither overflow nor vanish.
    re, im = call.emit(aten.abs.default, x.re), call.emit(aten.abs.default, x.im)
    large = call.emit(aten.maximum.default, re, im)
    small = call.emit(aten.minimum.default, re, im)
    zero = call.emit(aten.eq.Scalar, large, 0.0)
    safe = call.emit(aten.where.self, zero, call.emit(aten.ones_like.default, large), large)
    ratio = call.emit(aten.div.Tensor, small, safe)
    square = call.emit(aten.add.Scalar, call.emit(aten.mul.Tensor, ratio, ratio), 1.0)
    result = call.emit(aten.mul.Tensor, large, call.emit(aten.sqrt.default, square))
    # As C's hypot: whatever the other part is, NaN included.
    infinite = _either(call, x, lambda part: call.emit(aten.isinf.default, part))
    top = call.emit(aten.full.default, [], math.inf, dtype=result.meta["val"].dtype)
    return call.emit(aten.where.self, infinite, top, result)


def _either(call: _Call, x: Pair, test: Callable[[fx.Node], fx.Node]) -> fx.Node:
    """Whether one of the parts passes a test, or both do."""
    return call.emit(aten.logical_or.default, test(x.re), test(x.im))


@_rule(aten.isnan.default, aten.isinf.default)
def _is_special(call: _Call, x: Pair) -> fx.Node:
    return _either(call, x, lambda part: call.emit(call.node.target, part))


@_rule(aten.angle.default)
def _angle(call: _Call, x: Pair) -> fx.Node:
    return call.emit(aten.atan2.default, x.im, x.re)


@_rule(aten.exp.default)
def _exp(call: _Call, x: Pair) -> Pair:
    made = _polar(call, call.emit(aten.exp.default, x.re), x.im)
    # As C has it: of a real number that overflows, the imaginary part would be inf * 0.
    real = call.emit(aten.eq.Scalar, x.im, 0.0)
    return Pair(made.re, call.emit(aten.where.self, real, x.im, made.im))


@_rule(aten.eq.Tensor, aten.ne.Tensor, aten.eq.Scalar, aten.ne.Scalar)
def _eq(call: _Call, x: Any, y: Any) -> fx.Node:
    packet, both = aten.ne, aten.logical_or.default
    if "eq" in str(call.node.target):
        packet, both = aten.eq, aten.logical_and.default
    if not isinstance(x, Pair):
        x, y = y, x
    other: tuple[Any, Any]
    if isinstance(y, Pair):
        other = (y.re, y.im)
    elif isinstance(y, fx.Node):
        # It has no imaginary part.
        other = (y, 0.0)
    else:
        other = (complex(y).real, complex(y).imag)
    parts = [
        call.emit(packet.Tensor if isinstance(b, fx.Node) else packet.Scalar, a, b)
        for a, b in zip((x.re, x.im), other, strict=True)
    ]
    return call.emit(both, *parts)


@_rule(aten.where.self)
def _where(call: _Call, condition: fx.Node, x: Any, y: Any) -> Pair:
    a, b = call.pair(x), call.pair(y)
    where = aten.where.self
    return Pair(call.emit(where, condition, a.re, b.re), call.emit(where, condition, a.im, b.im))


def _each_part(call: _Call, x: Any, *values: Any, emit: Callable[..., fx.Node]) -> Pair:
    """Store into the real and the imaginary part of ``x``; both operands may be real."""
    pairs = [call.pair(value) for value in (x, *values)]
    return Pair(emit(*(p.re for p in pairs)), emit(*(p.im for p in pairs)))


@_rule(aten.index_put.default)
def _index_put(
    call: _Call, x: Any, indices: list[Any], values: Any, accumulate: bool = False
) -> Pair:
    def put(part: fx.Node, stored: fx.Node) -> fx.Node:
        return call.emit(aten.index_put.default, part, indices, stored, accumulate)

    return _each_part(call, x, values, emit=put)


@_rule(aten.scatter.src, aten.scatter.value, aten.scatter_add.default)
def _scatter(call: _Call, x: Any, dim: int, index: fx.Node, stored: Any) -> Pair:
    target, pair = call.node.target, call.pair(x)
    re: fx.Node | float
    im: fx.Node | float
    if isinstance(stored, (Pair, fx.Node)):
        source = call.pair(stored)
        re, im = source.re, source.im
    else:
        re, im = complex(stored).real, complex(stored).imag
    return Pair(
        call.emit(target, pair.re, dim, index, re), call.emit(target, pair.im, dim, index, im)
    )


@_rule(aten.scatter_reduce.two)
def _scatter_reduce(
    call: _Call, x: Any, dim: int, index: fx.Node, source: Any, reduce: str, **options: Any
) -> Pair:
    if reduce not in ("sum", "mean"):
        raise UnsupportedError(f"no rule for {reduce!r} of complex numbers")

    def scatter(part: fx.Node, stored: fx.Node) -> fx.Node:
        return call.emit(call.node.target, part, dim, index, stored, reduce, **options)

    return _each_part(call, x, source, emit=scatter)


@_rule(aten.mm.default, aten.bmm.default)
def _mm(call: _Call, x: Any, y: Any) -> Pair:
    a, b, target = call.pair(x), call.pair(y), call.node.target
    re = call.emit(aten.sub.Tensor, call.emit(target, a.re, b.re), call.emit(target, a.im, b.im))
    im = call.emit(aten.add.Tensor, call.emit(target, a.re, b.im), call.emit(target, a.im, b.re))
    return Pair(re, im)


@_rule(aten.full.default, aten.zeros.default, aten.ones.default, aten.empty.memory_format)
def _full(call: _Call, size: list[int], value: Any = None, **options: Any) -> Any:
    value = 1 if "ones" in str(call.node.target) else value or 0
    if not call.node.meta["val"].is_complex():
        return call.emit(aten.full.default, size, value, dtype=call.node.meta["val"].dtype)
    number, dtype = complex(value), call.part_dtype
    return Pair(
        call.emit(aten.full.default, size, number.real, dtype=dtype),
        call.emit(aten.full.default, size, number.imag, dtype=dtype),
    )


@_rule(aten.constant_pad_nd.default)
def _pad(call: _Call, x: Pair, pad: list[int], value: complex = 0) -> Pair:
    number, target = complex(value), aten.constant_pad_nd.default
    return Pair(
        call.emit(target, x.re, pad, number.real), call.emit(target, x.im, pad, number.imag)
    )


@_rule(aten.zeros_like.default, aten.ones_like.default, aten.full_like.default)
def _full_like(call: _Call, x: Any, value: Any = None, **options: Any) -> Any:
    """Of complex numbers in a real type, too, and the other way round."""
    return _full(call, list(call.node.meta["val"].shape), value)


@_rule(aten.copy.default)
def _copy(call: _Call, x: Any, source: Any, non_blocking: bool = False) -> Any:
    value = call.node.meta["val"]
    if not value.is_complex():
        return call.emit(aten.expand.default, _real_as(call, source, value.dtype), [*value.shape])
    return _complex(call, *(getattr(call.pair(source), part) for part in ("re", "im")))


def _truth(call: _Call, x: Any) -> fx.Node:
    if isinstance(x, fx.Node):
        return call.emit(aten.ne.Scalar, x, 0)
    return _either(call, x, lambda part: call.emit(aten.ne.Scalar, part, 0))


@_rule(aten.logical_not.default, aten.logical_and.default)
@_rule(aten.logical_or.default, aten.logical_xor.default)
def _logical(call: _Call, *operands: Any) -> fx.Node:
    return call.emit(call.node.target, *(_truth(call, x) for x in operands))


@_rule(aten.linalg_vector_norm.default)
def _vector_norm(call: _Call, x: Pair, *args: Any, **options: Any) -> fx.Node:
    dtype = options.pop("dtype", None)
    if dtype is not None:
        raise UnsupportedError("a norm in another type")
    return call.emit(aten.linalg_vector_norm.default, _abs(call, x), *args, **options)


@_rule(aten.scalar_tensor.default)
def _scalar_tensor(call: _Call, value: complex, **options: Any) -> Pair:
    return call.pair(value)


# --- Fourier transforms --------------------------------------------------------------------------


def _along(call: _Call, x: Pair | fx.Node, dim: int, sign: int, scale: float) -> Pair:
    """Transform along one dimension."""
    re, im = (x.re, x.im) if isinstance(x, Pair) else (x, None)
    return Pair(*fourier.transform(call.emitter, re, im, dim, sign, scale))


def _scale(mode: int, count: int) -> float:
    """``mode`` as in aten: 0 none, 1 by the square root of the number of elements, 2 by it."""
    if mode == 0:
        return 1.0
    return 1.0 / (math.sqrt(count) if mode == 1 else count)


def _extents(node: fx.Node, dims: list[int]) -> list[int]:
    return [node.meta["val"].shape[d] for d in dims]


def _scaled(call: _Call, x: Any, scale: float) -> Any:
    return x if scale == 1.0 else _part_by_part(call, aten.mul.Tensor, x, scale)


@_rule(aten._fft_c2c.default)
def _fft_c2c(call: _Call, x: Pair, dims: list[int], mode: int, forward: bool) -> Pair:
    scale = _scale(mode, math.prod(_extents(x.re, dims)))
    for i, dim in enumerate(dims):
        # Once for all dimensions.
        factor = scale if i == len(dims) - 1 else 1.0
        x = _along(call, x, dim, -1 if forward else 1, factor)
    return x if dims else _scaled(call, x, scale)


@_rule(aten._fft_r2c.default)
def _fft_r2c(call: _Call, x: fx.Node, dims: list[int], mode: int, onesided: bool) -> Pair:
    scale = _scale(mode, math.prod(_extents(x, dims)))
    last = dims[-1]
    factor = scale if len(dims) == 1 else 1.0
    if onesided:
        result = Pair(*fourier.transform_real(call.emitter, x, last, -1, factor))
    else:
        result = _along(call, x, last, -1, factor)
    for i, dim in enumerate(dims[:-1]):
        result = _along(call, result, dim, -1, scale if i == len(dims) - 2 else 1.0)
    return result


@_rule(aten._fft_c2r.default)
def _fft_c2r(call: _Call, x: Pair, dims: list[int], mode: int, size: int) -> fx.Node:
    scale = _scale(mode, math.prod(_extents(x.re, dims[:-1])) * size)
    for dim in dims[:-1]:
        x = _along(call, x, dim, 1, 1.0)
    return fourier.transform_to_real(call.emitter, x.re, x.im, dims[-1], size, 1, scale)

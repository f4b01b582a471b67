"""One operation as the torch frontend imports it, decomposed and rewritten, run by PyTorch.

Nothing is compiled, so thousands of operations a minute can be held against eager mode: shapes,
dtypes, values, NaN, infinities and the sign of zero.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from judge import WIDER
from torch import Tensor, fx
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.utils import _pytree as pytree

from polyblocks.errors import UnsupportedError
from polyblocks_torch.importing.decompositions import decomposition_table
from polyblocks_torch.importing.refusals import refusal
from polyblocks_torch.recording.recorder import like
from polyblocks_torch.recording.retrace import decompose
from polyblocks_torch.rewrites import rewrite_graph

aten = torch.ops.aten

#: What CPUs have no kernel for; the lowering adds up in the wider type.
_ON_WIDE_OPERANDS = {aten.mm.dtype: aten.mm.default, aten.bmm.dtype: aten.bmm.default}

#: Their results are memory as it is found, or they update operands without saying so.
_OTHERS = frozenset(
    """_fused_moving_avg_obs_fq_helper empty empty_like empty_permuted empty_strided
    native_batch_norm new_empty new_empty_strided""".split()
)

#: Their terms may cancel, so that a fused multiply-add or another series shows.
_CANCELLING = frozenset(
    """_log_softmax_backward_data _softmax_backward_data addcdiv addcmul digamma fma lerp lgamma
    mvlgamma polygamma""".split()
)

#: Where both are zeros, eager mode's vectors and its single numbers choose another one.
_EITHER_ZERO = frozenset(
    """clamp clamp_max clamp_min fmax fmin hardtanh logaddexp logaddexp2 maximum minimum
    native_dropout_backward softshrink""".split()
)

#: Of equal elements any one may be chosen: what is said of places is not compared.
_CHOOSING = frozenset("kthvalue median nanmedian sort topk".split())

#: Variances with means, or roots of such.
_MEANS = frozenset("native_group_norm native_layer_norm std_mean var_mean".split())

#: By how many roundings eager mode's own approximations, and ours, may be off.
_ROUNDINGS = {
    **dict.fromkeys("digamma lgamma mvlgamma polygamma hardsigmoid_backward".split(), 1e6),
    # Eager mode's are right to 1e-8 in float64; ours are held to mpmath in their own test.
    **dict.fromkeys(("igamma", "igammac"), 1e8),
    **dict.fromkeys(
        """special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
        special_erfcx special_log_ndtr tanh_backward gelu_backward""".split(),
        1e4,
    ),
    # Angles and steps of a recurrence are off by a rounding each, times the degree.
    **{f"special_{s}chebyshev_polynomial_{k}": 1e4 for s in ("", "shifted_") for k in "tuvw"},
    **{f"special_{f}": 1e4 for f in ("laguerre_polynomial_l", "legendre_polynomial_p")},
    **{f"special_hermite_polynomial_{f}": 1e4 for f in ("h", "he")},
    # Eager mode's series loses digits where it underflows.
    "special_zeta": 16,
}


def _name(func: Any) -> str:
    name: str = func.overloadpacket.__name__
    return name


class NothingToRun(Exception):
    """The import leaves the operation as it is, or refuses it: there is nothing to compare."""


def imported(
    func: torch._ops.OpOverload, args: Any, kwargs: Any
) -> tuple[fx.GraphModule, list[Tensor]]:
    """The rewritten graph of one operation, and the tensors that it takes.

    Args:
        func: functional.
        args, kwargs: tensors and whatever else the operation takes.

    Raises:
        NothingToRun: the graph is the operation itself, or it is not compiled.
        UnsupportedError: a decomposition gives a result of another kind.
    """
    leaves, tree = pytree.tree_flatten((tuple(args), dict(kwargs)))
    mode = FakeTensorMode()
    graph = fx.Graph()
    tensors, fakes = [], []
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            node = graph.placeholder(f"x{index}")
            node.meta["val"] = like(mode, leaf)
            tensors.append(leaf)
            fakes.append(node.meta["val"])
            leaves[index] = node
    node_args, node_kwargs = pytree.tree_unflatten(leaves, tree)
    node = graph.call_function(func, node_args, node_kwargs)
    fake_args, fake_kwargs = fx.map_arg((node_args, node_kwargs), lambda n: n.meta["val"])
    try:
        with mode:
            node.meta["val"] = func(*fake_args, **fake_kwargs)
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise NothingToRun from error
    outputs = node
    if isinstance(node.meta["val"], (tuple, list)):
        parts = []
        for index, value in enumerate(node.meta["val"]):
            part = graph.call_function(operator.getitem, (node, index))
            part.meta["val"] = value
            parts.append(part)
        outputs = tuple(part for part in parts if isinstance(part.meta["val"], Tensor))
    graph.output(outputs)
    gm = fx.GraphModule({}, graph)
    try:
        if any(refusal(n) for n in graph.nodes if n.op in ("placeholder", "call_function")):
            raise NothingToRun("refused")
        made, _ = decompose(gm, decomposition_table())
        rewrite_graph(made)
    except UnsupportedError as error:
        if "its decomposition gives" in str(error):
            raise
        raise NothingToRun from error
    targets = [n.target for n in made.graph.nodes if n.op == "call_function"]
    if any(_is_meta_only(target) for target in targets):
        raise NothingToRun("an algorithm that has no code but in compiled programs")
    if targets == [n.target for n in graph.nodes if n.op == "call_function"]:
        raise NothingToRun("left as it is")
    return made, tensors


def _is_meta_only(target: Any) -> bool:
    eager = torch._C.DispatchKey.CompositeExplicitAutograd
    return getattr(target, "namespace", "") == "polyblocks" and not (
        target.has_kernel_for_dispatch_key(eager)
    )


def run(gm: fx.GraphModule, inputs: list[Tensor]) -> list[Tensor]:
    """The results of a graph, node by node."""
    values: dict[fx.Node, Any] = {}
    arguments = iter(inputs)
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(arguments)
        elif node.op == "get_attr":
            values[node] = getattr(gm, str(node.target))
        elif node.op == "call_function":
            args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = _call(node.target, args, kwargs)
        else:
            results = fx.map_arg(node.args[0], values.__getitem__)
            return list(results) if isinstance(results, (tuple, list)) else [results]
    raise AssertionError("a graph without an output")


def _call(target: Any, args: Any, kwargs: Any) -> Any:
    narrow = _ON_WIDE_OPERANDS.get(target)
    if narrow is not None:
        return narrow(args[0].to(args[2]), args[1].to(args[2]))
    return target(*args, **kwargs)


def difference(func: Any, args: Any, kwargs: Any) -> str:
    """How what is imported differs from the operation; empty if it does not.

    Raises:
        NothingToRun: as :func:`imported` does.
    """
    try:
        gm, tensors = imported(func, args, kwargs)
    except UnsupportedError as error:
        if not _keeps_its_promise(func, args, kwargs):
            raise NothingToRun("PyTorch says something else of it than it does") from error
        return str(error)
    expected = _tensors(func(*args, **kwargs))
    if not expected:
        raise NothingToRun("no results, but a check")
    results = run(gm, tensors)
    if len(results) != len(expected):
        return f"{len(results)} results instead of {len(expected)}"
    name = _name(func)
    pointwise = torch.Tag.pointwise in func.tags and name not in _CANCELLING
    best: list[Tensor] | None = None
    for index, (mine, theirs) in enumerate(zip(results, expected, strict=True)):
        if index and name in _CHOOSING:
            break
        mine, theirs = _where_eager_is_sound(name, args, mine, theirs)
        if index and name in _MEANS:
            # Eager mode's mean of an infinity is no number.
            mine = torch.where(theirs.isnan(), torch.nan, mine)
        found = compare(
            mine,
            theirs,
            pointwise,
            signed=pointwise and name not in _EITHER_ZERO,
            cancelling=name in _CANCELLING,
            # Eager mode weighs bytes by fixed-point numbers.
            near_bytes=theirs.dtype == torch.uint8 and name.startswith("upsample_"),
            roundings=_ROUNDINGS.get(name, 8),
        )
        if found and best is None and theirs.dtype in WIDER:
            best = _in_wider(func, args, kwargs)
        if found and best and len(best) == len(expected) and _as_near(mine, theirs, best[index]):
            continue
        if found and " for torch." in found and not _keeps_its_promise(func, args, kwargs):
            continue
        if found:
            return f"result {index}: {found}"
    return ""


def _where_eager_is_sound(
    name: str, args: Any, mine: Tensor, theirs: Tensor
) -> tuple[Tensor, Tensor]:
    """Results that are alike where eager mode's algorithm gives no number or not the right one."""
    if "polynomial" in name:
        # Eager mode returns unwritten memory for what is no number.
        unknown = torch.as_tensor(args[0]).isnan()
        mine, theirs = (torch.where(unknown, 0, each) for each in (mine, theirs))
        # Near their zeros the error is that of the terms that cancel: of a large angle, or of all
        # steps, each of which adds its own and those before.
        degree = torch.as_tensor(args[1]).double().abs().nan_to_num(0.0)
        error = 1e4 + (4 * degree if "chebyshev" in name else degree.square())
    elif name == "special_zeta":
        s, q = (torch.as_tensor(value).double() for value in args)
        # Terms of the series are infinity times zero for the highest orders.
        theirs = torch.where((mine == 0) & (s > 1e15) & theirs.isnan(), 0, theirs)
        # Terms of both signs cancel, the largest of the number nearest to zero.
        error = torch.where(q < 0, 8 * (q - q.round()).abs() ** -s, 0)
    else:
        return mine, theirs
    near = (mine - theirs).abs() < error * torch.finfo(theirs.dtype).eps
    return torch.where(near, theirs, mine), theirs


def _keeps_its_promise(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operation gives what PyTorch says of it before it runs."""
    mode = FakeTensorMode()
    fakes = pytree.tree_map_only(Tensor, lambda value: like(mode, value), (args, kwargs))
    with mode:
        promised = _tensors(func(*fakes[0], **fakes[1]))
    results = _tensors(func(*args, **kwargs))
    return [(r.shape, r.dtype) for r in results] == [(p.shape, p.dtype) for p in promised]


def compare(
    mine: Tensor,
    theirs: Tensor,
    pointwise: bool,
    *,
    signed: bool = True,
    cancelling: bool = False,
    near_bytes: bool = False,
    roundings: float = 8,
) -> str:
    """How two results differ; empty if they do not.

    Args:
        mine, theirs: of one operation.
        pointwise: whether each number is near to the other one, or to the largest number only.
        signed: whether zeros are of one sign.
        cancelling: whether small numbers may be differences of larger ones.
        near_bytes: whether bytes may be off by one.
        roundings: how many of them numbers may be off by.
    """
    if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
        return f"{mine.dtype}{list(mine.shape)} for {theirs.dtype}{list(theirs.shape)}"
    if mine.is_complex():
        # There are many ways to be infinite, or no number.
        mine, theirs = (torch.where(v.isfinite(), v, torch.nan) for v in (mine, theirs))
        mine, theirs = (torch.view_as_real(value.resolve_conj()) for value in (mine, theirs))
        pointwise = signed = False
    if not mine.is_floating_point():
        if near_bytes:
            return _places(mine, theirs, (mine.int() - theirs.int()).abs() > 1)
        return _places(mine, theirs, mine != theirs)
    differ = mine.isnan() != theirs.isnan()
    differ |= (mine.isinf() | theirs.isinf()) & (mine != theirs) & ~(mine.isnan() & theirs.isnan())
    if signed:
        differ |= (theirs == 0) & (mine == 0) & (mine.signbit() != theirs.signbit())
    finite = theirs.isfinite() & mine.isfinite()
    a, b = torch.where(finite, mine, 0).double(), torch.where(finite, theirs, 0).double()
    limits = torch.finfo(mine.dtype)
    scale = b.abs() if pointwise or not b.numel() else b.abs().max()
    if cancelling:
        scale = scale.clamp(min=1)
    # What gradual underflow leaves is not what counts.
    allowed = roundings * limits.eps * (scale + limits.smallest_normal)
    differ |= (a - b).abs() > (allowed + limits.smallest_normal if roundings > 8 else allowed)
    return _places(mine, theirs, differ)


def _places(mine: Tensor, theirs: Tensor, where: Tensor) -> str:
    if not bool(where.any()):
        return ""
    place = tuple(int(i) for i in where.nonzero()[0])
    return (
        f"{int(where.sum())} of {mine.numel()} differ, at {list(place)} "
        f"{mine[place].item()!r} for {theirs[place].item()!r}"
    )


def _in_wider(func: Any, args: Any, kwargs: Any) -> list[Tensor] | None:
    def widened(value: Any) -> Any:
        if isinstance(value, Tensor) and value.dtype in WIDER:
            return value.to(WIDER[value.dtype])
        return WIDER.get(value, value) if isinstance(value, torch.dtype) else value

    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        args, kwargs = pytree.tree_map(widened, (args, kwargs))
        return _tensors(func(*args, **kwargs))
    except (RuntimeError, TypeError, ValueError):
        return None
    finally:
        torch.set_default_dtype(default)


def _as_near(mine: Tensor, theirs: Tensor, best: Tensor) -> bool:
    """Whether ours is as near to the exact result as eager's is, or nearly so."""
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype or best.shape != theirs.shape:
        return False
    scale = best.abs()
    one_part = not mine.is_complex()
    if not one_part:
        # Each part is rounded like the larger one, and so is a zero of either sign.
        mine, theirs, best = (torch.view_as_real(v.resolve_conj()) for v in (mine, theirs, best))
        scale = scale[..., None].expand(best.shape)
    if not mine.is_floating_point() or not best.is_floating_point():
        return False
    exact = best.to(mine.dtype)
    # What eager loses on the way (an overflow, terms that cancel) may be right in ours.
    right = (mine == exact) | (mine == theirs) | (mine.isnan() & (exact.isnan() | theirs.isnan()))
    finite = mine.isfinite() & exact.isfinite()
    limits = torch.finfo(mine.dtype)
    least = torch.maximum(limits.eps * scale, best.new_tensor(limits.smallest_normal * limits.eps))
    ours, eager = (mine.double() - best).abs(), (theirs.double() - best).abs().nan_to_num(0, 0, 0)
    near = finite & (ours <= 4 * torch.maximum(eager, least))
    zeros = (mine == 0) & (theirs == 0) & (mine.signbit() != theirs.signbit())
    return bool((right | near).all()) and not (one_part and bool(zeros.any()))


def _tensors(results: Any) -> list[Tensor]:
    return [r for r in pytree.tree_leaves(results) if isinstance(r, Tensor)]


def can_be_imported(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether it is functional, draws no random numbers, and takes plain tensors."""
    if func.namespace not in ("aten", "prims") or func._schema.is_mutable or func.is_view:
        return False
    if torch.Tag.nondeterministic_seeded in func.tags or _name(func) in _OTHERS:
        return False
    return all(
        leaf.layout == torch.strided and not leaf.is_conj() and not leaf.is_neg()
        for leaf in pytree.tree_leaves((args, kwargs))
        if isinstance(leaf, Tensor)
    )

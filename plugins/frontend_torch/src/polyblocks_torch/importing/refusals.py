"""Nodes that must not reach torch-mlir, with the reason."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from polyblocks.algorithms.factorizations.limits import (
    refused_decomposition,
    refused_reflections,
)
from polyblocks_torch.control_flow.operators import is_control_flow

_RANDOM = "random numbers come from PyTorch's own generator"

#: Overload packets that draw random numbers. torch-mlir has lowerings for some of them, with a
#: generator of its own and a fixed seed.
RANDOM_OPS = frozenset(
    """_fused_dropout _sample_dirichlet _standard_gamma alpha_dropout bernoulli bernoulli_ binomial
    cauchy dropout exponential feature_alpha_dropout feature_dropout geometric log_normal
    multinomial native_dropout normal normal_functional poisson rand rand_like randint randint_like
    randn randn_like randperm random rrelu rrelu_with_noise rrelu_with_noise_functional uniform
    """.split()
)

#: Overload packets that torch-mlir lowers to something else than PyTorch computes.
MISCOMPILED: dict[str, str] = {
    "as_strided": "reads memory that its operand is a part of",
    "as_strided_scatter": "writes memory that its operand is a part of",
    "_assert_scalar": "a check of a number that must raise in PyTorch",
}


def _refused_decomposition(node: torch.fx.Node) -> str | None:
    named = next((node.kwargs[n] for n in ("compute_v", "compute_uv") if n in node.kwargs), True)
    vectors = bool(node.args[2] if len(node.args) > 2 else named)
    return refused_decomposition(_matrix(node).shape, vectors=vectors)


def _matrix(node: torch.fx.Node) -> torch.Tensor:
    matrix: torch.Tensor = node.all_input_nodes[0].meta["val"]
    return matrix


#: By overload packet, why matrices of a size are not factorized.
_SIZES: dict[str, Callable[[torch.fx.Node], str | None]] = {
    **dict.fromkeys(("_linalg_eigh", "_linalg_svd"), _refused_decomposition),
    **dict.fromkeys(
        ("linalg_qr", "geqrf", "linalg_householder_product", "ormqr"),
        lambda node: refused_reflections(_matrix(node).shape),
    ),
}

#: Overload packets whose kernels for bytes round otherwise than floating-point numbers do.
_FIXED_POINT = frozenset({"upsample_bilinear2d", "upsample_bicubic2d"})

#: dtypes that torch-mlir's types express and the core can hold.
DTYPES = frozenset(
    {
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
        torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128,
    }
)  # fmt: skip


def refusal(node: torch.fx.Node) -> str | None:
    """Why a node cannot be given to torch-mlir; None if nothing is known against it."""
    value: Any = node.meta.get("val")
    for part in value if isinstance(value, (tuple, list)) else (value,):
        reason = _refused_value(part)
        if reason is not None:
            return reason
    if node.op == "placeholder":
        if not isinstance(node.meta.get("val"), torch.Tensor):
            return "only tensors can be arguments of compiled code"
        return None
    if node.target is operator.getitem:
        return None
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return None if is_control_flow(node) else "this higher-order operator cannot be compiled"
    packet = getattr(node.target, "overloadpacket", None)
    name = getattr(packet, "__name__", "")
    if name in RANDOM_OPS:
        return _RANDOM
    if name in _FIXED_POINT and value.dtype is torch.uint8:
        return "bytes are resized as PyTorch does it on CPUs, on no other device"
    if name in _SIZES and (reason := _SIZES[name](node)) is not None:
        return reason
    if name in ("sub", "rsub") and any(_is_boolean(n) for n in node.args[:2]):
        return "PyTorch does not subtract booleans"
    return MISCOMPILED.get(name)


def _is_boolean(operand: Any) -> bool:
    value = operand.meta.get("val") if isinstance(operand, torch.fx.Node) else operand
    return isinstance(value, bool) or (
        isinstance(value, torch.Tensor) and value.dtype is torch.bool
    )


def _refused_value(value: Any) -> str | None:
    if not isinstance(value, torch.Tensor):
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return "its value depends on data or on a symbolic size"
        return None
    if value.layout != torch.strided:
        return f"{str(value.layout).removeprefix('torch.')} tensors cannot be compiled"
    if value.dtype not in DTYPES:
        return f"dtype {str(value.dtype).removeprefix('torch.')} cannot be compiled"
    for extent in value.shape:
        if not isinstance(extent, int):
            return "its shape depends on data or on a symbolic size"
    return None

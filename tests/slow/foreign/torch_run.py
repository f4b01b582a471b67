"""PyTorch programs, eager and compiled: how rows of a table are called, and what is compared."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from cases import Case, Group
from forked_sweep import Outcome
from torch import Tensor
from torch.utils import _pytree as pytree
from typed_values import argument

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

DTYPES = {
    "f32": "float32", "f64": "float64", "f16": "float16", "b16": "bfloat16", "i64": "int64",
    "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool",
    "c64": "complex64", "c128": "complex128",
}  # fmt: skip

#: Relative to the largest number of a result.
TOLERANCE = {
    torch.float64: 1e-11,
    torch.complex128: 1e-11,
    torch.float32: 2e-5,
    torch.complex64: 2e-5,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}


def made(*texts: Any) -> list[Any]:
    """Arguments: ``"f32 3x4 transposed special"`` and the like, what makes one, or a value.

    The text is a dtype, the shape (``-`` for none), perhaps a layout with ``_`` for spaces and
    ``special``, see :func:`typed_values.argument`.
    """
    return [_made(i, text) for i, text in enumerate(texts)]


def _made(seed: int, text: Any) -> Any:
    if not isinstance(text, str):
        return text() if callable(text) else text
    dtype, shape, *more = text.split()
    extents = () if shape == "-" else tuple(map(int, shape.split("x")))
    special = "special" in more
    (layout,) = [word for word in more if word != "special"] or ["contiguous"]
    return argument(seed, DTYPES[dtype], extents, layout.replace("_", " "), special)


def called(function: Callable[..., Any], make: Callable[[], list[Any]]) -> Any:
    """Two calls, with arguments of their own; the arguments afterwards are compared as well."""
    seen = []
    for _ in range(2):
        arguments = make()
        seen.append((function(*arguments), arguments))
    return seen


def _loss(results: Any) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for i, y in enumerate(pytree.tree_leaves(results)):
        if isinstance(y, Tensor) and (y.is_floating_point() or y.is_complex()):
            y = torch.view_as_real(y.resolve_conj()) if y.is_complex() else y
            weights = torch.linspace(0.5 + i, 2.5, y.numel(), dtype=torch.float64).reshape(y.shape)
            total = total + (y.double() * weights).sum()
    return total


def _leaves(arguments: list[Any]) -> list[Any]:
    wanted = (Tensor,)
    return [
        x.detach().requires_grad_()
        if isinstance(x, wanted) and (x.is_floating_point() or x.is_complex())
        else x
        for x in arguments
    ]


def gradients(function: Callable[..., Any], make: Callable[[], list[Any]]) -> Any:
    """Results and the gradients of all real and complex arguments."""
    arguments = _leaves(make())
    results = function(*arguments)
    _loss(results).backward()
    return results, [x.grad for x in arguments if isinstance(x, Tensor) and x.requires_grad]


def derived_twice(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the first derivatives of all arguments and of a sum of these, derived again."""

    def derivatives(*arguments: Tensor) -> Any:
        places = tuple(range(len(arguments)))
        first = torch.func.grad(lambda *a: _loss(function(*a)), places)
        second = torch.func.grad(lambda *a: _loss(first(*a)), places)
        return first(*arguments), second(*arguments)

    return derivatives


def group(name: str, call: Callable[..., Any] = called) -> Group:
    """A group of cases for PyTorch."""
    return Group(name, made, call)


def check(case: Case) -> Outcome:
    """Run one case both ways."""
    warnings.simplefilter("ignore")
    expected = _seen(case, lambda function, **options: function)
    compiled: list[Any] = []

    def jit(function: Any, **options: Any) -> Any:
        result = polyblocks_jit_torch(function, compile_options=options or None)
        compiled.append(result)
        return result

    torch._dynamo.reset()
    got = _seen(case, jit)
    problem = difference(got, expected, case.rtol)
    if problem:
        torch._dynamo.reset()
        traced = _seen(case, lambda f, **options: torch.compile(f, backend="aot_eager"))
        if isinstance(got, Exception) and isinstance(traced, Exception):
            return Outcome("skipped", f"torch.compile: {_short(traced)}")
        if not difference(got, traced, case.rtol):
            problem += "; so it is with the backend aot_eager"
            if "strides" in problem:
                problem = ""
    if problem:
        return Outcome("wrong", problem)
    reports = [function.polyblocks_report() for function in compiled]
    rows = [f"{row.op}: {row.reason}" for report in reports for row in report.fallbacks]
    rows += [f"graph break: {row.reason}" for report in reports for row in report.graph_breaks]
    if all(report.whole for report in reports):
        return Outcome("compiled")
    return Outcome("fallback", "; ".join(rows)[:240])


def _seen(case: Case, jit: Any) -> Any:
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    try:
        return case.run(jit)
    except Exception as error:
        return error


def difference(got: Any, expected: Any, rtol: float = 0.0) -> str:
    """Where what was seen differs; empty if nowhere.

    Args:
        got: compiled.
        expected: eager.
        rtol: relative tolerance; 0: that of the dtype.
    """
    if isinstance(expected, Exception) and isinstance(got, Exception):
        return ""
    if isinstance(expected, Exception) or isinstance(got, Exception):
        mine, theirs = (_short(x) if isinstance(x, Exception) else "" for x in (got, expected))
        return f"raised {mine}" if mine else f"did not raise {theirs}"
    mine, mine_tree = pytree.tree_flatten(got)
    theirs, their_tree = pytree.tree_flatten(expected)
    if mine_tree != their_tree:
        return f"{mine_tree} instead of {their_tree}"
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        problem = _leaf(a, b, rtol)
        if problem:
            return f"leaf {i}: {problem}"
    return ""


def _leaf(a: Any, b: Any, rtol: float) -> str:
    if type(a) is not type(b):
        return f"{type(a).__name__} instead of {type(b).__name__}"
    if isinstance(b, np.ndarray):
        if a.dtype != b.dtype:
            return f"{a.dtype} instead of {b.dtype}"
        if b.dtype.names or b.dtype.kind not in "fciub":
            return "" if np.array_equal(a, b) else f"{a} instead of {b}"
        native = b.dtype.newbyteorder("=")
        a, b = (torch.from_numpy(np.array(x, dtype=native)) for x in (a, b))
    if not isinstance(b, Tensor):
        same = a == b or (isinstance(b, float) and (math.isclose(a, b, rel_tol=1e-5) or a != a))
        return "" if same else f"{a} instead of {b}"
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
    if a.requires_grad != b.requires_grad:
        return f"requires_grad is {a.requires_grad}"
    if b.layout != torch.strided or b.is_quantized:
        return _leaf(a.to_dense(), b.to_dense(), rtol)
    wide = [d for d, extent in enumerate(b.shape) if extent > 1 and b.numel()]
    if [a.stride(d) for d in wide] != [b.stride(d) for d in wide]:
        return f"strides {a.stride()} instead of {b.stride()}"
    return _values(a.detach().resolve_conj().resolve_neg(), b.detach(), rtol)


def _values(a: Tensor, b: Tensor, rtol: float) -> str:
    if b.is_complex():
        return _values(torch.view_as_real(a), torch.view_as_real(b.resolve_conj()), rtol)
    if not b.is_floating_point():
        wrong = a != b
        tolerance = 0.0
    else:
        finite = b.isfinite()
        largest = b[finite].abs().max().item() if finite.any() else 0.0
        tolerance = (rtol or TOLERANCE[b.dtype]) * largest
        a, b = a.double(), b.double()
        near = (a - b).abs() <= tolerance
        wrong = ~torch.where(finite, near, (a == b) | (a.isnan() & b.isnan()))
    if not wrong.any():
        return ""
    at = tuple(int(n) for n in wrong.nonzero()[0])
    return (
        f"{int(wrong.sum())} of {wrong.numel()} differ, at {list(at)} {a[at].item():.9g} instead "
        f"of {b[at].item():.9g}"
    )


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"

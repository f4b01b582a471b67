"""One sample of one OpInfo entry: run it with PyTorch and compiled, and compare."""

from __future__ import annotations

import itertools
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch._functorch.aot_autograd import aot_function
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from polyblocks.errors import ExecutionError, PolyBlocksError
from polyblocks.options import CompileOptions
from polyblocks_torch.compiler import compile_graph
from polyblocks_torch.report import FunctionReport

#: Entries that draw random numbers seed the generator with this one themselves.
SEED = 42

#: Entries whose results are uninitialized memory: only shape, dtype and strides can be compared.
UNINITIALIZED = frozenset(
    """empty empty_like empty_permuted empty_strided new_empty new_empty_strided resize_
    resize_as_""".split()
)

#: A result may differ from eager's by this much, or else must be as near to the float64 result.
TOLERANCE = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1e-5, 1e-5),
    torch.complex64: (1e-5, 1e-5),
    torch.float16: (1e-3, 1e-3),
    torch.bfloat16: (1.6e-2, 1e-2),
}

#: Results count as equally exact when their error is at most this many times eager's.
SLACK = 4.0


@dataclass(frozen=True)
class Outcome:
    """What happened to one sample.

    Attributes:
        kind: ``compiled`` (whole), ``random`` (whole, but PyTorch drew random numbers),
            ``fallback`` (PyTorch ran something), ``wrong``, ``skipped`` (PyTorch itself raises).
        reason: one line; empty if compiled.
    """

    kind: str
    reason: str = ""


def entry_name(op: Any) -> str:
    """``name`` or ``name.variant``."""
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def entries() -> list[Any]:
    """All entries of the database that take float32."""
    return [op for op in op_db if torch.float32 in op.dtypes]


def samples(op: Any, dtype: torch.dtype, count: int) -> list[Any]:
    """The first ``count`` forward samples, the same ones in every run."""
    _seed()
    return list(itertools.islice(op.sample_inputs("cpu", dtype), count))


def spread(ops: list[Any], count: int) -> list[Any]:
    """``count`` entries, the same ones in every run: evenly spaced in the order of their names."""
    ordered = sorted(ops, key=entry_name)
    return [ordered[i * len(ordered) // count] for i in range(min(count, len(ordered)))]


def check(op: Any, sample: Any, options: CompileOptions) -> Outcome:
    """Run one sample with PyTorch and compiled, and compare."""
    call, tensors = _function_of_tensors(op, sample)
    try:
        expected = _run(call, tensors)
    except Exception as error:  # whatever PyTorch raises, there is nothing to compare with
        return Outcome("skipped", _line(error))
    report = FunctionReport(entry_name(op), options.target)
    try:
        compiled = _compiled(call, report, options)
        _run(compiled, tensors)
        # Compiling may draw random numbers, so a second call is compared.
        got = _run(compiled, tensors)
    except PolyBlocksError as error:
        return Outcome("wrong", f"raised {_line(error)}")
    except Exception as error:
        if not report.variants:
            # Capture ends here; with Dynamo, a graph break and Python's own execution.
            return Outcome("fallback", f"capture: {_line(error)}")
        return Outcome("wrong", f"raised {_line(error)}")
    uninitialized = op.name in UNINITIALIZED
    difference = compare(got, expected, values=not uninitialized)
    if difference and not _nearer(call, tensors, got, expected):
        return Outcome("wrong", difference)
    return _classify(report)


def compare(got: Any, expected: Any, values: bool = True) -> str:
    """Where and how two nested results differ; empty if they agree."""
    got, expected = pytree.tree_leaves(got), pytree.tree_leaves(expected)
    if len(got) != len(expected):
        return f"{len(got)} results instead of {len(expected)}"
    for index, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        if not isinstance(theirs, torch.Tensor):
            if mine != theirs and not (mine != mine and theirs != theirs):
                return f"result {index} is {mine}, not {theirs}"
            continue
        if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
            return f"result {index} is {mine.dtype}{list(mine.shape)}"
        if mine.layout != theirs.layout:
            return f"result {index} has layout {mine.layout}"
        if values and mine.layout == torch.strided:
            difference = _differ(mine, theirs)
            if difference:
                return f"result {index}: {difference}"
    return ""


def _differ(mine: torch.Tensor, theirs: torch.Tensor) -> str:
    rtol, atol = TOLERANCE.get(theirs.dtype, (0.0, 0.0))
    try:
        torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())[:240]
    return ""


def _nearer(call: Callable[..., Any], tensors: list[Any], got: Any, expected: Any) -> bool:
    """Whether ours is about as near to the float64 result as eager's is."""
    wide = [t.double() if isinstance(t, torch.Tensor) and t.dtype == torch.float32 else t
            for t in tensors]  # fmt: skip
    try:
        exact = pytree.tree_leaves(_run(call, wide))
    except Exception:
        return False
    for mine, theirs, best in zip(
        pytree.tree_leaves(got), pytree.tree_leaves(expected), exact, strict=True
    ):
        if not isinstance(theirs, torch.Tensor) or not _differ(mine, theirs):
            continue
        if mine.shape != theirs.shape or mine.dtype not in (torch.float32, torch.complex64):
            return False
        best = best.to(torch.complex128 if mine.is_complex() else torch.float64)
        finite = best.isfinite() & theirs.isfinite() & mine.isfinite()
        if not torch.equal(mine.isfinite(), theirs.isfinite()):
            return False
        ours = (mine[finite] - best[finite]).abs()
        eager = (theirs[finite] - best[finite]).abs()
        scale = best[finite].abs()
        allowed = SLACK * eager.max() + 1e-6 * scale.max() if ours.numel() else 0.0
        if ours.numel() and bool((ours > allowed).any()):
            return False
    return True


def _function_of_tensors(op: Any, sample: Any) -> tuple[Callable[..., Any], list[Any]]:
    flat, tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    where = [i for i, value in enumerate(flat) if isinstance(value, torch.Tensor)]

    def call(*tensors: torch.Tensor) -> Any:
        values = list(flat)
        for i, tensor in zip(where, tensors, strict=True):
            values[i] = tensor
        first, args, kwargs = pytree.tree_unflatten(values, tree)
        return op.op(first, *args, **kwargs)

    return call, [flat[i] for i in where]


def _compiled(
    call: Callable[..., Any], report: FunctionReport, options: CompileOptions
) -> Callable[..., Any]:
    """The backend without Dynamo, which takes most of the time and does not change the graph."""
    compiler = partial(compile_graph, name=report.name, options=options, report=report)
    return aot_function(
        call,
        fw_compiler=partial(compiler, kind="forward"),
        inference_compiler=partial(compiler, kind="inference"),
        decompositions={},
        keep_inference_input_mutations=True,
    )


def _run(call: Callable[..., Any], tensors: list[Any]) -> Any:
    _seed()
    with torch.no_grad():
        return call(*(t.detach().clone() if t.layout == torch.strided else t for t in tensors))


def _classify(report: FunctionReport) -> Outcome:
    if report.fallbacks:
        first = next(iter(report.fallbacks))
        return Outcome("fallback", f"{first.op}: {first.reason}")
    if report.random_draws:
        return Outcome("random", str(report.random_draws[0]["op"]))
    return Outcome("compiled")


def _seed() -> None:
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    random.seed(SEED)


def _line(error: BaseException) -> str:
    # What the simulator found stands in the second line.
    lines = str(error).strip().split("\n")[: 2 if isinstance(error, ExecutionError) else 1]
    text = " ".join(line.strip() for line in lines)
    return f"{type(error).__name__}: {text}"[:240]


def limit(seconds: int) -> None:
    """End this process by a signal unless called again in time; 0 takes the limit back."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)

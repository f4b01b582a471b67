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
from derivatives import NoGradientError, traced
from derivatives import gradients as gradients_of
from derivatives import second_gradients as second_gradients_of
from judge import NARROW, WIDER, less_exact
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from polyblocks.errors import ExecutionError, PolyBlocksError
from polyblocks.options import CompileOptions
from polyblocks_torch.compiler import compile_graph
from polyblocks_torch.report import FunctionReport
from polyblocks_torch.tracing.python_kernels import operations_kept

#: Entries that draw random numbers seed the generator with this one themselves.
SEED = 42

#: Entries whose results are uninitialized memory: only shape, dtype and strides can be compared.
UNINITIALIZED = frozenset(
    """empty empty_like empty_permuted empty_strided new_empty new_empty_strided resize_
    resize_as_""".split()
)

#: Entries that give elements and where they stand; of equal elements it may be any one.
CHOOSING = frozenset("argsort kthvalue median mode nanmedian sort topk".split())

#: Entries whose singular vectors are known up to a sign or phase, which rounding decides.
DECOMPOSING = frozenset({"pca_lowrank", "svd_lowrank"})

#: Entries of whose gradients PyTorch's kernels multiply float64 by constants of float32.
ROUNDED_CONSTANTS = frozenset({"nn.functional.hardsigmoid"})

#: A result may differ from eager's by this much (relative, absolute), or else must be as near to
#: the result of a wider type. Of float64 there is none: what was computed in float32 on the way is
#: off by 6e-8, and eager's own ``polygamma(1, x)`` by 4e-10.
TOLERANCE = {
    torch.float64: (1e-9, 1e-9),
    torch.float32: (1e-5, 1e-5),
    torch.complex128: (1e-9, 1e-9),
    torch.complex64: (1e-5, 1e-5),
    torch.complex32: (1e-3, 1e-3),
}

#: Of 16 bits every difference is judged by a wider type, where there is a result in one; these are
#: for where there is none.
UNJUDGED = {torch.float16: (1e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-2)}


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


def entries(dtype: torch.dtype = torch.float32, gradients: bool = False) -> list[Any]:
    """All entries of the database that take a dtype, or have gradients in it."""
    return [
        op
        for op in op_db
        if dtype in (op.supported_backward_dtypes("cpu") if gradients else op.dtypes)
    ]


def samples(
    op: Any, dtype: torch.dtype, count: int, gradients: bool = False
) -> tuple[list[Any], Outcome | None]:
    """The first ``count`` samples, the same ones in every run.

    Also what is said of those that PyTorch's own functions refuse to make: an entry may claim a
    dtype that they lack an operation for.
    """
    _seed()
    made: list[Any] = []
    try:
        made.extend(itertools.islice(op.sample_inputs("cpu", dtype, gradients), count))
    except Exception as error:
        return made, Outcome("skipped", f"no sample: {_line(error)}")
    return made, None


def spread(ops: list[Any], count: int) -> list[Any]:
    """``count`` entries, the same ones in every run: evenly spaced in the order of their names."""
    ordered = sorted(ops, key=entry_name)
    return [ordered[i * len(ordered) // count] for i in range(min(count, len(ordered)))]


def check(op: Any, sample: Any, options: CompileOptions, gradients: bool = False) -> Outcome:
    """Run one sample with PyTorch and compiled, and compare.

    Args:
        op: the entry.
        sample: its operands; for gradients, those that need one say so.
        options: of the compilation.
        gradients: whether the gradients of the operands are compared instead of the results, and,
            where the entry has them, those of a function of the gradients.
    """
    if not gradients:
        return _check(op, sample, options, 0)
    first = _check(op, sample, options, 1)
    if first.kind in ("skipped", "wrong") or not op.supports_gradgrad:
        return first
    second = _check(op, sample, options, 2)
    kinds = ("wrong", "fallback", "random", "compiled", "skipped")
    if kinds.index(second.kind) >= kinds.index(first.kind):
        return first
    return Outcome(second.kind, f"second order: {second.reason}")


def _check(op: Any, sample: Any, options: CompileOptions, order: int) -> Outcome:
    """What of one sample: 0 the results, 1 their gradients, 2 the gradients of those."""
    call, tensors = _function_of_tensors(op, sample)
    asked = _asked(call, tensors, sample, order)
    try:
        expected = _run(asked, tensors)
    except NoGradientError:
        return Outcome("skipped", "no result has a gradient")
    except Exception as error:  # whatever PyTorch raises, there is nothing to compare with
        return Outcome("skipped", _line(error))
    report = FunctionReport(entry_name(op), options.target)
    try:
        if order == 2:
            compiled = _compiled(traced(asked, tensors), report, options)
        else:
            compiled = _asked(_compiled(call, report, options), tensors, sample, order)
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
    if order == 0:
        got, expected = determined(op, got), determined(op, expected)
    difference = compare(got, expected, values=not uninitialized)
    chosen = order == 0 and op.name in CHOOSING
    if difference and chosen and chooses(sample.input, got, expected):
        difference = ""
    if difference and order and op.name in ROUNDED_CONSTANTS:
        difference = compare(*(pytree.tree_map(_as_float32, r) for r in (got, expected)))
    if difference and report.random_draws:
        # A wider type draws other numbers.
        difference = compare(got, expected, unjudged=True)
    elif difference:
        difference = _less_exact(op, sample, got, expected, difference, order)
    if difference:
        return Outcome("wrong", difference)
    return _classify(report)


def _asked(call: Callable[..., Any], tensors: list[Any], sample: Any, order: int) -> Any:
    """What is asked of a function of the tensors of a sample: that itself, or gradients."""
    if order == 0:
        return call
    needed = [tensor.requires_grad for tensor in tensors]
    ask = gradients_of if order == 1 else second_gradients_of
    return ask(call, needed, sample.output_process_fn_grad)


def compare(got: Any, expected: Any, values: bool = True, unjudged: bool = False) -> str:
    """Where and how two nested results differ; empty if they agree.

    Args:
        got: ours.
        expected: eager's.
        values: whether the elements are compared, too.
        unjudged: whether those of 16 bits may differ by more than their order.
    """
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
            difference = _differ(mine, theirs, unjudged)
            if difference:
                return f"result {index}: {difference}"
    return ""


def determined(op: Any, results: Any) -> Any:
    """What of the results follows from the operands."""
    if op.name not in DECOMPOSING:
        return results
    u, s, v = results
    return s, u * s.unsqueeze(-2) @ v.mH, u.abs(), v.abs()


def chooses(x: torch.Tensor, got: Any, expected: Any) -> bool:
    """Whether both give the same elements of ``x``, and ours stand where ours says, each once.

    The results are elements and places, or places alone.
    """
    if not isinstance(expected, (tuple, torch.Tensor)) or x.dim() == 0:
        return False
    if isinstance(expected, tuple) and compare(got[0], expected[0]):
        return False
    for dim in range(x.dim()):
        (*values, places), (*_, theirs) = (
            [r if r.dim() == x.dim() else r.unsqueeze(dim) for r in _several(results)]
            for results in (got, expected)
        )
        around = [(places.shape[d], x.shape[d]) for d in range(x.dim()) if d != dim]
        if (
            any(n != m for n, m in around)
            or max(int(places.max()), int(theirs.max())) >= (x.shape[dim])
        ):
            continue
        elements = values[0] if values else x.gather(dim, theirs)
        once = not bool((places.sort(dim).values.diff(dim=dim) == 0).any())
        if once and torch.equal(x.gather(dim, places), elements):
            return True
    return False


def _several(results: Any) -> Any:
    return results if isinstance(results, tuple) else (results,)


def _differ(mine: torch.Tensor, theirs: torch.Tensor, unjudged: bool = False) -> str:
    tolerance = TOLERANCE | UNJUDGED if unjudged else TOLERANCE
    rtol, atol = tolerance.get(theirs.dtype, (0.0, 0.0))
    try:
        torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())[:240]
    return ""


def _less_exact(
    op: Any, sample: Any, got: Any, expected: Any, difference: str, order: int = 0
) -> str:
    """How ours is farther from the result of a wider type than eager's may be; empty if it is not.

    Args:
        op: the entry.
        sample: its operands.
        got: ours.
        expected: eager's.
        difference: between the two, and what is said where a wider type does not tell.
        order: of the derivatives that they are.
    """
    call, tensors = _function_of_tensors(op, sample, _widened)
    call = _asked(call, tensors, sample, order)
    mine, theirs = pytree.tree_leaves(got), pytree.tree_leaves(expected)
    default = torch.get_default_dtype()
    try:
        # The type that integers become.
        torch.set_default_dtype(WIDER[default])
        best = _run(call, tensors)
        best = pytree.tree_leaves(determined(op, best) if order == 0 else best)
    except Exception:
        return compare(got, expected, unjudged=True)
    finally:
        torch.set_default_dtype(default)
    if not len(mine) == len(theirs) == len(best):
        return difference
    for x, y, exact in zip(mine, theirs, best, strict=True):
        if not isinstance(y, torch.Tensor) or x.shape != y.shape or x.dtype != y.dtype:
            return difference
        if not _differ(x, y):
            continue
        if y.dtype not in WIDER or exact.shape != y.shape:
            return difference
        less = less_exact(x, y, exact)
        if less:
            return f"{less}; {difference}" if y.dtype not in NARROW else less
    return ""


def _as_float32(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) else value


def _widened(value: Any) -> Any:
    """A tensor or dtype as that in which results are judged; anything else as it is."""
    if isinstance(value, torch.Tensor) and value.dtype in WIDER:
        return value.to(WIDER[value.dtype])
    return WIDER.get(value, value) if isinstance(value, torch.dtype) else value


def _function_of_tensors(
    op: Any, sample: Any, change: Callable[[Any], Any] = lambda value: value
) -> tuple[Callable[..., Any], list[Any]]:
    """An entry's operation on the tensors of a sample, each value of which is changed first."""
    flat, tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    flat = [change(value) for value in flat]
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
    compiled = aot_function(
        call,
        fw_compiler=partial(compiler, kind="forward"),
        bw_compiler=partial(compiler, kind="backward"),
        inference_compiler=partial(compiler, kind="inference"),
        partition_fn=min_cut_rematerialization_partition,
        decompositions={},
        keep_inference_input_mutations=True,
    )

    def run(*tensors: Any) -> Any:
        # The first call traces, as the backend does.
        with operations_kept():
            return compiled(*tensors)

    return run


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

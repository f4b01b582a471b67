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
from judge import NARROW, WIDER, less_exact
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

#: Entries that give elements and where they stand; of equal elements it may be any one.
CHOOSING = frozenset("argsort kthvalue median mode nanmedian sort topk".split())

#: Entries whose singular vectors are known up to a sign or phase, which rounding decides.
DECOMPOSING = frozenset({"pca_lowrank", "svd_lowrank"})

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


def entries(dtype: torch.dtype = torch.float32) -> list[Any]:
    """All entries of the database that take a dtype."""
    return [op for op in op_db if dtype in op.dtypes]


def samples(op: Any, dtype: torch.dtype, count: int) -> tuple[list[Any], Outcome | None]:
    """The first ``count`` forward samples, the same ones in every run.

    Also what is said of those that PyTorch's own functions refuse to make: an entry may claim a
    dtype that they lack an operation for.
    """
    _seed()
    made: list[Any] = []
    try:
        made.extend(itertools.islice(op.sample_inputs("cpu", dtype), count))
    except Exception as error:
        return made, Outcome("skipped", f"no sample: {_line(error)}")
    return made, None


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
    got, expected = determined(op, got), determined(op, expected)
    uninitialized = op.name in UNINITIALIZED
    difference = compare(got, expected, values=not uninitialized)
    if difference and op.name in CHOOSING and chooses(sample.input, got, expected):
        difference = ""
    if difference and report.random_draws:
        # A wider type draws other numbers.
        difference = compare(got, expected, unjudged=True)
    elif difference:
        difference = _less_exact(op, sample, got, expected, difference)
    if difference:
        return Outcome("wrong", difference)
    return _classify(report)


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


def _less_exact(op: Any, sample: Any, got: Any, expected: Any, difference: str) -> str:
    """How ours is farther from the result of a wider type than eager's may be; empty if it is not.

    Args:
        op: the entry.
        sample: its operands.
        got: ours.
        expected: eager's.
        difference: between the two, and what is said where a wider type does not tell.
    """
    call, tensors = _function_of_tensors(op, sample, _widened)
    mine, theirs = pytree.tree_leaves(got), pytree.tree_leaves(expected)
    default = torch.get_default_dtype()
    try:
        # The type that integers become.
        torch.set_default_dtype(WIDER[default])
        best = pytree.tree_leaves(determined(op, _run(call, tensors)))
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

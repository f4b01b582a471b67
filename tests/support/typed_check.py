"""A random typed program, compiled and in eager mode: what differs by more than rounding.

How far rounding reaches is tried, not estimated: eager mode computes the program again with every
result of real or complex numbers off by as much as its dtype rounds, and with the operands of sums
and products off likewise. What that does not move (integers, bools, NaN, copies) has to be the same
bit for bit; what it moves may differ by a few times as much.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from forked_sweep import Outcome
from judge import NARROW, WIDER, less_exact
from torch import Tensor
from typed_fuzz import Program, assigned, differentiable
from typed_templates import ADDING
from typed_values import NAMESPACE

Jit = Callable[..., Any]

#: How often eager mode computes a program with other roundings.
TRIALS = 6

#: A result may be off by this many times what other roundings make of it.
SLACK = 8.0


#: Functions, or derivatives, that PyTorch computes in float64 by series that stop early, or as a
#: difference of nearly equal numbers.
SPECIAL = re.compile(r"gamma|zeta|gelu")
_EXACT = frozenset({torch.float64, torch.complex128})

#: Lines in which one of several numbers is taken, or with a bound in their place.
CHOOSING = re.compile(r"relu|max|min|clamp|hardtanh|sort|topk|median|mode|kthvalue|threshold")


@dataclass
class Run:
    """What one run of a program gives: results, arguments afterwards, gradients."""

    names: list[str]
    tensors: list[Tensor]
    inputs: list[Tensor]


def check(program: Program, jit: Jit) -> Outcome:
    """Run a program compiled and not, and compare.

    Args:
        program: what is run.
        jit: as ``polyblocks_jit_torch``.
    """
    warnings.simplefilter("ignore")
    operations = program.templates
    try:
        eager = run(program, program.function())
    except Exception as error:
        return Outcome("skipped", f"PyTorch: {_line(error)}", operations)
    torch._dynamo.reset()
    compiled = jit(program.function())
    try:
        ours = run(program, compiled)
    except Exception as error:
        if _traced(program) is None:
            return Outcome("skipped", f"torch.compile, too: {_line(error)}", operations)
        return Outcome("wrong", f"raised {_line(error)}", operations)
    problem = differ(program, ours, eager)
    if problem:
        return Outcome("wrong", problem, operations)
    report = compiled.polyblocks_report()
    if report.whole:
        return Outcome("compiled", "", operations)
    left = tuple(row.op for row in report.fallbacks)
    reasons = [f"{row.op}: {row.reason}" for row in report.fallbacks]
    reasons += [f"graph break: {row.reason}" for row in report.graph_breaks]
    return Outcome("fallback", "; ".join(reasons)[:300], operations, left)


def run(program: Program, function: Callable[..., list[Tensor]], widen: bool = False) -> Run:
    """Call a function with the program's arguments, and ask for their gradients.

    Args:
        program: whose arguments they are.
        function: what is called.
        widen: whether the arguments are float64 and complex128.
    """
    inputs = program.inputs(widen)
    outputs = function(*inputs)
    names = [f"result {i} ({name})" for i, name in enumerate(program.outputs)]
    tensors = list(outputs)
    names += [f"argument {i} afterwards" for i in range(len(inputs))]
    tensors += inputs
    if program.gradient:
        ends = [y for y in outputs if y.requires_grad]
        leaves = [x for x in inputs if x.requires_grad]
        gradients: Sequence[Tensor | None] = [None] * len(leaves)
        if ends:
            weights = [_weights(y) for y in ends]
            gradients = torch.autograd.grad(ends, leaves, weights, allow_unused=True)
        for i, (leaf, gradient) in enumerate(zip(leaves, gradients, strict=True)):
            names.append(f"gradient {i}")
            # None and zero are alike.
            tensors.append(torch.zeros_like(leaf) if gradient is None else gradient)
    return Run(names, tensors, inputs)


def _weights(y: Tensor) -> Tensor:
    """Of the sum of which gradients are taken; the same ones for results of the same shape."""
    generator = torch.Generator().manual_seed(y.numel())
    real = torch.randn(y.shape, generator=generator, dtype=torch.float64)
    if y.is_complex():
        return torch.complex(real, real + 1).to(y.dtype)
    return real.to(y.dtype)


def differ(program: Program, ours: Run, eager: Run) -> str:
    """What is not as in eager mode, in words; empty if nothing."""
    trials: list[Run] | None = None
    exact: Run | None = None
    traced: Run | None = None
    for i, (name, mine, theirs) in enumerate(
        zip(eager.names, ours.tensors, eager.tensors, strict=True)
    ):
        if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
            return (
                f"{name} is {mine.dtype}{list(mine.shape)}, not {theirs.dtype}{list(theirs.shape)}"
            )
        if not name.startswith("gradient"):
            traits = _traits(mine, ours.inputs), _traits(theirs, eager.inputs)
            if traits[0] != traits[1]:
                traced = traced or _traced(program)
                if traced is None or _traits(traced.tensors[i], traced.inputs) != traits[0]:
                    return f"{name} {traits[0]}, not {traits[1]}"
        if same(mine, theirs):
            continue
        if trials is None:
            trials = [run_rounded(program, seed) for seed in range(TRIALS)]
        special = theirs.dtype in _EXACT and SPECIAL.search(str(program)) is not None
        if "fft." in str(program) and _is_transformed(mine, theirs):
            continue
        problem = _beyond(mine, theirs, [trial.tensors[i] for trial in trials], special)
        if problem and name.startswith("gradient") and _cancelled(mine, theirs):
            problem = ""
        if problem and WIDER.get(theirs.dtype) and not name.startswith("argument"):
            exact = exact or _exact(program)
            if exact is not None and exact.tensors[i].dtype == WIDER[theirs.dtype]:
                problem = less_exact(mine.detach(), theirs.detach(), exact.tensors[i].detach())
        if problem:
            return f"{name}: {problem}"
    return ""


def _exact(program: Program) -> Run | None:
    try:
        return run(program, program.function(), widen=True)
    except RuntimeError:  # it insists on a dtype
        return None


def _traced(program: Program) -> Run | None:
    """As PyTorch's own compiler has strides and views, of whose shapes it keeps eager's."""
    torch._dynamo.reset()
    try:
        return run(program, torch.compile(program.function(), backend="aot_eager"))
    except Exception:
        return None


def _traits(x: Tensor, inputs: list[Tensor]) -> str:
    """Strides, and which argument's memory a result shares."""
    strides = [s for s, extent in zip(x.stride(), x.shape, strict=True) if extent > 1]
    if x.numel() == 0:
        strides = []
    pointer = x.untyped_storage().data_ptr()
    shared = [i for i, y in enumerate(inputs) if y.untyped_storage().data_ptr() == pointer]
    views = f" views argument {shared}" if shared and x.numel() else ""
    return f"has strides {strides}{views}"


def same(mine: Tensor, theirs: Tensor) -> bool:
    """Whether two tensors hold the same values; NaN is NaN."""
    return torch.equal(_bits(mine), _bits(theirs))


def _bits(x: Tensor) -> Tensor:
    x = x.detach()
    if x.is_complex():
        x = torch.view_as_real(x.resolve_conj())
    if x.is_floating_point():
        return torch.where(x.isnan(), torch.nan, x).double().view(torch.int64)
    return x


def _beyond(mine: Tensor, theirs: Tensor, trials: list[Tensor], special: bool) -> str:
    """Where a result is further from eager's than other roundings are.

    Args:
        mine, theirs: the results.
        trials: eager's with other roundings.
        special: whether functions are computed of which PyTorch's kernels give ten digits.
    """
    # Once an index has moved, a shape may have, too.
    trials = [x for x in trials if x.shape == theirs.shape]
    ours, eager, *others = (_parts(x) for x in (mine, theirs, *trials))
    moved = torch.zeros(theirs.shape, dtype=torch.float64)
    unsure = torch.zeros(eager.shape, dtype=torch.bool)
    for x in others:
        unsure |= x.isfinite() != eager.isfinite()
        unsure |= (x != eager) & ~eager.isfinite() & ~(x.isnan() & eager.isnan())
        moved = torch.maximum(moved, (x - eager).abs().nan_to_num(0.0, 0.0, 0.0).amax(-1))
    allowed = SLACK * moved
    if differentiable(theirs):
        limits = torch.finfo(theirs.dtype)
        # Whatever moves at all may be rounded otherwise.
        unit = 4 * limits.eps * eager.abs().nan_to_num(0.0, 0.0, 0.0).amax(-1)
        allowed = (
            allowed + unit * (2**24 if special else 1) + 4 * limits.smallest_normal * limits.eps
        )
        # Few trials may leave an element of a sum by chance where it is.
        if moved.any():
            middle = moved[moved > 0].median()
            allowed = torch.maximum(allowed, torch.where(moved > 0, SLACK * middle, 0.0))
    equal = (ours == eager) | (ours.isnan() & eager.isnan())
    near = ((ours - eager).abs() <= allowed[..., None]) & ours.isfinite() & eager.isfinite()
    good = equal | near | unsure
    if theirs.is_complex():
        # There are many ways to be infinite; which one depends on how products are made.
        good |= ~(ours.isfinite().all(-1) | eager.isfinite().all(-1))[..., None]
    far = ~good.all(-1)
    if not differentiable(theirs):
        far &= moved == 0
    if not bool(far.any()):
        return ""
    at = tuple(int(n) for n in far.nonzero()[0])
    return (
        f"{int(far.sum())} of {far.numel()} elements differ: at {list(at)} {_number(ours[at])}, "
        f"not {_number(eager[at])} (rounding moves it by {moved[at].item():.2g})"
    )


def _is_transformed(mine: Tensor, theirs: Tensor) -> bool:
    """Whether results of Fourier transforms are as near as any two algorithms.

    Each adds up all elements, in its own way: what is exactly zero in one is a rounding error in
    the other, and an infinity makes other elements NaN.
    """
    if not differentiable(theirs):
        # It may be the sign of such an error.
        return True
    ours, eager = _parts(mine), _parts(theirs)
    finite = (ours.isfinite() & eager.isfinite()).all(-1)
    if not bool(finite.any()) or bool((ours.isfinite() & ~eager.isfinite()).all()):
        return True
    gap, largest = (ours - eager)[finite].abs().max(), eager[finite].abs().max()
    return bool(gap <= 16 * torch.finfo(theirs.dtype).eps * largest.clamp(min=1))


def _cancelled(mine: Tensor, theirs: Tensor) -> bool:
    """Whether gradients are the rounding errors of contributions that cancel, as of ``x / x``."""
    finite = mine.isfinite()
    if theirs.dtype in NARROW or not torch.equal(finite, theirs.isfinite()):
        return False
    gap = (mine - theirs)[finite].abs()
    return gap.numel() == 0 or bool(gap.max() <= 2**10 * torch.finfo(theirs.dtype).eps)


def _parts(x: Tensor) -> Tensor:
    """Real and imaginary parts, or the number alone, in a last dimension, as float64."""
    x = x.detach()
    return (torch.view_as_real(x.resolve_conj()) if x.is_complex() else x.unsqueeze(-1)).double()


def _number(parts: Tensor) -> str:
    return ", ".join(f"{part:.9g}" for part in parts.tolist())


def run_rounded(program: Program, seed: int) -> Run:
    """The program in eager mode, every result off by as much as it may be rounded."""
    return run(program, _Rounded(program, seed))


class _Rounded:
    """Computes a program line by line, and changes what each line gives."""

    def __init__(self, program: Program, seed: int) -> None:
        self.program, self.rng = program, random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *inputs: Tensor) -> list[Tensor]:
        space: dict[str, Any] = dict(NAMESPACE)
        space.update(zip(self.program.parameters, inputs, strict=True))
        for line, template in zip(self.program.lines, self.program.templates, strict=True):
            name = assigned(line)
            if not name:
                exec(line, space)
                if CHOOSING.search(line):
                    self._flip(line, space)
                continue
            if template in ADDING:
                around = {k: self._off(v) for k, v in space.items() if isinstance(v, Tensor)}
                value = eval(line.partition(" = ")[2], {**space, **around})
            else:
                value = eval(line.partition(" = ")[2], space)
            if CHOOSING.search(line):
                value = self._zeros(value)
            if "fft." in line:
                value = value + self._noise(value, [v for k, v in around.items() if k in line])
            others = [v for k, v in space.items() if isinstance(v, Tensor) and k != name]
            space[name] = value if _shares(value, others) else self._off(value)
            if space[name].requires_grad:
                space[name].register_hook(self._off)
        return [space[name] for name in self.program.outputs]

    def _off(self, x: Tensor) -> Tensor:
        if not differentiable(x):
            return x
        eps = torch.finfo(x.dtype).eps
        factor = 1 + eps * (2 * torch.rand(x.shape, generator=self.generator).double() - 1)
        with torch.no_grad():
            # A rounding to 16 bits often gives the number back.
            wide = x.resolve_conj() if x.is_complex() else x
            off = (wide.to(torch.complex128 if x.is_complex() else torch.float64) * factor).to(
                x.dtype
            )
            delta = torch.where(x == off, torch.zeros_like(off), off - x).nan_to_num(0.0, 0.0, 0.0)
        return x + delta

    def _flip(self, line: str, space: dict[str, Any]) -> None:
        """As :meth:`_zeros`, of what an update in place has left."""
        x = space[re.match(r"v\d+", line)[0]]  # type: ignore[index]
        with torch.no_grad():
            if not any(
                extent > 1 and stride == 0
                for extent, stride in zip(x.shape, x.stride(), strict=True)
            ):
                # What autograd has saved of it may be used all the same.
                x.data.copy_(self._zeros(x.detach().clone()))

    def _zeros(self, x: Tensor) -> Tensor:
        """The largest of several zeros is a zero of either sign."""
        if not x.is_floating_point():
            return x
        sign = torch.rand(x.shape, generator=self.generator) < 0.5
        return torch.where((x == 0) & sign, -x, x)

    def _noise(self, x: Tensor, operands: list[Tensor]) -> Tensor:
        """As much as the roots of unity are off, times the largest operand."""
        largest = max((y.detach().abs().nan_to_num(0, 0, 0).max().item() for y in operands
                       if y.numel() and differentiable(y)), default=0.0)  # fmt: skip
        return largest * torch.finfo(x.dtype).eps * torch.randn(x.shape, generator=self.generator)


def _shares(x: Tensor, others: list[Tensor]) -> bool:
    pointer = x.untyped_storage().data_ptr()
    return any(y.untyped_storage().data_ptr() == pointer for y in others)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:240]}"

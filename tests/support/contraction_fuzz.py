"""Random contractions, with what stands before and behind them in a program.

A sample is a :class:`program_fuzz.Program` of one contraction (:mod:`contraction_kinds`) and of
prologues and epilogues, with operands of its own types and layouts.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import contraction_kinds as kinds
import torch
import torch.nn.functional as F
from contraction_kinds import Contraction, Shape
from program_fuzz import Array, Program

#: How often each type of the operands is drawn.
DTYPES = {torch.float32: 50, torch.bfloat16: 20, torch.float16: 15, torch.int8: 15}
FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Operand:
    """An argument of a sample.

    Attributes:
        shape: its shape.
        dtype: its type.
        layout: where its elements stand: gives an array of equal shape and strides of its own.
        text: the layout in words; empty if contiguous.
        special: whether it holds NaN and infinities.
    """

    shape: Shape
    dtype: torch.dtype
    layout: Callable[[Array], Array] = torch.clone
    text: str = ""
    special: bool = False

    def array(self, generator: torch.Generator) -> Array:
        """Numbers of the generator; integers of all that an int8 holds."""
        if not self.dtype.is_floating_point:
            values = torch.randint(-128, 128, self.shape, generator=generator).to(self.dtype)
        else:
            values = torch.randn(self.shape, generator=generator).to(self.dtype)
        if self.special and values.numel():
            places = torch.randint(values.numel(), (3,), generator=generator)
            values.view(-1)[places] = torch.tensor(
                [math.nan, math.inf, -math.inf], dtype=self.dtype
            )
        return self.layout(values)

    def __str__(self) -> str:
        special = "with NaN, inf" if self.special else ""
        words = [f"{_name(self.dtype)}{list(self.shape)}", self.text, special]
        return " ".join(filter(None, words))


@dataclass(frozen=True)
class Step:
    """A step of a sample before its values have numbers.

    Attributes:
        text: with ``{0}`` for the first value that it takes.
        run: takes them.
        uses: an operand, or the number of a step.
        gain: how much larger an error of its first value comes out, at most.
        rounds: whether the result is no exact one.
        chooses_along: the dimension of which it gives places, if it does not give elements.
    """

    text: str
    run: Callable[..., Array]
    uses: tuple[Operand | int, ...]
    gain: float = 1.0
    rounds: bool = True
    chooses_along: int | None = None


@dataclass(frozen=True)
class Sample:
    """A program with one contraction, and its arguments.

    Attributes:
        contraction: what it is about.
        dtype: of the operands of the contraction.
        operands: the arguments.
        steps: of the program, one for one.
        program: what is compiled.
        product: which of the steps is the contraction.
        seed: of the numbers.
    """

    contraction: Contraction
    dtype: torch.dtype
    operands: tuple[Operand, ...]
    steps: tuple[Step, ...]
    program: Program
    product: int
    seed: int

    @property
    def name(self) -> str:
        """Its kind and type."""
        return f"{_name(self.dtype)} {self.contraction.kind}"

    def inputs(self) -> list[Array]:
        """The arguments, the same ones every time."""
        generator = torch.Generator().manual_seed(self.seed)
        return [operand.array(generator) for operand in self.operands]

    @property
    def text(self) -> list[str]:
        """The program, a line for every value."""
        return [f"v{i}: {operand}" for i, operand in enumerate(self.operands)] + self.program.text


def make(seed: int, number: int) -> Sample:
    """The sample of a number."""
    rng = random.Random(f"{seed} {number}")
    dtype = rng.choices(list(DTYPES), list(DTYPES.values()))[0]
    weights = {
        kind: weight
        for kind, weight in kinds.WEIGHTS.items()
        # Eager mode has no transposed convolutions of integers.
        if dtype.is_floating_point or "transpose" not in kind
    }
    kind = rng.choices(list(weights), list(weights.values()))[0]
    contraction = kinds.draw(rng, kind, rng.random() < 0.04, not dtype.is_floating_point)
    special = dtype.is_floating_point and rng.random() < 0.06
    # A zero of the padding times an infinite weight: whether that is computed has no right answer.
    infinite = 0 if contraction.convolution else rng.randrange(2)
    steps: list[Step] = []
    values: list[Operand | int] = []
    direct = _as_int_mm(rng, contraction) if dtype == torch.int8 else None
    for side, shape in enumerate(contraction.shapes):
        mine = special and side == infinite
        images = contraction.convolution and len(shape) > 2
        if side == 2:
            values.append(Operand(shape, torch.int32 if dtype == torch.int8 else dtype))
        else:
            values.append(_operand(rng, shape, dtype, mine, images, steps))
        if dtype == torch.int8 and side < 2 and direct is None:
            widened = Step("{0}.to(torch.int32)", _cast(torch.int32), (values[-1],), rounds=False)
            values[-1] = _appended(steps, widened)
    text, run = direct or (contraction.text, contraction.run)
    product = _appended(steps, Step(text, run, tuple(values)))
    result = torch.int32 if dtype == torch.int8 else dtype
    _add_epilogues(rng, contraction, result, steps)
    operands = tuple(u for step in steps for u in step.uses if isinstance(u, Operand))
    program = _program(operands, steps)
    seed = rng.randrange(1 << 30)
    return Sample(contraction, dtype, operands, tuple(steps), program, product, seed)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _appended(steps: list[Step], step: Step) -> int:
    steps.append(step)
    return len(steps) - 1


def _program(operands: Sequence[Operand], steps: Sequence[Step]) -> Program:
    """The steps with their values numbered: arguments first, in the order in which they stand."""
    program = Program([operand.shape for operand in operands], [], [], [])
    taken = 0
    for number, step in enumerate(steps):
        places = []
        for use in step.uses:
            if isinstance(use, Operand):
                places.append(taken)
                taken += 1
            else:
                places.append(len(operands) + use)
        program.steps.append(_bound(step.run, places))
        names = step.text.format(*[f"v{place}" for place in places])
        program.text.append(f"v{len(operands) + number} = {names}")
    program.outputs = [len(operands) + len(steps) - 1]
    return program


def _bound(run: Callable[..., Array], places: list[int]) -> Callable[[list[Array]], Array]:
    return lambda values: run(*[values[place] for place in places])


def _as_int_mm(
    rng: random.Random, contraction: Contraction
) -> tuple[str, Callable[..., Array]] | None:
    """Now and then, the product of two matrices of int8 as PyTorch's operator for it."""
    plain = contraction.text == "{0} @ {1}" and [len(s) for s in contraction.shapes] == [2, 2]
    if not plain or rng.random() < 0.4:
        return None

    def product(a: Array, b: Array) -> Array:
        return a @ b if a.dtype == torch.float64 else torch._int_mm(a, b)

    return "torch._int_mm({0}, {1})", product


def _cast(dtype: torch.dtype) -> Callable[[Array], Array]:
    """A conversion, but not of float64, in which all of a reference is computed."""
    return lambda x: x if x.dtype == torch.float64 else x.to(dtype)


# What an operand is before it takes part ---------------------------------------------------------


def _operand(
    rng: random.Random,
    shape: Shape,
    dtype: torch.dtype,
    special: bool,
    images: bool,
    steps: list[Step],
) -> Operand | int:
    """An argument of this shape and type, or the number of a new step that makes it of one."""

    def argument(shape: Shape, dtype: torch.dtype = dtype) -> Operand:
        text, layout = _layout(rng, shape, images)
        return Operand(shape, dtype, layout, text, special)

    def step(text: str, run: Callable[..., Array], *uses: Operand, rounds: bool = False) -> int:
        return _appended(steps, Step(text, run, uses, rounds=rounds))

    kind = rng.choice("none none none none none relu add cast pad copy view slice".split())
    rank, floats = len(shape), dtype.is_floating_point
    if kind == "relu":
        return step("torch.relu({0})", torch.relu, argument(shape))
    if kind == "add" and floats:
        summand = shape if rng.random() < 0.5 else shape[-1:]
        return step("{0} + {1}", torch.add, argument(shape), Operand(summand, dtype), rounds=True)
    if kind == "cast" and floats:
        other = rng.choice([d for d in FLOATS if d != dtype])
        return step(f"{{0}}.to({dtype})", _cast(dtype), argument(shape, other), rounds=True)
    if kind == "pad" and rank and shape[-1] > 1:
        before = rng.randrange(min(3, shape[-1]))
        after = rng.randrange(min(3, shape[-1] - before))
        inner = (*shape[:-1], shape[-1] - before - after)
        text = f"F.pad({{0}}, ({before}, {after}))"
        return step(text, lambda x: F.pad(x, (before, after)), argument(inner))
    if kind == "copy" and rank > 1:
        turned = (*shape[:-2], shape[-1], shape[-2])
        return step("{0}.mT.contiguous()", lambda x: x.mT.contiguous(), argument(turned))
    if kind == "view" and rank > 1:
        order = rng.sample(range(rank), rank)
        stored = tuple(shape[order.index(d)] for d in range(rank))
        return step(f"{{0}}.permute({order})", lambda x: x.permute(order), argument(stored))
    if kind == "slice" and rank and 0 not in shape:
        d, stride = rng.randrange(rank), rng.choice([1, 2, 3])
        first = rng.randrange(2)
        long = (*shape[:d], first + (shape[d] - 1) * stride + 1, *shape[d + 1 :])
        index = (*[slice(None)] * d, slice(first, None, stride))
        text = f"{{0}}[{':, ' * d}{first}::{stride}]"
        return step(text, lambda x: x[index], argument(long))
    return argument(shape)


def _layout(rng: random.Random, shape: Shape, images: bool) -> tuple[str, Callable[[Array], Array]]:
    """Where the elements of an argument stand, in words and as what puts them there."""
    kind = rng.choice("plain plain plain plain permuted transposed stepped inner expanded".split())
    rank = len(shape)
    if images and rank in (4, 5) and rng.random() < 0.35:
        format = torch.channels_last if rank == 4 else torch.channels_last_3d
        return "channels_last", lambda x: x.contiguous(memory_format=format)
    if kind in ("permuted", "transposed") and rank > 1:
        order = rng.sample(range(rank), rank)
        if kind == "transposed":
            order = [*range(rank - 2), rank - 1, rank - 2]
        back = [order.index(d) for d in range(rank)]
        return f"stored as {order}", lambda x: x.permute(order).contiguous().permute(back)
    if kind in ("stepped", "inner") and rank:
        d, step = rng.randrange(rank), 1 if kind == "inner" else rng.choice([2, 3])
        return f"each {step} of a longer dim {d}", lambda x: _stepped(x, d, step)
    if kind == "expanded" and rank > 1 and rng.random() < 0.5:
        d = rng.randrange(rank)
        return f"expanded along dim {d}", lambda x: x.narrow(d, 0, min(1, x.shape[d])).expand_as(x)
    return "", torch.clone


def _stepped(x: Array, d: int, step: int) -> Array:
    """The elements with gaps between them and something before them."""
    shape = list(x.shape)
    shape[d] = 1 + x.shape[d] * step
    index = (*[slice(None)] * d, slice(1, None, step))
    view = torch.full(shape, 77, dtype=x.dtype)[index]
    return view.copy_(x)


# What happens to the result ----------------------------------------------------------------------


def _add_epilogues(
    rng: random.Random, contraction: Contraction, dtype: torch.dtype, steps: list[Step]
) -> None:
    """Up to two steps of an element each, and now and then a reduction."""
    shape = contraction.result
    count = rng.choice([0, 0, 1, 1, 2])
    for kind in rng.sample(["bias", "relu", "gelu", "residual", "scale"], count):
        steps.append(_pointwise(rng, kind, contraction, dtype, len(steps) - 1))
    if rng.random() < 0.65 or not shape:
        return
    d = rng.choice([len(shape) - 1, len(shape) - 1, rng.randrange(len(shape))])
    last, extent = (len(steps) - 1,), shape[d]
    choices = ["sum"]
    if extent:
        choices += ["argmin"]
    if dtype.is_floating_point:
        choices += ["softmax"]
    kind = rng.choice(choices)
    if kind == "softmax":
        steps.append(Step(f"torch.softmax({{0}}, {d})", lambda x: torch.softmax(x, d), last))
    elif kind == "argmin":
        text = f"torch.argmin({{0}}, {d})"
        steps.append(Step(text, lambda x: torch.argmin(x, d), last, chooses_along=d))
    else:
        # Errors of the summands have signs of their own.
        gain = min(extent, 4 * math.sqrt(extent))
        steps.append(Step(f"torch.sum({{0}}, {d})", lambda x: torch.sum(x, d), last, gain))


def _pointwise(
    rng: random.Random, kind: str, contraction: Contraction, dtype: torch.dtype, last: int
) -> Step:
    shape, floats = contraction.result, dtype.is_floating_point
    if kind == "relu":
        return Step("torch.relu({0})", torch.relu, (last,), rounds=False)
    if kind == "gelu" and floats:
        how = rng.choice(["none", "tanh"])
        text = f"F.gelu({{0}}, approximate={how!r})"
        # The largest slope of gelu.
        return Step(text, lambda x: F.gelu(x, approximate=how), (last,), 1.13)
    if kind == "bias":
        extents = shape[-1:]
        if contraction.convolution:
            extents = (shape[1], *[1] * (len(shape) - 2))
        return Step("{0} + {1}", torch.add, (last, Operand(extents, dtype)))
    if kind == "residual":
        text, layout = _layout(rng, shape, contraction.convolution)
        return Step("{0} + {1}", torch.add, (last, Operand(shape, dtype, layout, text)))
    factor = rng.choice([0.125, 0.3, -1.7]) if floats else rng.choice([2, -3])
    if not floats and rng.random() < 0.5:
        # As the product of two quantized matrices goes on.
        convert = _cast(torch.float32)
        text = "{0}.to(torch.float32) * 0.037"
        return Step(text, lambda x: convert(x) * 0.037, (last,), 0.037)
    return Step(f"{{0}} * {factor}", lambda x: x * factor, (last,), abs(factor))

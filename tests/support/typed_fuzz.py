"""Random PyTorch programs over all dtypes, as source text.

They mix real numbers, integers, bools and complex numbers, shifts, masks, indices (some negative),
updates in place of views, and operations that PyTorch runs in the middle; a third have gradients.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from typed_templates import ADDING, EXPRESSIONS, LEFT, UPDATES
from typed_values import COMPLEX, FLOATS, INTEGERS, LAYOUTS, NAMESPACE

DTYPES = (*FLOATS, *INTEGERS, "bool", *COMPLEX)
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 13, 17)
NUMBERS = ("True", "False", "-1", "0", "1", "2", "3", "-3", "0.5", "2.5", "-0.75", "255", "300",
           "2**31", "2**40")  # fmt: skip
SHIFTS = ("0", "1", "3", "7", "8", "15", "31", "32", "33", "63", "64")

#: Elements of a value, at most.
LARGEST = 3000


@dataclass(frozen=True)
class Program:
    """A program and its arguments.

    Attributes:
        seed: that made it.
        arguments: source text of each.
        lines: of the function, whose parameters are ``v0``, ``v1`` ...; one value or update each.
        outputs: names of the results.
        gradient: whether the gradients of its arguments are asked for.
        templates: that the lines were made of.
    """

    seed: int
    arguments: tuple[str, ...]
    lines: tuple[str, ...]
    outputs: tuple[str, ...]
    gradient: bool
    templates: tuple[str, ...] = ()

    @cached_property
    def parameters(self) -> list[str]:
        return [f"v{i}" for i in range(len(self.arguments))]

    @cached_property
    def text(self) -> str:
        """The function, called ``program``."""
        head = f"def program({', '.join(self.parameters)}):"
        return "\n    ".join([head, *self.lines, f"return [{', '.join(self.outputs)}]"])

    def __str__(self) -> str:
        rows = zip(self.parameters, self.arguments, strict=True)
        made = [f"{name} = {text}" for name, text in rows]
        if self.gradient:
            made.append("# every argument of real or complex numbers requires a gradient")
        return "\n".join([*made, self.text])

    def function(self) -> Callable[..., list[Tensor]]:
        """The function, newly made."""
        namespace = dict(NAMESPACE)
        exec(compile(self.text, f"<program {self.seed}>", "exec"), namespace)
        return namespace["program"]

    def inputs(self, widen: bool = False) -> list[Tensor]:
        """Its arguments, newly made; in float64 and complex128 if ``widen``."""
        made = [eval(text, dict(NAMESPACE)) for text in self.arguments]
        if widen:
            made = [_widened(x) for x in made]
        if self.gradient:
            made = [x.detach().requires_grad_() if differentiable(x) else x for x in made]
        return made


def assigned(line: str) -> str:
    """The name of the value that a line makes; empty for an update."""
    name = line.partition(" = ")[0]
    return name if name.isidentifier() else ""


def differentiable(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def _has_gradients(program: Program) -> bool:
    """Whether PyTorch can take gradients: what they need may have been updated."""
    try:
        inputs = program.inputs()
        ends = [y for y in program.function()(*inputs) if y.requires_grad]
        leaves = [x for x in inputs if x.requires_grad]
        torch.autograd.grad(ends, leaves, [torch.ones_like(y) for y in ends], allow_unused=True)
    except Exception:
        return False
    return bool(ends)


def _widened(x: Tensor) -> Tensor:
    if x.is_floating_point():
        return x.double()
    return x.to(torch.complex128) if x.is_complex() else x


def make(seed: int, length: int | None = None) -> Program:
    """The program of a seed.

    Args:
        seed: the same one gives the same program.
        length: values and updates; default: 3 to 15.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _Maker(seed, length).program


class _Maker:
    """Adds lines that PyTorch runs, one after the other."""

    def __init__(self, seed: int, length: int | None) -> None:
        self.rng = random.Random(seed)
        self.values: dict[str, Tensor] = {}
        self.first = ""
        self.dim = "0"
        gradient = self.rng.random() < 0.4
        # A quarter of the programs has a value that PyTorch makes.
        self.left = self.rng.random() < 0.25
        arguments = tuple(self._arguments(gradient))
        program = Program(seed, arguments, (), (), gradient)
        self.namespace = dict(NAMESPACE)
        self.values = dict(zip(program.parameters, program.inputs(), strict=True))
        lines, templates = [], []
        for _ in range(length or self.rng.randrange(3, 16)):
            added = self._add()
            if added:
                lines.append(added[0])
                templates.append(added[1])
        made = [name for name in map(assigned, lines) if name]
        outputs = made[-1:] or program.parameters[-1:]
        if len(made) > 1:
            outputs += self.rng.sample(made[:-1], min(len(made) - 1, self.rng.randrange(5)))
        self.program = replace(
            program, lines=tuple(lines), outputs=tuple(outputs), templates=tuple(templates)
        )
        if gradient and not _has_gradients(self.program):
            self.program = replace(self.program, gradient=False)

    def _arguments(self, gradient: bool) -> list[str]:
        rng = self.rng
        rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
        shape = tuple(rng.choice(EXTENTS) for _ in range(rank))
        while torch.Size(shape).numel() > 600:
            shape = shape[1:]
        main = rng.choice(["float32", "float32", *DTYPES])
        rows = []
        for i in range(rng.choice([2, 3, 3, 4])):
            here = shape if i < 2 or rng.random() < 0.5 else shape[rng.randrange(len(shape) + 1) :]
            if here and rng.random() < 0.15:
                here = (*here[:-1], 1)
            dtype = main if i == 0 or rng.random() < 0.3 else rng.choice(DTYPES)
            if gradient and i == 0:
                dtype = rng.choice([*FLOATS, "float32", *COMPLEX])
            layout = "contiguous" if rng.random() < 0.5 else rng.choice(LAYOUTS)
            special = rng.random() < (0.1 if gradient else 0.25)
            rows.append(
                f"argument({rng.randrange(1000)}, {dtype!r}, {here}, {layout!r}, {special})"
            )
        return rows

    def _add(self) -> tuple[str, str] | None:
        """A line and its template; None if none was possible."""
        for _ in range(40):
            draw = self.rng.random()
            if draw < 0.2:
                template, new = self.rng.choice(UPDATES), False
            elif draw < 0.3 and self.left:
                template, new = self.rng.choice(LEFT), True
            elif draw < 0.45:
                template, new = self.rng.choice(ADDING), True
            else:
                template, new = self.rng.choice(EXPRESSIONS), True
            text = self._fill(template)
            if text is None:
                continue
            name = f"v{len(self.values)}"
            line = f"{name} = {text}" if new else text
            if self._runs(line, name if new else ""):
                return line, template
        return None

    def _runs(self, line: str, name: str) -> bool:
        space = {**self.namespace, **self.values}
        if not name and _overlaps(self.values[self.first]):
            # PyTorch refuses most updates of what has two elements in one place, not all.
            return False
        try:
            exec(line, space)
            if name:
                value = space[name]
                good = isinstance(value, Tensor) and value.dim() <= 5 and value.numel() <= LARGEST
                if not good or str(value.dtype).removeprefix("torch.") not in DTYPES:
                    return False
                if value.numel() == 0 and self.rng.random() < 0.9:
                    return False
                self.values[name] = value
        except Exception:  # whatever PyTorch refuses is no program
            return False
        return True

    # Places

    def _fill(self, template: str) -> str | None:
        self.first = ""
        if template[1:3] == ": ":
            self._pick(template[0])
            template = template[3:]
            if not self.first:
                return None
        self.dim = ""
        missing = False

        def place(match: re.Match[str]) -> str:
            nonlocal missing
            text = self._place(match[1])
            missing |= text is None
            return text or ""

        filled = re.sub(r"\{(\w+)\}", place, template)
        return None if missing else filled

    def _pick(self, kind: str) -> str | None:
        fits = [name for name, x in self.values.items() if _is(x, kind)]
        if not fits:
            return None
        chosen = self.rng.choice(fits[-4:] if self.rng.random() < 0.7 else fits)
        self.first = self.first or chosen
        return chosen

    def _place(self, code: str) -> str | None:
        rng = self.rng
        if code in "fibzrna":
            return self._pick(code)
        if code in "kwqt":
            options = {"k": NUMBERS, "w": SHIFTS, "q": ("1", "2", "3")}
            return rng.choice(options[code]) if code in options else f"torch.{rng.choice(DTYPES)}"
        if not self.first:
            return None
        if code == "x":
            return self.first
        x = self.values[self.first]
        if code in "lscmo":
            return self._beside(code, x)
        if code == "e":
            return self._constant(x)
        if code == "g":
            return self._part(x)
        if x.dim() == 0:
            return None
        if code == "d":
            self.dim = self.dim or str(rng.randrange(-x.dim(), x.dim()))
            return self.dim
        if code == "p":
            return ", ".join(map(str, rng.sample(range(x.dim()), x.dim())))
        return self._indices(code, x)

    def _beside(self, code: str, x: Tensor) -> str | None:
        def fits(y: Tensor) -> bool:
            if code in "co":
                return y.shape == x.shape and (code == "c" or y.dtype == torch.bool)
            kind = {"l": not y.is_complex(), "s": y.dtype == x.dtype, "m": y.dtype == torch.bool}
            try:
                return kind[code] and torch.broadcast_shapes(y.shape, x.shape) == x.shape
            except RuntimeError:
                return False

        names = [name for name, y in self.values.items() if fits(y)]
        if names and self.rng.random() < 0.8:
            others = [name for name in names if name != self.first]
            return self.rng.choice(others or names)
        if code in "mo":
            return f"({self.first} != 0)" if x.is_complex() else f"({self.first} > 0)"
        return self.first

    def _constant(self, x: Tensor) -> str:
        rng = self.rng
        dtype = rng.choice(DTYPES[:-2])
        pool = {
            "bool": ("True", "False"),
            "uint8": ("0", "1", "200", "255"),
        }.get(dtype, ("-3", "-1", "1", "2", "7", "100"))
        if dtype in FLOATS:
            pool = (*pool, "0.5", "-0.25", "2.5", "float('nan')", "-0.0")
        if x.dim() == 0 or rng.random() < 0.4:
            text = rng.choice(pool)
        else:
            text = f"[{', '.join(rng.choice(pool) for _ in range(x.shape[-1]))}]"
        return f"torch.tensor({text}, dtype=torch.{dtype})"

    def _part(self, x: Tensor) -> str:
        rng = self.rng
        if x.dim() == 0:
            return "[...]"
        parts = []
        for extent in x.shape[: rng.randrange(1, x.dim() + 1)]:
            a = rng.randrange(-extent, extent)
            options = [":", "::2", f"{a}:", f":{extent - extent // 3}", "1:", ":-1", str(a), "None"]
            parts.append(rng.choice(options))
        if rng.random() < 0.2:
            parts.insert(0, "...")
        return f"[{', '.join(parts)}]"

    def _indices(self, code: str, x: Tensor) -> str:
        rng = self.rng
        self.dim = self.dim or str(rng.randrange(-x.dim(), x.dim()))
        dim = {"j0": 0, "jl": -1}.get(code, int(self.dim))
        extent = x.shape[dim]
        if code in ("h", "u"):
            if code == "h":
                counted = f"torch.arange({self.first}.numel()).reshape({self.first}.shape)"
                return f"({counted} * {rng.choice([3, 7, 11])} % {self.first}.shape[{self.dim}])"
            view = ["1"] * x.dim()
            view[dim] = "-1"
            order = f"torch.arange({self.first}.shape[{self.dim}]).flip(0)"
            return f"{order}.reshape({', '.join(view)}).expand({self.first}.shape)"
        if extent == 0:
            return "[]"
        low = 0 if code == "jp" else -extent
        count = rng.choice([1, 2, 3])
        chosen = [rng.randrange(low, extent) for _ in range(count)]
        if code in ("j0", "jl", "j"):
            # No element twice: PyTorch leaves open which of two stores is the last one.
            chosen = list({i % extent: i for i in chosen}.values())
        return str(chosen)


def _overlaps(x: Tensor) -> bool:
    """Whether two elements may lie in the same place."""
    reach = 1
    extents = sorted(
        (stride, extent) for stride, extent in zip(x.stride(), x.shape, strict=True) if extent > 1
    )
    for stride, extent in extents:
        if stride < reach:
            return True
        reach += stride * (extent - 1)
    return False


def _is(x: Tensor, kind: str) -> bool:
    integer = not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)
    return {
        "f": x.is_floating_point(),
        "i": integer,
        "b": x.dtype == torch.bool,
        "z": x.is_complex(),
        "r": x.is_floating_point() or integer,
        "n": not x.is_complex(),
        "a": True,
    }[kind]


def operations() -> set[str]:
    """Names of the operations that the templates are made of."""
    return {re.sub(r"[a-z]: ", "", t) for t in (*ADDING, *EXPRESSIONS, *LEFT, *UPDATES)}


def shortened(program: Program, fails: Callable[[Program], Any]) -> Program:
    """A program without the lines and results that a failure does not need.

    Args:
        program: for which ``fails`` is true.
        fails: whether a program shows the failure.
    """

    def tried(candidate: Program) -> bool:
        try:
            return bool(fails(candidate))
        except Exception:  # it refers to a line that is gone
            return False

    if program.gradient and tried(replace(program, gradient=False)):
        program = replace(program, gradient=False)
    if len(program.outputs) > 1:
        for name in program.outputs:
            if tried(replace(program, outputs=(name,))):
                program = replace(program, outputs=(name,))
                break
    changed = True
    while changed:
        changed = False
        for candidate in _shorter(program):
            if tried(candidate):
                program, changed = candidate, True
                break
    return program


def _shorter(program: Program) -> Iterator[Program]:
    """The program without one line, the last ones first."""
    lines, templates = program.lines, program.templates
    for i in reversed(range(len(lines))):
        outputs = program.outputs
        if assigned(lines[i]) in outputs:
            # What was made before may show the failure as well.
            earlier = [*program.parameters, *filter(None, map(assigned, lines[:i]))]
            outputs = (*(o for o in outputs if o != assigned(lines[i])), earlier[-1])
        yield replace(
            program,
            lines=lines[:i] + lines[i + 1 :],
            templates=templates[:i] + templates[i + 1 :],
            outputs=outputs,
        )

"""Random programs of small parallel kernels, as S3 leaves them, for what a team of threads does.

All buffers are ``N x N`` float32: two arguments and views of one workspace, which overlap as a
planned workspace does. Every kernel computes the same for any number of threads.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

N = 12
TYPE = f"memref<{N}x{N}xf32>"
SIZE = 4 * N * N
#: Bytes of the workspace: a little more than three buffers.
WORKSPACE = 64 * -(-(3 * SIZE + 200) // 64)

ARGUMENTS = f"%x: {TYPE}, %y: {TYPE}, %n: memref<4xi32>, %ws: memref<{WORKSPACE}xi8>"


@dataclass(frozen=True)
class Place:
    """A buffer: its value, and its bytes in the workspace (or in an argument of its own)."""

    name: str
    root: str
    begin: int

    def overlaps(self, other: Place) -> bool:
        """Whether both share a byte."""
        return self.root == other.root and abs(self.begin - other.begin) < SIZE


#: Iterations, row that is written, and what is read, of source ``s`` in row ``r`` and column ``j``.
KERNELS = {
    "rows": (N, "%i", "%s[%i, %j]"),
    "columns": (N, "%i", "%s[%j, %i]"),
    "neighbours": (N, "%i", "%s[(%i + 1) mod {n}, %j]"),
    "backwards": (N, "{n} - 1 - %i", "%s[%i, %j]"),
    "upper": (N // 2, "%i", "%s[%i, %j]"),
    "lower": (N // 2, "%i + {n} floordiv 2", "%s[%i + 1, %j]"),
}


@dataclass
class Program:
    """Writes a random program.

    Args:
        seed: of the choices.
        regions: with loops, branches and checks.
    """

    seed: int
    regions: bool = True
    _count: int = 0
    _views: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._places = [Place("%x", "x", 0), Place("%y", "y", 0)]
        for number in range(5):
            begin = 64 * self._random.randrange((WORKSPACE - SIZE) // 64 + 1)
            name = f"%w{number}"
            self._views.append(f"%o{number} = arith.constant {begin} : index")
            self._views.append(
                f"{name} = memref.view %ws[%o{number}][] : memref<{WORKSPACE}xi8> to {TYPE}"
            )
            self._places.append(Place(name, "ws", begin))

    def text(self) -> str:
        """The module."""
        body = [*self._views, *self._steps(self._random.randint(4, 8), 0)]
        return f"func.func @main({ARGUMENTS}) {{\n" + "\n".join(body) + "\nreturn\n}\n"

    def _steps(self, count: int, depth: int) -> Iterator[str]:
        for _ in range(count):
            kind = self._random.random()
            if kind < 0.6:
                yield self._parallel()
            elif kind < 0.7:
                yield self._serial()
            elif kind < 0.8:
                yield self._scalar()
            elif depth < 2 and self.regions:
                yield self._region(depth)

    def _two(self) -> tuple[Place, Place]:
        while True:
            source, target = self._random.choices(self._places, k=2)
            if not source.overlaps(target):
                return source, target

    def _new(self, name: str) -> str:
        self._count += 1
        return f"{name}_{self._count}"

    def _parallel(self) -> str:
        name = self._random.choice([*KERNELS, "pairs", "in_place"])
        source, target = self._two()
        if name == "in_place":
            source = target
        trips, row, read = KERNELS.get(name, KERNELS["rows"])
        read = read.format(n=N).replace("%s", source.name)
        inside = f"""
          %v = affine.load {read} : {TYPE}
          %w = arith.mulf %v, %half : f32
          %u = arith.addf %w, %half : f32
          affine.store %u, {target.name}[{row.format(n=N)}, %j] : {TYPE}"""
        loop = f"affine.for %j = 0 to {N} {{{inside}\n}}"
        if name == "pairs":
            trips = N // 2
            inside = inside.replace("%i,", "2 * %i + %k,")
            loop = f"affine.for %k = 0 to 2 {{ affine.for %j = 0 to {N} {{{inside}\n}} }}"
        return f"""
        affine.parallel (%i) = (0) to ({trips}) {{
          %half = arith.constant 0.5 : f32
          {loop}
        }} {{polyblocks.kernel = "{self._new(name)}", polyblocks.level = "team"}}"""

    def _serial(self) -> str:
        source, target = self._two()
        row = self._random.randrange(N)
        return f"""
        affine.for %i = 0 to {N} {{
          %v = affine.load {source.name}[%i, {row}] : {TYPE}
          %w = affine.load {target.name}[{row}, %i] : {TYPE}
          %u = arith.maximumf %v, %w : f32
          affine.store %u, {target.name}[{row}, %i] : {TYPE}
        }} {{polyblocks.kernel = "{self._new("serial")}"}}"""

    def _scalar(self) -> str:
        """Operations in a row, whose value may be used later."""
        source, target = self._two()
        at = [self._random.randrange(N) for _ in range(4)]
        number = self._new("")
        return f"""
        %v{number} = affine.load {source.name}[{at[0]}, {at[1]}] : {TYPE}
        affine.store %v{number}, {target.name}[{at[2]}, {at[3]}] : {TYPE}"""

    def _region(self, depth: int) -> str:
        kind = self._random.choice(["for", "if", "while", "assert"])
        inside = "\n".join(self._steps(self._random.randint(1, 3), depth + 1))
        name = self._new(kind)
        place = self._random.choice(self._places).name
        at = self._random.randrange(N)
        loaded = f"""
          %l{name} = affine.load {place}[{at}, {at}] : {TYPE}
          %z{name} = arith.constant {self._random.random()} : f32
          %c{name} = arith.cmpf ogt, %l{name}, %z{name} : f32"""
        if kind == "for":
            return f'affine.for %t{name} = 0 to 3 {{ {inside} }} {{polyblocks.region = "{name}"}}'
        if kind == "if":
            other = "\n".join(self._steps(1, depth + 1))
            return f"""{loaded}
            scf.if %c{name} {{ {inside} }} else {{ {other} }} {{polyblocks.region = "{name}"}}"""
        if kind == "assert":
            threshold = self._random.choice([-1.0, 0.5])
            return f"""{loaded}
            %y{name} = arith.constant {threshold} : f32
            %d{name} = arith.cmpf ogt, %l{name}, %y{name} : f32
            cf.assert %d{name}, "{name}"
            {inside}"""
        left = self._random.randrange(4)
        return f"""
        %three{name} = arith.constant 3 : i32
        affine.store %three{name}, %n[{left}] : memref<4xi32>
        scf.while : () -> () {{
          %k = affine.load %n[{left}] : memref<4xi32>
          %none = arith.constant 0 : i32
          %c = arith.cmpi sgt, %k, %none : i32
          scf.condition(%c)
        }} do {{
          {inside}
          %k{name} = affine.load %n[{left}] : memref<4xi32>
          %one{name} = arith.constant 1 : i32
          %less{name} = arith.subi %k{name}, %one{name} : i32
          affine.store %less{name}, %n[{left}] : memref<4xi32>
          scf.yield
        }} attributes {{polyblocks.region = "{name}"}}"""


def arrays(seed: int) -> list[np.ndarray]:
    """Arguments of a program."""
    rng = np.random.default_rng(seed)
    x, y = rng.random((2, N, N), dtype=np.float32)
    workspace = rng.random(WORKSPACE // 4, dtype=np.float32).view(np.int8)
    return [x, y, np.zeros(4, np.int32), workspace]

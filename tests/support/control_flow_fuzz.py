"""Random programs with loops and branches over tensors, as MLIR text and as NumPy code.

Every step is written twice: as linalg, tensor and scf operations, and as a function on a dictionary
of arrays. The programs exercise what loops carry (swapped, untouched, twice the same, arguments),
rows read and written at run-time places, nested loops and branches, and loops that end when data
says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Env = dict[str, Any]
Step = Callable[[Env], None]
Shape = tuple[int, ...]

_NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


@dataclass
class Program:
    """``text`` is the module; ``run(arguments)`` is what it computes."""

    text: str
    shapes: list[Shape]
    element: str
    steps: list[Step]
    names: list[str]
    results: list[str]

    def inputs(self, seed: int) -> list[np.ndarray]:
        """Arrays for all arguments; the last ones are small integers."""
        rng = np.random.default_rng(seed)
        arrays = []
        for shape in self.shapes:
            if self.element.startswith("f"):
                arrays.append(np.asarray(rng.uniform(-1, 1, shape), _NUMPY[self.element]))
            else:
                arrays.append(np.asarray(rng.integers(-9, 9, shape), _NUMPY[self.element]))
        arrays += [np.asarray(rng.integers(-2, 7), np.int32) for _ in range(2)]
        return arrays

    def run(self, arguments: list[np.ndarray]) -> list[np.ndarray]:
        """The results, computed by NumPy."""
        env: Env = dict(zip(self.names, arguments, strict=True))
        with np.errstate(over="ignore"):
            for step in self.steps:
                step(env)
        return [env[name] for name in self.results]


@dataclass
class _Block:
    """A block that is being written: its lines, its steps and the values that can be used."""

    lines: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    tensors: dict[str, Shape] = field(default_factory=dict)
    counters: list[str] = field(default_factory=list)

    def inner(self) -> _Block:
        return _Block([], [], dict(self.tensors), list(self.counters))


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.element = self.rng.choice(["f64", "f64", "i32", "i64", "f32"])
        self.n = self.rng.choice([1, 3, 4, 8, 17, 40])
        self.m = self.rng.choice([2, 3, 5])
        self.count = 0

    def name(self, hint: str = "v") -> str:
        self.count += 1
        return f"%{hint}{self.count}"

    def type(self, shape: Shape) -> str:
        dims = "".join(f"{d}x" for d in shape)
        return f"tensor<{dims}{self.element}>"

    # Straight-line operations

    def generic(
        self, block: _Block, inputs: list[tuple[str, str]], shape: Shape, body: str, extra: str = ""
    ) -> str:
        """A point-wise operation: inputs are names with the results of their maps."""
        out, empty = self.name(), self.name("e")
        dims = ", ".join(f"d{i}" for i in range(len(shape)))
        maps = [f"affine_map<({dims}) -> ({m})>" for _, m in inputs]
        maps.append(f"affine_map<({dims}) -> ({dims})>")
        kinds = ", ".join(['"parallel"'] * len(shape))
        types = ", ".join(self.type(block.tensors[n]) for n, _ in inputs)
        names = ", ".join(n for n, _ in inputs)
        arguments = ", ".join(f"%p{i}: {self.element}" for i in range(len(inputs)))
        block.lines.append(
            f"{empty} = tensor.empty() : {self.type(shape)}\n"
            f"{out} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{kinds}]}} ins({names} : {types}) "
            f"outs({empty} : {self.type(shape)}) {{\n"
            f"^bb0({arguments}, %o: {self.element}):\n{extra}{body}\n"
            f"linalg.yield %q : {self.element} }} -> {self.type(shape)}"
        )
        block.tensors[out] = shape
        return out

    def binary(self, block: _Block) -> None:
        """Two tensors, of which the second may be broadcast."""
        a = self.pick(block)
        shape = block.tensors[a]
        b = self.pick(block, lambda s: s == shape[len(shape) - len(s) :])
        if len(shape) < len(block.tensors[b]):
            return
        kind = self.rng.choice(["add", "sub", "mul", "max"])
        f = self.element.startswith("f")
        dims = [f"d{i}" for i in range(len(shape))]
        inner = ", ".join(dims[len(dims) - len(block.tensors[b]) :])
        name = {"max": "maximumf" if f else "maxsi"}.get(kind, kind + ("f" if f else "i"))
        body = f"%r = arith.{name} %p0, %p1 : {self.element}\n"
        if f:
            # Values stay small however often a loop runs.
            body += f"%q = math.tanh %r : {self.element}"
        else:
            body += f"%w = arith.constant 7 : {self.element}\n"
            body += f"%q = arith.remsi %r, %w : {self.element}"
        out = self.generic(block, [(a, ", ".join(dims)), (b, inner)], shape, body)
        fn = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum}[kind]

        def step(env: Env) -> None:
            r = fn(env[a], env[b])
            env[out] = np.tanh(r) if f else np.fmod(r, r.dtype.type(7))

        block.steps.append(step)

    def reduce(self, block: _Block) -> None:
        """The sum over the last dimension."""
        a = self.pick(block, lambda s: len(s) > 0)
        shape = block.tensors[a]
        if not shape:
            return
        out, empty, zero, filled = (self.name(h) for h in "vezf")
        dims = ", ".join(f"d{i}" for i in range(len(shape)))
        kept = ", ".join(f"d{i}" for i in range(len(shape) - 1))
        kinds = ", ".join(['"parallel"'] * (len(shape) - 1) + ['"reduction"'])
        type_ = self.type(shape[:-1])
        e = self.element
        f = e.startswith("f")
        number = "0.0" if f else "0"
        block.lines.append(
            f"{zero} = arith.constant {number} : {e}\n{empty} = tensor.empty() : {type_}\n"
            f"{filled} = linalg.fill ins({zero} : {e}) outs({empty} : {type_}) -> {type_}\n"
            f"{out} = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({dims})>, "
            f"affine_map<({dims}) -> ({kept})>], iterator_types = [{kinds}]}} "
            f"ins({a} : {self.type(shape)}) outs({filled} : {type_}) {{\n"
            f"^bb0(%p: {e}, %o: {e}):\n%q = arith.add{'f' if f else 'i'} %p, %o : {e}\n"
            f"linalg.yield %q : {e} }} -> {type_}"
        )
        block.tensors[out] = shape[:-1]

        def step(env: Env) -> None:
            env[out] = np.asarray(env[a].sum(-1), env[a].dtype)

        block.steps.append(step)

    def row(self, block: _Block) -> None:
        """A row, read or replaced, at a run-time place."""
        a = self.pick(block, lambda s: len(s) == 2)
        shape = block.tensors[a]
        if len(shape) != 2:
            return
        i = self.rng.choice(block.counters)
        x, y, z, lo, hi, at, out = (self.name(h) for h in ("x", "y", "z", "lo", "hi", "at", "v"))
        block.lines.append(
            f"{x} = tensor.extract {i}[] : tensor<i32>\n{lo} = arith.constant 0 : i32\n"
            f"{hi} = arith.constant {shape[0] - 1} : i32\n{y} = arith.maxsi {x}, {lo} : i32\n"
            f"{z} = arith.minsi {y}, {hi} : i32\n{at} = arith.index_cast {z} : i32 to index"
        )
        big, small = self.type(shape), self.type(shape[1:])

        def place(env: Env) -> int:
            return int(min(max(int(env[i]), 0), shape[0] - 1))

        if self.rng.random() < 0.5:
            block.lines.append(
                f"{out} = tensor.extract_slice {a}[{at}, 0] [1, {shape[1]}] [1, 1] "
                f": {big} to {small}"
            )
            block.tensors[out] = shape[1:]

            def read(env: Env) -> None:
                env[out] = env[a][place(env)].copy()

            block.steps.append(read)
            return
        b = self.pick(block, lambda s: s == shape[1:])
        if block.tensors[b] != shape[1:]:
            return
        block.lines.append(
            f"{out} = tensor.insert_slice {b} into {a}[{at}, 0] [1, {shape[1]}] [1, 1] "
            f": {small} into {big}"
        )
        block.tensors[out] = shape

        def write(env: Env) -> None:
            env[out] = env[a].copy()
            env[out][place(env)] = env[b]

        block.steps.append(write)

    # Control flow

    def condition(self, block: _Block, limit: int) -> tuple[str, Callable[[Env], bool]]:
        """Whether a counter is below a number; a scalar i1 and its Python twin."""
        i = self.rng.choice(block.counters)
        x, k, p = self.name("x"), self.name("k"), self.name("p")
        block.lines.append(
            f"{x} = tensor.extract {i}[] : tensor<i32>\n{k} = arith.constant {limit} : i32\n"
            f"{p} = arith.cmpi slt, {x}, {k} : i32"
        )
        return p, lambda env: int(env[i]) < limit

    def branch(self, block: _Block, depth: int) -> None:
        """A conditional or a switch that gives one or two tensors."""
        shapes = [block.tensors[self.pick(block)] for _ in range(self.rng.choice([1, 1, 2]))]
        switch = self.rng.random() < 0.4
        count = self.rng.choice([1, 2, 3]) + 1 if switch else 2
        if switch:
            i = self.rng.choice(block.counters)
            x, key = self.name("x"), self.name("k")
            block.lines.append(
                f"{x} = tensor.extract {i}[] : tensor<i32>\n"
                f"{key} = arith.index_cast {x} : i32 to index"
            )

            def choose(env: Env) -> int:
                return int(env[i]) if 0 <= int(env[i]) < count - 1 else count - 1
        else:
            p, truth = self.condition(block, self.rng.choice([1, 2, 3]))

            def choose(env: Env) -> int:
                return 0 if truth(env) else 1

        bodies: list[_Block] = []
        gives: list[list[str]] = []
        for _ in range(count):
            inner = block.inner()
            self.fill(inner, self.rng.choice([0, 1, 2]), depth - 1)
            bodies.append(inner)
            gives.append([self.pick(inner, lambda s, w=w: s == w) for w in shapes])
        outs = [self.name() for _ in shapes]
        types = ", ".join(self.type(s) for s in shapes)
        texts = [
            "\n".join([*b.lines, f"scf.yield {', '.join(g)} : {types}"])
            for b, g in zip(bodies, gives, strict=True)
        ]
        pack = self.name("r")
        if switch:
            cases = [f"case {i} {{\n{t}\n}}" for i, t in enumerate(texts[:-1])]
            text = f"scf.index_switch {key} -> {types}\n" + "\n".join(cases)
            text += f"\ndefault {{\n{texts[-1]}\n}}"
        else:
            text = f"scf.if {p} -> ({types}) {{\n{texts[0]}\n}} else {{\n{texts[1]}\n}}"
        block.lines.append(f"{pack}:{len(outs)} = {text}")
        self._unpack(block, pack, outs, shapes)

        def step(env: Env) -> None:
            which = choose(env)
            local = dict(env)
            for each in bodies[which].steps:
                each(local)
            for out, given in zip(outs, gives[which], strict=True):
                env[out] = local[given]

        block.steps.append(step)

    def loop(self, block: _Block, depth: int) -> None:
        """A loop that counts, or that ends when data says so."""
        inits = [self.pick(block) for _ in range(self.rng.choice([1, 2, 2, 3]))]
        if self.rng.random() < 0.3:
            inits.append(inits[0])
        shapes = [block.tensors[n] for n in inits]
        trips = self.rng.choice([0, 1, 2, 4, 5])
        counted = self.rng.random() < 0.6
        body = block.inner()
        counter = self.name("i")
        arguments = [self.name("c") for _ in inits]
        body.counters += [counter, counter]
        body.tensors |= dict(zip(arguments, shapes, strict=True))
        self.fill(body, self.rng.choice([1, 2, 3, 4]), depth - 1)
        yields = [
            self.pick(body, lambda s, w=w: s == w, arguments if self.rng.random() < 0.35 else None)
            for w in shapes
        ]
        outs = [self.name() for _ in inits]
        types = ", ".join(["tensor<i32>", *(self.type(s) for s in shapes)])
        start, one, pack, more, sum_, again = (self.name(h) for h in ("s", "k", "r", "x", "y", "t"))
        carried = ", ".join(f"{a} = {i}" for a, i in zip(arguments, inits, strict=True))
        joined = ", ".join([counter, *arguments])
        bound = self.rng.choice(block.counters)
        first = [a for a, s in zip(arguments, shapes, strict=True) if s == ()]
        extra, data = "", None
        if not counted and first:
            # A value of the loop has a say, too.
            data = first[0]
            f = self.element.startswith("f")
            compare = "cmpf olt" if f else "cmpi slt"
            number = "0.5" if f else "5"
            extra = (
                f"%d = tensor.extract {data}[] : {self.type(())}\n"
                f"%l = arith.constant {number} : {self.element}\n"
                f"%g = arith.{compare}, %d, %l : {self.element}\n%go = arith.andi %c, %g : i1"
            )
        limit = (
            f"%n = arith.constant {trips} : i32"
            if counted
            else f"%n0 = tensor.extract {bound}[] : tensor<i32>\n"
            f"%n1 = arith.constant 4 : i32\n%n = arith.minsi %n0, %n1 : i32"
        )
        go = "%go" if extra else "%c"
        body.lines.append(
            f"{more} = tensor.extract {counter}[] : tensor<i32>\n"
            f"{one} = arith.constant 1 : i32\n{sum_} = arith.addi {more}, {one} : i32\n"
            f"{again} = tensor.from_elements {sum_} : tensor<i32>\n"
            f"scf.yield {', '.join([again, *yields])} : {types}"
        )
        inner = "\n".join(body.lines)
        listed = ", ".join(
            f"{v}: {t}"
            for v, t in zip(
                [counter, *arguments], ["tensor<i32>", *(self.type(s) for s in shapes)], strict=True
            )
        )
        block.lines.append(
            f"{start} = arith.constant dense<0> : tensor<i32>\n"
            f"{pack}:{len(outs) + 1} = scf.while ({counter} = {start}, {carried}) "
            f": ({types}) -> ({types}) {{\n"
            f"%i = tensor.extract {counter}[] : tensor<i32>\n{limit}\n"
            f"%c = arith.cmpi slt, %i, %n : i32\n{extra}\n"
            f"scf.condition({go}) {joined} : {types}\n}} do {{\n^bb0({listed}):\n{inner}\n}}"
        )
        self._unpack(block, pack, outs, shapes, 1)
        small = 0.5 if self.element.startswith("f") else 5

        def step(env: Env) -> None:
            end = trips if counted else min(int(env[bound]), 4)
            values = [env[i] for i in inits]
            number = 0
            while number < end:
                if data is not None and not values[arguments.index(data)] < small:
                    break
                local = dict(env)
                local[counter] = np.asarray(number, np.int32)
                local.update(zip(arguments, values, strict=True))
                for each in body.steps:
                    each(local)
                values = [local[y] for y in yields]
                number += 1
            env.update(zip(outs, values, strict=True))

        block.steps.append(step)

    def _unpack(
        self, block: _Block, pack: str, outs: list[str], shapes: list[Shape], first: int = 0
    ) -> None:
        """Give the results of a loop or branch names of their own."""
        for k, (out, shape) in enumerate(zip(outs, shapes, strict=True)):
            block.lines.append(
                f"{out} = tensor.cast {pack}#{k + first} : {self.type(shape)} to {self.type(shape)}"
            )
            block.tensors[out] = shape

    def pick(
        self,
        block: _Block,
        fits: Callable[[Shape], bool] = lambda s: True,
        among: list[str] | None = None,
    ) -> str:
        """A value that can be used, rather one of the last."""
        names = [n for n in (among or list(block.tensors)) if fits(block.tensors[n])]
        if not names:
            names = [n for n in block.tensors if fits(block.tensors[n])] or list(block.tensors)
        return self.rng.choice(names[-5:] if self.rng.random() < 0.7 else names)

    def fill(self, block: _Block, length: int, depth: int) -> None:
        """Write some steps."""
        for _ in range(length):
            kind = self.rng.choice(["binary", "binary", "reduce", "row", "row", "flow", "flow"])
            if kind == "flow":
                if depth > 0:
                    (self.loop if self.rng.random() < 0.6 else self.branch)(block, depth)
            else:
                getattr(self, kind)(block)

    def program(self, length: int) -> Program:
        """The whole program."""
        shapes: list[Shape] = [(self.m, self.n), (self.m, self.n), (self.n,), (self.n,), ()]
        names = [f"%a{i}" for i in range(len(shapes))]
        counters = ["%b0", "%b1"]
        block = _Block([], [], dict(zip(names, shapes, strict=True)), counters)
        self.fill(block, length, 2)
        self.loop(block, 2)
        made = list(block.tensors)[len(names) :]
        results = made[-3:] + self.rng.sample(made, min(1, len(made)))
        if self.rng.random() < 0.2:
            results.append(self.rng.choice(names))
        types = [self.type(s) for s in shapes] + ["tensor<i32>"] * 2
        listed = ", ".join(f"{n}: {t}" for n, t in zip([*names, *counters], types, strict=True))
        outs = ", ".join(self.type(block.tensors[r]) for r in results)
        text = (
            f"func.func @main({listed}) -> ({outs}) {{\n"
            + "\n".join(block.lines)
            + f"\nreturn {', '.join(results)} : {outs}\n}}\n"
        )
        return Program(text, shapes, self.element, block.steps, [*names, *counters], results)


def make(seed: int, length: int = 4) -> Program:
    """The program of a seed."""
    return _Maker(seed).program(length)

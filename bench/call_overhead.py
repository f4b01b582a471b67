"""Host overhead of one compiled call in each framework: ``python -m bench.call_overhead``.

The programs work on vectors of 16 elements, so that what is measured is everything else. Each
framework's own compiler is the rival, and the two take turns; the fastest of several rounds
counts, in CPU time of the calling thread, not the clock's, on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from bench import report

Function = Callable[..., object]
STRICT = {"target": "cpu", "strict_target": True}


@dataclass(frozen=True)
class Case:
    """What is called, with what, and how to wait for its result."""

    framework: str
    name: str
    rival: str
    bar: float  # the most that ours may take, as a multiple of the rival's
    ours: Function
    theirs: Function
    arguments: tuple[object, ...]
    wait: Callable[[object], object]
    named: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """CPU microseconds of one call."""

    framework: str
    case: str
    rival: str
    polyblocks_us: float
    rival_us: float
    bar: float

    @property
    def ratio(self) -> float:
        """Ours as a multiple of the rival's."""
        return self.polyblocks_us / self.rival_us


def add(x, y):  # type: ignore[no-untyped-def]
    """The smallest program with two arguments, in any framework."""
    return x + y


def total(*values):  # type: ignore[no-untyped-def]
    """Many arrays in, one out."""
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def double(values):  # type: ignore[no-untyped-def]
    """A tree of arrays in, one out."""
    return {name: value * 2 for name, value in values.items()}


def torch_cases() -> Iterator[Case]:
    """Beside Inductor."""
    import torch

    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    vector = torch.arange(16.0)
    for name, function, arguments in (
        ("two tensors", add, (vector, vector)),
        ("a tree of eight tensors", double, ({f"a{i}": vector for i in range(8)},)),
    ):
        ours = polyblocks_jit_torch(function, compile_options=STRICT)
        theirs = torch.compile(function)
        yield Case("PyTorch", name, "Inductor", 1, ours, theirs, arguments, lambda result: result)


def jax_cases() -> Iterator[Case]:
    """Beside jax.jit."""
    import jax
    import jax.numpy as jnp

    from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

    vector = jnp.arange(16.0)
    host = np.asarray(vector)
    for name, function, arguments, named in (
        ("two JAX arrays", add, (vector, vector), {}),
        ("two JAX arrays by name", add, (), {"x": vector, "y": vector}),
        ("two NumPy arrays", add, (host, host), {}),
        *((f"{n} arrays", total, (vector,) * n, {}) for n in (8, 20, 200, 1000)),
        ("a tree of eight arrays", double, ({f"a{i}": vector for i in range(8)},), {}),
        ("a tree of 200 arrays", double, ({f"a{i}": vector for i in range(200)},), {}),
    ):
        ours = polyblocks_jit_jax(function, compile_options=STRICT)
        theirs = jax.jit(function)
        wait = jax.block_until_ready
        yield Case("JAX", name, "jax.jit", 1.1, ours, theirs, arguments, wait, named)


def tensorflow_cases() -> Iterator[Case]:
    """Beside TensorFlow's XLA."""
    import tensorflow as tf

    from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

    vector = tf.range(16.0)
    for name, function, arguments in (
        ("two tensors", add, (vector, vector)),
        ("a tree of eight tensors", double, ({f"a{i}": vector for i in range(8)},)),
    ):
        ours = polyblocks_jit_tf(function, compile_options=STRICT)
        theirs = tf.function(function, jit_compile=True)
        yield Case("TensorFlow", name, "XLA", 0.5, ours, theirs, arguments, lambda result: result)


FRAMEWORKS = {"torch": torch_cases, "jax": jax_cases, "tensorflow": tensorflow_cases}


def seconds_per_call(case: Case, function: Function, calls: int) -> float:
    """CPU seconds that the calling thread spends on one call."""
    begin = time.thread_time()
    for _ in range(calls):
        result = function(*case.arguments, **case.named)
    case.wait(result)
    return (time.thread_time() - begin) / calls


def measure(case: Case, calls: int, rounds: int) -> Row:
    """The fastest of ``rounds`` turns of each."""
    best = {case.ours: float("inf"), case.theirs: float("inf")}
    for function in best:
        seconds_per_call(case, function, 200)
    for _ in range(rounds):
        for function in best:
            best[function] = min(best[function], seconds_per_call(case, function, calls))
    ours, theirs = best[case.ours] * 1e6, best[case.theirs] * 1e6
    return Row(case.framework, case.name, case.rival, ours, theirs, case.bar)


def table(rows: Sequence[Row]) -> str:
    """A Markdown table of the times, ratios and bars."""
    lines = [
        "| framework | case | polyblocks, µs | its own compiler, µs | ratio | at most |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        own = f"{row.rival} {row.rival_us:.2f}"
        cells = [row.framework, row.case, f"{row.polyblocks_us:.2f}", own, f"{row.ratio:.2f}"]
        lines.append(f"| {' | '.join(cells)} | {row.bar:g} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if a bar does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("frameworks", nargs="*", default=list(FRAMEWORKS), metavar="FRAMEWORK")
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--results", type=Path, help="folder for the two files; default: none")
    args = parser.parse_args(arguments)
    unknown = [name for name in args.frameworks if name not in FRAMEWORKS]
    if unknown:
        parser.error(f"unknown framework {unknown[0]}; choose from {', '.join(FRAMEWORKS)}")
    rows = [
        measure(case, args.calls, args.rounds)
        for name in args.frameworks
        for case in FRAMEWORKS[name]()
    ]
    print(table(rows), end="")
    if args.results:
        head = report.header(args.rounds, 1)
        found = {key: head[key] for key in ("date", "machine", "python")}
        found["rows"] = [asdict(row) | {"ratio": row.ratio} for row in rows]
        args.results.mkdir(parents=True, exist_ok=True)
        stem = f"{report.place(found, args.results)}-call-overhead"
        Path(f"{stem}.json").write_text(json.dumps(found, indent=1) + "\n")
        title = f"# Host overhead of one call, {found['date']}, {found['machine']['cpu']}\n\n"
        Path(f"{stem}.md").write_text(title + table(rows))
    return 0 if all(row.ratio <= row.bar for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

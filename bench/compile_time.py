"""``python -m bench.compile_time``: where compile time goes, and how it grows with the program.

Two tables. The first one is what a user waits for: seconds of a first call on top of Dynamo and
AOTAutograd with a backend that generates and runs nothing, with imports warm and the cache empty,
for the cases of the benchmark and for generated programs; with ``--models`` also for whole models,
built for a target without launching anything. The second one is the processor time of every pass on
generated programs of growing length, and the exponent of its growth over the last step: 1 is
linear, 2 quadratic.

Every row is measured in a process of its own. Processor time is that of the compiler alone, in one
process and without the fork, so other processes disturb it little.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]

#: Calls of PyTorch in the generated programs.
SIZES = (250, 500, 1000, 2000, 4000)
#: Passes that take less than this (processor seconds) at the largest size are added up.
SMALL_S = 0.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write ``<date>-<cpu>-compile.json`` and ``.md``; 1 if a row is missing.

    With models alone the files are called ``-compile-models``.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.compile_time", description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="default: %(default)s")
    parser.add_argument("--only", default="", help="cases, as for `python -m bench`; `none`: none")
    parser.add_argument(
        "--models",
        default="",
        help="build ResNet-18 and BERT-base for these: nvgpu/sm_90a,amdgpu/gfx1100",
    )
    parser.add_argument("--results", type=Path, help="folder for the two files; default: none")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.worker:
        print(json.dumps(worker(args.worker)))
        return 0
    from bench import report, table

    cases = () if args.only == "none" else table.named(args.only)
    sizes = [int(n) for n in args.sizes.split(",") if n]
    head = report.header(rounds=1, threads=0)
    found: Json = {key: head[key] for key in ("date", "machine", "python")}
    tried = [in_process(f"case {case.name}") for case in cases]
    for place in filter(None, args.models.split(",")):
        tried += [in_process(f"model {name} {place}") for name in ("ResNet-18", "BERT-base")]
    found["cases"] = [row for row in tried if row is not None]
    grown = [in_process(f"generated {n}") for n in sizes]
    found["generated"] = [row for row in grown if row is not None]
    text = page(found)
    print(text)
    if args.results is not None:
        args.results.mkdir(parents=True, exist_ok=True)
        only_models = args.only == "none" and not sizes
        stem = f"{report.place(found, args.results)}-compile{'-models' if only_models else ''}"
        Path(f"{stem}.json").write_text(json.dumps(found, indent=1) + "\n")
        Path(f"{stem}.md").write_text(text)
    return 1 if None in (*tried, *grown) else 0


def in_process(what: str) -> Json | None:
    """One row, measured by a fresh process; None if that failed, which it says itself."""
    print(f"measuring {what}", file=sys.stderr)
    command = [sys.executable, "-m", "bench.compile_time", "--worker", what]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"error: {what}: exit status {done.returncode}", file=sys.stderr)
        return None
    row: Json = json.loads(done.stdout.splitlines()[-1])
    return row


def worker(what: str) -> Json:
    """Measure ``case NAME``, ``model NAME TARGET/ARCH`` or ``generated COUNT`` in this process.

    See :func:`first_calls`.
    """
    import torch

    kind, _, name = what.partition(" ")
    if kind == "case":
        from bench import table
        from bench.programs import in_torch

        (case,) = (c for c in table.CASES if c.name == name)
        inputs = tuple(torch.from_numpy(x) for x in case.inputs())
        return {"name": name} | first_calls(getattr(in_torch, case.program), inputs, repeats=8)
    if kind == "model":
        from bench.models import MODELS, built_for

        model, _, place = name.partition(" ")
        module, inputs = MODELS[model]()
        ours = built_for(*place.split("/"))
        row = first_calls(module, inputs, repeats=2, compiled=lambda f: ours(fresh(f)))
        return {"name": f"{model}, {place.replace('/', ' ')}"} | row
    from bench.generated import generate

    program = generate(int(name))
    row = first_calls(program.function, program.inputs, repeats=1)
    return {"name": int(name)} | row | {"passes": processor_times(program.function, program.inputs)}


def first_calls(
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    repeats: int,
    compiled: Callable[[Any], Any] | None = None,
) -> Json:
    """Seconds of first calls less those of second ones, the least of some repetitions of each way.

    Args:
        function: what is compiled.
        inputs: its arguments.
        repeats: how often each way, each time with an empty cache.
        compiled: gives what compiles at its first call; default: for this CPU.

    Keys: ``dynamo`` (with :mod:`bench.empty_backend`), ``ours``, ``extra`` (the difference), and
    ``processor``: that difference in processor seconds of all processes.
    """
    import torch

    from bench import empty_backend

    def nothing(x: Any) -> Any:
        return torch.tanh(x + 1)

    one = torch.ones(3)
    ways = (empty_backend.captured, compiled or _with_ours)
    for make in ways:
        make(nothing)(one)
    times = []
    for _ in range(repeats):
        for make in ways:
            torch._dynamo.reset()
            call = make(function)
            first, second = _seconds(call, inputs), _seconds(call, inputs)
            times.append((first[0] - second[0], first[1] - second[1]))
    alone, ours = (tuple(map(min, zip(*times[way::2], strict=True))) for way in range(len(ways)))
    return {
        "dynamo": alone[0],
        "ours": ours[0],
        "extra": ours[0] - alone[0],
        "processor": ours[1] - alone[1],
    }


def processor_times(function: Callable[..., Any], inputs: tuple[Any, ...]) -> dict[str, float]:
    """Processor seconds of every pass, by ``stage pass``, and of everything (``total``)."""
    import gc

    import torch

    from polyblocks import events

    os.environ["POLYBLOCKS_ISOLATE"] = "0"
    # As in the process that compiles otherwise.
    gc.collect()
    gc.freeze()
    gc.disable()
    torch._dynamo.reset()
    begun: dict[str, float] = {}
    passes: dict[str, float] = {}

    def listen(event: events.Event) -> None:
        if event.kind in ("pass-begin", "pass-end"):
            key = f"{event.data['stage']} {event.data['name']}"
            now = time.thread_time()
            if event.kind == "pass-begin":
                begun[key] = now
            else:
                passes[key] = passes.get(key, 0.0) + now - begun[key]

    call = _with_ours(function)
    begin = time.thread_time()
    with events.listening(listen):
        call(*inputs)
    passes["total"] = time.thread_time() - begin
    return passes


def _with_ours(function: Callable[..., Any]) -> Callable[..., Any]:
    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    return polyblocks_jit_torch(compile_options={"strict_target": True})(fresh(function))


def fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, from now on with an empty cache."""
    os.environ["POLYBLOCKS_CACHE_DIR"] = tempfile.mkdtemp(prefix="bench-compile-")
    return function


def _seconds(call: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[float, float]:
    """Seconds of one call by the clock and of processors, with all children."""
    import torch

    with torch.no_grad():
        spent, begin = sum(os.times()[:4]), time.perf_counter()
        call(*inputs)
        return time.perf_counter() - begin, sum(os.times()[:4]) - spent


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The power of the size that the time between the last two sizes grew with; NaN if unknown."""
    if len(sizes) < 2 or min(seconds[-2:]) <= 0:
        return math.nan
    return math.log(seconds[-1] / seconds[-2]) / math.log(sizes[-1] / sizes[-2])


def page(found: Json) -> str:
    """Both tables as Markdown."""
    machine = found["machine"]
    lines = [
        f"# Compile time, {found['date']}, {machine['cpu']}, {machine['processors']} cores",
        "",
    ]
    rows = [*found["cases"], *found["generated"]]
    lines += ["| first call, s | Dynamo alone | ours | on top | processor s |", "|---" * 5 + "|"]
    for row in rows:
        name = f"generated, {row['name']} ops" if isinstance(row["name"], int) else row["name"]
        cells = (f"{row[key]:.2f}" for key in ("dynamo", "ours", "extra", "processor"))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if not found["generated"]:
        return "\n".join(lines) + "\n"
    sizes = [row["name"] for row in found["generated"]]
    lines += [
        "",
        "| processor s of pass | " + " | ".join(f"{n} ops" for n in sizes) + " | growth |",
    ]
    lines.append("|---" * (len(sizes) + 2) + "|")
    table = {
        name: [row["passes"].get(name, 0.0) for row in found["generated"]]
        for name in found["generated"][-1]["passes"]
    }
    small = [t for name, t in table.items() if t[-1] < SMALL_S]
    table = {name: t for name, t in table.items() if t[-1] >= SMALL_S}
    if small:
        table["all others"] = [sum(column) for column in zip(*small, strict=True)]
    table["total"] = table.pop("total")
    for name, seconds in table.items():
        cells = [name, *(f"{t:.2f}" for t in seconds), f"{exponent(sizes, seconds):.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

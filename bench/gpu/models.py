"""Whole models in float16, called as users call them: ``python -m bench.gpu.models build FOLDER``.

``build`` compiles them for a chip, with the weights as arguments; it needs no GPU. ``run`` loads
them on the GPU that is there, each with the weights of its module (``polyblocks.load(file,
weights=…)``), compares the results with float32, and times them beside PyTorch's eager mode and
Inductor::

    python -m bench.gpu.models build out/gpu-models
    PYTHONPATH=out/gpu-models/python python3 -m bench.gpu.models run out/gpu-models

What is timed is a call in a row of calls, by events: where the host takes longer than the kernels,
it is the host's time.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import polyblocks
from bench import report
from bench.cells import NONE, table
from bench.engines import OURS
from bench.gpu import clocks, kit
from bench.gpu.measure import host_seconds
from bench.gpu_models.zoo import MODELS, Inputs
from bench.models import randomized
from polyblocks.artifact import Artifact

Json = dict[str, Any]

BATCHES = (1, 8)
EAGER, INDUCTOR, REPLAYED = "eager", "inductor", "inductor-reduce-overhead"
PEERS = (EAGER, INDUCTOR, REPLAYED)
#: By batch and peer how many times as fast ours is to be, in the geometric mean.
GOALS = {1: {EAGER: 2.15, INDUCTOR: 1.4}, 8: {EAGER: 1.8, INDUCTOR: 1.0}}
#: How far a result may be from float32: as a multiple of how far eager mode's is, and, where that
#: is exact, in epsilons of its dtype.
_MARGIN, _EPSILONS = 3.0, 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it; the exit status is 1 if a result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.models", description=__doc__)
    parser.add_argument("command", choices=("build", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="models whose names contain one of these")
    parser.add_argument("--target", default="nvgpu")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each peer")
    parser.add_argument("--turn", type=float, default=0.1, help="seconds of a turn")
    parser.add_argument("--results", type=Path, help="folder for the results; default: in FOLDER")
    args = parser.parse_args(arguments)
    parts = args.only.split(",")
    names = [name for name in MODELS if any(part in name for part in parts)]
    batches = [int(batch) for batch in args.batches.split(",")]
    if args.command == "build":
        build(args.folder, names, batches, args.target, args.arch)
        return 0
    results = run(args.folder, names, batches, clocks.Events(), args.rounds, args.turn)
    folder = args.results or args.folder / "results"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{report.place(results, folder, results['gpu'])}-models"
    Path(f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    Path(f"{stem}.md").write_text(page(results))
    print(page(results))
    return int(any(not peer.get("correct") for row in results["rows"] for peer in row["peers"]))


def module_of(name: str, batch: int) -> torch.nn.Module:
    """A model with random weights, the same in every process, in evaluation mode or a step."""
    return randomized(lambda: MODELS[name].make(batch)).train("training" in name)


def inputs_of(name: str, batch: int) -> Inputs:
    """The inputs for it, the same in every process."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(batch)
        return MODELS[name].inputs(batch)


def halves(values: Sequence[torch.Tensor], dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    """On a device, and what is floating-point in a dtype."""
    return [v.to(device, dtype if v.is_floating_point() else v.dtype) for v in values]


def file_of(folder: Path, name: str, batch: int) -> Path:
    """The file of a program."""
    return folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}-{batch}.zip"


def build(
    folder: Path,
    names: Sequence[str],
    batches: Sequence[int],
    target: str,
    arch: str,
    *,
    dtype: torch.dtype = torch.float16,
    with_kit: bool = True,
) -> None:
    """Compile models, and copy what is needed to run them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        for batch in batches:
            torch._dynamo.reset()
            module = module_of(name, batch).to(dtype)
            begin = time.perf_counter()
            inputs = halves(inputs_of(name, batch), dtype, "cpu")
            with torch.no_grad():
                made = polyblocks.aot(
                    module, inputs, {"target": target, "arch": arch}, weights="arguments"
                )
            made.write(file_of(folder, name, batch))
            print(f"{name}, batch {batch}: {time.perf_counter() - begin:.1f} s", flush=True)
    if with_kit:
        kit.write(folder / "python")


@torch.no_grad()
def run(
    folder: Path,
    names: Sequence[str],
    batches: Sequence[int],
    clock: clocks.Clock,
    rounds: int,
    turn: float,
    *,
    peers: Sequence[str] = PEERS,
    dtype: torch.dtype = torch.float16,
) -> Json:
    """Time the models of a folder.

    Returns:
        ``gpu`` and ``versions``, and by model and batch a row with ``peers``: ``seconds`` of a call
        and of its ``host`` part, ``ratio`` to ours, ``error`` and ``correct``; or a ``problem``.
    """
    results: Json = {
        **report.header(rounds, threads=0),
        "gpu": clock.name,
        "versions": {"torch": torch.__version__, "polyblocks": polyblocks.__version__},
        "rows": [],
    }
    for name in names:
        for batch in batches:
            if file_of(folder, name, batch).exists():
                exact = module_of(name, batch).to(clock.device)
                module = copy.deepcopy(exact).to(dtype)
                print(f"measuring {name}, batch {batch}", flush=True)
                row = _row(folder, name, batch, exact, module, clock, rounds, turn, peers, dtype)
                results["rows"].append({"model": name, "batch": batch, **row})
    results["means"] = means(results["rows"])
    return results


def _row(
    folder: Path,
    name: str,
    batch: int,
    exact: torch.nn.Module,
    module: torch.nn.Module,
    clock: clocks.Clock,
    rounds: int,
    turn: float,
    peers: Sequence[str],
    dtype: torch.dtype,
) -> Json:
    file = file_of(folder, name, batch)
    inputs = halves(inputs_of(name, batch), dtype, clock.device)
    wanted = _flat(exact(*halves(inputs_of(name, batch), torch.float32, clock.device)))
    of_eager = _error(_flat(module(*inputs)), wanted)
    allowed = max(_MARGIN * of_eager, _EPSILONS * torch.finfo(dtype).eps)
    torch._dynamo.reset()
    # Convolutions of halves are faster on images whose channels lie together, or not.
    packed = copy.deepcopy(module).to(memory_format=torch.channels_last)
    ways: dict[str, Callable[[], Any]] = {
        OURS: lambda: polyblocks.load(file, weights=module.state_dict()),
        EAGER: lambda: module,
        f"{EAGER}, channels last": lambda: packed,
        INDUCTOR: lambda: torch.compile(module, dynamic=False),
        REPLAYED: lambda: torch.compile(module, dynamic=False, mode="reduce-overhead"),
    }
    rows: dict[str, Json] = {}
    calls: dict[str, Callable[[], Any]] = {}
    for peer, way in ways.items():
        if peer != OURS and peer.partition(",")[0] not in peers:
            continue
        try:
            call = way()
            error = _error(_flat(call(*inputs)), wanted)
        except Exception as problem:  # the others are measured nevertheless
            rows[peer] = {"problem": f"{type(problem).__name__}: {problem}"[:300]}
            continue
        rows[peer] = {"error": error, "correct": bool(error <= allowed)}
        calls[peer] = lambda call=call: call(*inputs)
    samples: dict[str, list[float]] = {peer: [] for peer in calls}
    for number in range(rounds):
        order = list(calls)
        for peer in order[number % len(order) :] + order[: number % len(order)]:
            samples[peer].append(statistics.median(clock.samples(calls[peer], turn)))
    for peer, call in calls.items():
        rows[peer]["seconds"] = min(samples[peer])
        rows[peer]["host"] = host_seconds(call, clock, 20)
        if OURS in samples:
            ratios = [a / b for a, b in zip(samples[peer], samples[OURS], strict=True)]
            rows[peer]["ratio"] = statistics.median(ratios)
    manifest = Artifact.read(file).manifest
    return {
        "arrays": len(manifest["call"]),
        "launches": len(manifest.get("launches", ())),
        "peers": [{"peer": peer, **row} for peer, row in rows.items()],
    }


def means(rows: Sequence[Json]) -> list[Json]:
    """By batch and peer the geometric mean of the ratios to ours; of eager its better layout."""
    found = []
    for batch in dict.fromkeys(row["batch"] for row in rows):
        for peer in PEERS:
            ratios = []
            for row in rows:
                own = [
                    each["ratio"]
                    for each in row["peers"]
                    if each["peer"].partition(",")[0] == peer and "ratio" in each
                ]
                if row["batch"] == batch and own:
                    ratios.append(min(own))
            if ratios:
                mean = math.exp(statistics.fmean(map(math.log, ratios)))
                goal = GOALS.get(batch, {}).get(peer)
                found.append({"batch": batch, "peer": peer, "ratio": mean, "goal": goal})
    return found


def page(results: Json) -> str:
    """The results as Markdown."""
    names = list(dict.fromkeys(peer["peer"] for row in results["rows"] for peer in row["peers"]))
    lines = []
    for row in results["rows"]:
        by_peer = {peer["peer"]: peer for peer in row["peers"]}
        ours = by_peer.get(OURS, {})
        lines.append(
            [
                f"{row['model']}, {row['batch']}",
                f"{row['arrays']}, {row['launches']}",
                *(_milli(by_peer.get(name, {}).get("seconds")) for name in names),
                _milli(ours.get("host")),
                NONE if "error" not in ours else f"{ours['error']:.0e}",
            ]
        )
    problems = [
        f"- {row['model']}, {row['batch']}, {peer['peer']}: {peer['problem']}"
        for row in results["rows"]
        for peer in row["peers"]
        if "problem" in peer
    ]
    goals = [
        [str(row["batch"]), row["peer"], f"{row['ratio']:.2f}",
         NONE if row["goal"] is None else f"{row['goal']:g}"]
        for row in results["means"]
    ]  # fmt: skip
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    heads = ["model, batch", "arrays, launches", *names, "our host", "our error"]
    return "\n".join(
        [
            f"# Models in float16, {results['date']}, {results['gpu']}",
            "",
            f"{versions}. Milliseconds of a call as users call it, the fastest of "
            f"{results['rounds']} turns of each peer; errors are those of the result, of its "
            "largest number, beside float32.",
            "",
            *table(heads, lines),
            "",
            *table(["batch", "peer", "geometric mean of its time to ours", "goal"], goals),
            *(["", "Not run:", "", *problems] if problems else []),
            "",
        ]
    )


def _flat(result: Any) -> list[torch.Tensor]:
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return [part.double() for part in parts]


def _error(got: list[torch.Tensor], wanted: list[torch.Tensor]) -> float:
    """The largest difference, relative to the largest number of its array."""
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(got, wanted, strict=True))


def _milli(seconds: float | None) -> str:
    return NONE if seconds is None else f"{seconds * 1e3:.2f}"


if __name__ == "__main__":
    sys.exit(main())

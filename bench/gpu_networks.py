"""``python -m bench.gpu_networks``: networks of 16-bit numbers, built for GPUs with matrix units.

For each chip ResNet-18 on eight images, BERT-base on 128 tokens, and one product of matrices, with
``strict_target``: how long a first call takes on top of Dynamo and AOTAutograd with a backend that
generates nothing (imports warm, the cache empty), how many kernels there are, and which
contractions no matrix unit computes. Nothing is launched; no GPU is needed. Every row is a process
of its own.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cells import table

Json = dict[str, Any]

ARCHS = "sm_80,gfx1100,gfx1200"
#: Layers of the smaller BERT; the kernels of one layer are those that ten more layers add.
FEW_LAYERS = 2


@dataclass(frozen=True)
class Bar:
    """What a network may take at most.

    Attributes:
        seconds: of a first call on top of an empty backend.
        kernels: launches; of BERT for each layer.
    """

    seconds: float
    kernels: int


BARS = {
    "ResNet-18": Bar(30.0, 30),
    "ResNet-18, channels last": Bar(30.0, 30),
    "BERT-base": Bar(30.0, 7),
    "1024 x 1024 x 1024": Bar(1.5, 1),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, print, write ``<date>-gpu-networks.md`` and ``.json``; 1 if a bar does not hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_networks", description=__doc__)
    parser.add_argument("--arch", default=ARCHS, help="architectures (%(default)s)")
    parser.add_argument("--only", default="", help="networks whose names contain this")
    parser.add_argument("--results", type=Path, help="folder for the results; default: none")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.worker:
        print(json.dumps(built(*args.worker)))
        return 0
    rows, misses = [], []
    for arch in args.arch.split(","):
        for name in (name for name in BARS if args.only in name):
            print(f"building {name} for {arch}", file=sys.stderr, flush=True)
            command = [sys.executable, "-m", "bench.gpu_networks", "--worker", name, arch]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            if done.returncode:
                misses.append(f"{name} for {arch}: exit status {done.returncode}")
                continue
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            misses += missed(rows[-1])
    text = page(rows, misses)
    print(text)
    if args.results is not None:
        stem = args.results / f"{datetime.date.today().isoformat()}-gpu-networks"
        stem.parent.mkdir(parents=True, exist_ok=True)
        stem.with_suffix(".md").write_text(text)
        stem.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    return int(bool(misses))


def built(name: str, arch: str) -> Json:
    """The row of a network.

    Keys: ``network``, ``arch``, ``seconds`` and ``processor`` (of a first call on top of an empty
    backend, by the clock and of all processes), ``kernels`` (launches; for BERT of one layer, and
    ``all`` in any case), ``without`` (names of contractions that no unit computes), ``units``.
    """
    from bench.compile_time import first_calls, fresh
    from bench.models import built_for

    target = "amdgpu" if arch.startswith("gfx") else "nvgpu"
    compiled = built_for(target, arch)
    reports: list[Any] = []

    def make(function: Any) -> Any:
        call = compiled(fresh(function))
        reports.append(call.polyblocks_report)
        return call

    function, inputs = network(name)
    row = first_calls(function, inputs, repeats=1, compiled=make)
    kernels = _kernels(reports[-1]())
    launches = sum(k["calls"] for k in kernels)
    of_layer = launches
    if name == "BERT-base":
        smaller, inputs = network(name, FEW_LAYERS)
        call = make(smaller)
        call(*inputs)
        few = sum(k["calls"] for k in _kernels(reports[-1]()))
        of_layer = -(-(launches - few) // (12 - FEW_LAYERS))
    contractions = [k for k in kernels if k["kind"] == "contraction"]
    return {
        "network": name,
        "arch": arch,
        "seconds": row["extra"],
        "processor": row["processor"],
        "kernels": of_layer,
        "all": launches,
        "without": [k["name"] for k in contractions if not k["unit"]],
        "units": sorted({k["unit"] for k in contractions if k["unit"]}),
    }


def network(name: str, layers: int = 12) -> tuple[Any, tuple[Any, ...]]:
    """A network of float16 in evaluation mode, and its inputs; ``layers`` are BERT's."""
    import torch

    from bench.programs.bert import Bert
    from bench.programs.resnet import ResNet18

    if name.startswith("ResNet-18"):
        module, image = ResNet18().eval().half(), torch.rand(8, 3, 224, 224).half()
        if name.endswith("channels last"):
            module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            image = image.to(memory_format=torch.channels_last)
        return module, (image,)
    if name == "BERT-base":
        tokens = torch.randint(0, 30000, (1, 128))
        return Bert(layers).eval().half(), (tokens, torch.ones_like(tokens))
    return torch.matmul, tuple(torch.rand(1024, 1024).half() for _ in range(2))


def _kernels(report: Any) -> list[Json]:
    return [row for part in report.parts for row in part.kernels]


def missed(row: Json) -> list[str]:
    """What a row does not hold, in sentences."""
    bar = BARS[row["network"]]
    checks = (
        (row["seconds"] <= bar.seconds, f"{row['seconds']:.1f} s, at most {bar.seconds}"),
        (row["kernels"] <= bar.kernels, f"{row['kernels']} kernels, at most {bar.kernels}"),
        (not row["without"], f"no unit computes {', '.join(row['without'])}"),
    )
    return [f"{row['network']} for {row['arch']}: {what}" for holds, what in checks if not holds]


def page(rows: Sequence[Json], misses: Sequence[str]) -> str:
    """The page of Markdown."""
    head = ["network", "chip", "first call, s", "processor s", "kernels", "of all", "units"]
    cells = [
        [
            row["network"],
            row["arch"],
            f"{row['seconds']:.1f}",
            f"{row['processor']:.1f}",
            str(row["kernels"]),
            str(row["all"]),
            ", ".join(row["units"]),
        ]
        for row in rows
    ]
    lines = [
        f"# {datetime.date.today().isoformat()}, networks of float16 for GPUs",
        "",
        "Written by `python -m bench.gpu_networks`; nothing was launched. Seconds are those of a "
        "first call on top of Dynamo and AOTAutograd with a backend that generates nothing; the "
        "kernels of BERT are those of a layer.",
        "",
        *table(head, cells),
        "",
        "## What does not hold",
        "",
        *([f"- {miss}" for miss in misses] or ["Everything does."]),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())

"""The models of the GPU table, small, whole and strict on simulated chips, against float64.

``python tests/slow/simulated_models.py --json out/models.json --page PAGE``: every model on every
chip. An error may be twice eager mode's of the same type, and the simulator may find nothing.
``--json`` keeps the outcomes; those that are there are not run again, unless they are ``--only``'s.
Exit status 1: one is wrong. The page of this tree is ``tests/gpu_conformance/models.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT)]

DTYPES = ("float16", "bfloat16", "float32")


def main() -> int:
    """Run what is asked for."""
    from tests.support.simulated_chips import ALL_CHIPS
    from tests.support.small_models import SMALL

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=SMALL, help="default: all models")
    parser.add_argument("--arch", action="append", choices=ALL_CHIPS, help="default: all")
    parser.add_argument("--dtype", default="float16", choices=DTYPES)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--units", type=int, help="seed: any kernels of matrix units")
    parser.add_argument("--json", type=Path, help="keeps the outcomes")
    parser.add_argument("--page", type=Path, help="Markdown, of all outcomes that are kept")
    arguments = parser.parse_args()
    if arguments.units is None:
        return run(arguments)
    with tempfile.TemporaryDirectory() as folder:
        # What the cache has, and is to have, is what the model chooses.
        os.environ["POLYBLOCKS_CACHE_DIR"] = folder
        return run(arguments)


def run(arguments: argparse.Namespace) -> int:
    """As :func:`main`."""
    import torch
    from tests.support.simulated_chips import ALL_CHIPS
    from tests.support.small_models import SMALL, outcome_of

    kept: dict[str, Any] = {}
    if arguments.json and arguments.json.exists():
        kept = json.loads(arguments.json.read_text())
    seed = arguments.units
    any_unit = "" if seed is None else f", any units {seed}"
    for arch in arguments.arch or ALL_CHIPS:
        for name in arguments.only or SMALL:
            key = f"{name}, {arguments.dtype}, batch {arguments.batch}{any_unit}|{arch}"
            if key in kept and not arguments.only:
                continue
            dtype = getattr(torch, arguments.dtype)
            numbers = None if seed is None else random.Random(f"{name} {seed}")
            kept[key] = asdict(outcome_of(name, arch, dtype, arguments.batch, numbers))
            print(f"{key}: {told(kept[key])}", *kept[key]["problems"][:3], sep="\n  ", flush=True)
            if arguments.json:
                arguments.json.parent.mkdir(parents=True, exist_ok=True)
                arguments.json.write_text(json.dumps(kept, indent=1) + "\n")
    if arguments.page:
        arguments.page.write_text(page(kept))
    return int(any(row["problems"] for row in kept.values()))


def told(row: dict[str, Any]) -> str:
    """A cell of the table."""
    if row["problems"]:
        return "wrong"
    return f"{row['launches']}, {row['ratio']:.1f}"


def page(kept: dict[str, Any]) -> str:
    """The table, and what is wrong."""
    from bench.cells import NONE, table

    keys = [key.split("|") for key in kept]
    archs = sorted({arch for _, arch in keys}, key=lambda arch: (arch[:1] != "s", arch))
    rows = [
        [name, *(told(kept[f"{name}|{a}"]) if f"{name}|{a}" in kept else NONE for a in archs)]
        for name in dict.fromkeys(name for name, _ in keys)
    ]
    right = sum(not row["problems"] for row in kept.values())
    problems = [f"- {key}: {row['problems'][0]}" for key, row in kept.items() if row["problems"]]
    return "\n".join(
        [
            "# Models on simulated GPUs",
            "",
            "Written by `python tests/slow/simulated_models.py`: the models of "
            "`python -m bench.gpu_models` at small sizes, each one program of "
            "`polyblocks_jit_torch` with `strict_target`, run whole in the simulator. In a cell: "
            "launches, and the largest error beside float64 as a multiple of eager mode's (2 is "
            "allowed). With any units, kernels of matrix units are chosen at random. "
            f"{right} of {len(kept)} are right, without a finding.",
            "",
            *table(["model", *archs], rows),
            *(["", "Wrong:", "", *problems] if problems else []),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())

"""``python -m bench.gpu_static``: how fast the kernels can be, from their machine code.

Builds the cases for several chips, disassembles the kernels, and puts what their main loops take of
each resource into a model, together with waves, prologue and epilogue. ``--published`` holds the
model against what others have measured instead.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.gpu_static import bars, cases, page
from bench.gpu_static.build import describe
from bench.gpu_static.machines import Machine, machine

Json = dict[str, Any]

ARCHS = "sm_80,gfx1100,gfx1200"
#: Version of the JSON; raised when a key changes its meaning or goes away.
SCHEMA = 1
_DISTRIBUTIONS = ("polyblocks-compiler", "torch", "llvmlite", "nvidia-cuda-nvdisasm")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it; the exit status is 1 if something does not hold or is not built."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_static", description=__doc__)
    parser.add_argument("--arch", default=ARCHS, help="architectures or chips (%(default)s)")
    parser.add_argument(
        "--groups", default="products", help=f"of cases: {', '.join(cases.GROUPS)} (%(default)s)"
    )
    parser.add_argument("--only", default="", help="cases whose names contain one of these")
    parser.add_argument(
        "--sample",
        type=int,
        default=0,
        help="blocks to simulate of each launch, to count bank conflicts (default: none)",
    )
    parser.add_argument("--results", type=Path, help="folder for the results; default: none")
    parser.add_argument("--published", action="store_true", help="compare with published numbers")
    args = parser.parse_args(arguments)
    if args.published:
        return _published(args.results)
    try:
        chosen = cases.named(args.groups, args.only)
        targets = {arch: describe(arch) for arch in args.arch.split(",")}
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    machines = {arch: machine(target) for arch, target in targets.items()}
    results: Json = {
        "schema": SCHEMA,
        "date": datetime.date.today().isoformat(),
        "versions": _versions(),
        "chips": {arch: target.properties["chip"] for arch, target in targets.items()},
        "rows": [],
        "vector": [],
        "misses": [],
        "failed": [],
    }
    for arch, found in machines.items():
        _run(results, chosen, arch, found, args.sample)
    text = page.markdown(results)
    print(text)
    if args.results is not None:
        more = "" if args.groups == "products" else f"-{args.groups.replace(',', '-')}"
        _write(args.results / f"{results['date']}-gpu-static{more}", results, text)
    return int(bool(results["misses"] or results["failed"]))


def _run(
    results: Json, chosen: Sequence[cases.Case], arch: str, found: Machine, sample: int
) -> None:
    from bench.gpu_static import vector
    from bench.gpu_static.measure import measured
    from polyblocks.errors import PolyBlocksError

    rows = []
    # A network has the same layer several times.
    known: dict[tuple[str, str], Json] = {}
    for case in chosen:
        try:
            if isinstance(case, cases.VectorCase):
                of_vector = vector.measured(case, arch, sample=sample)
                results["vector"].append(of_vector)
                results["misses"] += map(str, bars.vector_misses(of_vector))
                print(f"{case.name} for {arch}: read", file=sys.stderr, flush=True)
                continue
            program = (case.group, case.program or case.name)
            if program not in known:
                known[program] = measured(case, arch, found, sample=sample)
        except (PolyBlocksError, LookupError, ValueError) as error:
            results["failed"].append(f"{case.name} for {arch}: {error}")
            continue
        row = {**known[program], "case": case.name}
        row["bar"] = bars.bar(row, found)
        results["misses"] += map(str, bars.misses(row, found))
        rows.append(row)
        print(f"{case.name} for {arch}: reach {row['reach']:.2f}", file=sys.stderr, flush=True)
    results["rows"] += rows
    results["misses"] += map(str, bars.together(rows, found))


def _published(folder: Path | None) -> int:
    from bench.gpu_static import against

    groups = against.everything()
    text = page.published(groups)
    print(text)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        date = datetime.date.today().isoformat()
        (folder / f"{date}-gpu-static-published.md").write_text(text)
    every = [row for rows in groups.values() for row in rows]
    return int(not all(row.holds for row in every) or bool(against.misordered(groups["kernels"])))


def _write(stem: Path, results: Json, text: str) -> None:
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    stem.with_suffix(".md").write_text(text)
    print(f"wrote {stem}.json and .md")


def _versions() -> dict[str, str]:
    found = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())

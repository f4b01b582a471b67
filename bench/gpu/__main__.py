"""``python -m bench.gpu``: build where the compiler is, run where the GPU is.

``build`` writes a folder with programs, data and the Python packages that running needs; no GPU.
``run`` times the folder's programs on the GPU that is there; it needs Python, NumPy, PyTorch and
the vendor's bindings, and no compiler. ``check`` runs them under the vendor's tools. ``all`` does
what is left to do of the three. On a machine without an installation::

    PYTHONPATH=gpu/python python3 -m bench.gpu all gpu
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.gpu import attention, cases, hopper
from bench.gpu.bundle import FOLDER, Bundle
from bench.gpu.pipelines import PIPELINES

Json = dict[str, Any]

#: By target what is built for, where nothing is said.
ARCHS = {"nvgpu": "sm_80,sm_90a", "amdgpu": "gfx1100"}
#: The cases, by the names of the command line; the first one is the default.
GROUPS = {
    "memory": cases.PAIRS,
    "pipelines": PIPELINES,
    attention.GROUP: attention.PAIRS,
    hopper.GROUP: hopper.PAIRS,
}
#: Of groups that only some chips are made for: by target what is built for.
ARCHS_OF_GROUP = {hopper.GROUP: {"nvgpu": "sm_90a"}}
#: Turns, and seconds of each: five minutes are to do for many cases.
PACES = {hopper.GROUP: (3, 0.05)}
PACE = (7, 0.15)
#: The last four compute attention alone.
PEERS = "eager,inductor,inductor-max-autotune,flash,cudnn,efficient,flex_attention"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it; the exit status is 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("command", choices=("build", "run", "check", "once", "all"))
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="default: %(default)s")
    parser.add_argument("--only", default="", help="cases whose names contain one of these")
    parser.add_argument(
        "--group", default="memory", choices=GROUPS, help="cases to build (default: %(default)s)"
    )
    parser.add_argument("--target", default="nvgpu", choices=ARCHS)
    parser.add_argument("--arch", help=f"default: {ARCHS}")
    parser.add_argument("--small", action="store_true", help="build only what is checked")
    parser.add_argument("--large", action="store_true", help="build only what is timed")
    parser.add_argument(
        "--keep-going", action="store_true", help="build without what does not compile"
    )
    parser.add_argument(
        "--simulate", action="store_true", help="build for the simulator: small, timing nothing"
    )
    parser.add_argument("--peers", default=PEERS, help="default: %(default)s")
    parser.add_argument(
        "--rounds", type=int, help=f"turns of each peer (default: {PACE[0]}; hopper: 3)"
    )
    parser.add_argument(
        "--turn", type=float, help=f"seconds of a turn (default: {PACE[1]}; hopper: 0.05)"
    )
    parser.add_argument(
        "--limit", type=float, default=math.inf, help="seconds after which no case is begun"
    )
    parser.add_argument("--results", type=Path, help="folder for the results; default: in FOLDER")
    args = parser.parse_args(arguments)
    try:
        if args.command == "build":
            _build(args)
            return 0
        if args.command == "all" and not (args.folder / "bundle.json").exists():
            _build(args)
        bundle = Bundle.read(args.folder)
        pairs = _built(bundle, args.only)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if args.command == "once":
        from bench.gpu import once

        return 1 if once.run(bundle) else 0
    checks = _check(bundle) if args.command in ("check", "all") else None
    if args.command == "check":
        return 1 if _failures(checks, []) else 0
    return _run(args, bundle, pairs, checks)


def _build(args: argparse.Namespace) -> None:
    from bench.gpu.build import build

    chosen = (*cases.named(args.only, GROUPS[args.group]), cases.COPY, cases.TINY)
    sizes = ("small",) if args.small or args.simulate else ("large", "small")
    if args.large and not args.simulate:
        sizes = ("large",)
    archs = args.arch or ARCHS_OF_GROUP.get(args.group, {}).get(args.target, ARCHS[args.target])
    build(
        args.folder,
        chosen,
        args.target,
        archs.split(","),
        sizes=sizes,
        simulated=args.simulate,
        keep_going=args.keep_going,
    )
    print(f"wrote {args.folder}")


def _check(bundle: Bundle) -> Json:
    from bench.gpu import check, page

    found = check.check(bundle)
    print("\n".join(page.checks(found)))
    return found


def _built(bundle: Bundle, only: str) -> tuple[cases.Pair, ...]:
    """The cases that the bundle has, and that are wanted; all groups' names are known."""
    wanted = cases.named(only, [pair for pairs in GROUPS.values() for pair in pairs])
    built = {pair.slug for pair in bundle.pairs(_size(bundle))}
    return tuple(pair for pair in wanted if pair.slug in built)


def _run(
    args: argparse.Namespace, bundle: Bundle, pairs: Sequence[cases.Pair], checks: Json | None
) -> int:
    from bench.gpu import clocks, measure

    clock = clocks.Simulation() if bundle.simulated else clocks.Events()
    peers = [name for name in args.peers.split(",") if name]
    rounds, turn = PACES.get(pairs[0].group if pairs else "", PACE)
    rounds = rounds if args.rounds is None else args.rounds
    pace = measure.Pace(rounds, turn if args.turn is None else args.turn)
    results = measure.run(bundle, pairs, clock, peers, pace, limit=args.limit)
    if checks is not None:
        results["checks"] = checks
    return publish(results, args.results or args.folder / "results")


def _size(bundle: Bundle) -> str:
    return "small" if bundle.simulated else "large"


def publish(results: Json, folder: Path) -> int:
    """Write and print the results; the exit status."""
    from bench import report
    from bench.gpu import page, plot

    folder.mkdir(parents=True, exist_ok=True)
    stem = str(report.place(results, folder, results["gpu"]["name"]))
    picture: Path | None = Path(f"{stem}.png")
    try:
        plot.draw(results, Path(f"{stem}.png"))
    except ImportError:
        print("warning: no plot, matplotlib is not installed", file=sys.stderr)
        picture = None
    text = page.markdown(results, picture.name if picture else None)
    Path(f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    Path(f"{stem}.md").write_text(text)
    print(text)
    print(f"wrote {stem}.json and .md")
    replays = [
        f"{name}: the replay of its graph is wrong"
        for name, row in results.get("graphs", {}).items()
        if row.get("same") is False
    ]
    found = _failures(results.get("checks"), [*report.failures(results), *replays])
    return 1 if found else 0


def _failures(checks: Json | None, others: list[str]) -> list[str]:
    from bench.gpu import check

    found = [*others, *(check.failures(checks) if checks else [])]
    for line in found:
        print(f"error: {line}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())

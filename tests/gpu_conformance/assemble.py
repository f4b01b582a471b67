"""Machine code of every program of the suite: what each kernel takes of a multiprocessor.

``make gpu-conformance`` with ``--programs FOLDER`` collects the programs, as frontends hand them to
the compiler; this compiles them for all architectures, with the assemblers and no simulator, and
writes ``resources.md`` (committed).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from polyblocks.errors import PolyBlocksError
from polyblocks.occupancy import occupancy
from polyblocks.options import CompileOptions
from polyblocks.registry.registry import get_registry
from polyblocks.target import TargetDescription

HERE = Path(__file__).parent

#: Architecture -> target.
ARCHS = {
    "sm_75": "nvgpu",
    "sm_80": "nvgpu",
    "sm_90a": "nvgpu",
    "sm_100a": "nvgpu",
    "gfx1100": "amdgpu",
    "gfx1200": "amdgpu",
}


@dataclass(frozen=True)
class Kernel:
    """One kernel's machine code.

    Attributes:
        name: of the kernel.
        threads: of a block.
        blocks: of the grid.
        registers: of one thread.
        spill_bytes: of one thread, for want of registers.
        scratch_bytes: of one thread: private memory that is no register.
        shared_bytes: of a block.
        assumed: blocks that a multiprocessor holds at once, as the mapping assumes; no more than
            the grid has for each.
        resident: blocks that it holds.
    """

    name: str
    threads: int
    blocks: int
    registers: int
    spill_bytes: int
    scratch_bytes: int
    shared_bytes: int
    assumed: int
    resident: int


@dataclass
class Result:
    """One program for one architecture: its kernels, or why there are none."""

    kernels: list[Kernel] = field(default_factory=list)
    refused: str = ""


def compiled(text: str, arch: str) -> Result:
    """Compile one program to machine code.

    Args:
        text: MLIR, after a frontend.
        arch: one of :data:`ARCHS`.

    Raises:
        LookupError: there is no assembler for this architecture here.
    """
    from polyblocks import mlir, signature
    from polyblocks.driver import compile_module

    options = CompileOptions(target=ARCHS[arch], arch=arch)
    description = get_registry().target(options.target).hook.describe_target(options=options)
    module = mlir.parse(text)
    if not signature.rows(module):
        signature.infer(module)
    try:
        artifact = compile_module(module, description, options)
    except PolyBlocksError as error:
        return Result(refused=" ".join(str(error).split())[:300])
    return Result(list(kernels_of(artifact.manifest, description)))


def kernels_of(manifest: dict[str, Any], description: TargetDescription) -> Iterator[Kernel]:
    """The kernels of a compiled program.

    Raises:
        LookupError: there is no assembler for this architecture here.
    """
    chip = description.multiprocessor
    assert chip is not None
    for row in manifest["kernels"]:
        if "resources" not in row:
            raise LookupError(f"no assembler for {description.arch}: see docs/gpu.md")
        used = row["resources"]
        launch = next(each for each in manifest["launches"] if each["kernel"] == row["name"])
        threads, blocks = prod(launch["block"]), prod(launch["grid"])
        shared = used["shared_bytes"] + launch.get("shared_bytes", 0)
        yield Kernel(
            row["name"],
            threads,
            blocks,
            used["registers"],
            used["spill_bytes"],
            used["stack_bytes"],
            shared,
            row["resident_blocks"],
            occupancy(chip, used["registers"], shared, threads).blocks,
        )


def chosen(folder: Path, count: int | None) -> list[Path]:
    """Programs of a folder: all, or so many, the same ones in every run.

    Names are hashes, so that the first ones are a fair sample.
    """
    return sorted(folder.glob("*.mlir"))[:count]


def main() -> int:
    """Compile; the exit status is 1 if anything spilled or crashed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=Path, help="folder of programs")
    parser.add_argument("--arch", choices=ARCHS, action="append", help="default: all")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of the programs")
    parser.add_argument("--log", type=Path, help="file of the results; those in it are kept")
    arguments = parser.parse_args()
    archs = arguments.arch or list(ARCHS)
    programs = chosen(arguments.programs, arguments.sample)
    results: dict[str, dict[str, Any]] = {}
    if arguments.log and arguments.log.exists():
        results = json.loads(arguments.log.read_text())
    _preload()
    for number, path in enumerate(programs):
        missing = [arch for arch in archs if arch not in results.get(path.stem, {})]
        if missing:
            results.setdefault(path.stem, {}).update(_isolated(path.read_text(), missing))
            if arguments.log:
                arguments.log.write_text(json.dumps(results))
        print(f"\r{number + 1} of {len(programs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    wanted = {path.stem: results[path.stem] for path in programs}
    lines, bad = _table(wanted, archs)
    print("\n".join(lines))
    if set(archs) == set(ARCHS):
        (HERE / "resources.md").write_text("\n".join(lines) + "\n")
    return int(bad)


def _preload() -> None:
    """Load here, once, what every child would load by itself."""
    from polyblocks import mlir

    # The children are the isolation; what they compile in need not be isolated again.
    os.environ["POLYBLOCKS_ISOLATE"] = "1"
    mlir.preload()
    for target in dict.fromkeys(ARCHS.values()):
        for name in get_registry().target(target).hook.preload():
            importlib.import_module(name)


def _isolated(text: str, archs: list[str]) -> dict[str, Any]:
    """JSON of the results by architecture; a child that dies is a crash of each."""
    from polyblocks.isolation.isolation import run_isolated

    def job() -> bytes:
        return json.dumps({arch: asdict(compiled(text, arch)) for arch in archs}).encode()

    try:
        found: dict[str, Any] = json.loads(run_isolated(job, label="program"))
    except PolyBlocksError as error:
        told = " ".join(str(error).split())[:300]
        return {arch: {"kernels": [], "refused": f"crashed: {told}"} for arch in archs}
    return found


def _table(results: dict[str, dict[str, Any]], archs: list[str]) -> tuple[list[str], bool]:
    kernels = {
        arch: [(p, k) for p, each in results.items() for k in each[arch]["kernels"]]
        for arch in archs
    }
    refused = {arch: [p for p, each in results.items() if each[arch]["refused"]] for arch in archs}

    def count(test: Any) -> list[int]:
        return [sum(1 for _, k in kernels[arch] if test(k)) for arch in archs]

    spilled = count(lambda k: k["spill_bytes"])
    scratch = count(lambda k: k["scratch_bytes"])
    fewer = count(lambda k: k["resident"] < k["assumed"])
    rows = [
        ("programs", [len(results)] * len(archs)),
        ("refused", [len(refused[arch]) - len(_crashed(results, arch)) for arch in archs]),
        ("crashed", [len(_crashed(results, arch)) for arch in archs]),
        ("kernels", [len(kernels[arch]) for arch in archs]),
        ("that spill registers", spilled),
        ("with scratch memory", scratch),
        ("fewer blocks at once than assumed", fewer),
        ("most registers of a thread", [_most(kernels[a], "registers") for a in archs]),
        (
            "most shared memory of a block, bytes",
            [_most(kernels[a], "shared_bytes") for a in archs],
        ),
    ]
    lines = [
        "# Machine code of the programs",
        "",
        "Written by `make gpu-resources`: programs of the end-to-end tests, assembled. A spill is "
        "a register that memory holds for want of room, scratch is private memory that is no "
        "register. Blocks at once are those of a multiprocessor; the mapping assumes no more "
        "than the grid has for each.",
        "",
        "| | " + " | ".join(archs) + " |",
        "|---|" + "---:|" * len(archs),
    ]
    lines += [f"| {name} | " + " | ".join(map(str, cells)) + " |" for name, cells in rows]
    lines += ["", "## Kernels by registers of a thread", ""]
    lines += ["| registers | " + " | ".join(archs) + " |", "|---|" + "---:|" * len(archs)]
    for low, high in ((1, 32), (33, 64), (65, 128), (129, 256)):
        cells = count(lambda k, low=low, high=high: low <= k["registers"] <= high)
        lines.append(f"| {low} to {high} | " + " | ".join(map(str, cells)) + " |")
    lines += _listed(results, kernels, refused)
    return lines, any(
        any(row) for row in (spilled, scratch, [_crashed(results, arch) for arch in archs])
    )


def _crashed(results: dict[str, dict[str, Any]], arch: str) -> list[str]:
    return [p for p, each in results.items() if each[arch]["refused"].startswith("crashed")]


def _most(kernels: list[Any], what: str) -> int:
    return max((int(k[what]) for _, k in kernels), default=0)


def _listed(results: Any, kernels: Any, refused: Any) -> list[str]:
    """The kernels that are not as they should be, and the programs that have none."""
    rows = [
        f"| {k['name'][:60]} | {arch} | {k['registers']} | {k['spill_bytes']} | "
        f"{k['scratch_bytes']} | {k['shared_bytes']} | {k['blocks']} x {k['threads']} | "
        f"{k['resident']} of {k['assumed']} |"
        for arch, found in kernels.items()
        for _, k in found
        if k["spill_bytes"] or k["scratch_bytes"] or k["resident"] < k["assumed"]
    ]
    lines = []
    if rows:
        lines += ["", "## Spills, scratch, and fewer blocks than assumed", ""]
        lines += ["| kernel | for | registers | spills | scratch | shared | launch | blocks |"]
        lines += ["|---|---|---:|---:|---:|---:|---|---|", *rows]
    reasons: dict[str, list[str]] = {}
    for arch, programs in refused.items():
        for program in programs:
            reasons.setdefault(results[program][arch]["refused"], []).append(arch)
    if reasons:
        lines += ["", "## Refused", "", "| times | for | reason |", "|---:|---|---|"]
        for reason, archs in sorted(reasons.items()):
            told = reason.replace("|", "\\|")
            lines.append(f"| {len(archs)} | {', '.join(sorted(set(archs)))} | {told} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())

"""``python -m bench.gpu_counts``: what the kernels for GPUs move, counted by the simulator.

Programs at the sizes of the benchmark are compiled for one chip of each GPU target, and a sample
of the blocks of every launch runs in the simulator; the counts stand for the whole grids. Bytes
are divided by the floor: what nobody can avoid moving. No GPU is needed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.pipelines import gpu_counts as pipelines
from bench.pipelines.table import CASES as PIPELINES
from bench.table import CASES, Case, elements, normal

#: A chip of each target.
CHIPS = {"nvgpu": "sm_90a", "amdgpu": "gfx1100"}
#: Groups of the benchmark's cases; the first one is the default.
GROUPS = ("memory", "pipelines")
#: Blocks of a launch that are simulated.
BLOCKS = 6
#: The same for programs whose tiles need much of their neighbours': at the border of the grid
#: they need less, and a sample of six is mostly from the middle.
_MORE_BLOCKS = {"heat": 80}

#: Cases of the benchmark, by the names of their programs.
_NAMES = (
    "blur_x_blur_y",
    "elementwise_chain",
    "softmax",
    "layer_norm",
    "heat",
    "transpose",
    "row_means",
    "column_means",
    "group_norm",
)
_MORE = (
    Case(
        "matmul 1024x1024x1024",
        "matmul",
        normal((1024, 1024), (1024, 1024)),
        3 * elements((1024, 1024)),
    ),
    Case(
        "convolution 3x3 256x256 14x14, batch 8",
        "convolution",
        normal((8, 256, 14, 14), (256, 256, 3, 3)),
        elements((8, 256, 14, 14), (8, 256, 14, 14), (256, 256, 3, 3)),
    ),
)


@dataclass(frozen=True)
class Counted:
    """One program on one chip.

    Attributes:
        name: of the case.
        arch: of the chip.
        blocks: of each launch that were simulated, at most.
        kernels: launches.
        asked: bytes that threads ask for, over the floor.
        moved: bytes of the sectors that warps use, over the floor.
        coalescing: sectors used over the fewest that could hold what was asked for.
        conflicts: cycles lost to bank conflicts, over accesses of shared memory.
        workgroup: bytes asked for in shared memory, over the floor.
        width: bytes that a warp asks for at once, on average.
    """

    name: str
    arch: str
    blocks: int
    kernels: int
    asked: float
    moved: float
    coalescing: float
    conflicts: float
    workgroup: float
    width: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Count and print; write ``<date>-gpu-counts.md`` where asked to.

    Of pipelines it is ``<date>-gpu-counts-pipelines.md``, and a ``.json``.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_counts", description=__doc__)
    parser.add_argument("--only", default="", help="parts of names of cases, with commas between")
    parser.add_argument(
        "--group",
        choices=GROUPS,
        default=GROUPS[0],
        help="pipelines: their kernels beside the CPU's, and what these move (default: memory)",
    )
    parser.add_argument("--target", choices=CHIPS, help="default: all")
    parser.add_argument(
        "--blocks",
        type=int,
        help=f"default: {BLOCKS}, more where borders count for much; of pipelines "
        f"{pipelines.BLOCKS}, and 0 simulates nothing",
    )
    parser.add_argument("--results", type=Path, help="folder for the table; default: none")
    args = parser.parse_args(arguments)
    wanted = [part for part in args.only.split(",") if part]
    several = args.group == "pipelines"
    found: list[Any] = []
    for case in PIPELINES if several else cases():
        if wanted and not any(part in case.name for part in wanted):
            continue
        for target, arch in CHIPS.items():
            if args.target in (None, target):
                begin = time.perf_counter()
                count = pipelines.counted if several else counted
                usual = pipelines.BLOCKS if several else blocks_of(case)
                blocks = usual if args.blocks is None else args.blocks
                found.append(count(case, target, arch, blocks))
                seconds = time.perf_counter() - begin
                print(f"{case.name} on {arch}: {seconds:.1f} s", file=sys.stderr)
    text = pipelines.page(found) if several else page(found)
    print(text)
    if args.results is not None:
        args.results.mkdir(parents=True, exist_ok=True)
        date = datetime.date.today().isoformat()
        stem = f"{date}-gpu-counts{'-pipelines' * several}"
        (args.results / f"{stem}.md").write_text(text)
        if several:
            rows = pipelines.document(found)
            (args.results / f"{stem}.json").write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def cases() -> list[Case]:
    """The cases that are counted."""
    known = {case.program: case for case in CASES}
    return [*(known[name] for name in _NAMES), *_MORE]


def blocks_of(case: Case) -> int:
    """Blocks that are enough to count a case."""
    return _MORE_BLOCKS.get(case.program, BLOCKS)


def counted(case: Case, target: str, arch: str, blocks: int) -> Counted:
    """Compile a case for a chip, and count on a sample of blocks."""
    import torch

    import polyblocks
    from polyblocks import driver
    from polyblocks.simt.simulated import SimulatedExecutable

    inputs = [torch.from_numpy(array) for array in case.inputs()]
    options = {"target": target, "arch": arch, "simulate": True}
    artifact = polyblocks.aot(function_of(case.program), inputs, options)
    program = driver.load(artifact)
    assert isinstance(program, SimulatedExecutable)
    rows = program.sample(blocks)
    total = {
        key: sum(row["counts"][key] for row in rows)
        for key in rows[0]["counts"]
        if key != "instructions"
    }
    sector = program.sector
    asked, floor = total["global_loaded"] + total["global_stored"], case.floor_bytes
    return Counted(
        case.name,
        arch,
        blocks,
        len(rows),
        asked / floor,
        total["sectors"] * sector / floor,
        total["sectors"] / max(total["ideal_sectors"], 1),
        total["bank_conflicts"] / max(total["shared_accesses"], 1),
        (total["shared_loaded"] + total["shared_stored"]) / floor,
        asked / total["global_accesses"],
    )


def page(found: Sequence[Counted]) -> str:
    """The table."""
    lines = [
        "# What kernels for GPUs move",
        "",
        "Counted by the simulator on a number of blocks of each launch. Bytes are over the floor:",
        "what is needed of every argument, and the result, once. Asked: by threads; in sectors: of",
        "the transactions of warps; on chip: in shared memory. Coalescing is sectors over the",
        "fewest that could do, conflicts are lost cycles per access of shared memory, width is",
        "the bytes that a warp asks for at once.",
        "",
        "| case | chip | blocks | kernels | asked | in sectors | coalescing | on chip | conflicts "
        "| width |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in found:
        numbers = (row.asked, row.moved, row.coalescing, row.workgroup, row.conflicts)
        texts = [row.name, row.arch, str(row.blocks), str(row.kernels)]
        texts += [*(f"{n:.3f}" for n in numbers), f"{row.width:.0f}"]
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def function_of(name: str) -> Callable[..., Any]:
    """The function of a case."""
    from torch import matmul
    from torch.nn import functional

    from bench.programs import in_torch

    if name == "convolution":
        return lambda x, w: functional.conv2d(x, w, padding=1)
    found: Callable[..., Any] = matmul if name == "matmul" else getattr(in_torch, name)
    return found


if __name__ == "__main__":
    sys.exit(main())

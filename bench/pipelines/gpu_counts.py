"""The pipelines as kernels for GPUs: how many, beside those of the CPU, and what they move."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.cells import NONE, table
from bench.engines import written_in
from bench.table import Case

Json = dict[str, Any]

#: Blocks of a launch that are simulated.
BLOCKS = 3


@dataclass(frozen=True)
class Row:
    """One program on one chip. What is not known is None.

    Attributes:
        case: its name.
        arch: of the chip.
        kernels: functions that are launched; a function in a loop of steps is one, and so is one
            that several launches share.
        nests: loop nests that they compute, each with a launch of its own in the program.
        launches: of one call.
        cpu_kernels: functions that the same program has on the CPU, as ``explain`` lists them.
        cpu_nests: loop nests that these compute.
        seconds: of compiling, the framework's capture included.
        blocks: of each launch that were simulated, at most.
        asked: bytes that threads ask for, over the floor.
        moved: bytes of the sectors that warps use, over the floor.
        problem: why it does not compile, or is not counted.
    """

    case: str
    arch: str
    kernels: int | None = None
    nests: int | None = None
    launches: int | None = None
    cpu_kernels: int | None = None
    cpu_nests: int | None = None
    seconds: float | None = None
    blocks: int = 0
    asked: float | None = None
    moved: float | None = None
    problem: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether there are no more kernels than on the CPU."""
        if self.kernels is None or self.cpu_kernels is None:
            return None
        return self.kernels <= self.cpu_kernels


def counted(case: Case, target: str, arch: str, blocks: int) -> Row:
    """Compile a case for a chip and for the CPU of this machine, and count.

    Args:
        case: which.
        target: of the chip.
        arch: of the chip.
        blocks: of each launch that are simulated; none if 0.
    """
    from polyblocks.errors import PolyBlocksError

    found: Json = {"case": case.name, "arch": arch}
    try:
        cpu = _built(case, {"target": "cpu"}).manifest["kernels"]
        found |= {"cpu_kernels": len(cpu), "cpu_nests": _nests(cpu)}
        begin = time.perf_counter()
        manifest = _built(case, {"target": target, "arch": arch}).manifest
        found["seconds"] = time.perf_counter() - begin
        kernels = manifest["kernels"]
        found |= {"kernels": len(kernels), "nests": _nests(kernels)}
        found["launches"] = len(manifest["launches"])
        if blocks:
            found |= _moved(case, target, arch, blocks)
    except PolyBlocksError as error:
        found["problem"] = " ".join(str(error).split())[:200]
    return Row(**found)


def _nests(kernels: Sequence[Json]) -> int:
    return len({nest for row in kernels for nest in row["nests"]})


def _built(case: Case, options: Json) -> Any:
    import torch

    import polyblocks
    from bench.arrays import tensor

    torch._dynamo.reset()
    function = written_in("in_torch", case.program)
    with torch.no_grad():
        inputs = [tensor(x) for x in case.inputs()]
        return polyblocks.aot(function, inputs, options, frontend="torch")


def _moved(case: Case, target: str, arch: str, blocks: int) -> Json:
    from polyblocks import driver

    options = {"target": target, "arch": arch, "simulate": True}
    program: Any = driver.load(_built(case, options))
    rows = [(row["counts"], row["times"]) for row in program.sample(blocks, alike=True)]

    def total(key: str) -> int:
        return sum(counts[key] * times for counts, times in rows)

    floor = case.floor_bytes
    return {
        "blocks": blocks,
        "asked": (total("global_loaded") + total("global_stored")) / floor,
        "moved": total("sectors") * program.sector / floor,
    }


def page(rows: Sequence[Row]) -> str:
    """The table."""
    judged = [row for row in rows if row.holds is not None]
    lines = [
        "# The pipelines as kernels for GPUs",
        "",
        "Kernels are functions: one in a loop of steps is one, one that several launches share is",
        "one; the CPU's are those that `explain` lists. Nests are what they compute, each in a",
        "launch of its own, of a loop's steps one. Bytes are counted by the simulator on a",
        "number of blocks of each launch, over the floor: what is needed of every argument, and",
        "the result, once. Asked: by threads; in sectors: of the transactions of warps, before any",
        "cache. What programs look up in tables is counted with indices of 0.",
        "",
        f"No more kernels than on the CPU: {sum(row.holds is True for row in judged)} of "
        f"{len(rows)}; {sum(bool(row.problem) for row in rows)} with a problem.",
        "",
    ]
    heads = ["case", "chip", "kernels", "CPU's", "no more", "nests", "CPU's", "launches"]
    heads += ["asked", "in sectors", "blocks", "compile s"]
    lines += table(heads, [_cells(row) for row in rows])
    problems = [f"- {row.case} on {row.arch}: {row.problem}" for row in rows if row.problem]
    if problems:
        lines += ["", *problems]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[str]:
    counts = [row.kernels, row.cpu_kernels, row.nests, row.cpu_nests, row.launches]
    kernels, cpu, *more = (NONE if n is None else str(n) for n in counts)
    numbers = (NONE if x is None else f"{x:.2f}" for x in (row.asked, row.moved))
    holds = {None: NONE, True: "yes", False: "no"}[row.holds]
    seconds = NONE if row.seconds is None else f"{row.seconds:.1f}"
    blocks = str(row.blocks or NONE)
    return [row.case, row.arch, kernels, cpu, holds, *more, *numbers, blocks, seconds]


def document(rows: Sequence[Row]) -> list[Json]:
    """The rows as JSON values, with ``holds``."""
    return [asdict(row) | {"holds": row.holds} for row in rows]

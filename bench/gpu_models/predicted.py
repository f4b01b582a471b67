"""What the kernels of a compiled model take: by machine code where units multiply, else mapped."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from bench.gpu_static.build import codes_of, launch_of
from bench.gpu_static.instructions import Code
from bench.gpu_static.loops import phases, split
from bench.gpu_static.machines import Machine, machine
from bench.gpu_static.model import Launch, Problem, predict
from polyblocks.affine.cost.rates import waiting_seconds
from polyblocks.artifact import Artifact
from polyblocks.target import TargetDescription

Json = dict[str, Any]

#: Of what is multiplied.
_ELEMENT_BYTES = 2


def predicted(artifact: Artifact, folder: str, target: TargetDescription) -> Json:
    """Sums over all launches, and the kernels, those that take longest first.

    Args:
        artifact: of the model.
        folder: with the dumps of the compilation, where the target's assembler prints them.
        target: what it is compiled for.

    Raises:
        LookupError: a tool that reads machine code is missing; says what to install.
    """
    found, manifest = machine(target), artifact.manifest
    codes = codes_of(artifact, Path(folder), target)
    decisions = manifest["report"]["decisions"]
    mapped = {row["nest"]: row for row in decisions if row["what"] == "mapped"}
    joined = {row["nest"]: row["phases"] for row in decisions if "phases" in row}
    launches = {each["kernel"]: each for each in reversed(manifest["launches"])}
    kernels = []
    for row in manifest["kernels"]:
        names = row["nests"][0].split(" and ")
        nests = [mapped[each] for each in names if "extents" in mapped.get(each, {})]
        launch, code = launches[row["name"]], codes[row["name"]]
        kernels.append(_kernel(row, nests, launch, code, found))
        if launch.get("waits"):
            waiting = waiting_seconds(target, 1 + max(joined[names[0]])) or 0.0
            order = joined[names[0]]
            members = [{**mapped.get(n, {}), "phase": p} for n, p in zip(names, order, strict=True)]
            kernels[-1] |= {"waiting": waiting, "bound": "phases"}
            if nests:
                kernels[-1] |= _of_phases(kernels[-1], members, launch_of(launch, row), code, found)
            elif kernels[-1]["seconds"] is not None:
                # The mapping knows what members share, and counts what they wait.
                kernels[-1]["seconds"] -= waiting
    for each in kernels:
        each["memory"] = of_memory(each, target)
    kernels.sort(key=lambda each: -(each["seconds"] or 0.0) * each["calls"])

    def total(key: str) -> float:
        return sum((each[key] or 0.0) * each["calls"] for each in kernels)

    between = found.launch_seconds * len(manifest["launches"])
    between += sum(each.get("waiting", 0.0) * each["calls"] for each in kernels)
    return {
        "seconds": total("seconds") + between,
        "between": between,
        "floor": total("floor"),
        "moved": total("moved"),
        "memory": total("memory"),
        "compulsory": total("compulsory"),
        "kernels": kernels,
    }


def _kernel(row: Json, nests: list[Json], launch: Json, code: Code, machine: Machine) -> Json:
    """A kernel's row: sizes in bytes and times of one launch.

    ``nests`` are the decisions of the products that the launch computes.
    """
    # A loop or branch as a kernel may have no estimate: a launch, and nothing besides.
    nothing = {"predicted_seconds": None, "floor_bytes": 0, "moved_bytes": 0, "bound": ""}
    estimate, calls = row["estimate"] or nothing, row["calls"]
    of_mapping = estimate["predicted_seconds"]
    by_mapping = None if of_mapping is None else of_mapping / calls
    compulsory = estimate["floor_bytes"] / calls
    seconds, limit, matrix, read = by_mapping, estimate["bound"], 0.0, False
    if row.get("unit") and nests:
        try:
            static = predict(
                split(code), launch_of(launch, row), problem(nests, compulsory), machine
            )
        except (LookupError, ValueError, ZeroDivisionError):
            pass  # Forms that are not read keep the mapping's time.
        else:
            seconds, limit, read = static.seconds, static.limit, True
            matrix = static.matrix_seconds
    resources = row["resources"]
    return {
        "name": row["name"],
        "kind": row["kind"],
        "calls": calls,
        "unit": row.get("unit"),
        "extents": [each["extents"] for each in nests],
        "tile": nests[0]["tile"] if nests else [],
        "row_tiles": nests[0].get("row_tiles", 1) if nests else 1,
        "seconds": seconds,
        "mapping_seconds": by_mapping,
        "read": read,
        "bound": limit,
        "floor": max(compulsory / machine.bandwidth, matrix),
        "moved": moved(nests, compulsory) if nests else estimate["moved_bytes"] / calls,
        "compulsory": compulsory,
        "blocks": launch_of(launch, row).blocks,
        "registers": resources["registers"],
        "private": resources["stack_bytes"] + resources["spill_bytes"],
    }


def _of_phases(
    kernel: Json, members: list[Json], launch: Launch, code: Code, machine: Machine
) -> Json:
    """The time of a launch whose blocks wait for others, without what they wait, and its floor.

    Args:
        kernel: its row, by the mapping.
        members: the decisions about its nests, each with its phase.
        launch: of all blocks.
        code: of the kernel.
        machine: what runs it.
    """
    parts = phases(code)
    seconds = matrix = 0.0
    for phase in range(1 + members[-1]["phase"]):
        beside = [(n, each) for n, each in enumerate(members) if each["phase"] == phase]
        longest = sum(each.get("predicted_seconds", 0.0) for _, each in beside)
        nests = [each for _, each in beside if "extents" in each]
        if nests and len(parts) == len(members):
            blocks = sum(each.get("blocks", 1) for _, each in beside)
            first = next(n for n, each in beside if "extents" in each)
            touched = sum(_touched(each["extents"]) for each in nests)
            try:
                given = replace(launch, blocks=blocks), problem(nests, touched)
                static = predict(split(parts[first]), *given, machine)
            except (LookupError, ValueError, ZeroDivisionError):
                pass  # Forms that are not read keep the mapping's time.
            else:
                longest, matrix = static.seconds, matrix + static.matrix_seconds
        seconds += longest
    floor = max(kernel["compulsory"] / machine.bandwidth, matrix)
    return {"seconds": seconds, "floor": floor, "read": len(parts) == len(members)}


def _touched(extents: list[int]) -> int:
    """Bytes of the operands and the result of a product."""
    rows, columns, steps, count = extents
    return _ELEMENT_BYTES * count * (rows * steps + steps * columns + rows * columns)


def moved(nests: list[Json], compulsory: float) -> float:
    """Bytes that come from the cache that all share: tiles read operands as often as these meet.

    Those of a chain read all columns for each tile of rows, and the rows once.
    """
    total = compulsory
    for each in nests:
        (rows, columns, steps, count), (height, width, *_) = each["extents"], each["tile"]
        again = columns * (ceil(rows / height) - 1)
        if "causal" not in each:
            again += rows * (ceil(columns / width) - 1)
        total += _ELEMENT_BYTES * count * steps * again
    return total


def of_memory(kernel: Json, target: TargetDescription) -> float:
    """Bytes that come from memory, or go there: what tiles read again is in the last cache.

    Columns of a product that the cache cannot hold come for each row of tiles, or for as many of
    these as blocks compute at about the same time (``row_tiles``). They come as often as the rows
    of these tiles if the cache cannot hold those either. Operands are no larger than all arrays of
    the kernel: windows overlap, and scores of a chain are nowhere.
    """
    if not kernel["extents"]:
        return float(max(kernel["moved"], kernel["compulsory"]))
    last = max(level.size for level in target.memory)
    height, width, *_ = kernel["tile"]
    total = kernel["compulsory"]
    for rows, columns, steps, count in kernel["extents"]:
        if min(_touched([rows, columns, steps, count]), kernel["compulsory"]) <= last:
            continue
        beside = height * kernel.get("row_tiles", 1)
        of_columns, of_rows = (_ELEMENT_BYTES * n * steps for n in (columns, min(rows, beside)))
        if min(of_columns, kernel["compulsory"]) > last:
            total += count * of_columns * (ceil(rows / beside) - 1)
        if of_rows > last:
            total += count * _ELEMENT_BYTES * rows * steps * (ceil(columns / width) - 1)
    return float(total)


def problem(nests: list[Json], compulsory: float) -> Problem:
    """What a launch computes: the products of its nests side by side."""
    rows, columns, steps, count = nests[0]["extents"]
    if "causal" in nests[0]:
        return Problem(
            rows * count, columns, steps, int(compulsory), rows, causal=nests[0]["causal"]
        )
    width = sum(each["extents"][1] * each["extents"][3] for each in nests)
    return Problem(rows, width, steps, int(compulsory))

"""A case's row: its kernels built, read and put into the model. See :data:`KEYS`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bench.gpu_static.build import Built, build
from bench.gpu_static.cases import Case, arguments
from bench.gpu_static.instructions import Kind, products
from bench.gpu_static.loops import Parts, split
from bench.gpu_static.machines import Machine
from bench.gpu_static.model import Estimate, predict, sustained

Json = dict[str, Any]

#: Keys of a row. Times are in seconds, sizes in bytes; what is unknown is null.
KEYS = {
    "case": "name of the case",
    "arch": "what it is built for",
    "group": "of the case",
    "dtype": "of its arguments",
    "size": "extents, if it is a product",
    "shape": "what cases of other types are compared by",
    "kernel": "the one that multiplies",
    "kernels": "launches",
    "seconds": "of all of them",
    "other_seconds": "of those that do not multiply, as the mapping predicts them, with launches",
    "mapping_seconds": "the mapping's own prediction of all of them",
    "teraflops": "operations that are needed over the time",
    "memory_seconds": "of every argument and the result, once",
    "reach": "the larger of the unit's and the memory's time, over it",
    "sustained": "at the clock that its limit of power leaves the chip: hertz, seconds, reach, "
    "and reach of the nominal peak; null where it is unknown",
    "limit": "what limits the main loop",
    "cycles": "of an iteration of the blocks that are held: by resource, and as scheduled",
    "trips": "iterations",
    "prologue": "cycles",
    "epilogue": "cycles",
    "blocks": "of the grid",
    "resident": "blocks that a multiprocessor holds",
    "assumed": "the same, as the mapping assumes",
    "registers": "of a thread",
    "spill_bytes": "of a thread",
    "stack_bytes": "of a thread",
    "shared_bytes": "of a block",
    "bytes_in_flight": "copies on their way at once",
    "matrix_slots": "matrix instructions over all of the main loop",
    "matrix_cycles": "of a matrix instruction",
    "vector_per_matrix": "other instructions of the vector unit for each",
    "conflicts": "bank conflicts in a simulated sample of blocks",
}


def measured(case: Case, arch: str, machine: Machine, *, sample: int = 0) -> Json:
    """The row of a case.

    Args:
        case: what is built.
        arch: for what.
        machine: that runs it.
        sample: blocks of each launch that are simulated to count bank conflicts; 0: none.

    Raises:
        PolyBlocksError: it does not compile.
        LookupError: a tool is missing, or the target's description lacks something.
    """
    launches = build(case, arch)
    parts = [split(each.code) for each in launches]
    main = max(range(len(parts)), key=lambda n: _weight(parts[n]))
    built = launches[main]
    estimate = predict(parts[main], built.launch, case.problem, machine)
    others = [each.predicted for n, each in enumerate(launches) if n != main]
    # Each one more waits for the end of the one before.
    other_seconds = sum(s for s in others if s is not None) + machine.launch_seconds * len(others)
    seconds = estimate.seconds + other_seconds
    predicted = built.predicted
    row = {
        "case": case.name,
        "arch": arch,
        "group": case.group,
        "dtype": case.dtype,
        "size": case.size,
        "shape": case.name.replace(case.dtype, "").split(":")[0],
        "kernel": built.name,
        "kernels": len(launches),
        "seconds": seconds,
        "other_seconds": other_seconds,
        "mapping_seconds": None if predicted is None else predicted + other_seconds,
        "teraflops": 2e-12 * case.problem.products / seconds,
        "memory_seconds": estimate.memory_seconds,
        "reach": max(estimate.matrix_seconds, estimate.memory_seconds) / seconds,
        "sustained": _sustained(built, parts[main], case, machine, other_seconds),
        **_of_kernel(built, parts[main], estimate, machine),
        "conflicts": conflicts(case, arch, sample) if sample else None,
    }
    assert row.keys() == KEYS.keys()
    return {key: row[key] for key in KEYS}


def _sustained(
    built: Built, parts: Parts, case: Case, machine: Machine, other_seconds: float
) -> Json | None:
    found = sustained(parts, built.launch, case.problem, machine)
    if found is None:
        return None
    hertz, estimate = found
    seconds = estimate.seconds + other_seconds
    nominal = estimate.matrix_seconds * hertz / machine.hertz
    return {
        "hertz": hertz,
        "seconds": seconds,
        "reach": max(estimate.matrix_seconds, estimate.memory_seconds) / seconds,
        "of_nominal": max(nominal, estimate.memory_seconds) / seconds,
    }


def _weight(parts: Parts) -> tuple[int, int]:
    return products(parts.loop, Kind.MATRIX), products(parts.loop, Kind.FLOAT)


def _of_kernel(built: Built, parts: Parts, estimate: Estimate, machine: Machine) -> Json:
    matrix = [machine.busy(i) for i in parts.loop if i.kind is Kind.MATRIX]
    resources = built.row["resources"]
    return {
        "limit": estimate.limit,
        "cycles": {**asdict(estimate.busy), "schedule": estimate.scheduled},
        "trips": estimate.trips,
        "prologue": estimate.prologue,
        "epilogue": estimate.epilogue,
        "blocks": built.launch.blocks,
        "resident": estimate.resident,
        "assumed": built.row["resident_blocks"],
        "registers": built.launch.registers,
        "spill_bytes": resources["spill_bytes"],
        "stack_bytes": resources["stack_bytes"],
        "shared_bytes": built.launch.shared_bytes,
        "bytes_in_flight": estimate.bytes_in_flight if parts.is_loop else None,
        "matrix_slots": estimate.matrix_slots if matrix else None,
        "matrix_cycles": matrix[0] if matrix else None,
        "vector_per_matrix": estimate.vector_per_matrix,
    }


def conflicts(case: Case, arch: str, sample: int) -> int:
    """Bank conflicts of a sample of blocks of every launch, in the simulator."""
    import torch

    import polyblocks
    from bench.gpu_static.build import describe
    from polyblocks import driver
    from polyblocks.simt.simulated import SimulatedExecutable

    torch._dynamo.reset()
    inputs = arguments(case, torch.zeros)
    options = {"target": describe(arch).name, "arch": arch, "simulate": True}
    with torch.no_grad():
        artifact = polyblocks.aot(case.make(), inputs, options, frontend="torch")
    program = driver.load(artifact)
    assert isinstance(program, SimulatedExecutable)
    return sum(row["counts"]["bank_conflicts"] for row in program.sample(sample))

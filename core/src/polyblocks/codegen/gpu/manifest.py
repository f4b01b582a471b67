"""The manifest of an artifact for GPUs: the launch plan and a table of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from polyblocks import signature
from polyblocks.affine.mlir.json_attributes import from_attribute, read_json
from polyblocks.attributes import (
    ALIGNMENTS_ATTRIBUTE,
    CHECKS_ATTRIBUTE,
    ESTIMATE_ATTRIBUTE,
    ESTIMATES_ATTRIBUTE,
    KIND_ATTRIBUTE,
    NESTS_ATTRIBUTE,
    RESIDENT_ATTRIBUTE,
    SOURCES_ATTRIBUTE,
    UNIT_ATTRIBUTE,
)
from polyblocks.codegen.gpu.plan import kernels, name_of, read_launches

#: The manifest's ``entry``: there is no function to call, the launches are the program.
ENTRY = "launches"
#: Ending of the blob with the optimized LLVM IR, for the simulator.
OPTIMIZED = "ll"


@dataclass(frozen=True)
class Resources:
    """Resources of one kernel on a multiprocessor, from the assembler.

    Attributes:
        registers: of one thread (of a lane of vector registers).
        scalar_registers: of one warp, where the chip has such; else 0.
        spill_bytes: registers spilled to memory, per thread.
        stack_bytes: of private memory that is no register, per thread.
        shared_bytes: of shared memory that the kernel itself declares, per block.
        code_bytes: of machine code.
    """

    registers: int
    scalar_registers: int = 0
    spill_bytes: int = 0
    stack_bytes: int = 0
    shared_bytes: int = 0
    code_bytes: int | None = None


def blob_name(arch: str, form: str) -> str:
    """The blob with the kernels for one architecture, in one form: source, object ..."""
    return f"kernels.{arch}.{form}"


def manifest_of(module: Any, resources: Mapping[str, Resources]) -> dict[str, Any]:
    """The part of the manifest that the target is to give.

    Args:
        module: in form L.
        resources: of kernels by name; those that are not known are left out.

    Returns:
        ``entry``, ``arguments``, ``launches``, ``checks`` and ``kernels``. An argument has an
        ``alignment`` (bytes) if kernels rely on one that is more than its elements'.
    """
    arguments = signature.rows(module)
    for row in read_json(module, ALIGNMENTS_ATTRIBUTE, []):
        arguments[row["argument"]]["alignment"] = row["bytes"]
    launches = read_launches(module)
    return {
        "entry": ENTRY,
        "arguments": arguments,
        "launches": launches,
        "checks": read_json(module, CHECKS_ATTRIBUTE, []),
        "kernels": [
            _row(kernel, launches, resources.get(name_of(kernel))) for kernel in kernels(module)
        ],
    }


def timed(manifest: Mapping[str, Any]) -> list[dict[str, str]]:
    """The rows of a profile: the program, which has no name, and its launches."""
    nests = {row["name"]: iter(row["nests"]) for row in manifest["kernels"]}
    launches = [launch["kernel"] for launch in manifest["launches"]]
    return [
        {"kernel": "", "nest": ""},
        *({"kernel": name, "nest": next(nests[name])} for name in launches),
    ]


def _row(
    kernel: Any, launches: list[dict[str, Any]], resources: Resources | None
) -> dict[str, Any]:
    """A kernel's row, with the keys that reports know and ``resources``."""
    from polyblocks.affine.cost.estimate import combine

    name = name_of(kernel)
    mine = [row for row in launches if row["kernel"] == name]
    a = kernel.attributes
    estimates = [a[ESTIMATE_ATTRIBUTE]] * len(mine) if ESTIMATE_ATTRIBUTE in a else []
    return {
        "name": name,
        "parallel": prod(mine[0]["grid"]) * prod(mine[0]["block"]),
        "kind": a[KIND_ATTRIBUTE].value if KIND_ATTRIBUTE in a else "",
        "vector": [],
        "unit": a[UNIT_ATTRIBUTE].value if UNIT_ATTRIBUTE in a else "",
        "sources": [s.value for s in a[SOURCES_ATTRIBUTE]] if SOURCES_ATTRIBUTE in a else [],
        "calls": len(mine),
        "resident_blocks": a[RESIDENT_ATTRIBUTE].value if RESIDENT_ATTRIBUTE in a else 1,
        "nests": [n.value for n in a[NESTS_ATTRIBUTE]]
        if NESTS_ATTRIBUTE in a
        else [name] * len(mine),
        "estimate": combine([from_attribute(e) for e in a.get(ESTIMATES_ATTRIBUTE, estimates)]),
        "code_bytes": resources.code_bytes if resources else None,
        **({"resources": asdict(resources)} if resources else {}),
    }

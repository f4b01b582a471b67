"""Compile a case for a chip, and read the machine code of its kernels. Needs no GPU."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from pathlib import Path
from typing import Any

from bench.gpu_static import amd_assembly, sass
from bench.gpu_static.cases import Case, arguments
from bench.gpu_static.instructions import Code
from bench.gpu_static.model import Launch
from polyblocks.artifact import Artifact
from polyblocks.target import TargetDescription

Json = dict[str, Any]

#: Targets whose machine code can be read.
TARGETS = ("nvgpu", "amdgpu")
_REGISTERS = re.compile(r"\.name:\s+(\S+)\n(?:(?!\.name:).)*?\.vgpr_count:\s+(\d+)", re.DOTALL)


@dataclass(frozen=True)
class Built:
    """One launch of a compiled case.

    Attributes:
        name: of the kernel.
        code: its machine code.
        launch: of it.
        row: the kernel's row in the manifest.
    """

    name: str
    code: Code
    launch: Launch
    row: Json

    @property
    def predicted(self) -> float | None:
        """Seconds that the mapping predicted."""
        seconds: float | None = self.row["estimate"]["predicted_seconds"]
        return seconds


def describe(arch: str) -> TargetDescription:
    """The description of an architecture's usual chip, or of a chip by its name.

    Raises:
        ValueError: no target knows it; holds what each says.
    """
    from polyblocks.errors import TargetError
    from polyblocks.options import CompileOptions
    from polyblocks.registry.registry import get_registry

    said = []
    for target in TARGETS:
        options = CompileOptions(target=target, arch=arch)
        try:
            description: TargetDescription = (
                get_registry().target(target).hook.describe_target(options=options)
            )
        except TargetError as error:
            said.append(str(error))
            continue
        return description
    raise ValueError("; ".join(said))


def build(case: Case, arch: str) -> list[Built]:
    """The launches of a case.

    Raises:
        PolyBlocksError: it does not compile.
        LookupError: a tool is missing; says what to install.
    """
    import torch

    import polyblocks

    target = describe(arch).name
    torch._dynamo.reset()
    inputs = arguments(case, torch.empty)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        options: Json = {"target": target, "arch": arch}
        if target == "amdgpu":
            options["debug"] = folder
        artifact = polyblocks.aot(case.make(), inputs, options, frontend="torch")
        codes = codes_of(artifact, Path(folder), describe(arch))
    rows = {row["name"]: row for row in artifact.manifest["kernels"]}
    found = []
    for each in artifact.manifest["launches"]:
        name = each["kernel"]
        launch = launch_of(each, rows[name], artifact.manifest["results"])
        found.append(Built(name, codes[name], launch, rows[name]))
    return found


def codes_of(artifact: Artifact, folder: Path, target: TargetDescription) -> dict[str, Code]:
    """The machine code of the kernels of an artifact, by their names.

    Args:
        artifact: of that target.
        folder: of the compilation's dumps, where machine code is read from what LLVM prints.
        target: what it is compiled for.

    Raises:
        LookupError: a tool is missing; says what to install.
    """
    if target.name == "amdgpu":
        return _assembly(folder, artifact.manifest)
    return _cubin(artifact.blobs, target.properties["chip"])


def _cubin(blobs: Any, arch: str) -> dict[str, Code]:
    cubin = next((data for name, data in blobs.items() if name.endswith(".cubin")), None)
    if cubin is None:
        raise LookupError(f"no assembler made machine code for {arch}: see docs/gpu.md for ptxas")
    return sass.parse(sass.disassemble(cubin))


def _assembly(folder: Path, manifest: Json) -> dict[str, Code]:
    """Of the dump that LLVM prints; it is of the code that was linked, or it is an error."""
    (path,) = folder.glob("*/S5-code.s")
    text = path.read_text()
    metadata = text[text.index("amdhsa.kernels") :]
    registers = {name: int(count) for name, count in _REGISTERS.findall(metadata)}
    for row in manifest["kernels"]:
        if registers.get(row["name"]) != row["resources"]["registers"]:
            raise LookupError(
                f"the dump of {row['name']} has {registers.get(row['name'])} registers and the "
                f"linked code {row['resources']['registers']}"
            )
    return amd_assembly.parse(text)


def launch_of(launch: Json, row: Json, results: Sequence[int] = ()) -> Launch:
    """A launch of the manifest, with the resources that its kernel's row says it takes.

    ``results`` are the arguments that are results of the program.
    """
    used = row["resources"]
    maps = [each["tensor_map"] for each in launch["arguments"] if "tensor_map" in each]
    stored = [each for each in maps if each.get("argument") in results]
    loaded = [each for each in maps if each not in stored]
    return Launch(
        prod(launch["grid"]),
        prod(launch["block"]),
        used["registers"],
        used["shared_bytes"] + launch.get("shared_bytes", 0),
        _boxes(loaded),
        sum(_boxes(stored)),
        launch.get("cluster", 1),
        pitch=gcd(*(stride for each in loaded for stride in each["strides"])),
    )


def _boxes(maps: list[Json]) -> tuple[int, ...]:
    """Bytes of a box of each array that is copied in boxes, the largest first."""
    return tuple(sorted((prod(m["box"]) * m["element_bytes"] for m in maps), reverse=True))

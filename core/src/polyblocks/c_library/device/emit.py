"""``emit_library`` of targets for GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import polyblocks
from polyblocks.artifact import Artifact
from polyblocks.c_library import c_compiler
from polyblocks.c_library.device.header import STATUSES, functions
from polyblocks.c_library.device.source import Image, Stored, functions_text, tables_text
from polyblocks.c_library.device.vendor import Vendor
from polyblocks.c_library.files import write_files, write_stored
from polyblocks.c_library.header import header_text
from polyblocks.c_library.interface import Interface, identifier, interface_of
from polyblocks.cache.artifact_variants import archs_of, variant
from polyblocks.errors import InputError
from polyblocks.program import DTYPES
from polyblocks.runtime.device.code import code_of, is_simulated
from polyblocks.runtime.device.plan import ON_DEVICE
from polyblocks.runtime.slots import signature_of

#: The files of this room that the generated ones are compiled with.
_SOURCES = ("calls.h", "program.h", "driver.h", "library.c")


def emit_library(artifact: Artifact, name: str, folder: Path, vendor: Vendor) -> Sequence[Path]:
    """Write ``libNAME.so``, ``NAME.h`` and ``NAME-config.cmake`` into a folder.

    Args:
        artifact: of a target with launch plans, perhaps for several architectures.
        name: of the function; what C does not take in a name becomes an underscore.
        folder: is made if it is not there.
        vendor: whose driver is called.

    Raises:
        InputError: the program is none for C: built for the simulator, or to be measured.
        TargetError: there is no C compiler, or it fails.
        ArtifactError: there is no code, or no launch plan.
    """
    name = identifier(name)
    variants = [variant(artifact, arch) for arch in archs_of(artifact)]
    if is_simulated(artifact):
        raise InputError(
            f"a library runs on GPUs, and {name} is built for the simulator; leave out the option "
            "'simulate'"
        )
    if any("profile" in each.manifest for each in variants):
        raise InputError("a library does not measure its kernels; leave out the option 'profile'")
    on_device = bool(artifact.manifest.get(ON_DEVICE))
    interface = _interface(name, variants, on_device)
    contents: dict[bytes, int] = {}
    uses = [
        [
            contents.setdefault(data, len(contents))
            for _, data in signature_of(each.manifest, each.blobs).stored
        ]
        for each in variants
    ]
    header = header_text(
        interface,
        archs_of(artifact),
        variants[0].manifest.get("checks", []),
        polyblocks.__version__,
        STATUSES,
        functions(interface, vendor, on_device),
    )

    def write_sources(place: Path) -> list[str]:
        stored = [
            Stored(file, len(data))
            for file, data in zip(write_stored(place, contents), contents, strict=True)
        ]
        images = _write_images(artifact, place)
        tables = tables_text(interface, variants, uses, images, stored)
        (place / "tables.c").write_text(tables, encoding="utf-8")
        (place / "functions.c").write_text(functions_text(interface, on_device), encoding="utf-8")
        (place / "vendor.h").write_bytes(vendor.read_source())
        for file in _SOURCES:
            data = (files("polyblocks.c_library.device") / file).read_bytes()
            (place / file).write_bytes(data)
        sources = ("tables.c", "functions.c", "library.c")
        return [f"-DARRAYS_ON_DEVICE={int(on_device)}", *sources, "-ldl"]

    compiler = c_compiler.find_any()
    return write_files(interface, header, STATUSES, compiler, write_sources, folder)


def _interface(name: str, variants: Sequence[Artifact], on_device: bool) -> Interface:
    """The interface for all architectures, each of which may want its own alignments."""
    every = [interface_of(name, each) for each in variants]
    arrays = []
    for found in zip(*(each.arrays for each in every), strict=True):
        array, dtype = found[0], found[0].spec.dtype
        # Copies of host arrays are aligned as kernels need.
        natural = DTYPES[dtype][1] // (2 if dtype.startswith("complex") else 1)
        alignment = max(each.alignment for each in found) if on_device else natural
        arrays.append(replace(array, alignment=alignment))
    return replace(every[0], arrays=tuple(arrays))


def _write_images(artifact: Artifact, place: Path) -> list[Image]:
    """Write the code into files; none if the program computes nothing."""
    if not artifact.manifest.get("launches"):
        return []
    archs = archs_of(artifact)
    images: list[Image] = []
    for (arch, form), data in sorted(code_of(artifact).items()):
        if arch in archs:
            file = f"code-{len(images)}.bin"
            (place / file).write_bytes(data)
            images.append(Image(archs.index(arch), form, file, len(data)))
    return images

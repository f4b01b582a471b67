"""``emit_library``: an artifact as a shared object, with a header and what CMake needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polyblocks
from polyblocks.artifact import Artifact
from polyblocks.c_library.files import write_files, write_stored
from polyblocks.c_library.header import header_text
from polyblocks.c_library.interface import identifier, interface_of
from polyblocks.cache.artifact_variants import archs_of, variant
from polyblocks.errors import InputError, TargetError
from polyblocks.preparation import part
from polyblocks.runtime.slots import signature_of
from polyblocks_cpu.library import openmp_compiler
from polyblocks_cpu.library.header import STATUSES, functions
from polyblocks_cpu.library.source import STATICS, Variant, source_text
from polyblocks_cpu.load import object_name, objects_of
from polyblocks_cpu.objects.elf import machine_of
from polyblocks_cpu.objects.rename import renamed
from polyblocks_cpu.openmp import SYMBOLS

#: Bytes of stored arrays that code reaches: its addresses are offsets of 32 bits.
MOST_BYTES = 2**31 - 2**28


def emit_library(artifact: Artifact, name: str, folder: Path) -> Sequence[Path]:
    """Write ``libNAME.so``, ``NAME.h`` and ``NAME-config.cmake`` into a folder.

    Args:
        artifact: for CPUs of one family.
        name: of the function; what C does not take in a name becomes an underscore.
        folder: is made if it is not there.

    Raises:
        InputError: the program is none for C: for chips of several families, with more stored than
            fits, or compiled to be measured.
        TargetError: there is no C compiler, or it fails.
    """
    name = identifier(name)
    if name in STATICS:
        name += "_"
    made = [variant(artifact, arch) for arch in archs_of(artifact)]
    # The best first, as a file is loaded: those that need most.
    made.sort(key=lambda each: (len(each.manifest.get("requires", ())), each.manifest["arch"]))
    made.reverse()
    family = _family(made)
    if any("profile" in each.manifest for each in made):
        raise InputError("a library does not measure its kernels; leave out the option 'profile'")
    weights: dict[bytes, str] = {}
    variants = [
        Variant(
            number,
            each,
            tuple(
                weights.setdefault(contents, str(len(weights)))
                for _, contents in signature_of(each.manifest, each.blobs).stored
            ),
        )
        for number, each in enumerate(made)
    ]
    stored = sum(map(len, weights))
    if stored > MOST_BYTES:
        raise InputError(
            f"{name} stores {stored} bytes, and a library holds at most {MOST_BYTES}; compile it "
            "with weights='arguments' and pass them"
        )
    interface = interface_of(name, made[0])
    compiler = openmp_compiler.find(family)
    header = header_text(
        interface,
        [each.manifest["arch"] for each in made],
        made[0].manifest.get("checks", []),
        polyblocks.__version__,
        STATUSES,
        functions(interface),
    )

    def write_sources(place: Path) -> list[str]:
        source = source_text(interface, family, variants, write_stored(place, weights))
        (place / "program.c").write_text(source, encoding="utf-8")
        return ["program.c", *(file for each in variants for file in _write_objects(each, place))]

    return write_files(interface, header, STATUSES, compiler, write_sources, folder)


def _family(made: Sequence[Artifact]) -> str:
    found = {machine_of(each.blobs.get(object_name(0), b"")) for each in made}
    if None in found:
        raise TargetError("libraries are made of ELF objects, as on Linux; these are others")
    if len(found) > 1:
        raise InputError(
            f"a library is for chips of one family, not of {', '.join(sorted(map(str, found)))}; "
            "make one library for each"
        )
    return str(found.pop())


def _write_objects(variant: Variant, place: Path) -> list[str]:
    """The objects of a variant, with names that no other one has; their files."""
    files = []
    preparation = part(variant.artifact)
    for what, each in (("run", variant.artifact), ("prepare", preparation)):
        if each is None:
            continue

        def rename(name: str, what: str = what) -> str:
            return name if name in SYMBOLS else variant.symbol(name, what)

        for number, data in enumerate(objects_of(each)):
            files.append(f"{what}-{variant.number}-{number}.o")
            (place / files[-1]).write_bytes(renamed(data, rename))
    return files

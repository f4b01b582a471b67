"""One artifact for several architectures of a target, and the way back to a single one.

Programs for different chips differ in more than code: their grids, blocks and workspaces do. A
joined artifact has the manifest of the first architecture, and in ``variants`` what is different
for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks.artifact import Artifact
from polyblocks.errors import ArtifactError

#: Keys of the manifest that each variant has for itself.
_OWN = (
    "arguments",
    "launches",
    "workspace_bytes",
    "kernels",
    "checks",
    "report",
    "requires",
    "call",
    "results",
    "profile",
    "preparation",
    "unread",
)

#: Key of a variant: names of its blobs that other architectures have as well -> names in the file.
_FILES = "files"


def join(artifacts: Sequence[Artifact]) -> Artifact:
    """One artifact of several, which were compiled of one program for different architectures.

    Raises:
        ArtifactError: they are of different targets or programs, or two are for one architecture.
    """
    first = artifacts[0]
    if len(artifacts) == 1:
        return first
    manifest = dict(first.manifest)
    blobs: dict[str, bytes] = {}
    variants: dict[str, Any] = {}
    for artifact in artifacts:
        other = artifact.manifest
        for what, one, two in (
            ("targets", manifest["target"], other["target"]),
            ("programs", _interface(manifest), _interface(other)),
        ):
            if one != two:
                raise ArtifactError(
                    f"artifacts of different {what} cannot be joined: {_short(one)} and "
                    f"{_short(two)}; compile one program for several architectures"
                )
        arch = other["arch"]
        if arch in variants:
            raise ArtifactError(f"architecture '{arch}' is there twice; name it once")
        variants[arch] = {key: other[key] for key in _OWN if key in other}
        files = _renamed(artifact, artifacts)
        if files:
            variants[arch][_FILES] = files
        blobs.update({files.get(name, name): data for name, data in artifact.blobs.items()})
    manifest["variants"] = variants
    return Artifact(manifest, blobs)


def _renamed(artifact: Artifact, artifacts: Sequence[Artifact]) -> dict[str, str]:
    """The blobs that need another name in a file for all: those of one architecture alone.

    Shared blobs have one name; so have those with the architecture in their name.
    """
    arch = artifact.manifest["arch"]
    return {
        name: f"{arch}.{name}"
        for name, data in artifact.blobs.items()
        if arch not in name and any(other.blobs.get(name) != data for other in artifacts)
    }


def archs_of(artifact: Artifact) -> list[str]:
    """The architectures that an artifact is for."""
    variants = artifact.manifest.get("variants")
    return list(variants) if variants else [artifact.manifest["arch"]]


def variant(artifact: Artifact, arch: str) -> Artifact:
    """The artifact as one for a single architecture, with its blobs and those that say their own.

    Raises:
        ArtifactError: it has no such variant.
    """
    if arch not in archs_of(artifact):
        raise ArtifactError(
            f"the artifact is for {', '.join(archs_of(artifact))}, not '{arch}'; compile it again"
        )
    variants = artifact.manifest.get("variants")
    if not variants:
        return artifact
    rest = {k: v for k, v in artifact.manifest.items() if k not in (*_OWN, "variants")}
    own = dict(variants[arch])
    files = own.pop(_FILES, {})
    renamed = {file for each in variants.values() for file in each.get(_FILES, {}).values()}
    blobs = {name: data for name, data in artifact.blobs.items() if name not in renamed}
    blobs |= {name: artifact.blobs[file] for name, file in files.items()}
    return Artifact({**rest, "arch": arch, **own}, blobs)


def _interface(manifest: dict[str, Any]) -> list[Any]:
    """The interface of a program."""
    arguments = manifest["arguments"]
    keys = ("role", "name", "dtype", "shape", "strides")
    return [
        [row.get(key) for key in keys] for row in arguments if row["role"] in ("input", "output")
    ]


def _short(value: Any) -> str:
    return f"{value!r:.80}"

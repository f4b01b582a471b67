"""Artifact: the result of S5, a manifest (JSON) and binary blobs in a ZIP.

Cache entry and ahead-of-time file are the same thing. It holds everything needed to run and
nothing needed to compile. The bytes of equal artifacts are equal: members are stored, not
compressed, in sorted order, with one fixed date.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyblocks.errors import ArtifactError
from polyblocks.files import write_file
from polyblocks.program import DTYPES

#: Version of the manifest; raised when an older reader would misunderstand it.
SCHEMA = 2

KINDS = ("program", "plan", "helper")
ROLES = ("input", "output", "workspace", "kept", "status")

#: Role of the argument with what is computed once of constant arguments.
KEPT = "kept"
#: Key of a manifest that is true if something that lies in this moment, and not in the program,
#: made the artifact what it is: it is used, and not kept.
TRANSIENT = "transient"

#: Key of the manifest of the part of a program that is run once for given constant arguments.
PREPARATION = "preparation"

_MANIFEST = "manifest.json"
_BLOBS = "blobs/"
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(repr=False)
class Artifact:
    """A compiled program (or a frontend's cached plan), independent of where it is stored.

    Attributes:
        manifest: JSON values. Every artifact has ``schema``, ``kind`` and ``blobs``; those two
            are filled in by :meth:`to_bytes` when missing, ``blobs`` always. Kind ``program``
            also has

            * ``target``, ``arch``, ``name``, ``entry``: strings;
            * ``arguments``: one dictionary per argument of the entry, in order, with ``role``
              (``input``, ``output``, ``workspace``, ``status``), ``name``, ``dtype``, ``shape``
              and ``strides`` (elements), ``constant``, ``updates`` (index of the argument whose
              buffer this one is, or None);
            * ``workspace_bytes``: an integer;
            * ``kernels``: a list of dictionaries with at least ``name``;
            * ``checks``: messages of run-time checks; the entry returns index + 1 of the failed;
            * ``versions`` and ``report``: dictionaries;
            * ``preparation``, if some of its arguments are kept (role ``kept``): the manifest of
              the program that fills these, ``entry``, ``arguments``, ``kernels``,
              ``workspace_bytes`` and ``sources``: for each of its arguments, which argument of the
              whole program it is, or None for its own workspace.
        blobs: name -> bytes, e.g. an object file.
    """

    manifest: dict[str, Any]
    blobs: dict[str, bytes] = field(default_factory=dict)

    def __repr__(self) -> str:
        manifest = self.manifest
        archs = ", ".join(manifest.get("variants") or [str(manifest.get("arch", "?"))])
        chip = f" for {manifest['target']} ({archs})" if "target" in manifest else ""
        sizes = ", ".join(f"{name}: {len(data)} bytes" for name, data in sorted(self.blobs.items()))
        return f"<Artifact {manifest.get('kind', 'program')} '{manifest.get('name', '')}'{chip}" + (
            f"; {sizes}>" if sizes else ">"
        )

    def to_bytes(self) -> bytes:
        """The artifact as a ZIP file.

        Raises:
            ArtifactError: the manifest breaks the schema, or is not JSON.
        """
        manifest = {"schema": SCHEMA, "kind": "program", **self.manifest}
        manifest["blobs"] = {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            for name, data in sorted(self.blobs.items())
        }
        check_manifest(manifest)
        try:
            text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), allow_nan=True)
        except (TypeError, ValueError) as error:
            raise ArtifactError(f"the artifact's manifest is not JSON: {error}") from error
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(_member(_MANIFEST), text)
            for name, data in sorted(self.blobs.items()):
                archive.writestr(_member(_BLOBS + name), data)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Artifact:
        """Read an artifact and check all of it.

        Raises:
            ArtifactError: damaged, incomplete, foreign, or of another schema version.
        """
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                manifest, blobs = _read(archive)
        except ArtifactError:
            raise
        # A damaged ZIP makes the library raise nearly anything.
        except Exception as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise ArtifactError(f"the artifact is damaged or none ({reason})") from error
        return cls(manifest, blobs)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact to a file.

        Raises:
            ArtifactError: the manifest breaks the schema.
            OSError: the file cannot be written; what was there is still there.
        """
        write_file(Path(path), self.to_bytes())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Artifact:
        """Read an artifact from a file.

        Raises:
            ArtifactError: as :meth:`from_bytes`, with the file's name.
            OSError: the file cannot be read.
        """
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except ArtifactError as error:
            raise ArtifactError(f"{os.fspath(path)}: {error}") from error


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = 3  # the same bytes on every system
    info.external_attr = 0o600 << 16
    return info


def _read(archive: zipfile.ZipFile) -> tuple[dict[str, Any], dict[str, bytes]]:
    members = {info.filename: info for info in archive.infolist()}
    if len(members) != len(archive.infolist()):
        raise ArtifactError("the artifact names a member twice")
    if _MANIFEST not in members:
        raise ArtifactError(f"the artifact has no {_MANIFEST}; it is some other ZIP file")
    if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
        raise ArtifactError("the artifact holds compressed members; it is some other ZIP file")
    manifest = json.loads(archive.read(_MANIFEST))
    check_manifest(manifest)
    listed = {_BLOBS + name for name in manifest["blobs"]}
    for name in sorted(listed - members.keys()):
        raise ArtifactError(f"the artifact lacks the blob '{name.removeprefix(_BLOBS)}'")
    for name in sorted(members.keys() - listed - {_MANIFEST}):
        raise ArtifactError(f"the artifact holds '{name}', which its manifest does not list")
    blobs = {}
    for name, row in manifest["blobs"].items():
        data = archive.read(_BLOBS + name)
        if len(data) != row["size"] or hashlib.sha256(data).hexdigest() != row["sha256"]:
            raise ArtifactError(f"the artifact's blob '{name}' is damaged: its SHA-256 differs")
        blobs[name] = data
    return manifest, blobs


# --- the schema ----------------------------------------------------------------------------------


def check_manifest(manifest: Any) -> None:
    """Check a manifest against the schema.

    Raises:
        ArtifactError: names the first key that is wrong, and what it must be.
    """
    _expect(isinstance(manifest, dict), "manifest", "an object", manifest)
    schema = manifest.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise ArtifactError(
            f"the artifact has schema version {schema!r}, this polyblocks reads {SCHEMA}; "
            "compile it again"
        )
    _expect(
        manifest.get("kind") in KINDS, "kind", f"one of {', '.join(KINDS)}", manifest.get("kind")
    )
    blobs = manifest.get("blobs")
    _expect(isinstance(blobs, dict), "blobs", "an object", blobs)
    for name, row in blobs.items():
        _expect(_is_file_name(name), "blobs", "named by plain file names", name)
        ok = isinstance(row, dict) and _is_count(row.get("size")) and _is_str(row.get("sha256"))
        _expect(ok, f"blobs.{name}", "an object with size and sha256", row)
    if manifest["kind"] == "program":
        _check_program(manifest)


def _check_program(manifest: dict[str, Any]) -> None:
    for key in ("target", "arch", "name", "entry"):
        _expect(_is_str(manifest.get(key)), key, "a string", manifest.get(key))
    for key in ("versions", "report"):
        value = manifest.get(key, {})
        _expect(isinstance(value, dict), key, "an object", value)
    workspace = manifest.get("workspace_bytes", 0)
    _expect(_is_count(workspace), "workspace_bytes", "a count of bytes", workspace)
    kernels = _list(manifest, "kernels")
    for index, kernel in enumerate(kernels):
        ok = isinstance(kernel, dict) and _is_str(kernel.get("name"))
        _expect(ok, f"kernels[{index}]", "an object with a name", kernel)
    for index, message in enumerate(_list(manifest, "checks")):
        _expect(_is_str(message), f"checks[{index}]", "a string", message)
    arguments = _list(manifest, "arguments", required=True)
    for index, argument in enumerate(arguments):
        _check_argument(f"arguments[{index}]", argument, len(arguments))
    if PREPARATION in manifest:
        _check_preparation(manifest[PREPARATION], arguments)


def _check_preparation(manifest: Any, arguments: list[Any]) -> None:
    _expect(isinstance(manifest, dict), PREPARATION, "an object", manifest)
    rows = _list(manifest, "arguments", required=True)
    for index, row in enumerate(rows):
        _check_argument(f"{PREPARATION}.arguments[{index}]", row, len(rows))
    roles = {"input": "input", "kept": "kept"}
    sources = _list(manifest, "sources", required=True)
    ok = len(sources) == len(rows) and all(
        source is None
        if row["role"] == "workspace"
        else _is_count(source)
        and source < len(arguments)
        and arguments[source].get("role") == roles.get(row["role"])
        for source, row in zip(sources, rows, strict=False)
    )
    _expect(ok, f"{PREPARATION}.sources", "the arguments that its own are", sources)


def _check_argument(where: str, row: Any, count: int) -> None:
    _expect(isinstance(row, dict), where, "an object", row)
    _expect(
        row.get("role") in ROLES, f"{where}.role", f"one of {', '.join(ROLES)}", row.get("role")
    )
    if row["role"] == "status":
        return
    checks: dict[str, tuple[Callable[[Any], bool], str]] = {
        "name": (_is_str, "a string"),
        "dtype": (lambda v: isinstance(v, str) and v in DTYPES, f"one of {', '.join(DTYPES)}"),
        "shape": (_is_counts, "a list of extents"),
        "strides": (_is_counts, "a list of strides in elements"),
    }
    if row["role"] in ("workspace", "kept"):
        checks = {"shape": checks["shape"]}
    for key, (check, what) in checks.items():
        _expect(check(row.get(key)), f"{where}.{key}", what, row.get(key))
    if "strides" in checks:
        ok = len(row["shape"]) == len(row["strides"])
        _expect(ok, f"{where}.strides", f"of length {len(row['shape'])}", row["strides"])
    constant = row.get("constant", False)
    _expect(isinstance(constant, bool), f"{where}.constant", "true or false", constant)
    updates = row.get("updates")
    ok = updates is None or (_is_count(updates) and updates < count)
    _expect(ok, f"{where}.updates", "null or the index of an argument", updates)


def _list(manifest: dict[str, Any], key: str, required: bool = False) -> list[Any]:
    value: Any = manifest.get(key, None if required else [])
    _expect(isinstance(value, list), key, "a list", value)
    rows: list[Any] = value
    return rows


def _is_str(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_counts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(_is_count(v) for v in value)


def _is_file_name(name: str) -> bool:
    return _is_str(name) and name not in (".", "..") and not set(name) & set("/\\\0")


def _expect(ok: bool, where: str, what: str, value: Any) -> None:
    if not ok:
        raise ArtifactError(f"the artifact's manifest: {where} must be {what}, not {value!r:.80}")


def code_digest(manifest: Mapping[str, Any]) -> str:
    """The digests of the blobs in a manifest, in order: equal for programs of equal code."""
    blobs = manifest.get("blobs", {})
    return ".".join(blobs[name]["sha256"] for name in sorted(blobs))

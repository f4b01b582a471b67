"""Artifacts: what is written is read back; any damage is one clear error."""

from __future__ import annotations

import copy
import io
import json
import random
import re
import zipfile

import pytest

from polyblocks.artifact import SCHEMA, Artifact, check_manifest
from polyblocks.errors import ArtifactError


def manifest() -> dict:
    row = {"name": "x", "dtype": "float32", "shape": [2, 3], "strides": [3, 1]}
    return {
        "schema": SCHEMA,
        "kind": "program",
        "target": "toy",
        "arch": "v1",
        "name": "f",
        "entry": "polyblocks_main",
        "arguments": [
            {"role": "input", **row, "constant": True, "updates": None},
            {"role": "output", **row, "updates": 0},
            {"role": "workspace", "shape": [64]},
            {"role": "status"},
        ],
        "workspace_bytes": 64,
        "kernels": [{"name": "k0", "parallel": True}],
        "checks": ["index out of range"],
        "versions": {"polyblocks": "0"},
        "report": {"seconds": 0.5, "worst": float("inf")},
    }


def artifact() -> Artifact:
    return Artifact(manifest(), {"code.o": bytes(range(256)) * 8, "empty": b""})


def rezip(data: bytes, change) -> bytes:
    """The same members after ``change(members)``, with right checksums of the ZIP itself."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = change(members) or members
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return buffer.getvalue()


def test_round_trip():
    data = artifact().to_bytes()
    back = Artifact.from_bytes(data)
    assert back.blobs == artifact().blobs
    expected = manifest()
    assert {k: v for k, v in back.manifest.items() if k != "blobs"} == expected
    assert back.to_bytes() == data


def test_bytes_do_not_depend_on_order_or_time(monkeypatch):
    one = artifact()
    other = Artifact(
        dict(reversed(list(one.manifest.items()))), dict(reversed(list(one.blobs.items())))
    )
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert one.to_bytes() == other.to_bytes()


def test_schema_and_kind_are_filled_in():
    data = Artifact({"kind": "plan", "plan": {"parts": [1, 2]}}).to_bytes()
    assert Artifact.from_bytes(data).manifest == {
        "schema": SCHEMA,
        "kind": "plan",
        "plan": {"parts": [1, 2]},
        "blobs": {},
    }


def test_files(tmp_path):
    path = tmp_path / "f.pbk"
    artifact().write(path)
    assert Artifact.read(path).blobs == artifact().blobs
    path.write_bytes(b"noise")
    with pytest.raises(ArtifactError, match=f"^{re.escape(str(path))}: the artifact is damaged"):
        Artifact.read(path)


@pytest.mark.parametrize("data", [b"", b"noise" * 100, b"PK\x03\x04", b"\x7fELF" + bytes(2000)])
def test_not_a_zip(data):
    with pytest.raises(ArtifactError, match=r"damaged or none \(File is not a zip file\)"):
        Artifact.from_bytes(data)


def test_every_truncation():
    data = artifact().to_bytes()
    for size in range(0, len(data), 7):
        with pytest.raises(ArtifactError, match=r"the artifact"):
            Artifact.from_bytes(data[:size])


def test_any_noise_is_seen():
    data = artifact().to_bytes()
    expected = Artifact.from_bytes(data)
    generator = random.Random(7)
    messages = []
    for _ in range(500):
        noisy = bytearray(data)
        for _ in range(generator.choice((1, 1, 4, 64))):
            noisy[generator.randrange(len(noisy))] = generator.randrange(256)
        try:
            read = Artifact.from_bytes(bytes(noisy))
        except ArtifactError as error:
            messages.append(str(error))
        else:  # only bytes that mean nothing (a date, a permission) were hit
            assert read == expected
    assert len(messages) > 400
    assert not any("\n" in message for message in messages)


def test_other_zip_file():
    with pytest.raises(ArtifactError, match=r"has no manifest.json; it is some other ZIP"):
        Artifact.from_bytes(rezip(artifact().to_bytes(), lambda m: {"a.txt": b"x"}))


def test_compressed_members_are_refused():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", "{}" + " " * 1000)
    with pytest.raises(ArtifactError, match=r"holds compressed members"):
        Artifact.from_bytes(buffer.getvalue())


def test_doubled_member():
    buffer = io.BytesIO(artifact().to_bytes())
    with (
        pytest.warns(UserWarning, match=r"Duplicate name"),
        zipfile.ZipFile(buffer, "a") as archive,
    ):
        archive.writestr("manifest.json", "{}")
    with pytest.raises(ArtifactError, match=r"names a member twice"):
        Artifact.from_bytes(buffer.getvalue())


def test_missing_blob():
    data = rezip(artifact().to_bytes(), lambda m: m.pop("blobs/code.o") and None)
    with pytest.raises(ArtifactError, match=r"lacks the blob 'code.o'"):
        Artifact.from_bytes(data)


def test_unlisted_member():
    data = rezip(artifact().to_bytes(), lambda m: m.update({"blobs/more": b"x"}))
    with pytest.raises(ArtifactError, match=r"holds 'blobs/more', which its manifest does not"):
        Artifact.from_bytes(data)


@pytest.mark.parametrize("body", [b"", bytes(2048)])
def test_wrong_blob(body):
    data = rezip(artifact().to_bytes(), lambda m: m.update({"blobs/code.o": body}))
    with pytest.raises(ArtifactError, match=r"blob 'code.o' is damaged: its SHA-256 differs"):
        Artifact.from_bytes(data)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000])
def test_manifest_that_is_no_json(text):
    data = rezip(artifact().to_bytes(), lambda m: m.update({"manifest.json": text}))
    with pytest.raises(ArtifactError, match=r"the artifact is damaged or none \("):
        Artifact.from_bytes(data)


@pytest.mark.parametrize("schema", [None, 0, SCHEMA + 1, "1", True])
def test_other_schema_version(schema):
    def change(members):
        content = json.loads(members["manifest.json"])
        content["schema"] = schema
        members["manifest.json"] = json.dumps(content).encode()

    with pytest.raises(
        ArtifactError, match=rf"has schema version {schema!r}, this polyblocks reads {SCHEMA}"
    ):
        Artifact.from_bytes(rezip(artifact().to_bytes(), change))


@pytest.mark.parametrize(
    "path, value, message",
    [
        (["kind"], "thing", "kind must be one of program, plan, helper, not 'thing'"),
        (["blobs"], [], "blobs must be an object"),
        (["blobs", "../x"], {}, "blobs must be named by plain file names, not '../x'"),
        (["blobs", "c"], {"size": -1, "sha256": "0"}, "blobs.c must be an object with size"),
        (["target"], None, "target must be a string"),
        (["entry"], "", "entry must be a string"),
        (["versions"], 3, "versions must be an object"),
        (["workspace_bytes"], 1.5, "workspace_bytes must be a count of bytes, not 1.5"),
        (["kernels"], {}, "kernels must be a list"),
        (["kernels", 0], {"parallel": True}, r"kernels\[0\] must be an object with a name"),
        (["checks", 0], 7, r"checks\[0\] must be a string"),
        (["arguments"], None, "arguments must be a list, not None"),
        (["arguments", 0], "x", r"arguments\[0\] must be an object"),
        (["arguments", 0, "role"], "in", r"arguments\[0\].role must be one of input, output"),
        (["arguments", 0, "name"], 1, r"arguments\[0\].name must be a string"),
        (["arguments", 0, "dtype"], "f32", r"arguments\[0\].dtype must be one of float64"),
        (["arguments", 0, "dtype"], [], r"arguments\[0\].dtype must be one of float64"),
        (["arguments", 1, "shape"], [2, -3], r"arguments\[1\].shape must be a list of extents"),
        (["arguments", 1, "strides"], None, r"arguments\[1\].strides must be a list of strides"),
        (["arguments", 1, "strides"], [1], r"arguments\[1\].strides must be of length 2"),
        (["arguments", 2, "shape"], "64", r"arguments\[2\].shape must be a list of extents"),
        (["arguments", 0, "constant"], 1, r"arguments\[0\].constant must be true or false"),
        (["arguments", 1, "updates"], 4, r"arguments\[1\].updates must be null or the index"),
    ],
)
def test_manifest_that_breaks_the_schema(path, value, message):
    broken = copy.deepcopy(manifest()) | {"blobs": {}}
    check_manifest(broken)
    place = broken
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ArtifactError, match=message):
        check_manifest(broken)


def test_manifest_that_is_no_object():
    with pytest.raises(ArtifactError, match=r"manifest must be an object, not \[\]"):
        check_manifest([])


def test_writing_checks_too():
    with pytest.raises(ArtifactError, match=r"target must be a string"):
        Artifact({"kernels": []}).to_bytes()
    with pytest.raises(ArtifactError, match=r"manifest is not JSON: .*object"):
        Artifact({"kind": "plan", "plan": object()}).to_bytes()

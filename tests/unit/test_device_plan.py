"""The launch plan of a manifest: what is read, and what is refused."""

from __future__ import annotations

import copy

import pytest
from fake_driver import artifact, launch
from manifest_rows import row

from polyblocks.cache.artifact_variants import archs_of, join, variant
from polyblocks.errors import ArtifactError, TargetError
from polyblocks.runtime.device.code import choose, code_of
from polyblocks.runtime.device.plan import Launch, Slot, read_plan

ARGUMENTS = [
    row("input", "x", updates=0),
    {"role": "workspace", "shape": [300]},
    row("input", "y"),
    {"role": "workspace", "shape": [10]},
    row("output", "o"),
    {"role": "status"},
    row("output", "p", updates=2),
]


MAP = {
    "argument": 0, "element_bytes": 2, "extents": [64, 8], "strides": [128], "box": [64, 8],
}  # fmt: skip


#: Of windows in place of boxes.
PIXELS = {
    "kind": "im2col", "extents": [64, 8, 3], "strides": [128, 1024], "box": [64, 8],
    "lower": [-1], "upper": [-1], "steps": [1],
}  # fmt: skip


def manifest(*launches, arguments=ARGUMENTS, **more) -> dict:
    return artifact(arguments, list(launches), **more).manifest


def test_slots_of_arguments_workspace_and_status():
    plan = read_plan(
        manifest(
            launch(
                "one",
                0,
                4,
                {"workspace": 64},
                {"value": 7, "dtype": "int32"},
                grid=(4, 2, 1),
                block=(128, 1, 2),
                shared=96,
            ),
            launch("two", {"argument": 2, "offset": 12}, 1, 3, 5, 6),
            launch("three", {"value": -1, "dtype": "int64"}, {"value": 1.0, "dtype": "float32"}),
            workspace_bytes=1000,
            checks=["index out of range"],
        )
    )
    assert [r["name"] for r in plan.rows] == ["x", "y", "o", "p"]
    # Arguments of the role workspace lie one behind another, on multiples of 256 bytes.
    assert plan.slots == (
        Slot("argument", 0, 0),
        Slot("argument", 1, 12),
        Slot("argument", 2, 0),
        Slot("argument", 3, 0),
        Slot("status"),
        Slot("workspace", 0, 0),
        Slot("workspace", 0, 64),
        Slot("workspace", 0, 512),
        Slot("value", 0, 7),
        Slot("value", 0, 0x3F800000),
        Slot("value", 0, 2**64 - 1),
    )
    assert plan.launches == (
        Launch("one", (4, 2, 1), (128, 1, 2), 96, (0, 2, 6, 8)),
        Launch("two", (1, 1, 1), (32, 1, 1), 0, (1, 5, 7, 4, 3)),
        Launch("three", (1, 1, 1), (32, 1, 1), 0, (10, 9)),
    )
    assert plan.has_status
    assert plan.workspace_bytes == 1000
    assert plan.sizes == (24, 24, 24, 24)
    assert [r["updates"] for r in plan.rows] == [0, None, None, 1]
    assert plan.failure(1) == "index out of range"
    assert plan.failure(2) == "the program returned status 2"


def test_the_workspace_is_as_large_as_its_arguments():
    assert read_plan(manifest(launch("k", 1))).workspace_bytes == 768


def test_a_plan_without_launches():
    plan = read_plan(manifest(arguments=[row("input", "x")]))
    assert plan.launches == ()
    assert not plan.has_status


@pytest.mark.parametrize(
    "path, value, message",
    [
        ([], None, "launches must be a list of kernel launches, not None"),
        ([0], "k", r"launches\[0\] must be an object"),
        ([0, "kernel"], "", r"launches\[0\].kernel must be a name, not ''"),
        ([0, "grid"], [1, 1], r"launches\[0\].grid must be three positive extents"),
        ([0, "block"], [0, 1, 1], r"launches\[0\].block must be three positive extents"),
        ([0, "cluster"], 2, r"launches\[0\].cluster must be a number that divides 1 blocks, not 2"),
        ([0, "shared_bytes"], -1, r"launches\[0\].shared_bytes must be a count of bytes"),
        ([0, "arguments"], {}, r"launches\[0\].arguments must be a list"),
        ([0, "arguments", 0], 3, r"launches\[0\].arguments\[0\] must be an object with one of arg"),
        ([0, "arguments", 0], {"argument": 0, "workspace": 0}, "one of argument, workspace, value"),
        ([0, "arguments", 0], {"argument": 9}, "must be one of the program's 7 arguments"),
        ([0, "arguments", 0], {"argument": -1}, "must be counted from 0"),
        ([0, "arguments", 0], {"argument": 0, "offset": -1}, "must be counted from 0"),
        ([0, "arguments", 0], {"workspace": 768}, "an offset below workspace_bytes, 768, not 768"),
        (
            [0, "arguments", 0],
            {"argument": 1, "offset": 900},
            "below workspace_bytes, 768, not 900",
        ),
        ([0, "arguments", 0], {"value": 1}, "must be a number with the dtype that it has"),
        ([0, "arguments", 0], {"tensor_map": 1}, "tensor_map must be an object, not 1"),
        ([0, "arguments", 0], {"tensor_map": {}}, "must be an array in an argument or in the work"),
        (
            [0, "arguments", 0],
            {"tensor_map": MAP | {"box": [0, 8]}},
            "tensor_map.box must be positive numbers",
        ),
        (
            [0, "arguments", 0],
            {"tensor_map": MAP | {"strides": []}},
            "must be as many extents, one stride less",
        ),
        (
            [0, "arguments", 0],
            {"tensor_map": MAP | {"kind": "other"}},
            "tensor_map.kind must be tiled or im2col, not 'other'",
        ),
        ([0, "arguments", 0], {"tensor_map": MAP | PIXELS | {"box": [8]}}, "must be three extents"),
        (
            [0, "arguments", 0],
            {"tensor_map": MAP | PIXELS | {"upper": [0.5]}},
            "tensor_map.upper must be a number for each dimension of pixels",
        ),
        (
            [0, "arguments", 0],
            {"tensor_map": MAP | PIXELS | {"steps": [0]}},
            "tensor_map.steps must be positive numbers",
        ),
        (
            [0, "arguments", 0],
            {"tensor_map": MAP | {"element_bytes": 8}},
            "tensor_map.element_bytes must be 1, 2 or 4, not 8",
        ),
        ([0, "arguments", 0], {"value": 300, "dtype": "int8"}, "must be a number with the dtype"),
    ],
)
def test_a_plan_that_does_not_fit(path, value, message):
    broken = copy.deepcopy(manifest(launch("k", 0)))
    place, keys = broken, ["launches", *path]
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    with pytest.raises(ArtifactError, match=message):
        read_plan(broken)


def test_an_update_of_what_is_no_array():
    with pytest.raises(ArtifactError, match=r"'o'.updates must be an input's index, not 1"):
        read_plan(
            manifest(
                arguments=[row("input", "x"), {"role": "status"}, row("output", "o", updates=1)]
            )
        )


# --- several architectures ------------------------------------------------------------------------


def build(arch: str, form: str = "binary", grid: int = 1, workspace: int = 0):
    rows = [row("input", "x"), row("output", "o")]
    rows += [{"role": "workspace", "shape": [workspace]}] if workspace else []
    return artifact(rows, [launch("k", 0, 1, grid=(grid, 1, 1))], arch=arch, form=form)


class Device:
    """Runs code of its own generation, and text of that or an earlier one."""

    def __init__(self, arch: str) -> None:
        self.arch = arch

    def rank(self, arch, form, device):
        if form == "binary":
            return 0 if arch == self.arch else None
        return 100 - int(arch[1:]) if arch <= self.arch else None

    def device_name(self, device):
        return f"Toy {self.arch}"


def test_joined_artifacts_keep_what_is_different():
    both = join([build("v2", grid=20), build("v3", grid=30, workspace=512)])
    both = type(both).from_bytes(both.to_bytes())
    assert archs_of(both) == ["v2", "v3"]
    assert sorted(both.blobs) == ["kernels.v2.binary", "kernels.v3.binary"]
    for arch, grid, workspace in (("v2", 20, 0), ("v3", 30, 512)):
        one = variant(both, arch).manifest
        assert one["arch"] == arch
        assert one["launches"][0]["grid"][0] == grid
        assert read_plan(one).workspace_bytes == workspace
        assert "variants" not in one
    with pytest.raises(ArtifactError, match="the artifact is for v2, v3, not 'v4'"):
        variant(both, "v4")


def test_a_single_artifact_is_its_own_variant():
    one = build("v2")
    assert join([one]) is one
    assert archs_of(one) == ["v2"]
    assert variant(one, "v2") is one


def test_artifacts_that_cannot_be_joined():
    other = artifact([row("input", "y")], [], arch="v3")
    with pytest.raises(ArtifactError, match="artifacts of different programs cannot be joined"):
        join([build("v2"), other])
    foreign = artifact([row("input", "x"), row("output", "o")], [], arch="v3")
    foreign.manifest["target"] = "other"
    with pytest.raises(ArtifactError, match="different targets cannot be joined: 'fake' and 'oth"):
        join([build("v2"), foreign])
    with pytest.raises(ArtifactError, match="architecture 'v2' is there twice; name it once"):
        join([build("v2"), build("v2")])


def test_what_several_architectures_call_the_same_is_kept_apart():
    one, two, three = build("v2"), build("v3"), build("v4")
    one.blobs = {"code": b"1", "more": b"1", "weights": b"w"}
    two.blobs = {"code": b"2", "weights": b"w"}
    three.blobs = {"code": b"1", "weights": b"w"}
    joined = join([one, two, three])
    joined = type(joined).from_bytes(joined.to_bytes())
    for each in (one, two, three):
        found = variant(joined, each.manifest["arch"])
        assert found.blobs == each.blobs
        assert "files" not in found.manifest
    assert list(joined.blobs).count("weights") == 1


def test_the_best_code_for_a_device_is_chosen_with_its_plan():
    text = build("v2", "text", grid=2)
    both = join([text, build("v3", grid=3), build("v4", "text", grid=4)])
    for arch, grid, data in (
        ("v2", 2, b"code for v2"),
        ("v3", 3, b"code for v3"),
        ("v5", 4, b"code for v4"),
    ):
        plan, image = choose(both, Device(arch), 0)
        assert plan.launches[0].grid == (grid, 1, 1)
        assert image == data


def test_no_code_for_a_device():
    both = join([build("v3"), build("v4", "text")])
    with pytest.raises(
        TargetError,
        match=r"^f has code for v3, v4; device 1 is Toy v2; compile it with the option 'arch' for",
    ):
        choose(both, Device("v2"), 1)


def test_an_artifact_without_code():
    none = build("v2")
    none.blobs = {"code.o": b""}
    with pytest.raises(ArtifactError, match="target 'fake' has code in blobs called 'kernels.ARCH"):
        code_of(none)

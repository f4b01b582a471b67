"""What `polyblocks explain` says: document and schema, decisions in words, tree and page."""

from __future__ import annotations

import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from polyblocks.artifact import Artifact
from polyblocks.explanation import units
from polyblocks.explanation.decisions import follow, grouped, sentence
from polyblocks.explanation.document import document
from polyblocks.explanation.page import page
from polyblocks.explanation.tree import tree
from polyblocks.report import Report

MIB = 1 << 20


def estimate(seconds: float, **other: Any) -> dict[str, Any]:
    return {
        "iterations": 1000,
        "flops": 2000,
        "floor_bytes": 2 * MIB,
        "moved_bytes": 6 * MIB,
        "bytes": {"near": 8 * MIB, "main": 2 * MIB},
        "seconds": {"near": seconds / 2, "main": seconds, "compute": seconds / 4, "launch": 1e-6},
        "predicted_seconds": seconds + 1e-6,
        "bound": "main",
    } | other


def artifact(kernels: int = 2, profile: bool = True) -> Artifact:
    rows = [
        {
            "name": f"k{i}",
            "kind": "stencil",
            "parallel": 64,
            "calls": 1,
            "code_bytes": 100,
            "nests": [f"n{i}"],
            "sources": [f"my.op {__file__}:1"],
            "estimate": estimate(1e-3 * (i + 1)),
        }
        for i in range(kernels)
    ]
    decisions = [
        {"pass": "classify-nests", "nest": "a", "what": "stencil", "sources": []},
        {
            "pass": "fuse-slices",
            "nest": "a",
            "what": "fused",
            "consumers": ["b"],
            "buffer": [3, 8],
            "buffer_bytes": 96,
            "redundancy": 1.0,
        },
        {"pass": "fuse-slices", "nest": "main", "what": "renamed", "names": {"b": "n1"}},
        {"pass": "vectorize-nests", "nest": "n0", "what": "scalar", "reason": "<few> iterations"},
        {"pass": "estimate-nests", "nest": "n0", "what": "estimate", "flops": 1},
    ]
    row = {"name": "x", "dtype": "float32", "shape": [2, 3], "strides": [3, 1], "updates": None}
    manifest = {
        "kind": "program",
        "target": "toy",
        "arch": "v1",
        "name": "blur",
        "entry": "f",
        "arguments": [row | {"role": "input"}, row | {"role": "output", "name": "y"}],
        "workspace_bytes": 64,
        "kernels": rows,
        "checks": [],
        "versions": {},
        "report": {
            "seconds": 0.25,
            "decisions": decisions,
            "passes": [{"stage": "S1", "name": "p", "seconds": 0.1}],
            "chip": {
                "flops": {"float32": 1e9},
                "memory": [
                    {"name": "near", "size": 1024, "bandwidth": 2e9},
                    {"name": "main", "size": 0, "bandwidth": 1e9},
                ],
                "threads": 2,
            },
        },
    }
    if profile:
        names = [{"kernel": "", "nest": ""}]
        manifest["profile"] = names + [{"kernel": r["name"], "nest": r["nests"][0]} for r in rows]
    # Through bytes, which gives it a digest.
    return Artifact.from_bytes(Artifact(manifest, {"code": b"1"}).to_bytes())


class Executable:
    """A loaded program that took a second per kernel."""

    def __init__(self, of: Artifact, calls: int = 3) -> None:
        self.manifest = of.manifest
        self.calls = calls

    def profile(self) -> list[dict[str, Any]]:
        minimum = 1.0 if self.calls else None
        times = {"calls": self.calls, "seconds": 4.0, "minimum": minimum}
        return [name | times for name in self.manifest["profile"]]


def explained(of: Artifact, measured: bool = True) -> dict[str, Any]:
    report = Report()
    report.add_artifact(of, cached=False)
    if measured:
        report.measure([Executable(of)])
    return document(report)


def checked(data: dict[str, Any]) -> dict[str, Any]:
    """The document as others read it, after its schema has been checked."""
    schema = json.loads((files("polyblocks.explanation") / "schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    data = json.loads(json.dumps(data))
    jsonschema.validate(data, schema)
    return data


def text_of(data: dict[str, Any], everything: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=300).print(tree(data, everything))
    return out.getvalue()


class TestDocument:
    def test_a_measured_program(self):
        (part,) = checked(explained(artifact()))["parts"]
        assert (part["measured"], part["profiled"]) == (True, True)
        assert part["totals"]["measured_seconds"] == 1.0
        assert part["totals"]["runs"] == 3
        assert part["totals"]["bytes"] == {"near": 16 * MIB, "main": 4 * MIB}
        assert part["totals"]["argument_bytes"] == 48
        first, second = part["kernels"]
        assert (first["share"], second["share"]) == (0.5, 0.5)
        assert (first["measured_seconds"], first["predicted_seconds"]) == (1.0, 1.001e-3)
        assert first["flops_per_second"] == 2000
        assert first["peak_share"] == 2e-6
        assert first["sources"][0] == {
            "op": "my.op",
            "location": f"{__file__}:1",
            "line": __doc__.join(['"""'] * 2),
        }

    def test_without_times_the_slowest_prediction_comes_first(self):
        (part,) = checked(explained(artifact(), measured=False))["parts"]
        assert [k["name"] for k in part["kernels"]] == ["k1", "k0"]
        assert part["totals"]["measured_seconds"] is None
        assert part["totals"]["predicted_seconds"] == pytest.approx(3.002e-3)
        assert part["kernels"][0]["seconds"] == part["kernels"][0]["predicted_seconds"]

    def test_decisions_are_followed_to_the_kernels(self):
        (part,) = checked(explained(artifact()))["parts"]
        assert [(d["what"], d["kernels"]) for d in part["decisions"]] == [
            ("stencil", ["k1"]),
            ("fused", ["k1"]),
            ("scalar", ["k0"]),
        ]
        assert [d["accepted"] for d in part["decisions"]] == [None, True, False]

    def test_a_program_that_did_not_run_is_not_measured(self):
        of = artifact()
        report = Report()
        report.add_artifact(of)
        report.measure([Executable(of, calls=0)])
        (part,) = checked(document(report))["parts"]
        assert not part["measured"]
        assert "not measured: it has not run" in text_of(document(report))

    def test_the_copy_that_ran_most_is_told(self):
        of = artifact()
        report = Report()
        report.add_artifact(of)
        report.measure(
            [Executable(of, 2), Executable(of, 5), Executable(of, 3), object_without(of)]
        )
        assert document(report)["parts"][0]["totals"]["runs"] == 5

    def test_manifests_that_say_less(self):
        report = Report()
        bare = {"target": "toy", "arch": "v1", "name": "old", "kernels": [{"name": "k"}]}
        report.add_artifact(Artifact(bare))
        report.add_fallback({"op": "a", "reason": "b"})
        report.failures.append("c")
        data = checked(document(report))
        assert data["parts"][0]["kernels"][0]["estimate"] is None
        assert data["parts"][0]["chip"] is None
        text = text_of(data)
        assert "target 'toy' cannot time its kernels" in text
        assert "1 op left to the framework:" in text
        assert "failed: c" in text
        assert "cannot time its kernels" in page(data)

    def test_nothing(self):
        data = checked(document(Report()))
        assert data["title"] == "nothing was compiled"
        assert "nothing was compiled" in text_of(data)
        assert "Nothing was compiled." in page(data)


def object_without(of: Artifact) -> Any:
    """A loaded program of a target that measures nothing."""

    class Plain:
        manifest = of.manifest

    return Plain()


class TestTree:
    def test_says_what_matters(self):
        text = text_of(explained(artifact()))
        for expected in (
            "blur: 2 kernels for toy (v1), compiled, 0.25 s to compile",
            "time: measured 1 s (the fastest of 3 runs), predicted 3 ms",
            "k0 stencil, parallel over 64, measured 1 s, predicted 1 ms, 50 % of the time",
            "moves near 8 MiB, main 2 MiB; floor 2 MiB (3 x); bound by main",
            "999 times slower than predicted",
            "+ fused a into b: 192 B of traffic through the buffer 3x8 saved",
            "- a loop of n0 is not written in vectors: <few> iterations  [vectorize-nests]",
            "time per stage of the compiler: S1 100 ms",
            "nothing fell back",
        ):
            assert expected in text, expected

    def test_many_kernels_are_cut_unless_all_are_wanted(self):
        data = explained(artifact(40))
        assert "28 more kernels, 70 % of the time (--all)" in text_of(data)
        whole = text_of(data, everything=True)
        assert "more kernels" not in whole
        assert all(f"k{i} stencil" in whole for i in range(40))


class TestPage:
    def test_needs_nothing_else(self):
        text = page(explained(artifact(40)))
        for foreign in ("http://", "https://", "src=", "<link", "@import", "url("):
            assert foreign not in text
        assert "25 more kernels" in text
        assert text.count('<details class="kernel">') == 40

    def test_text_of_others_is_escaped(self):
        text = page(explained(artifact()))
        assert "&lt;few&gt; iterations" in text
        assert "<few>" not in text


TILED = {
    "pass": "fuse-tiles",
    "nest": "blur_y",
    "what": "fused",
    "with_": ["blur_x"],
    "buffer": [3, 2048, 2044],
    "buffer_bytes": 25 * MIB,
    "tile": [32, 2048],
    "apart_seconds": 5e-3,
    "fused_seconds": 3e-3,
    "redundancy": 1.12,
    "tile_bytes": MIB,
}


@pytest.mark.parametrize(
    "decision, text",
    [
        (
            TILED,
            "fused blur_x into blur_y at tile 32x2048: 50 MiB of traffic through the buffer "
            "3x2048x2044 saved, 3 ms instead of 5 ms, computes 12 % again where tiles overlap; "
            "1 MiB per tile stay in cache",
        ),
        (
            TILED | {"what": "kept apart", "fused_seconds": 6e-3},
            "kept blur_x and blur_y apart: at the best tile, 32x2048, it would take 6 ms, apart "
            "5 ms",
        ),
        (
            {
                "what": "fused",
                "nest": "p",
                "consumers": ["c", "d"],
                "buffer": [4],
                "buffer_bytes": MIB,
                "redundancy": 2.5,
                "recompute_seconds": 1e-3,
                "traffic_seconds": 2e-3,
            },
            "fused p into c and d: 3 MiB of traffic through the buffer 4 saved, but every element "
            "is computed 2.5 times; that costs 1 ms, the way through memory 2 ms",
        ),
        (
            {
                "what": "kept apart",
                "nest": "p",
                "consumers": ["c"],
                "buffer": [4],
                "redundancy": 5.0,
                "slots_anew": 31.2,
                "slots_stored": 13.2,
            },
            "kept p and c apart: fused, every element of the buffer 4 would be computed 5 times; "
            "that takes 31.2 instructions per element, storing it and loading it 13.2",
        ),
        (
            {"what": "epilogue", "nest": "p", "consumers": ["c"], "buffer": [4], "kept": True},
            "moved c behind p, in the same loop: the buffer 4 is written, but not read again",
        ),
        (
            {
                "what": "team",
                "nest": "p",
                "iterations": 96,
                "predicted_seconds": 2e-3,
                "overhead_seconds": 3e-6,
            },
            "96 iterations of p are shared among threads: about 2 ms of work, starting threads "
            "takes 3 µs",
        ),
        (
            {"what": "workspace", "nest": "main", "buffers": 1, "bytes": 64, "without_sharing": 64},
            "1 intermediate buffer share 64 B; side by side they would take 64 B",
        ),
        (
            {"what": "vectors", "nest": "p", "width": 16, "accumulators": 4},
            "the innermost loop of p runs in vectors of 16 elements, 4 of them at once",
        ),
        (
            {"what": "vectors", "nest": "p", "width": 8, "accumulators": 1, "interleaved": 2},
            "the innermost loop of p runs in vectors of 8 elements, 2 of them at once",
        ),
        (
            {"what": "merged", "nest": "p", "with_": ["q"]},
            "merged q into p: what both read is read once",
        ),
        (
            {"what": "merged", "nest": "p", "loops": 1},
            "merged 1 loop of p with those before: what is there is not loaded again",
        ),
        (
            {"what": "split", "nest": "p", "parts": 4, "serial_seconds": 1e-3, "saved_bytes": 64},
            "p: split (parts 4, serial 1 ms, saved 64 B)",
        ),
        (
            {"what": "new", "nest": "p", "tile": [2, 3], "x": 0.25, "s": ["a"]},
            "p: new (tile 2x3, x 0.25, s a)",
        ),
        ({"what": "fused", "nest": "p"}, "p: fused"),
        ({"what": "kept apart", "nest": "p"}, "p: kept apart"),
    ],
    ids=lambda value: value["what"] if isinstance(value, dict) else "",
)
def test_decisions_in_words(decision, text):
    assert sentence({"pass": "some-pass", **decision}) == text


def test_long_lists_are_cut():
    names = [f"n{i}" for i in range(9)]
    assert "n0, n1, n2 and 6 more apart" in sentence(
        {"what": "kept apart", "nest": "p", "consumers": names, "redundancy": 2}
    ).replace("p and ", "")


def test_following_through_fusions_and_names():
    made = [
        {"what": "fused", "nest": "a", "consumers": ["b"]},
        {"what": "kept apart", "nest": "b", "consumers": ["c"]},
        {"what": "renamed", "nest": "main", "names": {"b": "a", "c": "b"}},
        {"what": "fused", "nest": "b", "with_": ["a"]},
        {"what": "renamed", "nest": "main", "names": {"b": "a"}},
        {"what": "team", "nest": "a"},
        {"what": "team", "nest": "gone"},
    ]
    assert follow(made, {"a": "kernel"}) == [
        ["kernel"],
        ["kernel"],
        [],
        ["kernel"],
        [],
        ["kernel"],
        [],
    ]
    assert follow(made[:2], {"b": "k", "c": "l"}) == [["k"], ["k", "l"]]


def test_equal_decisions_are_one():
    row = {"pass": "p", "what": "fused", "numbers": {"tile": [1], "with_": ["a"]}}
    other = row | {"numbers": {"tile": [1], "with_": ["b"]}}
    third = row | {"numbers": {"tile": [2], "with_": ["b"]}}
    assert grouped([row, third, other]) == [(row, 2), (third, 1)]


def test_units():
    assert [units.nbytes(n) for n in (0, 999, 50233344, 3 << 40)] == [
        "0 B",
        "999 B",
        "47.9 MiB",
        "3072 GiB",
    ]
    assert [units.seconds(s) for s in (0, 5e-9, 3e-6, 1.82e-3, 2.5)] == [
        "0",
        "5 ns",
        "3 µs",
        "1.82 ms",
        "2.5 s",
    ]
    assert units.rate(2.2e11, "FLOP") == "220 GFLOP/s"
    assert units.rate(12, "B") == "12 B/s"
    assert [units.count(n) for n in (12, 20000, 255590400)] == ["12", "20 k", "256 M"]
    assert [units.percent(p) for p in (0, 0.0186, 0.5)] == ["0 %", "1.9 %", "50 %"]
    assert units.place("/a/lib/site-packages/pkg/model.py:12") == "pkg/model.py:12"
    assert units.place(str(Path.cwd() / "mine" / "model.py:3")) == "mine/model.py:3"
    assert units.place("/elsewhere/model.py:3") == "/elsewhere/model.py:3"
    assert (units.shape([]), units.shape([3, 4])) == ("scalar", "3x4")

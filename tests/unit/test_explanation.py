"""What `polyblocks explain` says: document and schema, decisions in words, tree and page."""

from __future__ import annotations

import io
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from polyblocks.artifact import Artifact
from polyblocks.explanation import units
from polyblocks.explanation.decisions import follow, grouped, sentence
from polyblocks.explanation.document import document, verdicts
from polyblocks.explanation.page import page
from polyblocks.explanation.tree import places, predicted_for, tree
from polyblocks.reports.report import Report
from polyblocks.runtime import executable

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
                "shared": "team",
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

    def test_a_kernel_of_a_matrix_unit_is_held_against_the_unit(self):
        of = artifact()
        of.manifest["kernels"][0]["unit"] = "fast"
        of.manifest["report"]["chip"]["matrix_flops"] = {"fast": 1e10}
        data = checked(explained(of))
        first, second = data["parts"][0]["kernels"]
        assert (first["unit"], first["peak_share"]) == ("fast", 2e-7)
        assert (second["unit"], second["peak_share"]) == ("", 2e-6)
        assert "matrix unit fast" in text_of(data)
        assert "matrix unit fast" in page(data)

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
        assert "1 fallback to the framework:" in text
        assert "failed: c" in text
        assert "cannot time its kernels" in page(data)

    def test_nothing(self):
        data = checked(document(Report()))
        assert data["title"] == "nothing was compiled"
        assert "nothing was compiled" in text_of(data)
        assert "Nothing was compiled." in page(data)


def object_without(of: Artifact) -> Any:
    """A loaded program of a target that measures nothing."""

    class Plain(executable.Executable):
        manifest = of.manifest

    return Plain()


class TestTree:
    def test_says_what_matters(self):
        text = text_of(explained(artifact()))
        for expected in (
            "blur: 2 kernels for toy (v1), compiled, 0.25 s to compile",
            "time: measured 1 s (the fastest of 3 runs), predicted for 2 threads 3 ms",
            "k0 stencil, parallel over 64, measured 1 s, predicted 1 ms, 50 % of the time",
            "moves near 8 MiB, main 2 MiB; floor 2 MiB (3 x); bound by main",
            "999 times slower than predicted",
            "+ fused a into b: 192 B of traffic through the buffer 3x8 saved",
            "- did not vectorize a loop of n0: <few> iterations  [vectorize-nests]",
            "time per stage of the compiler: S1 100 ms",
            "no fallbacks",
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

    @pytest.mark.parametrize("known", [True, False])
    def test_a_time_that_is_unknown_is_no_number(self, known):
        """Of a target without rates; and what a mapping waits for has a row of its own."""
        program = artifact(1)
        (kernel,) = program.manifest["kernels"]
        kernel["estimate"]["seconds"] |= {"latency": 0.75} if known else {}
        if not known:
            kernel["estimate"]["seconds"] = {"near": 0.25, "launch": 0.0}
            del kernel["estimate"]["predicted_seconds"], kernel["estimate"]["bound"]
        data = explained(program, measured=False)
        (part,) = data["parts"]
        assert (part["totals"]["predicted_seconds"] is None) is not known
        assert (part["kernels"][0]["predicted_seconds"] is None) is not known
        assert ("predicted" in text_of(data)) is known
        assert ("bound by" in text_of(data)) is known
        cells = re.findall(r"<td>(.*?)</td>", page(data))
        assert cells.count("unknown") == (0 if known else 2)
        assert ("waiting" in cells) is known
        if not known:
            assert cells[cells.index("arithmetic") + 2] == "unknown"

    def test_a_wrong_prediction_is_marked_where_the_kernel_is_folded(self):
        assert '<div class="number off" title="999 times slower' in page(explained(artifact()))
        assert 'class="number off"' not in page(explained(artifact(), measured=False))

    def test_results_are_listed_after_many_inputs(self):
        data = explained(artifact())
        source, result = data["parts"][0]["arguments"]
        data["parts"][0]["arguments"] = [source] * 10 + [result]
        text = " ".join(page(data).split())
        assert "and 2 more inputs → <span" in text

    def test_numbers_stay_with_their_units(self):
        data = explained(artifact())
        text = page(data)
        assert "192\N{NO-BREAK SPACE}B of traffic" in text
        assert "near&nbsp;16\N{NO-BREAK SPACE}MiB" in text
        assert "S1</span>&nbsp;100\N{NO-BREAK SPACE}ms" in text
        assert "predicted for 2\N{NO-BREAK SPACE}threads" in text

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

#: Two that stay apart whatever their tile would be.
PAIR = {key: TILED[key] for key in TILED if key in ("nest", "with_", "buffer", "buffer_bytes")}

#: Numbers of a scan that is split or not, and of a fill.
SCAN = {"serial_seconds": 3e-3, "split_seconds": 2e-3}
FILL = {"saved_bytes": 64, "saved_seconds": 2e-6, "overhead_seconds": 3e-6}


@pytest.mark.parametrize(
    "decision, text",
    [
        (
            TILED,
            "fused blur_x into blur_y at tile 32x2048: 50 MiB of traffic through the buffer "
            "3x2048x2044 saved, 3 ms instead of 5 ms, 12 % recomputed in halos; working set 1 "
            "MiB per tile",
        ),
        (
            TILED | {"what": "kept apart", "fused_seconds": 6e-3},
            "did not fuse blur_x and blur_y: fused at best tile 32x2048 6 ms, not fused 5 ms",
        ),
        (
            TILED | {"what": "kept apart", "reason": "room"},
            "did not fuse blur_x and blur_y: working set 1 MiB at best tile 32x2048 exceeds "
            "fast memory",
        ),
        (
            PAIR | {"what": "kept apart", "reason": "option"},
            "did not fuse blur_x and blur_y: polyblocks_disable_reduce_reduce_fusion separates "
            "dependent reductions",
        ),
        (
            TILED | {"what": "kept apart", "reason": "order"},
            "did not fuse blur_x and blur_y: code between them uses their buffers",
        ),
        (
            PAIR | {"what": "kept apart", "reason": "several products"},
            "did not fuse blur_x and blur_y: each is a contraction, with register tiles of its own",
        ),
        (
            TILED | {"what": "kept apart", "reason": "computed again"},
            "did not fuse blur_x and blur_y: a contraction would be recomputed in halos",
        ),
        (
            TILED | {"what": "kept apart", "reason": "thin tiles"},
            "did not fuse blur_x and blur_y: the best tile, 32x2048, is too thin for register "
            "tiles of a contraction",
        ),
        (
            TILED | {"what": "kept apart", "reason": "time", "fused_seconds": 5.004e-3},
            "did not fuse blur_x and blur_y: fused at best tile 32x2048 5 ms, not fused 4 µs less",
        ),
        (
            TILED | {"what": "kept apart", "reason": "time", "fused_seconds": 5e-3},
            "did not fuse blur_x and blur_y: fused at best tile 32x2048 5 ms, not fused the same",
        ),
        (
            TILED | {"fused_seconds": 4.998e-3, "redundancy": 1.0, "tile_bytes": 0},
            "fused blur_x into blur_y at tile 32x2048: 50 MiB of traffic through the buffer "
            "3x2048x2044 saved, 2 µs less than 5 ms",
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
            "fused p into c and d: 3 MiB of traffic through the buffer 4 saved, each element "
            "computed 2.5 times; recompute 1 ms, store and reload 2 ms",
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
            "did not fuse p and c: each element of the buffer 4 would be computed 5 times; "
            "recompute 31.2 instructions per element, store and reload 13.2",
        ),
        (
            {"what": "epilogue", "nest": "p", "consumers": ["c"], "buffer": [4], "kept": True},
            "fused c into p as epilogue: the buffer 4 is stored but not reloaded",
        ),
        (
            {
                "what": "team",
                "nest": "p",
                "iterations": 96,
                "predicted_seconds": 2e-3,
                "overhead_seconds": 3e-6,
            },
            "parallelized 96 iterations of p: 2 ms on one thread; starting threads takes 3 µs",
        ),
        (
            {
                "what": "serial",
                "nest": "p",
                "predicted_seconds": 2e-6,
                "overhead_seconds": 3e-6,
            },
            "p stays serial: 2 µs on one thread; starting threads takes 3 µs",
        ),
        (
            {"what": "serial", "nest": "p", "seconds": {"serial": 1e-3}},
            "the updates of p run serially on one thread",
        ),
        (
            {"what": "copies", "nest": "p", "seconds": {"serial": 2e-3, "copies": 1e-3}},
            "privatized the result of p per thread: 1 ms, one thread 2 ms",
        ),
        (
            {"what": "columns", "nest": "p"},
            "partitioned the updates of p among threads by columns",
        ),
        ({"what": "atomic", "nest": "p"}, "the updates of p are atomic"),
        (
            {"what": "numbered", "nest": "p"},
            "of the stores of p to one element the one with the highest number stays",
        ),
        (
            {"what": "workspace", "nest": "main", "buffers": 1, "bytes": 64, "without_sharing": 64},
            "1 intermediate buffer share 64 B; without sharing 64 B",
        ),
        (
            {"what": "vectors", "nest": "p", "width": 16, "accumulators": 4},
            "vectorized the innermost loop of p: 16 lanes, 4 vectors interleaved",
        ),
        (
            {"what": "vectors", "nest": "p", "width": 8, "accumulators": 1, "interleaved": 2},
            "vectorized the innermost loop of p: 8 lanes, 2 vectors interleaved",
        ),
        (
            {"what": "merged", "nest": "p", "with_": ["q"]},
            "fused siblings q and p: shared inputs are read once",
        ),
        (
            {"what": "merged", "nest": "p", "with_": ["q"], "buffer": [4], "buffer_bytes": 16},
            "fused siblings q and p: 32 B of traffic through the buffer 4 saved",
        ),
        (
            {"what": "rolled", "nest": "p", "terms": [7, 7]},
            "rolled the sum of 7 x 7 terms in p into a loop",
        ),
        (
            {"what": "rolled", "nest": "p", "with_": ["q", "r"]},
            "made q and r iterations of p: one launch for all",
        ),
        (
            {"what": "merged", "nest": "p", "loops": 1},
            "fused 1 loop of p with earlier ones: shared values are not reloaded",
        ),
        (
            {"what": "split", "nest": "p", "parts": 4, "serial_seconds": 1e-3},
            "split the reduction of p into 4 parts for threads: one thread would take 1 ms",
        ),
        (
            {"what": "split", "nest": "p", "parts": 4} | SCAN,
            "split p into 4 parts: 2 ms, unsplit 3 ms",
        ),
        (
            {"what": "left whole", "nest": "p", "parts": 4} | SCAN,
            "did not split p: 4 parts 2 ms, unsplit 3 ms",
        ),
        (
            {"what": "split", "nest": "p", "pieces": 4} | FILL,
            "split p into 4 pieces: 64 B of overwritten stores removed; saves 2 µs, more loops "
            "cost 3 µs",
        ),
        (
            {"what": "left whole", "nest": "p", "pieces": 1} | FILL,
            "did not split p into 1 piece to remove overwritten stores: would save 2 µs, more "
            "loops cost 3 µs",
        ),
        (
            {"what": "split", "nest": "p", "nests": 4, "steps": 64, "saved_steps": 48.0},
            "split p into 4 nests, without products with zeros: saves 48 of 64 products per result",
        ),
        (
            {"what": "left whole", "nest": "p", "nests": 4, "steps": 8, "saved_steps": 6.25},
            "did not split p into 4 nests: would save 6.25 of 8 products per result",
        ),
        (
            {"what": "straightened", "nest": "p", "buffer": [3, 4], "dimensions": [1]},
            "p copies into 3x4 without reversing it; readers reverse the index",
        ),
        ({"what": "split", "nest": "p"}, "p: split"),
        (
            {"what": "forwarded", "nest": "copy", "buffer": [3, 4], "moved": 0},
            "avoided a copy of the buffer 3x4: its producer writes to the destination",
        ),
        (
            {"what": "innermost", "nest": "p", "extent": 112},
            "innermost loop of p: 112 iterations, unit stride",
        ),
        (
            {"what": "jammed", "nest": "p", "unroll_factor": 4},
            "jammed 4 rows of reduction p to keep memory busy",
        ),
        (
            {"what": "squares", "nest": "p", "extents": [3136, 64], "width": 8},
            "tiled transpose p of 3136x64: squares of 8x8",
        ),
        (
            {"what": "transposed", "nest": "p", "width": 8},
            "p transposes squares of 8x8 in registers",
        ),
        (
            {"what": "reciprocals", "nest": "p", "divisions": 1},
            "1 division in p by loop invariants became multiplications",
        ),
        (
            {"what": "raised", "nest": "p", "nodes": 2},
            "2 indirect accesses in p proved affine",
        ),
        (
            {"what": "hoisted", "nest": "p", "nodes": 16},
            "hoisted 16 operations of p out of loops",
        ),
        (
            {"what": "formed", "nest": "p", "extent": 64, "carried": 1},
            "formed one scan p over 64 elements, carrying 1 value",
        ),
        (
            {"what": "widened", "nest": "p", "accumulators": 2},
            "2 sums of p accumulated in float32, then rounded",
        ),
        (
            {"what": "new version", "nest": "p", "buffer": [4], "part": 0.5},
            "renamed the output of p, which overwrites 50 % of the buffer 4: the old contents "
            "stay readable",
        ),
        (
            {"what": "cascaded", "nest": "p"},
            "the sums of p use partial sums, for accuracy",
        ),
        ({"what": "narrowed", "nest": "p"}, "narrowed indices of p from 64 to 32 bits"),
        (
            {
                "what": "mapped",
                "nest": "p",
                "blocks": 2,
                "threads": 64,
                "tile": [8, 8],
                "predicted_seconds": 1e-3,
            },
            "p runs in 2 blocks of 64 threads, tile 8x8; predicted 1 ms",
        ),
        (
            {
                "what": "mapped",
                "nest": "p",
                "blocks": 2,
                "threads": 64,
                "tile": [32, 32, 64],
                "unit": "mma.m16n8k16",
                "operands": "float16",
                "predicted_seconds": 1e-3,
            },
            "p runs in 2 blocks of 64 threads, tile 32x32x64, products of float16 by the matrix "
            "unit mma.m16n8k16; predicted 1 ms",
        ),
        (
            {"what": "one block", "nest": "p", "threads": 64},
            "p runs in one block of 64 threads: its trip count is data-dependent",
        ),
        (
            {
                "what": "inputs copied",
                "nest": "p",
                "buffers": [[4, 4]],
                "seconds": 1e-3,
                "seconds_before": 2e-3,
            },
            "staged 4x4 in shared memory for p: 1 ms, without 2 ms",
        ),
        (
            {
                "what": "register tiles",
                "nest": "p",
                "rows": 14,
                "lanes": 32,
                "depth": 512,
                "chain": 128,
                "row_block": 112,
                "column_block": 256,
                "row_pieces": 1,
                "column_pieces": 2,
                "threads": 2,
                "pack_rows": False,
                "pack_columns": True,
                "waits": True,
                "predicted_seconds": 1e-3,
            },
            "p: register tile 14x32 (MxN), cache block 112x256, K block 512, accumulated 128 by"
            " 128; 2 threads, 1x2 chunks; N side packed; output staged; predicted 1 ms",
        ),
        (
            {"what": "no register tiles", "nest": "p", "reason": "a load with stride 3"},
            "no register tiles for p: a load with stride 3",
        ),
        (
            {"what": "vectors of tiles", "nest": "p", "width": 16, "interleaved": 2},
            "N of p's register tiles is vectorized: 16 lanes, 2 vectors",
        ),
        (
            {"what": "layout", "nest": "main", "buffer": [64, 8, 8], "order": [1, 2, 0]},
            "intermediate array 64x8x8: dimension 0 innermost in memory, as in the arrays used "
            "with it",
        ),
        (
            {"what": "sorted", "extent": 2000, "count": 5, "how": "blocks", "block": 8},
            "selected the first 5 of 2000 elements: those of the 5 blocks of 8 whose least keys "
            "come first",
        ),
        (
            {"what": "sorted", "extent": 2000, "count": 9, "how": "digits"},
            "sorted by digits: rows of 2000 elements, 9 of them read",
        ),
        (
            {"what": "sorted", "extent": 2000, "count": 9, "how": "network"},
            "sorted by a network of comparisons: rows of 2000 elements, 9 of them read",
        ),
        (
            {"what": "packed", "nest": "p", "buffer": [96, 1, 7, 7], "order": [1, 2, 3, 0]},
            "packed argument 96x1x7x7 for p, dimension 0 innermost",
        ),
        (
            {"what": "interchanged", "nest": "p", "order": [192, 56]},
            "interchanged the loops of p for unit-stride stores, 192x56",
        ),
        ({"what": "pointwise", "nest": "p"}, "p is pointwise"),
        ({"what": "copy", "nest": "p"}, "p is a copy"),
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
    assert "did not fuse n0, n1, n2 and 6 more" in sentence(
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


def test_decisions_that_read_the_same_are_one():
    numbers = {"width": 8, "accumulators": 1, "trips": 3}
    rows = [
        {"pass": "p", "what": "vectors", "nest": nest, "numbers": numbers | {"trips": trips}}
        for nest, trips in (("a", 3), ("b", 4))
    ]
    assert grouped(rows) == [(rows[0], 2)]


def test_counts_of_decisions_are_all_of_them():
    made = ["team"] * 3 + ["fused"] * 2 + ["scalar", "split", "merged", "epilogue", "serial"]
    rows = [{"what": what, "accepted": True} for what in made]
    counted = verdicts({"decisions": [*rows, {"what": "stencil", "accepted": None}]}, most=2)
    assert counted == [("parallel", 3), ("fused", 2), ("others", 6)]
    assert verdicts({"decisions": rows[:4]}) == [("parallel", 3), ("fused", 1)]


def test_ops_of_one_line_stand_together():
    sources = [
        {"op": op, "location": location, "line": ""}
        for op, location in (
            ("a", "f:1"),
            ("b", "f:2"),
            ("c", "f:1"),
            ("a", "f:1"),
            ("d", ""),
            ("e", ""),
            ("d", ""),
        )
    ]
    found = places({"sources": sources})
    assert [(s["op"], s["location"]) for s in found] == [
        ("a, c", "f:1"),
        ("b", "f:2"),
        ("d", ""),
        ("e", ""),
    ]


@pytest.mark.parametrize(
    "chip, text",
    [
        ({"threads": 1, "shared": "team"}, " for 1 thread"),
        ({"threads": 132, "shared": "grid"}, " for 132 multiprocessors"),
        ({"threads": 2}, ""),
        (None, ""),
    ],
)
def test_what_a_prediction_is_for(chip, text):
    assert predicted_for({"chip": chip}) == text


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


def launched() -> Artifact:
    given = artifact(2)
    order = ["k1", "k0", "k1", "k0", "k1", "k0", "k1"]
    launches = [{"kernel": name, "grid": [1, 1, 1]} for name in order]
    manifest = {**given.manifest, "launches": launches}
    for row, calls in zip(manifest["kernels"], (3, 4), strict=True):
        row["calls"] = calls
    return Artifact(manifest, dict(given.blobs))


def test_time_lines_are_in_the_tree_and_on_the_page() -> None:
    data = checked(explained(launched(), measured=False))
    text = text_of(data)
    assert "time line: 7 kernel calls" in text
    assert "3 times" in text
    assert "k1, 500 µs, bound by main" in text
    assert page(data).count("µs, from ") == 7

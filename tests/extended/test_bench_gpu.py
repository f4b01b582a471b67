"""The GPU benchmarks: built here, run in the simulator, checked by tools that are made up."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from bench.gpu import cases, check, clocks, kit, measure, once, pipelines
from bench.gpu.__main__ import main, publish
from bench.gpu.build import build
from bench.gpu.bundle import Bundle
from bench.gpu.programs import function_of
from bench.pipelines.table import CASES

from polyblocks.artifact import Artifact
from polyblocks.cache.artifact_variants import archs_of, variant
from polyblocks.errors import PolyBlocksError

(SOFTMAX,) = (pair for pair in cases.PAIRS if pair.large.program == "softmax")


pytestmark = pytest.mark.usefixtures("compiled_in_this_process")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Bundle:
    """Small programs for two architectures."""
    folder = tmp_path_factory.mktemp("gpu")
    pairs = (SOFTMAX, cases.COPY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYBLOCKS_ISOLATE", "0")
        build(folder, pairs, "nvgpu", ["sm_80", "sm_90a"], sizes=["small"], with_kit=False)
    return Bundle.read(folder)


def test_large_cases_do_not_fit_into_a_cache():
    for pair in cases.PAIRS:
        assert pair.large.flops or pair.large.floor_bytes >= 2 * 0.95 * cases.L2_BYTES
    assert sum(pair.large.floor_bytes >= 6 * cases.L2_BYTES for pair in cases.PAIRS) >= 9
    assert len({pair.slug for pair in cases.EVERYTHING}) == len(cases.EVERYTHING)


@pytest.mark.parametrize("pair", cases.EVERYTHING, ids=lambda pair: pair.slug)
def test_functions_fit_their_shapes(pair):
    inputs = pair.small.inputs()
    assert tuple(x.shape for x in inputs) == pair.shapes["small"]
    result = function_of(pair.small.program)(*map(torch.from_numpy, inputs))
    moved = sum(x.nbytes for x in inputs) + result.nbytes
    assert moved == pair.small.floor_bytes


def test_a_name_that_fits_no_case():
    assert cases.named("heat,softmax") == tuple(
        p for p in cases.PAIRS if p.large.program in ("heat", "softmax")
    )
    with pytest.raises(ValueError, match="no case contains 'nothing'; the cases are blur 3x"):
        cases.named("nothing")


def test_what_is_built(bundle):
    assert bundle.pairs("small") == [SOFTMAX, cases.COPY]
    assert bundle.pairs("large") == []
    artifact = Artifact.read(bundle.program(SOFTMAX, "small"))
    assert archs_of(artifact) == ["sm_80", "sm_90a"]
    assert {"kernels.sm_80.ptx", "kernels.sm_90a.ptx"} <= set(artifact.blobs)
    simulation = bundle.facts["cases"][SOFTMAX.slug]["simulation"]
    for arch in ("sm_80", "sm_90a"):
        assert simulation[arch]["findings"] == []
        floor = sum(row["floor_bytes"] for row in simulation[arch]["kernels"].values())
        # Sectors at the ends of arrays are counted whole.
        assert 0 <= floor - SOFTMAX.small.floor_bytes < 128
    with np.load(bundle.data(SOFTMAX)) as data:
        assert data["expected"].dtype == np.float64
        np.testing.assert_allclose(data["expected"].sum(-1), 1)


def test_folders_that_hold_no_bundle(tmp_path, capsys):
    assert main(["run", str(tmp_path)]) == 1
    assert "bundle.json; make it with `python -m bench.gpu build`" in capsys.readouterr().err
    (tmp_path / "bundle.json").write_text('{"schema": 0}')
    assert main(["check", str(tmp_path)]) == 1
    assert "has schema 0, and this program reads 1; build it again" in capsys.readouterr().err


def test_build_and_run_in_the_simulator(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bench.gpu.kit.write", lambda folder: folder.mkdir())
    folder = str(tmp_path)
    assert main(["build", folder, "--simulate", "--only", "transpose"]) == 0
    assert main(["once", folder]) == 0
    assert "transpose 100x77: right" in capsys.readouterr().out
    command = ["run", folder, "--peers", "eager", "--rounds", "1", "--turn", "0"]
    assert main(command) == 0
    (file,) = (tmp_path / "results").glob("*.json")
    assert file.name.endswith("-simulator.json")
    results = json.loads(file.read_text())
    (case,) = results["cases"]
    assert [(row["peer"], row["correct"]) for row in case["peers"]] == [
        ("polyblocks", True),
        ("eager", True),
    ]
    assert all(row["share"] > 0 for row in case["peers"])
    assert set(results["host"]) == {"polyblocks", "eager"}
    page = file.with_suffix(".md").read_text()
    assert "| transpose 100x77 | a graph needs a GPU" in page
    assert "The times are the simulator's own" in page
    assert file.with_suffix(".png").stat().st_size > 1000
    # What is wrong is told, and is the exit status.
    results["graphs"] = {"transpose 100x77": {"same": False, "call": 1e-6, "replay": 1e-6}}
    results["checks"] = {
        "sanitizer": {"memcheck": {"clean": False, "said": "1 error"}},
        "bytes": [],
    }
    capsys.readouterr()
    assert publish(results, tmp_path / "again") == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: transpose 100x77: the replay of its graph is wrong",
        "error: memcheck: 1 error",
    ]


def test_pipelines_are_built_and_run_like_the_others(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bench.gpu.kit.write", lambda folder: folder.mkdir())
    folder = str(tmp_path)
    # Several results, and a comparison that decides about pixels.
    only = ["--only", "n_body_planes,unsharp"]
    assert main(["build", folder, "--group", "pipelines", "--simulate", *only]) == 0
    assert main(["once", folder]) == 0
    assert capsys.readouterr().out.count(", small: right") == 2
    command = ["run", folder, "--peers", "eager", "--rounds", "1", "--turn", "0"]
    assert main(command) == 0
    (file,) = (tmp_path / "results").glob("*.json")
    rows = [row for case in json.loads(file.read_text())["cases"] for row in case["peers"]]
    assert [row["correct"] for row in rows] == [True] * 4
    assert main([*command, "--limit", "-1"]) == 0
    assert "no time left for unsharp mask 3x2048x2048, small" in capsys.readouterr().out


def test_what_does_not_compile_is_left_out_where_that_is_asked_for(tmp_path, capsys, monkeypatch):
    def refuse(*_):
        raise PolyBlocksError("no such thing")

    monkeypatch.setattr("bench.gpu.build._compile", refuse)
    with pytest.raises(PolyBlocksError, match="no such thing"):
        build(tmp_path, [SOFTMAX], "nvgpu", ["sm_90a"], sizes=["large"], with_kit=False)
    command = ["build", str(tmp_path), "--large", "--keep-going", "--only", "softmax"]
    monkeypatch.setattr("bench.gpu.kit.write", lambda folder: None)
    assert main(command) == 0
    assert "softmax 32768x4096: left out: no such thing" in capsys.readouterr().out
    assert Bundle.read(tmp_path).pairs("large") == []


def test_what_is_timed_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bench.gpu.kit.write", lambda folder: None)
    monkeypatch.setattr("bench.gpu.build._compile", lambda *_: 1.0)
    assert main(["build", str(tmp_path), "--large", "--only", "softmax"]) == 0
    bundle = Bundle.read(tmp_path)
    assert [pair.slug for pair in bundle.pairs("small")] == [cases.TINY.slug]
    assert SOFTMAX in bundle.pairs("large")


def test_pipelines_have_the_arguments_of_the_table():
    pairs = pipelines.PIPELINES
    assert [pair.large for pair in pairs] == list(CASES)
    assert len({p.slug for p in (*pairs, *cases.EVERYTHING)}) == len(pairs) + len(cases.EVERYTHING)
    for pair in pairs:
        assert max(x.nbytes for x in pair.small.inputs()) < 1 << 20


def test_a_wrong_result_and_a_peer_that_cannot(bundle, capsys):
    def broken():
        raise RuntimeError("no such device")

    case = SOFTMAX.small
    clock = clocks.Simulation()
    inputs = measure.inputs_on(clock, case)
    names = {"polyblocks": lambda: lambda x: x * 2, "eager": broken}
    ours, other = measure.start(names, case, inputs, clock)
    assert ours.score.error > 0.1
    assert other.score.problem == "RuntimeError: no such device"
    measure.take_turns([ours, other], case, clock, measure.Pace(2, 0.0), lambda: 1e9)
    assert len(ours.score.shares) == 2
    assert other.score.samples == []


class Event:
    """An event of a device that takes a millisecond for a call."""

    now = 0.0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = Event.now

    def elapsed_time(self, other: Event) -> float:
        return other.at - self.at


def test_times_between_events(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Chip 9")
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def call() -> None:
        Event.now += 1.0

    clock = clocks.Events()
    assert clock.name == "Chip 9"
    assert clock.samples(call, 0.01) == pytest.approx([0.001] * 10)
    assert len(clock.samples(call, 0.0)) == 2


@pytest.mark.parametrize("right", [True, False])
def test_a_replay_is_compared_with_a_call(monkeypatch, right):
    x, result = torch.ones(4), torch.zeros(4)

    class Graph:
        def replay(self) -> None:
            if right:
                result.copy_(x * 2)

    def call() -> torch.Tensor:
        return result.copy_(x * 2)

    stream = types.SimpleNamespace(synchronize=lambda: None)
    for name, value in {
        "get_device_name": lambda: "Chip 9",
        "Stream": lambda: stream,
        "stream": contextlib.nullcontext,
        "CUDAGraph": Graph,
        "graph": contextlib.nullcontext,
        "synchronize": lambda: None,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    found = measure.recorded(call, clocks.Events(), calls=2)
    assert found["same"] is right
    assert min(found["call"], found["replay"]) > 0


def test_a_program_that_cannot_be_recorded(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Chip 9")

    def call() -> torch.Tensor:
        raise RuntimeError("not while a stream is capturing")

    found = measure.recorded(call, clocks.Events())
    assert found == {"problem": "RuntimeError: not while a stream is capturing"}


CSV = """==PROF== Connected to process 7
softmax 33x1000: right, error 1e-09
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","{kernel}","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","sector","1,{load}"
"0","7","{kernel}","l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum","sector","{store}"
"0","7","{kernel}","gpu__time_duration.sum","ns","5"
"""


def test_sectors_of_the_profilers_table():
    text = CSV.format(kernel="softmax(float*)", load="024", store="7")
    assert check.sectors(text) == {"softmax": 1031}
    assert check.sectors("nothing") == {}


def test_bytes_beside_the_simulators(bundle, monkeypatch):
    def chosen(path: Path):
        return "sm_90a", variant(Artifact.read(path), "sm_90a").manifest

    monkeypatch.setattr("bench.gpu.device.chosen", chosen)
    monkeypatch.setattr(check.shutil, "which", lambda name: name)
    simulated = check.simulated_sectors(bundle)
    # Each row of the softmax is read once and written once.
    (kernel,) = (name for name in simulated if "softmax" in name)
    assert simulated[kernel] >= SOFTMAX.small.floor_bytes // 32
    for more, agree in ((0, True), (simulated[kernel] // 10, False)):
        loads = simulated[kernel] + more
        text = CSV.replace("1,{load}", "{load}").format(kernel=kernel, load=loads, store=0)
        rows = check.compare_bytes(bundle, lambda command, text=text: (0, text))
        assert [row["agree"] for row in rows] == [agree]
    (row,) = check.compare_bytes(bundle, lambda command: (9, "==ERROR== no permission"))
    assert row["problem"] == "ncu ended with 9: ==ERROR== no permission"


def test_what_the_model_expects(bundle, monkeypatch):
    def chosen(path: Path):
        return "sm_80", variant(Artifact.read(path), "sm_80").manifest

    monkeypatch.setattr("bench.gpu.device.chosen", chosen)
    assert 0 < measure.predicted_seconds(bundle.program(cases.COPY, "small")) < 1e-3
    monkeypatch.setattr(
        "bench.gpu.device.chosen", lambda path: ("", {"kernels": [{"estimate": None}]})
    )
    assert measure.predicted_seconds(bundle.program(cases.COPY, "small")) is None


def test_what_the_sanitizer_says(bundle, monkeypatch):
    commands = []

    def execute(command):
        commands.append(command)
        if command[2] == "racecheck":
            return 86, "========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)"
        if command[2] == "initcheck":
            return 1, "Traceback\nValueError: x"
        return 0, "copy 1961: right\n========= ERROR SUMMARY: 0 errors"

    monkeypatch.setattr(check.shutil, "which", lambda name: name)
    found = check.sanitize(bundle, execute)
    assert {tool: row["clean"] for tool, row in found.items()} == {
        "memcheck": True,
        "racecheck": False,
        "initcheck": False,
        "synccheck": True,
    }
    assert commands[0][:5] == ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "86"]
    assert commands[0][-2:] == ["once", str(bundle.folder)]
    told = check.failures({"sanitizer": found, "bytes": []})
    assert told[0].startswith("racecheck: ========= RACECHECK SUMMARY: 3 hazards")
    assert told[1].endswith("ValueError: x")


def test_without_the_vendors_tools(bundle, monkeypatch):
    monkeypatch.setattr(check.shutil, "which", lambda name: None)
    found = check.check(bundle)
    assert found["sanitizer"]["memcheck"] == {"problem": "compute-sanitizer is not installed"}
    assert found["bytes"] == [{"problem": "ncu is not installed"}]
    assert check.failures(found) == []


def test_wrong_programs_are_counted(bundle, monkeypatch):
    monkeypatch.setattr("polyblocks.load", lambda path: lambda x: x)
    lines: list[str] = []
    assert once.run(bundle, lines.append) == 1
    assert lines[0].startswith("softmax 33x1000: WRONG, error ")
    assert lines[1] == "copy 1961: right, error 0.0e+00"


#: A machine with Python, NumPy and a made-up driver, where the kernel copies.
MACHINE = """
import sys
from pathlib import Path

from fake_driver import FakeDriver, view
from polyblocks_nvgpu import driver as vendor

class Driver(FakeDriver):
    rank = vendor.CudaDriver.rank
    def _capability(self, device): return (9, 0)

class Kernels(dict):
    def __contains__(self, name): return True
    def __getitem__(self, name):
        def copy(x, out): view(out, 1961)[:] = view(x, 1961)
        return copy

fake = Driver(Kernels())
vendor.connect = lambda: fake
import polyblocks
from bench.gpu import once
from bench.gpu.bundle import Bundle
from bench.gpu.device import chosen
from bench.gpu.cases import COPY

bundle = Bundle.read(Path("FOLDER"))
print(once.run(bundle), fake.counts["launch"])
print(chosen(bundle.program(COPY, "small"))[0])
print(Path(polyblocks.__file__).parents[1] == Path("FOLDER") / "python")
foreign = ("torch", "jax", "tensorflow", "torch_mlir", "llvmlite", "rich", "jinja2")
print([name for name in foreign if name in sys.modules])
"""


def test_the_kit_is_enough(bundle, tmp_path, run_python):
    build_folder = tmp_path / "bundle"
    shutil.copytree(bundle.folder, build_folder)
    facts = bundle.facts | {"cases": {cases.COPY.slug: bundle.facts["cases"][cases.COPY.slug]}}
    (build_folder / "bundle.json").write_text(json.dumps(facts))
    kit.write(build_folder / "python")
    # NumPy alone of what is installed.
    bare = tmp_path / "bare"
    bare.mkdir()
    for part in Path(np.__file__).parents[1].glob("numpy*"):
        os.symlink(part, bare / part.name)
    support = str(Path(__file__).parents[1] / "support")
    paths = [str(build_folder / "python"), str(bare), support]
    start = f"import sys\nsys.path[:] = {paths!r} + [p for p in sys.path if 'python3' in p"
    start += " and 'site-packages' not in p]\n"
    done = run_python(start + MACHINE.replace("FOLDER", str(build_folder)))
    assert done.stdout.splitlines() == [
        "copy 1961: right, error 0.0e+00",
        "0 1",
        "sm_90a",
        "True",
        "[]",
    ], done.stderr

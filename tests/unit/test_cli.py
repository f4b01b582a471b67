"""The command line, as a user types it."""

from __future__ import annotations

import dataclasses
import json
import sys
import zipfile
from pathlib import Path

import pytest

from polyblocks import cli
from polyblocks.artifact import Artifact
from polyblocks.cache.cache import Cache, default_cache
from polyblocks.options import CompileOptions

ADD = """
func.func @main(%a: tensor<4x3xf32>, %b: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %r = linalg.add ins(%a, %b : tensor<4x3xf32>, tensor<4x3xf32>)
                  outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
"""


DYNAMIC = """
func.func @main(%a: tensor<?x3xf32>) -> tensor<?x3xf32> {
  return %a : tensor<?x3xf32>
}
"""


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; returns (status, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")

    def run_command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["polyblocks", *map(str, arguments)])
        try:
            cli.main()
            status = 0
        except SystemExit as left:
            status = left.code or 0
        out, err = capsys.readouterr()
        return status, out, err

    return run_command


@pytest.fixture
def add_file(tmp_path: Path) -> Path:
    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    return path


def test_plugins_lists_ours(run):
    status, out, err = run("plugins")
    assert (status, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert ["target", "cpu", "polyblocks-cpu", "0.1.0", "2", "loaded"] in rows
    assert "this polyblocks speaks API 2" in out


def test_plugins_as_json(run):
    rows = json.loads(run("plugins", "--json")[1])
    cpu = next(row for row in rows if row["name"] == "cpu")
    assert cpu["distribution"] == "polyblocks-cpu"
    assert cpu["module"] == "polyblocks_cpu.plugin"


def test_targets_describes_each(run):
    rows = json.loads(run("targets", "--json")[1])
    assert rows["cpu"]["arch"] not in ("", "native")
    status, out, _ = run("targets")
    assert status == 0
    assert rows["cpu"]["arch"] in out
    # With no device, each GPU target says so in its row, and the others are listed all the same.
    for name in ("nvgpu", "amdgpu"):
        assert rows[name].get("name") == name or "name one, for example" in rows[name]["error"]


def test_targets_lists_what_cannot_be_used(run, fake_plugin, fresh_registry):
    fake_plugin("halt", source="1 / 0")
    status, out, _ = run("targets")
    assert status == 0
    assert "'halt' (dist-halt 1.2) cannot be loaded: ZeroDivisionError" in out


def test_compile_writes_an_artifact(run, add_file):
    status, out, err = run("compile", add_file)
    assert status == 0, err
    artifact = Artifact.from_bytes(add_file.with_suffix(".zip").read_bytes())
    assert artifact.manifest["target"] == "cpu"
    assert [row["role"] for row in artifact.manifest["arguments"]] == ["input", "input", "output"]
    assert "1 kernel for cpu" in out


def test_compile_takes_every_option_with_hyphens(run):
    status, out, _ = run("compile", "--help")
    assert status == 0
    for field in dataclasses.fields(CompileOptions):
        assert f"--{field.name.replace('_', '-')}" in out.split()


def test_compile_passes_options_on(run, add_file, tmp_path):
    output = tmp_path / "x.zip"
    options = ["--arch", "x86-64-v3", "--mlir-disable-fast-math", "--num-threads", "2"]
    status, _, err = run("compile", add_file, "-o", output, *options)
    assert status == 0, err
    assert Artifact.from_bytes(output.read_bytes()).manifest["arch"] == "x86-64-v3"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--target", "cpuu"], "error: unknown target 'cpuu'; did you mean 'cpu'?"),
        (
            ["--target", "nvgpu", "--arch", "sm_91"],
            "error: unknown arch 'sm_91' for target 'nvgpu'",
        ),
        (["--target", "amdgpu", "--arch", "navi13"], "did you mean 'navi33'"),
        (["--num-iters", "0"], "error: compile option 'num_iters' must be a positive int, not 0"),
        (["--after", "S9"], "no stage 'S9' to resume after; there are S1, S2"),
        (["--after", "S3:nothing"], "no pass 'nothing' in stage S3 to resume after; there are"),
    ],
)
def test_compile_says_in_one_line_what_is_wrong(run, add_file, arguments, message):
    status, _, err = run("compile", add_file, *arguments)
    assert status == 1
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_compile_says_what_to_install(run, add_file, monkeypatch):
    from polyblocks.registry import registry

    monkeypatch.setitem(registry.OFFICIAL[registry.TARGETS], "npu", "polyblocks-npu")
    status, _, err = run("compile", add_file, "--target", "npu")
    assert status == 1
    assert "error: target 'npu' is not installed; pip install polyblocks-npu" in err


@pytest.mark.parametrize(
    "text, message",
    [
        ("this is not mlir", "cannot be compiled: Unable to parse module assembly"),
        ("module {}", "cannot be compiled: the module has no function @main"),
        (DYNAMIC, "@main takes and returns static tensors, not tensor<?x3xf32>"),
    ],
)
def test_compile_of_a_file_that_cannot_be_compiled(run, add_file, text, message):
    add_file.write_text(text)
    status, _, err = run("compile", add_file)
    assert status == 1
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_compile_of_a_missing_file(run, tmp_path):
    status, _, err = run("compile", tmp_path / "nothing.mlir")
    assert status == 1
    assert err.startswith("error: cannot read ")


def test_an_unknown_option_is_refused_with_the_nearest(run, add_file):
    status, _, err = run("compile", add_file, "--targt", "cpu")
    assert status == 2
    assert "--target" in err


@pytest.mark.usefixtures("compiled_in_this_process")
def test_compile_resumes_from_a_dump_with_the_same_code(run, add_file, tmp_path, monkeypatch):
    monkeypatch.setenv("POLYBLOCKS_DEBUG_PASSES", "1")
    assert run("compile", add_file, "--debug", tmp_path / "dumps")[0] == 0
    monkeypatch.delenv("POLYBLOCKS_DEBUG_PASSES")
    whole = Artifact.from_bytes(add_file.with_suffix(".zip").read_bytes())
    dumps = sorted((tmp_path / "dumps").rglob("*.mlir"))
    stages = {dump.name.split("-")[1] for dump in dumps}
    assert stages == {"S0", "S1", "S2", "S3", "S4"}
    output = tmp_path / "resumed.zip"
    for dump in dumps[::4] + dumps[-1:]:
        assert run("compile", dump, "-o", output)[0] == 0, dump.name
        resumed = Artifact.from_bytes(output.read_bytes())
        assert resumed.blobs == whole.blobs, dump.name
        for key in ("arguments", "kernels", "entry"):
            assert resumed.manifest[key] == whole.manifest[key], dump.name


@pytest.mark.usefixtures("compiled_in_this_process")
def test_a_dump_without_its_mark_resumes_by_its_file_name(run, add_file, tmp_path):
    assert run("compile", add_file, "--debug", tmp_path / "dumps")[0] == 0
    dump = next((tmp_path / "dumps").rglob("*-S3-*.mlir"))
    dump.write_text(dump.read_text().replace("polyblocks.done =", "other.word ="))
    assert "polyblocks.done" not in dump.read_text()
    status, _, _ = run("compile", dump, "-o", tmp_path / "x.zip")
    assert status == 0
    passes = Artifact.from_bytes((tmp_path / "x.zip").read_bytes()).manifest["report"]["passes"]
    assert passes
    assert {p["stage"] for p in passes} <= {"S4", "S5"}


def test_explain_an_artifact(run, add_file):
    run("compile", add_file)
    status, out, _ = run("explain", add_file.with_suffix(".zip"))
    assert status == 0
    assert "1 kernel for cpu" in out
    assert "no fallbacks" in out
    data = json.loads(run("explain", "--json", add_file.with_suffix(".zip"))[1])
    assert data["parts"][0]["kernels"][0]["name"]


def test_explain_a_file_measures_its_kernels(run, add_file, tmp_path):
    html = tmp_path / "add.html"
    status, out, err = run("explain", add_file, "--html", html, "--num-threads", 1)
    assert status == 0, err
    assert "measured" in out
    assert f"wrote {html}" in out
    assert "Cost</h3>" in html.read_text()
    (part,) = json.loads(run("explain", "--json", add_file)[1])["parts"]
    (kernel,) = part["kernels"]
    assert part["totals"]["runs"] > 3
    assert kernel["measured_seconds"] > 0
    assert kernel["estimate"]["flops"] == 12
    assert kernel["estimate"]["floor_bytes"] == 3 * 12 * 4
    (part,) = json.loads(run("explain", "--json", "--no-measure", add_file)[1])["parts"]
    assert (part["measured"], part["profiled"]) == (False, False)
    assert part["kernels"][0]["predicted_seconds"] > 0


def test_explain_of_a_function_that_raises(run, tmp_path):
    file = tmp_path / "functions.py"
    file.write_text("import torch\ndef double(x):\n    raise KeyError('no such thing\\nmore')\n")
    status, out, err = run("explain", f"{file}:double", "-i", "float32[2]")
    assert status == 0, err
    assert "failed: double raised " in out


def test_explain_json_keeps_what_a_script_prints_apart(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('hello')\n")
    status, out, err = run("explain", "--json", script)
    assert status == 0
    assert json.loads(out)["title"] == "nothing was compiled"
    assert "hello" in err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["FILE:blur"], "has no function 'blur'; it has double"),
        (["nothing.py:f"], "there is no file nothing.py"),
        (["FILE:double", "-i", "float32"], "'float32' is no input; write dtype[extents], e.g."),
        (["FILE:double", "-i", "float32[2,x]"], "'float32[2,x]' is no input; write dtype"),
        (["FILE:double", "-i", "f32[2]"], "there is no dtype 'f32'; there are float64, float32"),
    ],
)
def test_explain_of_a_function_that_cannot_be_called(run, tmp_path, arguments, message):
    file = tmp_path / "functions.py"
    file.write_text("def double(x):\n    return x + x\n")
    status, _, err = run("explain", *(a.replace("FILE", str(file)) for a in arguments))
    assert status == 1
    assert message in err


def test_explain_what_is_not_there(run):
    # The beginning of a key is enough, and tests before this one have filled the cache.
    unknown = "f" * 16
    status, _, err = run("explain", unknown)
    assert status == 1
    assert f"error: no file or cache entry '{unknown}'; run: polyblocks cache list" in err
    status, _, err = run("explain", "nothing.py")
    assert "error: there is no file nothing.py" in err


def test_explain_runs_a_script_with_its_arguments(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from polyblocks import events\n"
        "events.emit('fallback', op='my.op', reason='no rule', location='script.py:3')\n"
        "print(__name__, sys.argv[1:])\n"
        "sys.exit(4)\n"
    )
    status, out, _ = run("explain", script, "a", "--b")
    assert status == 0
    assert "__main__ ['a', '--b']" in out
    assert "nothing was compiled" in out
    assert "my.op at script.py:3: no rule" in out
    assert "failed: the script left with 4" in out


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> Cache:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(folder))
    return default_cache()


def entry(name: str) -> Artifact:
    manifest = {"target": "toy", "arch": "v1", "name": name, "entry": "f", "arguments": []}
    rest = {"workspace_bytes": 0, "kernels": [], "checks": [], "versions": {}, "report": {}}
    return Artifact(manifest | rest, {"code": b"1234"})


def test_cache_list_clear_verify(run, own_cache):
    own_cache.put("a" * 64, entry("first"))
    own_cache.put("b" * 64, entry("second"))
    status, out, _ = run("cache", "list")
    assert status == 0
    assert "first" in out
    assert "second" in out
    assert "2 entries" in out
    assert {row["name"] for row in json.loads(run("cache", "list", "--json")[1])} == {
        "first",
        "second",
    }
    assert run("cache", "verify")[:2] == (0, "2 entries checked, 0 damaged\n")
    damaged = next(e.path for e in own_cache.entries() if e.key.startswith("a"))
    damaged.write_bytes(b"noise")
    status, out, _ = run("cache", "verify")
    assert status == 1
    assert f"damaged: {damaged}" in out
    assert "2 entries checked, 1 damaged" in out
    assert "damaged" in run("cache", "list")[1]
    assert "second: 0 kernels for toy (v1), from the cache" in run("explain", "b" * 10)[1]
    assert run("cache", "clear")[1].startswith("2 entries removed")
    assert own_cache.entries() == []


def test_explain_with_a_key_that_is_not_unique(run, own_cache):
    own_cache.put("a" * 64, entry("first"))
    own_cache.put("a" * 63 + "b", entry("second"))
    status, _, err = run("explain", "aaaa")
    assert status == 1
    assert "2 cache entries begin with" in err


def test_the_artifact_of_the_cli_is_a_zip(run, add_file):
    run("compile", add_file)
    with zipfile.ZipFile(add_file.with_suffix(".zip")) as archive:
        assert "manifest.json" in archive.namelist()

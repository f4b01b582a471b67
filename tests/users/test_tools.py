"""Compiled functions as the tools see them that people use: profilers, and the command line."""

from __future__ import annotations

import gzip
import json
import re
import sys
from importlib.metadata import version

import numpy as np
import pytest

from polyblocks import cli

ADD = """
func.func @main(%a: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %r = linalg.add ins(%a, %a : tensor<4x3xf32>, tensor<4x3xf32>)
                  outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
"""


def ranges(profile):
    return {row.key: row.count for row in profile.key_averages()}


def test_torch_profiler_shows_kernels_by_name():
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile

    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    @polyblocks_jit_torch
    def scaled(x):
        return torch.tanh(x) * 2

    @polyblocks_jit_torch
    def products(x):
        return torch.softmax(x @ x, -1) @ x

    x = torch.rand(32, 32)
    for f in (scaled, products):
        f(x)  # compiled before
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(3):
            torch.testing.assert_close(scaled(x), torch.tanh(x) * 2)
        products(x)
    found = ranges(seen)
    (kernel,) = [row["name"] for part in scaled.polyblocks_report().parts for row in part.kernels]
    assert found[f"scaled: {kernel}"] == 3
    names = [row["name"] for part in products.polyblocks_report().parts for row in part.kernels]
    (label,) = [name for name in found if name.startswith("products: ")]
    assert label.removeprefix("products: ").removesuffix(f" and {len(names) - 1} more") in names
    scaled(x)  # without a profiler again
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        pass
    assert not [name for name in ranges(seen) if name.startswith("scaled")]


def test_torch_profiler_sees_forward_and_backward():
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile

    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    @polyblocks_jit_torch
    def squares(x):
        return (torch.sin(x) ** 2).sum()

    x = torch.rand(9, 9, requires_grad=True)
    squares(x).backward()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        squares(x).backward()
    assert sum(n for name, n in ranges(seen).items() if name.startswith("squares")) == 2


def trace_events(folder):
    (file,) = folder.glob("**/*.trace.json.gz")
    with gzip.open(file) as opened:
        return json.load(opened)["traceEvents"]


@pytest.mark.cpu
def test_jax_trace_shows_kernels_by_name(tmp_path):
    jax = pytest.importorskip("jax")
    from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

    @polyblocks_jit_jax
    def tapered(x):
        return jax.numpy.tanh(x) * 2

    x = np.ones((64, 64), np.float32)
    tapered(x)
    jax.grad(lambda x: tapered(x).sum())(x)
    with jax.profiler.trace(str(tmp_path)):
        tapered(x).block_until_ready()
        jax.grad(lambda x: tapered(x).sum())(x).block_until_ready()
    events = [e for e in trace_events(tmp_path) if str(e.get("name", "")).startswith("tapered_")]
    modules = {event["args"]["hlo_module"] for event in events}
    assert {event["name"].split(".")[0] for event in events} >= {"tapered_tanh_mul"}
    assert len(events) == 3  # the function itself, the forward and the backward half
    assert all(module.startswith("jit_") for module in modules)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; returns (status, stdout, stderr)."""

    def run_command(*arguments, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["polyblocks", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:  # noqa: PT011 # its code is what is returned
            cli.main()
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run_command


def test_version_of_the_command(run):
    assert run("--version") == (0, f"polyblocks-compiler {version('polyblocks-compiler')}\n", "")


@pytest.mark.each_choice
@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("command", [(), ("compile",), ("explain",), ("bisect",), ("cache",)])
def test_help_is_not_cut_off(run, command, columns):
    status, out, err = run(*command, "--help", columns=columns)
    assert (status, err) == (0, "")
    assert "…" not in out
    assert "..." not in out.replace("[ARGS]...", "")
    assert max(map(len, out.splitlines())) <= columns
    words = " ".join(out.split())
    if command in (("compile",), ("explain",), ("bisect",)):
        assert "--polyblocks-disable-unsafe-math-canonicalizations" in words
        assert "float32[3,224,224]" in words
    if not command:
        assert "Show kernels, decisions, times, fallbacks." in words


def test_the_command_alone_shows_its_help(run):
    status, out, err = run()
    assert status == 2
    assert "polyblocks [OPTIONS] COMMAND" in out + err


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["nothing.mlir"], 1, "cannot read .*nothing.mlir: No such file"),
        (["folder"], 1, "cannot read .*folder: Is a directory"),
        (["notes.txt"], 1, "cannot be compiled: Unable to parse module"),
        (["bytes.mlir"], 1, "bytes.mlir cannot be compiled"),
        (["wrong.mlir"], 1, r":4:8: custom op 'linalg.ad' is unknown"),
        (["add.mlir", "--target", "cpuu"], 1, "unknown target 'cpuu'; did you mean 'cpu'"),
        (["add.mlir", "--targt", "cpu"], 2, "No such option: --targt.*--target"),
        (["add.mlir", "--num-threads", "two"], 2, "--num-threads.*valid integer"),
        ([], 2, "Missing argument"),
        (["add.mlir", "-o", "folder"], 1, "cannot write .*folder: Is a directory"),
        (["add.mlir", "-o", "no/x.zip"], 1, "cannot write .*x.zip: No such file"),
        (["f.py:g"], 1, "f.py has no function 'g'; it has f"),
        (["none.py:f"], 1, "there is no file .*none.py"),
        (["syntax.py:f"], 1, r"syntax.py raised SyntaxError at .*syntax.py:1"),
        (["raises.py:f"], 1, r"raises.py raised ZeroDivisionError at .*raises.py:2: division"),
    ],
)
def test_mistakes_in_compile_are_one_line(run, tmp_path, monkeypatch, arguments, status, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    files = {
        "add.mlir": ADD,
        "wrong.mlir": ADD.replace("linalg.add", "linalg.ad"),
        "notes.txt": "to do",
        "f.py": "def f(x):\n    return x\n",
        "syntax.py": "def f(x): return x +\n",
        "raises.py": "def f(x): return x\n1 / 0\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bytes.mlir").write_bytes(bytes(range(128, 256)))
    code, _, err = run("compile", *arguments)
    assert code == status
    (line,) = err.strip().splitlines()
    assert re.match(r"error: .*" + message, line), line


def test_no_permission_to_write_is_one_line(run, tmp_path, monkeypatch):
    def denied(path, data):
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "add.mlir").write_text(ADD)
    monkeypatch.chdir(tmp_path)
    # The superuser may write everywhere.
    monkeypatch.setattr("polyblocks.cli.write_file", denied)
    assert run("compile", "add.mlir")[::2] == (
        1,
        "error: cannot write add.zip: Permission denied\n",
    )


def test_explain_measures_after_a_warm_up(tmp_path):
    from polyblocks.explanation.document import document
    from polyblocks.explanation.page import page
    from polyblocks.explanation.run import explain_module
    from polyblocks.explanation.tree import summary
    from polyblocks.options import CompileOptions

    (tmp_path / "add.mlir").write_text(ADD)
    report = explain_module(tmp_path / "add.mlir", CompileOptions(profile=True))
    (part,) = document(report)["parts"]
    assert part["totals"]["runs"] >= 5
    assert "the fastest of" in summary(part)[0]
    part["totals"]["runs"] = 1
    assert "its only run, without a warm-up" in summary(part)[0]
    data = document(report)
    data["parts"][0]["totals"]["runs"] = 1
    assert "its only run, without a warm-up" in page(data)

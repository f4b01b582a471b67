"""Plugins of strangers, installed by pip: a toy target, a pass, and one that is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cpu, pytest.mark.isolated]

USE_TOY = """
import json, logging, sys
import torch
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

@polyblocks_jit_torch(compile_options={"target": "toy", "strict_target": True})
def f(x, y):
    return torch.relu(x * 2.0 + y)

x, y = torch.randn(3, 5), torch.randn(3, 5)
import polyblocks
with polyblocks.explain() as report:
    result = f(x, y)
part = report.parts[0]

def left():
    f = polyblocks.compile(torch.erf, frontend="torch", compile_options={"target": "toy"})
    with polyblocks.explain() as report:
        assert torch.equal(f(x), torch.erf(x))
    return str(report)

from polyblocks_toy import counter
print(json.dumps({
    "error": (result - torch.relu(x * 2 + y)).abs().max().item(),
    "target": part.target,
    "whole": report.whole,
    "decisions": [d for d in part.report["decisions"] if d["pass"] == "toy-count-loops"],
    "seen": "toy-count-loops" in counter.SEEN,
    "cpu_loaded": "polyblocks_cpu" in sys.modules,
    "left": left(),
}))
"""


COPY = "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a: tensor<2xf32> }"


@pytest.fixture(scope="module")
def used(installed_plugins: Path, run_python) -> tuple[dict, str]:
    done = run_python(USE_TOY, path=installed_plugins, preloaded="torch")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_a_toy_target_is_used_through_the_decorator(used):
    result, _ = used
    assert result["target"] == "toy"
    assert result["error"] == 0
    assert result["whole"]


def test_its_extension_adds_a_pass_and_observes(used):
    result, _ = used
    assert result["decisions"][0]["loops"] >= 1
    assert result["seen"]


def test_a_broken_extension_is_one_warning(used):
    _, err = used
    lines = [line for line in err.splitlines() if "polyblocks-broken" in line]
    assert len(lines) == 1
    assert "cannot be loaded: ImportError: libfrob.so.7" in lines[0]


def test_the_named_target_alone_is_loaded(used):
    result, _ = used
    assert not result["cpu_loaded"]


def test_the_list_of_plugins_shows_all_of_them(installed_plugins, run_python):
    done = run_python("", "-m", "polyblocks.cli", "plugins", "--json", path=installed_plugins)
    rows = {(row["group"], row["name"]): row for row in json.loads(done.stdout)}
    toy = rows["polyblocks.targets", "toy"]
    assert (toy["distribution"], toy["version"]) == ("polyblocks-toy", "0.3.0")
    assert (toy["api"], toy["status"]) == ("2", "loaded")
    counter = rows["polyblocks.extensions", "toy-counter"]
    assert counter["status"] == "loaded"
    assert counter["api"] == "{'configure_pipeline': 1, 'observe': 1}"
    for key in (("polyblocks.targets", "broken"), ("polyblocks.extensions", "broken-extension")):
        assert rows[key]["status"] == "broken"
        assert rows[key]["version"] == "6.6.6"
        assert "ImportError: libfrob.so.7: cannot open" in rows[key]["error"]
    assert rows["polyblocks.targets", "cpu"]["status"] == "loaded"
    assert rows["polyblocks.frontends", "torch"]["status"] == "loaded"


def test_asking_for_the_broken_one_is_one_line(installed_plugins, run_python, tmp_path):
    file = tmp_path / "x.mlir"
    file.write_text(COPY)
    arguments = ("-m", "polyblocks.cli", "compile", str(file), "--target", "broken")
    done = run_python("", *arguments, path=installed_plugins, POLYBLOCKS_PLUGINS="broken,cpu")
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "error: target 'broken' (polyblocks-broken 6.6.6) cannot be loaded: "
        "ImportError: libfrob.so.7: cannot open shared object file"
    )


def test_what_the_toy_cannot_do_falls_back_with_a_reason(used):
    result, _ = used
    assert "the target 'toy' does not know the operation math.erf" in result["left"]


def test_hook_calls_in_the_isolated_child_are_traced(installed_plugins, run_python, tmp_path):
    file = tmp_path / "x.mlir"
    file.write_text(COPY)
    arguments = ("-m", "polyblocks.cli", "compile", str(file), "--target", "toy")
    done = run_python("", *arguments, path=installed_plugins, POLYBLOCKS_TRACE_HOOKS=1)
    lines = done.stderr.splitlines()
    assert "polyblocks: target 'toy': describe_target(options=CompileOptions)" in lines
    assert any("target 'toy': lower_program(module=Module" in line for line in lines), lines
    assert any("'toy-counter': configure_pipeline(pipeline=Pipeline" in line for line in lines)

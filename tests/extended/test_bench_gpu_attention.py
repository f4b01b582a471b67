"""The GPU benchmark's group of attention, in the simulator and beside other implementations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from bench.gpu import attention, attention_peers, cases, hopper, measure
from bench.gpu.__main__ import main
from bench.gpu.programs import function_of

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")


def test_attention_is_run_beside_other_ways_to_compute_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.gpu.kit.write", lambda folder: folder.mkdir())
    folder, name = str(tmp_path), "decode 2x4x1x64 by 2x203"
    command = ["build", folder, "--group", "attention", "--simulate"]
    assert main([*command, "--only", "by 8x4096"]) == 0
    assert main(["once", folder]) == 0
    assert f"{name}: right" in capsys.readouterr().out
    peers = "eager,flash,cudnn"
    assert main(["run", folder, "--peers", peers, "--rounds", "1", "--turn", "0"]) == 0
    (file,) = (tmp_path / "results").glob("*.json")
    cases_of = {c["case"]: c["peers"] for c in json.loads(file.read_text())["cases"]}
    found = {row["peer"]: row for row in cases_of[name]}
    assert found["polyblocks"]["correct"]
    assert found["eager"]["correct"]
    # This backend needs a GPU.
    assert "problem" in found["cudnn"]
    assert measure.peers_of(cases.TINY, list(found)) == ["eager"]


def test_flex_attention_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyTorch computes it, without a compiler."""
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    flexible = [pair for pair in hopper.PAIRS if "flex_attention" in pair.peers]
    for pair in (*attention.PAIRS, *flexible):
        function = function_of(pair.small.program)
        inputs = [torch.from_numpy(x) for x in pair.small.inputs()]
        flex = attention_peers.by_flex(function)(*inputs)
        torch.testing.assert_close(flex, function(*inputs), rtol=1e-2, atol=2e-3)


def test_the_group_of_hopper_is_built_for_its_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.gpu.kit.write", lambda folder: folder.mkdir())
    folder = str(tmp_path)
    only = "int8,/2 float16 128,gradients,windowed"
    assert main(["build", folder, "--group", "hopper", "--simulate", "--only", only]) == 0
    assert json.loads((tmp_path / "bundle.json").read_text())["archs"] == ["sm_90a"]
    assert main(["once", folder]) == 0
    said = capsys.readouterr().out
    for name in ("a @ b.T int8", "convolution 3x3 /2", "attention gradients", "windowed attention"):
        assert any(line.startswith(name) and ": right" in line for line in said.splitlines()), name
    pairs = {pair.large.name: pair for pair in hopper.PAIRS}
    convolution = pairs["convolution 3x3 /1 float16 64->64 32x56x56"]
    assert measure.peers_of(convolution, measure.PEERS) == ["eager"]
    # That many multiply-adds has an image by ResNet-50, counted once for layers that are alike.
    assert convolution.large.flops == 2 * 32 * 56**2 * 64 * 64 * 9

"""Whole models beside PyTorch: on a CPU and small, so that what a GPU will run has run."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")

from bench.engines import OURS  # noqa: E402
from bench.gpu import clocks, models  # noqa: E402
from bench.gpu_models.zoo import Model  # noqa: E402


@pytest.fixture
def small(monkeypatch):
    known = {
        "small": Model(
            lambda batch: torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()),
            lambda batch: (torch.rand(batch, 3, 8, 8),),
        )
    }
    monkeypatch.setattr(models, "MODELS", known)
    return ["small"]


def test_models_are_built_and_timed(small, tmp_path):
    models.build(tmp_path, small, [1, 2], "cpu", None, dtype=torch.float32, with_kit=False)
    results = models.run(
        tmp_path, small, [1, 2, 3], clocks.Simulation(), 2, 0.01,
        peers=[models.EAGER], dtype=torch.float32,
    )  # fmt: skip
    assert [(row["model"], row["batch"]) for row in results["rows"]] == [("small", 1), ("small", 2)]
    for row in results["rows"]:
        by_peer = {peer["peer"]: peer for peer in row["peers"]}
        assert set(by_peer) == {OURS, "eager", "eager, channels last"}
        assert by_peer[OURS]["ratio"] == 1
        assert all(peer["correct"] and peer["seconds"] > 0 for peer in by_peer.values())
        assert row["arrays"] == 3
    text = models.page(json.loads(json.dumps(results)))
    assert "| small, 2 |" in text
    assert "| 1 | eager |" in text


def test_the_better_layout_of_eager_counts():
    def row(batch, **ratios):
        peers = [{"peer": OURS, "ratio": 1.0}, {"peer": "inductor", "problem": "none"}]
        peers += [{"peer": name.replace("_", ", "), "ratio": r} for name, r in ratios.items()]
        return {"batch": batch, "peers": peers}

    rows = [row(1, eager=4.0, eager_packed=2.0), row(1, eager=8.0), row(8, eager=3.0)]
    assert models.means(rows) == [
        {"batch": 1, "peer": "eager", "ratio": pytest.approx(4.0), "goal": 2.15},
        {"batch": 8, "peer": "eager", "ratio": pytest.approx(3.0), "goal": 1.8},
    ]


def test_all_models_are_what_they_are_called():
    for name, expected in {"GPT-2 128": 124_439_808, "ViT-B/16": 86_567_656}.items():
        with torch.device("meta"):
            module = models.MODELS[name].make(1)
        assert sum(weight.numel() for weight in module.parameters()) == expected

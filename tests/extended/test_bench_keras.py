"""The group ``keras`` of the benchmarks: networks of ``keras.applications``."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bench import __main__ as bench_main
from bench.keras_models import page, run, table, worker
from bench.keras_models.table import FORWARD, OURS, TRAINING
from bench.silence import Silence

ONES = np.ones(4, np.float32)


def job(value: Any = ONES) -> SimpleNamespace:
    """What :class:`bench.keras_models.networks.Job` has; numbers stand for its tensors."""
    return SimpleNamespace(
        function=lambda x: x * value, arguments=(1,), outcome=np.asarray, finish=lambda x: x
    )


def test_errors() -> None:
    halved = np.array([2, 4, 0, 0], np.float32)
    off = halved + np.float32([0, 0, 1, 0])
    assert worker.error_of(off, halved, FORWARD) == pytest.approx(1 / 4)
    assert worker.error_of(off, halved, TRAINING) == pytest.approx(1 / 20**0.5)
    assert worker.error_of(ONES * np.nan, ONES, FORWARD) == np.inf
    assert worker.error_of(ONES[1:], ONES, TRAINING) == np.inf


def test_an_error_may_be_twice_that_of_tensorflow() -> None:
    assert worker.is_right(1e-2, 0, TRAINING)
    assert not worker.is_right(2e-2, 0, TRAINING)
    assert worker.is_right(6e-2, 3e-2, TRAINING)
    assert not worker.is_right(7e-2, 3e-2, TRAINING)
    assert not worker.is_right(float("inf"), 1.0, TRAINING)


def test_the_peers_are_compared_with_float64_and_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    def compiler(peer: str, factor: float = 1) -> Any:
        def made(function: Any) -> Any:
            def call(x: Any) -> Any:
                order.append(peer)
                return function(x) * factor

            return call

        return made

    def fails(function: Any) -> Any:
        raise RuntimeError("no")

    seconds = iter([2.0, 1.0, 9.0, 6.0, 2.0, 9.0])
    monkeypatch.setattr(worker, "timed", lambda call, _: [call() is not None and next(seconds)])
    by_peer = {
        "tf.function": compiler("tf.function"),
        OURS: compiler(OURS),
        "XLA": compiler("XLA", 2),
        "fails": fails,
    }
    rows = worker.compare(job, ONES, by_peer, FORWARD, 2, Silence(), idle_s=0)
    theirs, ours, wrong, failed = rows
    assert order == ["tf.function", OURS, "XLA"] * 2 + [OURS, "XLA", "tf.function"]
    assert (theirs["correct"], ours["correct"], wrong["correct"]) == (True, True, False)
    assert wrong["error"] == 1.0
    assert failed == {"mode": FORWARD, "peer": "fails", "problem": "RuntimeError: no"}
    assert (ours["minimum"], theirs["minimum"], wrong["minimum"]) == (1.0, 2.0, 2.0)
    # In the first round 2 over 1, in the second one 9 over 6.
    assert theirs["ratio"] == pytest.approx((2 + 9 / 6) / 2)
    assert "ratio" not in ours


def test_only_the_error_of_tensorflow_excuses_another() -> None:
    def fails(function: Any) -> Any:
        raise RuntimeError("no")

    def nowhere(function: Any) -> Any:
        return lambda x: function(x) * np.nan

    for first in (fails, nowhere):
        by_peer = {"tf.function": first, OURS: lambda f: lambda x: f(x) * 2}
        rows = worker.compare(job, ONES, by_peer, FORWARD, 0, Silence(), idle_s=0)
        assert not rows[1]["correct"]


def test_a_network_and_its_training_step(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras runs on another framework here")
    from bench.keras_models import networks

    made = []

    def small(input_shape: Any, classes: int, **_: Any) -> Any:
        layers = keras.layers
        model = keras.Sequential(
            [
                keras.Input(input_shape),
                layers.Conv2D(4, 3, strides=8),
                layers.BatchNormalization(),
                layers.GlobalAveragePooling2D(),
                layers.Dropout(0.5),
                layers.Dense(classes),
            ]
        )
        made.append(model)
        return model

    model = "Small"
    monkeypatch.setattr(keras.applications, model, small, raising=False)
    one, other = (networks.job(model, TRAINING, 2) for _ in range(2))
    assert [model.layers[3].rate for model in made] == [0, 0]
    loss = one.function(*one.arguments)
    assert np.isfinite(one.finish(loss))
    moved = one.outcome(loss)
    assert np.linalg.norm(moved) > 0
    assert worker.error_of(other.outcome(other.function(*other.arguments)), moved, TRAINING) < 1e-3
    exact = networks.exact(model, TRAINING, 2)
    assert exact.dtype == np.float64
    assert keras.config.dtype_policy().name == "float32"
    assert 0 < worker.error_of(moved, exact, TRAINING) < 1e-3
    forward = networks.job(model, FORWARD, 1)
    logits = forward.outcome(forward.function(*forward.arguments))
    assert logits.shape == (1, table.CLASSES)
    assert all(hasattr(keras.applications, name) for name in table.MODELS)


def row(model: str, mode: str, peer: str, **facts: Any) -> dict[str, Any]:
    return {"model": model, "mode": mode, "peer": peer, **facts}


def right(**facts: Any) -> dict[str, Any]:
    return {"first_call": 1.0, "minimum": 0.001, "error": 1e-6, "correct": True, **facts}


ROWS = [
    row("VGG16", FORWARD, OURS, **right()),
    row("VGG16", FORWARD, "XLA", **right(minimum=0.004, ratio=4.0)),
    row("ResNet50", FORWARD, OURS, **right(minimum=0.002)),
    row("ResNet50", FORWARD, "XLA", **right(ratio=0.5)),
    row("VGG16", TRAINING, OURS, problem="no"),
    row("ResNet50", TRAINING, OURS, **right(error=0.5, correct=False)),
]


def test_the_page_has_the_means_and_says_where_a_rival_is_faster() -> None:
    results = {
        "date": "2000-01-01",
        "machine": {"cpu": "chip", "threads": 2},
        "rounds": 3,
        "busy": 0.5,
        "rows": ROWS,
        "summary": list(run.summary(ROWS)),
    }
    text = page.markdown(json.loads(json.dumps(results)))
    assert "do not trust these numbers" in text
    assert "| forward pass, XLA | 1.41× | 0.50× | ResNet50 |" in text
    assert "| training step, XLA | – | – | – |" in text
    assert "| VGG16 | **1** | – | 4 | – | 4.00 | 1.00 | – | 1.00 | 1.0e-06 | – | 1.0e-06 |" in text
    assert "- ResNet50, forward pass: 2.00 × XLA" in text
    assert "- VGG16, training step: polyblocks: no" in text
    assert run.failures(ROWS) == [
        "VGG16, training step: no",
        "ResNet50, training step: wrong by 0.5",
    ]


def test_a_process_that_ends_early_is_a_failure_of_what_it_did_not_come_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"rows": [{"mode": FORWARD, "peer": OURS, **right()}], "busy": 0.25}
    monkeypatch.setattr(run.suites, "work", lambda *_, **__: (found, "it died"))
    request = run.Request("", 1, 2, tmp_path, tmp_path)
    rows, busy = run.measured(("VGG16",), request, tmp_path)
    assert busy == 0.25
    assert [r["model"] for r in rows] == ["VGG16", "VGG16"]
    assert run.failures(rows) == ["VGG16, training step: it died"]


def test_results_are_written_and_options_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "measured", lambda *_: (ROWS[:4], None))
    assert bench_main.main(["--group", "keras", "--results", str(tmp_path)]) == 0
    (written,) = tmp_path.glob("*-keras.json")
    assert json.loads(written.read_text())["summary"][1]["where"] == "ResNet50"
    for option in ("--quick", "--before=x.json"):
        assert bench_main.main(["--group", "keras", option]) == 1
    assert bench_main.main(["--group", "keras", "--only", "LeNet"]) == 1
    said = capsys.readouterr().err
    assert "--quick is not for the group keras" in said
    assert "--before is for the group calls only" in said
    assert "no case contains 'LeNet'; the cases are MobileNet;" in said

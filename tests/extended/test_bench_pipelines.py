"""The group of pipelines: its table, its programs in three frameworks, page and goals."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import tensorflow as tf
import torch
from bench import arrays, contest, engines, groups, page, plot, report, table
from bench.__main__ import who_take_part
from bench.engines import HALIDE
from bench.errors import max_error
from bench.pipelines.table import (
    BRANCHES,
    CASES,
    SPELLINGS,
    TOLERANCE,
    color,
    gray,
    halves,
    holes,
    sensor,
)
from pipeline_arguments import SMALL
from tests.support.sweeps import sweep

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")

#: Largest error at these sizes; no branch turns over in them.
NEAR = 3e-6

#: What is long to compile, or the subject of others as well.
SLOW = {"images.interpolation", "images.local_laplacian", "images.blending"}
SLOW |= {"filters.non_local_means", "simulation.wave", "simulation.scaling_by_rows"}
SLOW |= {"images.bilateral_grid", "filters.unsharp_mask", "filters.bilateral"}
SLOW |= {"simulation.n_body", "simulation.product_3x3"}
#: What is compiled in every framework; their kernels are the same, see test_three_frontends.py.
IN_ALL = {"filters.blur_x_blur_y", "filters.harris", "simulation.heat", "images.camera"}
PROGRAMS = sweep(sorted(SMALL), *IN_ALL, "filters.canny_edges", "simulation.n_body_planes")

#: How each framework's programs are compiled, their arguments, and how the framework runs them.
FRAMEWORKS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "in_torch": (polyblocks_jit_torch, arrays.tensor, lambda function: function),
    "in_jax": (polyblocks_jit_jax, jax.numpy.asarray, jax.jit),
    "in_tensorflow": (polyblocks_jit_tf, tf.constant, tf.function),
}
#: Programs of a framework, and none of TensorFlow's that are not written.
STRICT = [
    pytest.param(language, name, marks=pytest.mark.slow)
    if name in SLOW or (name not in IN_ALL and language != "in_torch")
    else pytest.param(language, name)
    for language in FRAMEWORKS
    for name in sorted(SMALL)
    if language != "in_tensorflow" or not name.startswith("images.")
]


def function_of(language: str, name: str) -> Callable[..., Any]:
    return engines.written_in(language, f"pipelines.{name}")


def reference(name: str) -> np.ndarray[Any, Any]:
    return contest.reference(table.Case(name, f"pipelines.{name}", tuple, 0), SMALL[name]())


# --- the table ------------------------------------------------------------------------------


def test_what_is_asked_of_the_rows() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) == 20
    assert {case.program for case in CASES} == {f"pipelines.{name}" for name in SMALL}
    asked = {case.program.rpartition(".")[2]: (case.bar, case.bar_floor) for case in CASES}
    assert asked["blur_x_blur_y"] == asked["heat"] == asked["wave"] == (1.5, 1.0)
    assert asked["unsharp_mask"] == (1.2, 1.0)
    assert asked["harris"] == asked["canny_edges"] == (1.1, 0.8)
    assert {bars for name, bars in asked.items() if name in ("camera", "median", "blending")} == {
        (1.0, 0.7)
    }
    assert {case.branches for case in CASES} == {0.0, BRANCHES}
    assert {case.tolerance for case in CASES} == {0.0, TOLERANCE}
    assert [len(cases) for cases in SPELLINGS.values()] == [2, 2]
    assert all(name in names for cases in SPELLINGS.values() for name in cases)


@pytest.mark.parametrize(
    "case",
    sweep(CASES, *(case for case in CASES if case.program.removeprefix("pipelines.") not in SLOW)),
    ids=lambda c: c.name,
)
def test_bytes_are_those_of_the_program(case: table.Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tensors without memory; not all of them can be computed on such."""

    def black(count: int, height: int, width: int, extra: int = 0) -> Any:
        return (np.zeros((height, width), np.float32),) * count

    monkeypatch.setattr("bench.pipelines.table.photographs", black)
    inputs = [arrays.tensor(x).to("meta") for x in case.inputs()]
    moved = sum(x.nbytes for x in inputs)
    with torch.no_grad():
        result = engines.written_in("in_torch", case.program)(*inputs)
    moved += sum(x.nbytes for x in (result if isinstance(result, tuple) else (result,)))
    # A curve of tones stays in the cache.
    assert case.floor_bytes == pytest.approx(moved, rel=1e-4)


def test_images_have_256_shades_and_are_not_alike() -> None:
    (image,) = gray(96, 160)()
    assert image.dtype == np.float32
    assert 0 <= image.min() < 0.2
    assert 0.8 < image.max() < 1
    assert np.array_equal(image * 256, np.floor(image * 256))
    assert len({channel.tobytes() for channel in color(64, 64)()[0]}) == 3
    one, other, mask = halves(64, 96)()
    assert not np.array_equal(one, other)
    assert 0.3 < mask.mean() < 0.7
    (known,) = holes(64, 64)()[1:]
    assert 0.2 < known.mean() < 0.3


def test_a_sensor_sees_one_colour_at_each_place() -> None:
    raw, curve = sensor(64, 96, 256)()
    colors = color(64, 96)()[0]
    seen = np.stack([raw == channel for channel in colors])
    assert seen[1, 0::2, 0::2].mean() > 0.99
    assert seen[0, 0::2, 1::2].mean() > 0.99
    assert seen[2, 1::2, 0::2].mean() > 0.99
    assert (curve[0], curve[-1], len(curve)) == (0, 1, 257)
    assert (np.diff(curve) > 0).all()


def test_errors_may_leave_out_some_elements() -> None:
    expected = np.zeros(10_000)
    result = expected.copy()
    result[7] = 1.0
    assert max_error(result, expected) == 1.0
    assert max_error(result, expected, 1e-4) == 0.0
    result[8] = 0.5
    assert max_error(result, expected, 1e-4) == 0.5
    result[9] = math.nan
    assert max_error(result, expected, 1e-2) == math.inf


# --- the programs ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_jax_agrees(name: str) -> None:
    function = jax.jit(function_of("in_jax", name))
    result = engines.joined(function(*map(jax.numpy.asarray, SMALL[name]())))
    assert max_error(result, reference(name)) <= NEAR


@pytest.mark.parametrize("name", PROGRAMS)
def test_tensorflow_agrees(name: str) -> None:
    if name.startswith("images."):
        with pytest.raises(NotImplementedError, match="is not written in TensorFlow"):
            function_of("in_tensorflow", name)
        return
    function = tf.function(function_of("in_tensorflow", name), jit_compile=True)
    result = engines.joined(function(*map(tf.constant, SMALL[name]())))
    assert max_error(result, reference(name)) <= NEAR


@pytest.mark.parametrize(("language", "name"), STRICT)
def test_ours_is_whole_and_near_float64_and_the_framework(language: str, name: str) -> None:
    compiler, argument, theirs = FRAMEWORKS[language]
    function = function_of(language, name)
    arguments = [argument(x) for x in SMALL[name]()]
    compiled = compiler(function, compile_options={"strict_target": True})
    result = engines.joined(compiled(*arguments))
    assert max_error(result, reference(name)) <= NEAR
    assert max_error(result, engines.joined(theirs(function)(*arguments))) <= NEAR


def test_every_program_is_compiled_whole_in_two_frameworks() -> None:
    whole = [case.values[1] for case in STRICT]
    assert all(whole.count(name) >= 2 for name in SMALL)
    assert {case.values[0] for case in STRICT} == set(FRAMEWORKS)


def test_spellings_compute_the_same() -> None:
    one = reference("simulation.scaling")
    assert np.allclose(one, reference("simulation.scaling_by_rows"), atol=1e-9)
    place, speed = reference("simulation.n_body").reshape(2, 53, 3)
    by_planes = reference("simulation.n_body_planes").reshape(2, 3, 53)
    assert np.allclose(place.T, by_planes[0])
    assert np.allclose(speed.T, by_planes[1])


def test_small_matrices_are_those_of_numpy() -> None:
    a, b = SMALL["simulation.product_3x3"]()
    product = reference("simulation.product_3x3")
    assert np.allclose(product, a.astype(float) @ b, atol=1e-12)
    (a,) = SMALL["simulation.inverse_3x3"]()
    assert np.allclose(reference("simulation.inverse_3x3"), np.linalg.inv(a.astype(float)))


def test_medians_are_those_of_numpy() -> None:
    (image,) = SMALL["filters.median"]()
    windows = np.lib.stride_tricks.sliding_window_view(image, (5, 5))
    assert np.array_equal(reference("filters.median"), np.median(windows, (-2, -1)))


def test_a_constant_image_stays_what_it_is() -> None:
    flat = np.full((256, 256), 0.5, np.float32)
    for name in ("bilateral", "non_local_means", "median"):
        result = function_of("in_torch", f"filters.{name}")(torch.from_numpy(flat))
        assert torch.allclose(result, torch.tensor(0.5)), name
    for name in ("bilateral_grid", "local_laplacian"):
        result = function_of("in_torch", f"images.{name}")(torch.from_numpy(flat))
        assert result.std() < 1e-6, name


def test_interpolation_keeps_what_is_known_and_fills_the_rest() -> None:
    image, known = SMALL["images.interpolation"]()
    result = reference("images.interpolation")
    assert np.allclose(result[:, known == 1], image[:, known == 1], atol=1e-6)
    off = np.abs(result - image)[:, known == 0]
    assert 0 < off.mean() < 0.1


def test_blending_shows_either_image_far_from_the_seam() -> None:
    one, other, mask = SMALL["images.blending"]()
    result = function_of("in_torch", "images.blending")(
        *(torch.from_numpy(x) for x in (one, other, np.ones_like(mask)))
    )
    assert np.allclose(result, one, atol=1e-6)
    seam = reference("images.blending")
    assert np.abs(seam[:, :, 0] - one[:, :, 0]).mean() < np.abs(seam - other)[:, :, 0].mean() / 2


def test_hot_pixels_vanish() -> None:
    raw, curve = SMALL["images.camera"]()
    hot = np.full_like(raw, 0.4)
    clean = function_of("in_torch", "images.camera")(*map(torch.from_numpy, (hot, curve)))
    hot[20, 31] = 1.0
    held = function_of("in_torch", "images.camera")(*map(torch.from_numpy, (hot, curve)))
    assert torch.equal(clean, held)


def test_edges_are_thin_and_of_three_kinds() -> None:
    edges = reference("filters.canny_edges")
    assert set(np.unique(edges)) == {0.0, 0.5, 1.0}
    assert 0.005 < (edges > 0).mean() < 0.2


# --- peers, goals and the page --------------------------------------------------------------


def test_who_runs_what() -> None:
    everybody = tuple(name for name in engines.ENGINES if name not in engines.VARIANTS)
    assert who_take_part(engines.ENGINES, CASES) == everybody
    assert set(HALIDE) < set(everybody)
    for group in ("memory", "contractions"):
        assert not set(HALIDE) & set(who_take_part(engines.ENGINES, groups.GROUPS[group].cases))
    with pytest.raises(NotImplementedError, match="softmax is not written in Halide"):
        engines.written_in("in_halide", "softmax")
    with pytest.raises(NotImplementedError, match="camera is not written in TensorFlow"):
        function_of("in_tensorflow", "images.camera")


def row(peer: str, seconds: float, **facts: Any) -> dict[str, Any]:
    return {
        "peer": peer, "minimum": seconds, "first_call": seconds + 0.5, "overhead": 0.1,
        "max_error": 1e-7, "correct": True, "predicted": None, "ratio": None, **facts,
    }  # fmt: skip


def results(rows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Of the cases whose programs have these names."""
    found = report.header(3, 2, "pipelines")
    for case in CASES:
        name = case.program.rpartition(".")[2]
        if name in rows:
            report.add_case(found, case, rows[name])
    report.finish(found, None)
    return found


def goals_of(found: dict[str, Any]) -> list[float | None]:
    return [goal["value"] for goal in found["summary"]["goals"]]


def test_goals_of_a_whole_run() -> None:
    found = results(
        {
            "harris": [row(engines.OURS, 0.01, predicted=0.012), row("eager", 0.1)],
            "median": [row(engines.OURS, 0.2, predicted=0.1), row("eager", 0.1)],
            "scaling": [row(engines.OURS, 0.05, first_call=2.0), row("eager", 0.5)],
            "scaling_by_rows": [row(engines.OURS, 0.02), row("eager", 0.5)],
            "n_body": [row(engines.OURS, 0.02), row("eager", 0.5)],
        }
    )
    met, bodies_alike, scaling_alike, predicted, compiled = goals_of(found)
    assert (met, bodies_alike, predicted, compiled) == (80.0, None, 50.0, 80.0)
    assert scaling_alike == pytest.approx(0.4)
    assert [goal["least"] for goal in found["summary"]["goals"]] == [
        80.0, pytest.approx(1 / 1.3), pytest.approx(1 / 1.3), 80.0, 100.0,
    ]  # fmt: skip
    assert goals_of(results({})) == [None] * 5


def test_the_page_of_pipelines(tmp_path: Path) -> None:
    failed = {"peer": "halide-by-hand", "problem": "median has no schedule by hand"}
    found = results(
        {
            "harris": [
                row(engines.OURS, 0.01, predicted=0.012),
                row("eager", 0.1),
                row("halide-mullapudi", 0.009),
                row("halide-by-hand", 0.008, ratio=0.75),
            ],
            "median": [row(engines.OURS, 0.2), row("eager", 0.1), failed],
        }
    )
    text = page.markdown(json.loads(json.dumps(found)), "x.png")
    assert "# Image pipelines and simulations, " in text
    assert "2 rows are below their floors or failed" in text
    assert "- rows that meet their bars: 0.00 %, at least 80.00 %: not met" in text
    assert (
        "| Harris corners 2048x2048 | 0.75 | 1.10 | 0.80 | 0.75 | by hand | – | below floor | 10 "
        "| 12 | 1.0e-07 | 1.0e-07 | 0.40 |"
    ) in text
    assert "| median 5x5 1024x1024 | 0.50 | 1.00 | 0.70 | – | – | – | below floor |" in text
    assert "- median 5x5 1024x1024: halide-by-hand: median has no schedule by hand" in text
    for before, after in itertools.pairwise(text.splitlines()):
        if before.startswith("|") and after.startswith("|"):
            assert before.count("|") == after.count("|")
    plot.draw(found, tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 10_000
    assert report.write(found, tmp_path).name.endswith("-pipelines.json")

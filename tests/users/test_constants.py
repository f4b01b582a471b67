"""Constants in all three frameworks: what depends on them alone is computed once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
tf = pytest.importorskip("tensorflow")
import jax.numpy as jnp  # noqa: E402

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch  # noqa: E402

STRICT = {"strict_target": True}
FRAMEWORKS: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], Any]]] = {
    "torch": (polyblocks_jit_torch, torch.from_numpy),
    "jax": (polyblocks_jit_jax, jnp.asarray),
    "tf": (polyblocks_jit_tf, tf.constant),
}


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, np.float32)


def cpu_seconds() -> float:
    """Of this process and of those that compiled for it: others on the machine do not matter."""
    return sum(os.times()[:4])


def llvm(folder: Path, name: str) -> list[str]:
    """LLVM IR of the programs of a function that were compiled with this folder for dumps."""
    return [p.read_text() for p in sorted(folder.glob(f"{name}*/S5-input.ll"))]


def rotate_and_darken(images: Any, angle: float) -> Any:
    """As in ``examples/tf_rotation.py``."""
    _, height, width, _ = images.shape
    cos, sin = math.cos(angle), math.sin(angle)
    rotated = tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=[[cos, -sin, 3.0, sin, cos, 5.0, 0.0, 0.0]],
        output_shape=[height, width],
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="REFLECT",
    )
    row = tf.linspace(-1.0, 1.0, height)[:, None, None]
    column = tf.linspace(-1.0, 1.0, width)[None, :, None]
    return rotated * tf.exp(-(row * row + column * column))


@pytest.mark.slow
def test_tf_rotation_compiles_alike_for_every_size(tmp_path: Path) -> None:
    sizes = []
    for height, width in ((60, 80), (120, 160)):
        folder = tmp_path / str(height)
        options = {**STRICT, "debug": str(folder)}
        compiled = polyblocks_jit_tf(rotate_and_darken, compile_options=options)
        images = random(2, height, width, 3)
        expected = rotate_and_darken(tf.constant(images), 0.3)
        np.testing.assert_allclose(compiled(images, 0.3), expected, atol=1e-4)
        (text,) = llvm(folder, "rotate_and_darken")
        sizes.append(len(text))
    # The tables are data, of which LLVM knows the name and the type.
    assert max(sizes) < 1.02 * min(sizes)


@pytest.mark.slow
def test_tf_rotation_of_480_lines_compiles_in_seconds() -> None:
    compiled = polyblocks_jit_tf(rotate_and_darken, compile_options=STRICT)
    images = random(2, 480, 640, 3)
    begin = cpu_seconds()
    compiled(images, 0.3)
    # It was 80; what remains is TensorFlow's tracing for the most part.
    assert cpu_seconds() - begin < 10


def capturing(framework: str, operation: str, constant: np.ndarray) -> Callable[[Any], Any]:
    held = FRAMEWORKS[framework][1](constant)
    return {"add": lambda x: x + held, "matmul": lambda x: x @ held}[operation]


@pytest.mark.parametrize("operation", ["add", pytest.param("matmul", marks=pytest.mark.slow)])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_captured_array_is_not_in_the_program(
    framework: str, operation: str, tmp_path: Path
) -> None:
    jit, array = FRAMEWORKS[framework]
    constant, x = random(1024, 512), array(random(1024, 1024, seed=1))
    if operation == "add":
        x = array(random(1024, 512, seed=1))
    function = capturing(framework, operation, constant)
    compiled = jit(function, compile_options={**STRICT, "debug": str(tmp_path)})
    expected = np.asarray(x) + constant if operation == "add" else np.asarray(x) @ constant
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(compiled(x)), expected, rtol=1e-4)
    assert not list(tmp_path.glob("*/code-*.o"))
    dumps = [p for p in tmp_path.rglob("*.*") if p.is_file()]
    assert dumps
    assert all(p.stat().st_size < 200_000 for p in dumps), "2 MiB are in a dump"
    if framework == "jax":
        assert "1024x512xf32> dense" not in jax.jit(compiled).lower(x).as_text()


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["add", "matmul"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_100_megabytes_cost_next_to_nothing(framework: str, operation: str) -> None:
    jit, array = FRAMEWORKS[framework]
    constant = random(5120, 5120)
    x = array(random(5120 if operation == "add" else 8, 5120, seed=1))
    jit(lambda x: x + 1)(x)
    for _ in range(2):  # compiled, and from the cache
        function = capturing(framework, operation, constant)
        begin = cpu_seconds()
        result = jit(function, compile_options=STRICT)(x)
        np.asarray(result)
        assert cpu_seconds() - begin < 4


def test_a_large_constant_of_a_tensorflow_graph_is_an_argument() -> None:
    table = random(700, 600)

    def function(x: Any) -> Any:
        return x * tf.constant(table)

    compiled = polyblocks_jit_tf(function, compile_options=STRICT)
    x = random(700, 600, seed=1)
    np.testing.assert_allclose(compiled(x), x * table, rtol=1e-6)
    # Another table, the same program.
    first = table
    table = random(700, 600, seed=2)
    again = polyblocks_jit_tf(function, compile_options=STRICT)
    np.testing.assert_allclose(again(x), x * table, rtol=1e-6)
    np.testing.assert_allclose(compiled(x), x * first, rtol=1e-6)
    assert again.polyblocks_report().to_json()["variants"][0]["cached"]


def torch_blur(x: Any) -> Any:
    taps = torch.tensor([1.0, 4.0, 6.0, 4.0, 1.0])
    return torch.nn.functional.conv2d(x[None, None], (taps / taps.sum()).view(1, 1, 1, 5))


def jax_blur(x: Any) -> Any:
    taps = jnp.array([1.0, 4.0, 6.0, 4.0, 1.0])
    taps = taps / taps.sum()
    return sum(taps[i] * x[:, i : i + 60] for i in range(5))


def tf_blur(x: Any) -> Any:
    taps = tf.constant([1.0, 4.0, 6.0, 4.0, 1.0])
    taps = tf.reshape(taps / tf.reduce_sum(taps), (1, 5, 1, 1))
    return tf.nn.conv2d(x[None, :, :, None], taps, 1, "VALID")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_taps_of_a_divided_filter_are_known(framework: str, tmp_path: Path) -> None:
    jit, array = FRAMEWORKS[framework]
    function = {"torch": torch_blur, "jax": jax_blur, "tf": tf_blur}[framework]
    compiled = jit(function, compile_options={**STRICT, "debug": str(tmp_path)})
    x = random(32, 64)
    taps = np.array([1, 4, 6, 4, 1], np.float32) / 16
    expected = sum(taps[i] * x[:, i : i + 60] for i in range(5))
    np.testing.assert_allclose(np.asarray(compiled(array(x))).reshape(32, 60), expected, rtol=1e-6)
    (text,) = llvm(tmp_path, function.__name__)
    assert "fdiv" not in text
    assert "0.375" in text or "3.750000e-01" in text or "3FD8" in text.upper()


def torch_table(x: Any) -> Any:
    return x + torch.sin(torch.arange(3000) * 0.37)


def jax_table(x: Any) -> Any:
    return x + jnp.sin(jnp.arange(3000) * jnp.float32(0.37))


def tf_table(x: Any) -> Any:
    return x + tf.sin(tf.cast(tf.range(3000), tf.float32) * 0.37)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_table_is_loaded_instead_of_computed(framework: str, tmp_path: Path) -> None:
    jit, array = FRAMEWORKS[framework]
    function = {"torch": torch_table, "jax": jax_table, "tf": tf_table}[framework]
    compiled = jit(function, compile_options={**STRICT, "debug": str(tmp_path)})
    x = np.zeros(3000, np.float32)
    places = (np.arange(3000, dtype=np.float32) * np.float32(0.37)).astype(np.float64)
    exact = np.sin(places)
    result = np.asarray(compiled(array(x)))
    if framework == "tf":
        # TensorFlow's bridge to XLA has computed it before.
        np.testing.assert_allclose(result, exact, atol=1e-6)
    else:
        assert (np.abs(result - exact) <= 0.51 * np.spacing(np.abs(exact).astype("f4"))).all()
    (text,) = llvm(tmp_path, function.__name__)
    assert "external constant [3000 x float]" in text
    assert "fmul" not in text


def test_positions_stay_arithmetic(tmp_path: Path) -> None:
    def positions(x: Any) -> Any:
        return x + jnp.arange(3000) * jnp.float32(0.37)

    options = {**STRICT, "debug": str(tmp_path)}
    x = jnp.zeros(3000)
    result = polyblocks_jit_jax(positions, compile_options=options)(x)
    np.testing.assert_allclose(result, np.arange(3000) * 0.37, rtol=1e-6)
    (text,) = llvm(tmp_path, "positions")
    assert "[3000 x float]" not in text


def test_constants_with_infinities_and_nans() -> None:
    def function(x: Any) -> Any:
        table = jnp.array([0.0, -1.0, jnp.inf, 4.0, -0.0])
        parts = [jnp.sqrt(table), 1.0 / table, jnp.log(table), jnp.maximum(table, 2.0)]
        return x + jnp.concatenate([*parts, jnp.where(table > 0, table, -table)])

    compiled = polyblocks_jit_jax(function, compile_options=STRICT)
    x = jnp.zeros(25)
    np.testing.assert_array_equal(compiled(x), jax.jit(function)(x))

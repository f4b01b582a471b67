"""The causal attention of JAX is that of its written-out form, with the same kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from polyblocks.events import Event, listening  # noqa: E402
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

pytestmark = pytest.mark.cpu

LENGTH, SIZE = 640, 32


def _written(low: float) -> Callable[..., Any]:
    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bthd,bshd->bhts", q, k) * SIZE**-0.5
        keep = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        weights = jax.nn.softmax(jnp.where(keep, scores, low), -1)
        return jnp.einsum("bhts,bshd->bthd", weights, v)

    return attention


def library(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def _run(function: Callable[..., Any]) -> tuple[Any, int, int]:
    """The result, how many loops have bounds of masks, and the number of kernels."""
    generator = np.random.default_rng(0)
    q, k, v = (generator.standard_normal((1, LENGTH, 8, SIZE), np.float32) for _ in range(3))
    events: list[Event] = []
    with listening(events.append):
        fast = polyblocks_jit_jax(function, compile_options={"strict_target": True})
        ours = np.asarray(fast(q, k, v))
    np.testing.assert_allclose(ours, np.asarray(library(q, k, v)), rtol=1e-4, atol=1e-5)
    cut = sum(e.data["loops"] for e in events if e.data.get("what") == "bounds of masks")
    return ours, cut, len(fast.polyblocks_report().to_json()["parts"][-1]["kernels"])


def test_the_library_has_the_kernels_of_the_written_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path))
    infinite = _run(_written(-np.inf))
    assert infinite[1] >= 5
    for function in (library, _written(float(jnp.finfo(jnp.float32).min))):
        assert _run(function)[1:] == infinite[1:]


def test_tables_keep_the_signs_of_zeros() -> None:
    table = np.where(np.tri(64, dtype=bool), np.float32(0.0), np.float32(-0.0))
    table[5, 60] = 0.0
    other = np.where(np.tri(64, dtype=bool), np.float32(0.0), np.float32(-0.0))
    x = np.ones((64, 64), np.float32)
    for held in (table, other):
        fast = polyblocks_jit_jax(lambda x, held=held: x * held)
        np.testing.assert_array_equal(np.signbit(np.asarray(fast(x))), np.signbit(held))

"""Cross-entropies over many classes: no array of all scores, however they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

pytestmark = pytest.mark.cpu

#: Rows, classes in blocks with a shorter last one (a prime number), width.
ROWS, CLASSES, WIDTH = 70, 16411, 5


def by_chances(x: Any, y: Any, classes: Any) -> Any:
    chances = jax.nn.log_softmax(x @ y.T, axis=-1)
    return -jnp.take_along_axis(chances, classes[:, None], axis=-1)[:, 0]


def by_scores(x: Any, y: Any, classes: Any) -> Any:
    scores = x @ y.T
    picked = jnp.take_along_axis(scores, classes[:, None], axis=-1)[:, 0]
    return jax.nn.logsumexp(scores, axis=-1) - picked


@pytest.mark.extended
@pytest.mark.parametrize("function", [by_chances, by_scores], ids=lambda f: f.__name__)
def test_no_array_of_all_scores(function: Callable[..., Any]) -> None:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal((n, WIDTH)).astype(np.float32) for n in (ROWS, CLASSES))
    classes = (np.arange(ROWS) * 211 % CLASSES).astype(np.int32)
    classes[:2] = 0, CLASSES - 1
    x[2, 0] = np.nan
    compiled = polyblocks_jit_jax(function, compile_options={"strict_target": True})
    ours, eager = np.asarray(compiled(x, y, classes)), np.asarray(function(x, y, classes))
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(eager))
    np.testing.assert_allclose(ours, eager, rtol=8e-6)
    (part,) = compiled.polyblocks_report().parts
    assert part.workspace_bytes < 4 * ROWS * CLASSES // 8

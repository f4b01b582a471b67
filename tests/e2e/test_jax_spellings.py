"""Attention as JAX's function and written out: the same kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402

pytestmark = pytest.mark.cpu


def library(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v)


def written_out(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bnhd,bmhd->bhnm", q, k) * q.shape[-1] ** -0.5
    return jnp.einsum("bhnm,bmhd->bnhd", jax.nn.softmax(scores, -1), v)


@pytest.mark.parametrize("length", [96, 520])
def test_attention_is_the_same_however_it_is_written(length: int) -> None:
    random = np.random.default_rng(0)
    inputs = [random.standard_normal((1, length, 4, 32)).astype(np.float32) for _ in range(3)]
    found = []
    for function in (library, written_out):
        compiled = polyblocks_jit_jax(function, compile_options={"strict_target": True})
        np.testing.assert_allclose(compiled(*inputs), written_out(*inputs), rtol=2e-5, atol=2e-6)
        (part,) = compiled.polyblocks_report().parts
        found.append((part.workspace_bytes, [(k["kind"], k["code_bytes"]) for k in part.kernels]))
    assert found[0] == found[1]

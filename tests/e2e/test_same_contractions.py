"""One product, however it is written and in whichever framework: the same machine code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from product_loops import PRODUCT

from polyblocks.api import compile_file
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax
from polyblocks.options import CompileOptions
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

jax = pytest.importorskip("jax")
tf = pytest.importorskip("tensorflow")

M, N, K = 96, 112, 80
#: No chip's own: the code is the same on every machine.
OPTIONS = {"target": "cpu", "arch": "x86-64-v3", "num_threads": 2, "strict_target": True}


def kernel(path: Path) -> str:
    """The code of the product in a program's assembly, without the names of symbols."""
    text = path.read_text()
    found = [
        body
        for body in re.split(r"\n(?=\t\.globl\t|\t\.p2align\t4\n\t\.type)", text)
        if body.count("vfmadd") > 8
    ]
    (body,) = found
    name = re.search(r"\.type\t(\S+),@function", body)
    assert name is not None
    body = re.sub(rf"\b{name[1]}\b", "kernel", body)
    lines = (line for line in body.split("\n") if line.strip())
    # Labels have the function's number in them.
    return re.sub(r"(LBB|Lfunc_end|LCPI)\d+", r"\1", "\n".join(lines))


def code(compiled: Callable[..., Any], arguments: tuple[Any, ...], folder: Path) -> str:
    """Run a compiled function, compare its result, and read its product's code."""
    a, b = (np.asarray(x, dtype=np.float64) for x in arguments)
    np.testing.assert_allclose(np.asarray(compiled(*arguments)), a @ b, rtol=1e-5, atol=1e-5)
    (path,) = folder.rglob("S5-code.s")
    return kernel(path)


@pytest.fixture(scope="module")
def arrays() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    return (
        draw.standard_normal((M, K), dtype=np.float32),
        draw.standard_normal((K, N), dtype=np.float32),
    )


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The code for loops in an MLIR file."""
    folder = tmp_path_factory.mktemp("loops")
    (folder / "loops.mlir").write_text(PRODUCT.format(m=M, n=N, k=K))
    options = {k: v for k, v in OPTIONS.items() if k != "strict_target"}
    compile_file(folder / "loops.mlir", CompileOptions(**options, debug=str(folder / "dump")))
    (path,) = (folder / "dump").rglob("S5-code.s")
    return kernel(path)


TORCH: dict[str, Callable[..., Any]] = {
    "operator": lambda a, b: a @ b,
    "einsum": lambda a, b: torch.einsum("mk,kn->mn", a, b),
    "arithmetic": lambda a, b: (a[:, :, None] * b[None]).sum(1),
}
JAX: dict[str, Callable[..., Any]] = {
    "operator": lambda a, b: a @ b,
    "einsum": lambda a, b: jax.numpy.einsum("mk,kn->mn", a, b),
    "arithmetic": lambda a, b: (a[:, :, None] * b[None]).sum(1),
}
TF: dict[str, Callable[..., Any]] = {
    "operator": lambda a, b: a @ b,
    "einsum": lambda a, b: tf.einsum("mk,kn->mn", a, b),
    "arithmetic": lambda a, b: tf.reduce_sum(a[:, :, None] * b[None], 1),
}


@pytest.mark.parametrize("form", TORCH)
def test_torch(form: str, arrays, expected: str, tmp_path: Path) -> None:
    compiled = polyblocks_jit_torch(compile_options=OPTIONS | {"debug": str(tmp_path)})(TORCH[form])
    assert code(compiled, tuple(map(torch.from_numpy, arrays)), tmp_path) == expected


@pytest.mark.parametrize("form", JAX)
def test_jax(form: str, arrays, expected: str, tmp_path: Path) -> None:
    compiled = polyblocks_jit_jax(compile_options=OPTIONS | {"debug": str(tmp_path)})(JAX[form])
    assert code(compiled, arrays, tmp_path) == expected


@pytest.mark.parametrize("form", TF)
def test_tf(form: str, arrays, expected: str, tmp_path: Path) -> None:
    compiled = polyblocks_jit_tf(compile_options=OPTIONS | {"debug": str(tmp_path)})(TF[form])
    assert code(compiled, tuple(map(tf.constant, arrays)), tmp_path) == expected

"""One engine behind three frameworks: the same results, and the same kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bench.algorithms.table import Algorithm
from bench.engines import joined, written_in
from bench.errors import max_error
from swept_algorithms import OF_EACH_KIND, SWEPT_ALGORITHMS

torch = pytest.importorskip("torch")
# It loads Triton where that is installed, which ends processes that have loaded TensorFlow.
pytest.importorskip("torch._dynamo")
jax = pytest.importorskip("jax")
tf = pytest.importorskip("tensorflow")

from polyblocks import driver  # noqa: E402
from polyblocks.driver import compile_capture  # noqa: E402
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax  # noqa: E402
from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf  # noqa: E402
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch  # noqa: E402
from polyblocks_cpu import describe  # noqa: E402
from polyblocks_cpu.archs import lookup  # noqa: E402
from polyblocks_cpu.host import CacheLevel, Host  # noqa: E402

Decorator = Callable[..., Callable[..., Any]]
#: Module of the algorithms -> the decorator, and how an array is made of NumPy's.
FACES: dict[str, tuple[Decorator, Callable[[np.ndarray[Any, Any]], Any]]] = {
    "in_torch": (polyblocks_jit_torch, torch.from_numpy),
    "in_jax": (polyblocks_jit_jax, jax.numpy.asarray),
    "in_tensorflow": (polyblocks_jit_tf, tf.constant),
}


def reference(algorithm: Algorithm) -> np.ndarray[Any, Any]:
    """The result in float64."""
    inputs = [torch.from_numpy(x) for x in algorithm.small()]
    exact = [x.double() if x.is_floating_point() else x for x in inputs]
    function = written_in("in_torch", f"algorithms.{algorithm.name}")
    return joined(function(*exact)).astype(np.float64)


def compiled(language: str, name: str, **options: Any) -> Callable[..., Any]:
    decorator, _ = FACES[language]
    return decorator(
        written_in(language, f"algorithms.{name}"),
        compile_options={"strict_target": True, "num_threads": 2, **options},
    )


@pytest.mark.each_choice
@pytest.mark.parametrize("language", ["in_jax", "in_tensorflow"])
@pytest.mark.parametrize("algorithm", SWEPT_ALGORITHMS, ids=lambda a: a.name)
def test_results_are_near_float64(algorithm: Algorithm, language: str) -> None:
    """PyTorch's are looked at in tests/extended/test_bench_frontends.py."""
    _, convert = FACES[language]
    result = compiled(language, algorithm.name)(*map(convert, algorithm.small()))
    assert max_error(joined(result), reference(algorithm)) < algorithm.tolerance


#: Two cores, not those that the tests happen to run on: frameworks round and convert in their own
#: ways, which costs more or less to do again. Where it costs as much as memory they may differ.
CHIP = lookup("znver5")
MACHINE = Host(
    CHIP,
    (),
    {
        1: CacheLevel(CHIP.l1, 64, 12, 1),
        2: CacheLevel(CHIP.l2, 64, 16, 1),
        3: CacheLevel(CHIP.l3, 64, 16, 2),
    },
    2,
)


class CompiledError(BaseException):
    """Ends a first call once there is code; nobody takes it for an error to recover from."""


def kernels_of(
    language: str, algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, float]:
    """How many kernels share large loops among threads, and the bytes of the arrays each touches.

    Small ones do not count: a sum of three numbers may be taken here or there. Neither do bytes
    that are read again, which are those between a cache and the memory where an array lies: one may
    hold results of PyTorch, whose memory is used again at once.
    """
    kernels: list[dict[str, Any]] = []

    def stop(*arguments: Any) -> None:
        kernels.extend(compile_capture(*arguments).manifest["kernels"])
        raise CompiledError("enough")

    _, convert = FACES[language]
    inputs = [convert(x) for x in algorithm.inputs()]
    with monkeypatch.context() as patch:
        patch.setattr(describe, "host", lambda: MACHINE)
        patch.setattr(driver, "compile_capture", stop)
        with pytest.raises(CompiledError, match="enough"):
            compiled(language, algorithm.name)(*inputs)
    large = [k for k in kernels if k["estimate"]["iterations"] > 10_000]
    return len(large), sum(k["estimate"]["floor_bytes"] * k["calls"] for k in large)


@pytest.mark.cpu
@pytest.mark.parametrize("algorithm", OF_EACH_KIND, ids=lambda a: a.name)
def test_kernels_are_the_same(algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch) -> None:
    count, touched = kernels_of("in_torch", algorithm, monkeypatch)
    assert count
    for language in ("in_jax", "in_tensorflow"):
        if algorithm.name == "conv_bias_relu":
            # The padding of a convolution is PyTorch's own; the others pad first.
            continue
        found = kernels_of(language, algorithm, monkeypatch)
        assert found[0] == count
        assert found[1] == pytest.approx(touched, rel=0.02)

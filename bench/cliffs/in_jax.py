"""The operations in JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import linalg, special

from bench.cliffs.case import Array, Case, factorizations, rows, side
from bench.cliffs.operands import definite, flat, image, image_and, of_rows, scattered, squares
from bench.cliffs.table import OURS
from bench.predictions import of_last_call as report
from polyblocks.jax_polyblocks_compiler import polyblocks_jit_jax

__all__ = ["CASES", "PEERS", "arrays", "call", "exact", "forget", "operands", "report", "start"]

PEERS: dict[str, Callable[[Any], Any]] = {
    "jax.jit": jax.jit,
    OURS: lambda function: polyblocks_jit_jax(
        function, compile_options={"target": "cpu", "strict_target": True}
    ),
}


def _pool(x: Any, start: Any, step: Any, extent: int = 2) -> Any:
    return lax.reduce_window(x, start, step, (1, extent, extent, 1), (1, 2, 2, 1), "VALID")


def _convolve(x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def _summed(function: Any, place: int = 0) -> Any:
    return jax.grad(lambda *operands: function(*operands).sum(), place)


def _scan(decay: Any, x: Any) -> Any:
    return lax.scan(lambda state, step: ((state * decay + step),) * 2, jnp.zeros_like(decay), x)[1]


def _pointwise() -> tuple[Case, ...]:
    unary = """exp exp2 expm1 log log1p log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh
    arcsinh arctanh sqrt cbrt square reciprocal floor rint sign sinc isnan""".split()
    binary = "add multiply divide power arctan2 hypot fmod remainder logaddexp maximum".split()
    narrow = ("arcsin", "arccos", "arctanh")
    positive = ("log", "log2", "log10", "sqrt", "log1p")
    return (
        *(
            Case(
                name,
                getattr(jnp, name),
                flat(-0.99, 0.99) if name in narrow else flat(0.1 if name in positive else -4, 4),
            )
            for name in unary
        ),
        *(Case(name, getattr(jnp, name), flat(0.1, 4, 2)) for name in binary),
        *(
            Case(name, getattr(special, name), flat(0.1, 4))
            for name in ("erf", "erfc", "erfinv", "gammaln", "digamma", "i0e", "ndtri", "expit")
            if name not in ("erfinv", "ndtri")
        ),
        Case("erfinv", special.erfinv, flat(-0.99, 0.99)),
        *(
            Case(name, getattr(jax.nn, name), flat())
            for name in ("gelu", "silu", "softplus", "elu", "mish", "log_sigmoid")
        ),
    )


CASES = (
    *_pointwise(),
    *(
        Case(f"{name} of rows", partial(getattr(jnp, name), axis=-1), of_rows(1024))
        for name in ("sum", "mean", "prod", "max", "argmax", "std", "var", "any")
    ),
    *(
        Case(f"{name} of columns", partial(getattr(jnp, name), axis=0), of_rows(1024))
        for name in ("sum", "max", "argmax", "std")
    ),
    Case("softmax", jax.nn.softmax, of_rows(1024)),
    Case("softmax, gradient", _summed(lambda x: jax.nn.softmax(x) ** 2), of_rows(1024)),
    Case("logsumexp", lambda x: jax.nn.logsumexp(x, -1), of_rows(1024)),
    Case("standardize", jax.nn.standardize, of_rows(768)),
    Case("cumsum, rows", lambda x: jnp.cumsum(x, -1), of_rows(1024)),
    Case("cumsum, columns", lambda x: jnp.cumsum(x, 0), of_rows(1024)),
    Case("cummax, rows", lambda x: lax.cummax(x, 1), of_rows(1024)),
    Case("cumlogsumexp, rows", lambda x: lax.cumlogsumexp(x, 1), of_rows(1024)),
    Case(
        "associative_scan of products",
        lambda x: lax.associative_scan(jnp.multiply, x, axis=1),
        of_rows(256),
    ),
    Case(
        "scan of 32 steps",
        _scan,
        lambda d, n: (d.uniform(0.5, 0.9, n // 32), d.normal(32, n // 32)),
    ),
    Case("sort, rows of 64", jnp.sort, of_rows(64)),
    Case("sort, rows of 1024", jnp.sort, of_rows(1024)),
    Case("sort, all", jnp.sort, flat()),
    Case("argsort, rows of 1024", jnp.argsort, of_rows(1024)),
    Case("top_k 8 of 8192", lambda x: lax.top_k(x, 8), of_rows(8192)),
    Case("top_k 50 of 50257", lambda x: lax.top_k(x, 50), of_rows(50257)),
    Case("median of 1024", lambda x: jnp.median(x, -1), of_rows(1024)),
    Case("quantile of 1024", lambda x: jnp.quantile(x, 0.3, -1), of_rows(1024)),
    Case(
        "searchsorted",
        lambda e, x: jnp.searchsorted(jnp.cumsum(e), x),
        lambda d, n: (d.uniform(0.1, 1, 1 << 12), d.uniform(0, 2000, n)),
    ),
    Case(
        "unique, with a size",
        lambda x: jnp.unique(x, size=1024),
        lambda d, n: (d.integers(0, 1024, n, dtype=np.int32),),
    ),
    Case(
        "bincount",
        lambda x: jnp.bincount(x, length=1024),
        lambda d, n: (d.integers(0, 1024, n, dtype=np.int32),),
    ),
    Case("histogram", lambda x: jnp.histogram(x, 256, (-4, 4))[0], flat()),
    Case("transpose", jnp.transpose, squares()),
    Case("roll", lambda x: jnp.roll(x, (3, 5), (0, 1)), squares()),
    Case("flip", jnp.flip, squares()),
    Case("concatenate, columns", lambda x, y: jnp.concatenate((x, y), 1), of_rows(512, 2)),
    Case("stack, last", lambda x, y: jnp.stack((x, y), -1), of_rows(512, 2)),
    Case("tril", jnp.tril, squares()),
    Case("pad, reflect", lambda x: jnp.pad(x, 2, "reflect"), squares()),
    Case("pad, wrap", lambda x: jnp.pad(x, 2, "wrap"), squares()),
    Case("repeat", lambda x: jnp.repeat(x, 4, -1), of_rows(256)),
    Case("where", jnp.where, lambda d, n: (d.flags(n // 2), d.normal(n // 2), d.normal(n // 2))),
    Case("gather of rows", lambda x, i, _: x[i], scattered),
    Case(
        "take_along_axis",
        lambda x, i: jnp.take_along_axis(x, i, 1),
        lambda d, n: (d.normal(*rows(n, 256)), d.integers(0, 256, *rows(n, 256), dtype=np.int32)),
    ),
    Case("at[].add of rows", lambda x, i, y: x.at[i].add(y), scattered),
    Case("at[].set of rows", lambda x, i, y: x.at[jnp.sort(i)].set(y), scattered),
    Case("at[].max of rows", lambda x, i, y: x.at[i].max(y), scattered),
    Case("segment_sum", lambda x, i, y: jax.ops.segment_sum(y, i, x.shape[0]), scattered),
    Case(
        "one_hot",
        lambda i: jax.nn.one_hot(i, 64),
        lambda d, n: (d.integers(0, 64, n // 64, dtype=np.int32),),
    ),
    Case("product", jnp.matmul, squares(2, 4)),
    Case("product, gradient", _summed(lambda x, y: jnp.tanh(x @ y)), squares(2, 4)),
    Case(
        "batched product",
        jnp.matmul,
        lambda d, n: (d.normal(n // 16384, 64, 64), d.normal(n // 16384, 64, 64)),
    ),
    Case(
        "einsum of heads",
        lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y),
        lambda d, n: (d.normal(n // 65536, 128, 4, 64), d.normal(n // 65536, 128, 4, 64)),
    ),
    Case(
        "dot_product_attention",
        jax.nn.dot_product_attention,
        lambda d, n: tuple(d.normal(max(1, n // 393216), 256, 8, 64) for _ in range(3)),
    ),
    Case("convolution 3x3", _convolve, image_and(3, 3, 32, 32)),
    Case(
        "convolution 3x3, gradient",
        _summed(lambda x, w: _convolve(x, w) ** 2, 1),
        image_and(3, 3, 32, 32),
    ),
    Case("convolution 3x3/2", lambda x, w: _convolve(x, w, 2), image_and(3, 3, 32, 32)),
    Case("max pool", lambda x: _pool(x, -jnp.inf, lax.max), image()),
    Case("max pool, gradient", _summed(lambda x: _pool(x, -jnp.inf, lax.max) ** 2), image()),
    Case("mean pool 3/2", lambda x: _pool(x, 0.0, lax.add, 3) / 9, image()),
    Case(
        "resize, linear",
        lambda x: jax.image.resize(x, (4, 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), "linear"),
        image(8),
    ),
    Case(
        "resize, cubic",
        lambda x: jax.image.resize(x, (4, 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), "cubic"),
        image(8),
    ),
    Case(
        "map_coordinates",
        lambda x, i, j: jax.scipy.ndimage.map_coordinates(x, [i, j], order=1),
        lambda d, n: (d.normal(512, 512), d.uniform(0, 511, n // 2), d.uniform(0, 511, n // 2)),
    ),
    Case(
        "correlate",
        lambda x, k: jnp.correlate(x, k, "same"),
        lambda d, n: (d.normal(n), d.normal(31)),
    ),
    *factorizations(
        Case("cholesky", jnp.linalg.cholesky, definite(0)),
        Case("cholesky of 16x16", jnp.linalg.cholesky, definite(16)),
        Case("cho_solve", lambda a, b: linalg.cho_solve(linalg.cho_factor(a), b), definite(0, 4)),
        Case("solve", jnp.linalg.solve, definite(0, 4)),
        Case("solve of 3x3", jnp.linalg.solve, definite(3, 1)),
        Case("inv of 16x16", jnp.linalg.inv, definite(16)),
        Case("det of 3x3", jnp.linalg.det, definite(3)),
        Case(
            "solve_triangular",
            lambda a, b: linalg.solve_triangular(jnp.tril(a), b, lower=True),
            definite(0, 4),
        ),
        Case("qr", lambda a: jnp.abs(jnp.linalg.qr(a)[1]), definite(0)),
        Case("eigvalsh of 16x16", jnp.linalg.eigvalsh, definite(16)),
        Case(
            "singular values of 16x16", lambda a: jnp.linalg.svd(a, compute_uv=False), definite(16)
        ),
    ),
    Case("fft of 1024", jnp.fft.fft, lambda d, n: (d.complex(*rows(n // 2, 1024)),)),
    Case("rfft of 4096", jnp.fft.rfft, of_rows(4096)),
    Case("fft2", jnp.fft.fft2, lambda d, n: (d.complex(4, side(n // 8), side(n // 8)),)),
    Case(
        "circular convolution by fft",
        lambda x, k: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(k)),
        of_rows(4096, 2),
    ),
    Case(
        "product of complex numbers",
        jnp.multiply,
        lambda d, n: (d.complex(n // 4), d.complex(n // 4)),
    ),
    Case("random bits", lambda x: jax.random.uniform(jax.random.key(0), x.shape), flat()),
    Case("random normal", lambda x: jax.random.normal(jax.random.key(0), x.shape), flat()),
)


def start(threads: int) -> None:
    """Compile something small with each peer; XLA takes the processors that it sees."""
    del threads
    for compiler in PEERS.values():
        jax.block_until_ready(compiler(lambda x: x + 1)(jnp.ones(4)))


def operands(arrays: tuple[Array, ...]) -> Any:
    """The arrays as JAX's."""
    return jax.block_until_ready([jnp.asarray(array) for array in arrays])


def call(case: Case, made: Any, operands: Any) -> Callable[[], Any]:
    """What is timed."""
    del case
    return lambda: jax.block_until_ready(made(*operands))


def arrays(result: Any) -> list[Array]:
    """The arrays of a result."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(result)]


def exact(case: Case, operands: Any) -> list[Array] | None:
    """The same in float64."""
    with jax.enable_x64(True):
        wide = [jnp.asarray(_widened(np.asarray(x))) for x in operands]
        return arrays(case.function(*wide))


def _widened(array: Array) -> Array:
    return array.astype({"f": np.float64, "c": np.complex128}.get(array.dtype.kind, array.dtype))


def forget() -> None:
    """Let go of what was compiled."""
    jax.clear_caches()

"""Random PyTorch programs of what the mid-level treats apart: stencil chains, normalizations,
scans, scatters, sorts, long reductions, updates in place, in several dtypes.

Where :mod:`program_fuzz` mixes single operators, each program here is one of these patterns with
random sizes, neighbours and consumers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

Array = torch.Tensor
DTYPES = [
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64),
    *(torch.int64, torch.int32, torch.int8, torch.bool),
]


@dataclass
class Program:
    """``run(*inputs)``; ``text`` says what it is."""

    run: Callable[..., Any]
    inputs: list[Array]
    text: str


def make(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    maker = rng.choice(MAKERS)
    run, inputs, text = maker(rng)
    return Program(run, inputs, f"{maker.__name__}: {text}")


Made = tuple[Callable[..., Any], list[Array], str]


def _extent(rng: random.Random, high: int = 70) -> int:
    return rng.choice([1, 2, 3, 5, 8, 13, 16, 17, 31, 33, 64, rng.randrange(1, high)])


def _pointwise(rng: random.Random) -> tuple[str, Callable[[Array], Array]]:
    return rng.choice(
        [
            ("tanh", torch.tanh),
            ("relu", torch.relu),
            ("x*0.5+1", lambda x: x * 0.5 + 1),
            ("x*x", lambda x: x * x),
            ("exp(-x*x)", lambda x: torch.exp(-x * x)),
            ("where", lambda x: torch.where(x > 0.25, x, -2 * x)),
            ("clamp", lambda x: x.clamp(-0.5, 0.75)),
        ]
    )


def stencils(rng: random.Random) -> Made:
    """A chain of neighbourhoods along rows and columns, with borders cut, padded or wrapped."""
    h, w = _extent(rng) + 12, _extent(rng) + 12
    steps: list[Callable[[Array], Array]] = []
    words = []
    for _ in range(rng.randrange(2, 7)):
        kind = rng.choice(["rows", "columns", "box", "point", "pad", "wrap", "pool"])
        r, c = rng.random() + 0.1, rng.random() - 0.5
        if kind == "rows":
            steps.append(lambda x, r=r, c=c: r * x[:, :-2] + c * x[:, 1:-1] - x[:, 2:])
        elif kind == "columns":
            steps.append(lambda x, r=r, c=c: r * x[:-2] - c * x[2:])
        elif kind == "box":
            k = torch.tensor([[r, c, 0.2], [0.1, 1.0, c], [r, 0.3, -r]])
            steps.append(lambda x, k=k: F.conv2d(x[None, None], k[None, None])[0, 0])
        elif kind == "pad":
            p = (rng.randrange(3), rng.randrange(3), rng.randrange(3), rng.randrange(3))
            mode = rng.choice(["constant", "replicate", "reflect"])
            words.append(mode)
            steps.append(lambda x, p=p, mode=mode: F.pad(x[None, None], p, mode=mode)[0, 0])
        elif kind == "wrap":
            d, n = rng.randrange(2), rng.randrange(-2, 3)
            steps.append(lambda x, d=d, n=n: x + torch.roll(x, n, d))
        elif kind == "pool":
            s = rng.choice([1, 2])
            steps.append(lambda x, s=s: F.avg_pool2d(x[None, None], 2, s)[0, 0])
        else:
            word, step = _pointwise(rng)
            kind = word
            steps.append(step)
        words.append(kind)
    also = rng.randrange(len(steps)) if rng.random() < 0.4 else None

    def run(x: Array) -> Any:
        outputs = []
        for n, step in enumerate(steps):
            x = step(x)
            if n == also:
                outputs.append(x)
        return (*outputs, x)

    return run, [torch.randn(h, w)], f"{h}x{w} {' '.join(words)}, also {also}"


def heat(rng: random.Random) -> Made:
    """Time steps of a 5-point stencil whose border stays, or is cut off."""
    n, m, steps = _extent(rng) + 2, _extent(rng) + 2, rng.randrange(1, 6)
    keep = rng.random() < 0.6

    def run(x: Array) -> Array:
        for _ in range(steps):
            inner = x[1:-1, 1:-1]
            new = inner + 0.1 * (
                x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * inner
            )
            if keep:
                x = x.clone()
                x[1:-1, 1:-1] = new
            elif min(new.shape) > 2:
                x = new
        return x

    return run, [torch.randn(n, m)], f"{n}x{m}, {steps} steps, border {'kept' if keep else 'cut'}"


def normalization(rng: random.Random) -> Made:
    """Reductions of a row, and what is made of the row with them."""
    shape = [_extent(rng) for _ in range(rng.randrange(1, 4))]
    d = rng.randrange(len(shape))
    kind = rng.choice("softmax log_softmax layer variance logsumexp rms argmax amax minmax".split())
    word, before = _pointwise(rng)

    def run(x: Array) -> Any:
        x = before(x)
        if kind == "softmax":
            return torch.softmax(x, d)
        if kind == "log_softmax":
            return torch.log_softmax(x, d)
        if kind == "layer":
            return F.layer_norm(x, x.shape[-1:], eps=1e-2) * 2
        if kind == "variance":
            return torch.var_mean(x, d, unbiased=False)
        if kind == "logsumexp":
            return torch.logsumexp(x, d)
        if kind == "rms":
            return x * torch.rsqrt((x * x).mean(d, keepdim=True) + 1e-2)
        if kind == "argmax":
            return x.argmax(d), x.argmin(d), x
        if kind == "amax":
            return x - x.amax(d, keepdim=True), x.sum(d)
        return torch.aminmax(x, dim=d)

    return run, [torch.randn(shape)], f"{shape} {word} then {kind} over {d}"


def long_reduction(rng: random.Random) -> Made:
    """Few results of many elements."""
    rows, n = rng.choice([1, 1, 2, 3]), rng.choice([1000, 4096, 5003, 20011])
    f = rng.choice([torch.sum, torch.amax, torch.mean, torch.amin, torch.prod])
    word, before = _pointwise(rng)
    along = rng.randrange(2)
    shape = (rows, n) if along else (n, rows)

    def run(x: Array, y: Array) -> Any:
        x = before(x) * 0.1 + 1 if f is torch.prod else before(x)
        both = f(x, dim=along) if rng_rows else f(x if f is not torch.prod else x[:2])
        return both, (x * y).sum(along)

    rng_rows = f is torch.prod or rng.random() < 0.5
    text = f"{f.__name__} of {shape} {word} over {along if rng_rows else 'all'}"
    return run, [torch.randn(shape), torch.randn(shape)], text


def scans(rng: random.Random) -> Made:
    """Cumulative sums, products and maxima, with something before and behind."""
    shape = [_extent(rng) for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.5:
        # Long and few: what runs in parallel has to be cut out of a scan.
        shape = rng.choice([[5003], [2, 4096], [1000, 3], [3, 1025, 2]])
    d = rng.randrange(len(shape))
    kind = rng.choice(["cumsum", "cumprod", "cummax", "logcumsumexp", "cumsum-int"])
    word, f = _pointwise(rng)
    flip = rng.random() < 0.3

    def run(x: Array) -> Any:
        if kind == "cumsum-int":
            return torch.cumsum((x > 0).to(torch.int64), d)
        x = f(x)
        if flip:
            x = x.flip(d)
        if kind == "cummax":
            return torch.cummax(x, d)
        x = getattr(torch, kind)(x * 0.2 + 1 if kind == "cumprod" else x, d)
        return x, f(x).sum(d)

    return run, [torch.randn(shape)], f"{kind} of {shape} {word} along {d}, flipped {flip}"


def scatters(rng: random.Random) -> Made:
    """Additions, stores and counts at computed places."""
    n, m, k = rng.choice([_extent(rng), 3000]), _extent(rng, 40), 8 + _extent(rng)
    kind = rng.choice("index_add scatter_add bincount index_put gather index_select where".split())
    index = torch.zeros(n, dtype=torch.int64)

    def run(x: Array, i: Array, out: Array) -> Any:
        if kind == "index_add":
            return out.index_add(0, i, x * 2)
        if kind == "scatter_add":
            return out.scatter_add(0, i[:, None].expand(n, m), x) + 1
        if kind == "bincount":
            return torch.zeros(k).index_add(0, i, x[:, 0].abs())
        if kind == "index_put":
            return out.index_put((i,), x, accumulate=True)
        if kind == "gather":
            return out[i] * x, out.gather(0, i[:, None].expand(n, m)).sum(0)
        if kind == "index_select":
            return out.index_select(0, i).tanh() + x
        return torch.where((i > 3)[:, None], x, out[i])

    return run, [torch.randn(n, m), index, torch.randn(k, m)], f"{kind} {n} {m} {k}"


def selections(rng: random.Random) -> Made:
    """Sorts and the largest elements."""
    shape = [_extent(rng, 40) for _ in range(rng.randrange(1, 3))]
    d = rng.randrange(len(shape))
    kind = rng.choice(["sort", "argsort", "topk", "median", "kthvalue"])
    k = rng.randrange(1, shape[d] + 1)
    down = rng.random() < 0.5

    def run(x: Array) -> Any:
        if kind == "sort":
            return torch.sort(x + 1, dim=d, descending=down, stable=True)
        if kind == "argsort":
            return torch.argsort(x * 2, dim=d, descending=down, stable=True)
        if kind == "topk":
            return torch.topk(x, k, d, largest=down)
        if kind == "median":
            return torch.sort(x, dim=d).values.select(d, (shape[d] - 1) // 2)
        return torch.kthvalue(x, k, d).values

    return run, [torch.randn(shape)], f"{kind} of {shape} along {d}, k {k}, descending {down}"


def integers(rng: random.Random) -> Made:
    """Arithmetic and reductions of integers and booleans."""
    dtype = rng.choice([torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
    shape = [_extent(rng) for _ in range(2)]
    kind = rng.randrange(5)
    d = rng.randrange(2)

    def run(a: Array, b: Array) -> Any:
        if kind == 0:
            return a * 3 - b, (a > b).sum(d)
        if kind == 1:
            return a.sum(d), torch.minimum(a, b).amax(d), (a & b) ^ 5
        if kind == 2:
            return (a > 2) & (b < 3), (a == b).any(d), (a >= b).all()
        if kind == 3:
            return a.to(torch.float32) * 0.5 + b, a.to(torch.int64).cumsum(d)
        return torch.where(a > b, a, b).argmax(d), a.abs() if dtype.is_signed else a

    inputs = [torch.zeros(shape, dtype=dtype), torch.zeros(shape[-1:], dtype=dtype)]
    return run, inputs, f"{dtype} {shape} kind {kind} along {d}"


def halves(rng: random.Random) -> Made:
    """Arithmetic and reductions of 16-bit numbers."""
    dtype = rng.choice([torch.float16, torch.bfloat16])
    shape = [_extent(rng), _extent(rng)]
    word, f = _pointwise(rng)
    kind = rng.choice(["pointwise", "sum", "softmax", "amax", "mixed", "where"])

    def run(x: Array, y: Array) -> Any:
        x = f(x)
        if kind == "sum":
            return x.sum(1), x.mean(0)
        if kind == "softmax":
            return torch.softmax(x, 1)
        if kind == "amax":
            return x.amax(0), x.argmax(1)
        if kind == "mixed":
            return x.float() * y, (x.float() @ y.float()[:, None])
        if kind == "where":
            return torch.where(x > y, x, y), x > 0
        return x * y + 1

    return (
        run,
        [torch.randn(shape, dtype=dtype), torch.randn(shape[-1:], dtype=dtype)],
        (f"{dtype} {shape} {word} {kind}"),
    )


def siblings(rng: random.Random) -> Made:
    """Several results of the same data."""
    shape = [_extent(rng), _extent(rng)]
    words = [_pointwise(rng) for _ in range(3)]

    def run(x: Array, y: Array) -> Any:
        a = words[0][1](x + y)
        b = words[1][1](a)
        return a.sum(0), b.sum(1), words[2][1](b) - a, (a * b).sum(), b.t() + 1

    return run, [torch.randn(shape), torch.randn(shape)], f"{shape} {[w for w, _ in words]}"


def updates(rng: random.Random) -> Made:
    """Arguments that are updated in place, whole or in part."""
    n, m = _extent(rng) + 2, _extent(rng) + 2
    kind = rng.randrange(4)

    def run(x: Array, y: Array) -> Any:
        if kind == 0:
            x.mul_(y).add_(1)
            return x.sum(0)
        if kind == 1:
            x[1:-1] = y[:-2] + x[2:]
            return x * 2
        if kind == 2:
            x[:, 0] += y[:, 1]
            x[::2] = 3.0
            return None
        y.copy_(x.flip(0))
        x.add_(y)
        return torch.softmax(x, 1)

    return run, [torch.randn(n, m), torch.randn(n, m)], f"{n}x{m} kind {kind}"


def transposes(rng: random.Random) -> Made:
    """Moved data: transposed, joined, cut, padded and widened, then reduced or multiplied."""
    a, b, c = _extent(rng, 30), _extent(rng, 30), _extent(rng, 12)
    kind = rng.randrange(5)

    def run(x: Array, y: Array) -> Any:
        if kind == 0:
            return torch.cat([x.permute(2, 0, 1), y.permute(2, 0, 1)], 1)[::2] * 2
        if kind == 1:
            return F.pad(x, (1, 2, 0, 1)).transpose(0, 2).contiguous(), y.sum((0, 2))
        if kind == 2:
            return torch.einsum("abc,abd->acd", x, y), x.mean((0, 1))
        if kind == 3:
            return torch.stack([x, y], -1).reshape(a, -1).softmax(-1)
        return x.transpose(1, 2) @ y, x.amax(2)

    return run, [torch.randn(a, b, c), torch.randn(a, b, c)], f"{a}x{b}x{c} kind {kind}"


def permutations(rng: random.Random) -> Made:
    """Pointwise code on arrays whose orders in memory differ, of any element type."""
    dtype = rng.choice(
        [
            torch.float32,
            torch.float64,
            torch.float16,
            torch.bfloat16,
            torch.complex64,
            torch.int64,
            torch.int32,
            torch.int8,
            torch.bool,
        ]
    )
    shape = [_extent(rng, 90) for _ in range(rng.randrange(2, 4))]
    if len(shape) == 3:
        shape[rng.randrange(3)] = rng.randrange(1, 6)
    p = rng.sample(range(len(shape)), len(shape))
    kind = rng.randrange(5)
    other = [shape[i] for i in p]

    def run(x: Array, y: Array) -> Any:
        x = x.permute(p)
        if kind == 0:
            return x.contiguous(), y.flip(0)
        if kind == 1:
            return x == y if dtype is torch.bool else x + y
        if kind == 2:
            return torch.where(y == y, x, y), x.reshape(-1)
        if kind == 3:
            return torch.cat([x, y], -1)[..., 1:]
        return x.contiguous().view(-1, other[-1]).t().contiguous(), y

    x, y = torch.zeros(shape, dtype=dtype), torch.zeros(other, dtype=dtype)
    return run, [x, y], f"{dtype} {shape} permuted {p} kind {kind}"


MAKERS = [
    permutations,
    permutations,
    stencils,
    stencils,
    heat,
    normalization,
    long_reduction,
    scans,
    scatters,
    selections,
    integers,
    halves,
    siblings,
    updates,
    transposes,
]

"""Random products, convolutions and attentions for units of several warps and bulk copies.

Sizes are such that a simulator computes a sample in seconds, and so that many have rows of whole
pieces of 16 bytes, which boxes need; others have not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pytest
import torch
from tests.extended.test_kernels_simulated import simulate
from tests.support.any_unit import any_unit
from tests.support.attention_fuzz import Sample as Attention
from torch import Tensor
from torch.nn import functional

from polyblocks.affine.gpu.plans.group_units import GroupUnitPlan
from polyblocks.affine.gpu.tiles import chain_cost
from polyblocks.passes.contraction import chain_products

ARCH = "sm_90a"
#: Groups of a block, steps of a block, stages: of attention.
TILES = ((2, 64, 2), (3, 128, 2), (1, 64, 3), (2, 128, 3), (1, 128, 2))
HALVES = (torch.float16, torch.bfloat16)
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
}
#: Elements of all scores of an attention, at most.
MOST_SCORES = 60_000


@dataclass(frozen=True)
class Sample:
    """A program.

    Attributes:
        told: what it is.
        function: of the inputs, in their types and in float64.
        inputs: of it.
        forced: whether units of several warps are taken wherever they can be.
        choose: decides among what is possible then.
    """

    told: str
    function: Callable[..., Tensor]
    inputs: list[Tensor]
    forced: bool
    choose: random.Random


@dataclass(frozen=True)
class Outcome:
    """The outcome of a sample.

    Attributes:
        problem: what is wrong; empty if it is right.
        used: which of ``wgmma``, ``boxes``, ``pixels``, ``clusters`` its kernels have.
    """

    problem: str
    used: frozenset[str]


def product(seed: int, number: int) -> Sample:
    """A product of matrices, with what follows it."""
    choose, torch_seed = _begin("product", seed, number)
    pick = choose.choice
    dtype = pick([*HALVES, *HALVES, torch.int8])
    m, n = (choose.randint(*pick([(1, 70), *[(50, 200)] * 3])) for _ in range(2))
    k = choose.randint(*pick([(1, 100), (40, 300), (40, 700)]))
    if choose.random() < 0.8:
        m, n, k = (-(-x // 16) * 16 if choose.random() < 0.9 else x for x in (m, n, k))
    rows, columns = choose.random() < 0.6, choose.random() < 0.6
    if dtype is torch.int8 and choose.random() < 0.8:
        # The unit takes steps that follow each other only.
        rows = columns = True
    batch = () if dtype is torch.int8 else pick([(), (), (2,), (3,)])
    activation, bias = pick(["", *ACTIVATIONS]), choose.random() < 0.4
    residual = choose.random() < 0.3
    a = _numbers(torch_seed, (*batch, *((m, k) if rows else (k, m))), dtype)
    b = _numbers(torch_seed + 1, (*batch, *((n, k) if columns else (k, n))), dtype)
    other = torch.float32 if dtype is torch.int8 else dtype
    more = [_numbers(torch_seed + 2, (n,), other)] * bias
    more += [_numbers(torch_seed + 3, (*batch, m, n), other)] * residual
    plain = dtype is torch.int8 and not (activation or more)

    def function(a: Tensor, b: Tensor, *more: Tensor) -> Tensor:
        a, b = a if rows else a.mT, b.mT if columns else b
        c = torch._int_mm(a, b) if a.dtype is torch.int8 else a @ b
        if dtype is torch.int8 and not plain:
            c = (c.float() if c.dtype is torch.int32 else c) * 2**-10
        for each in more[:bias]:
            c = c + each
        c = ACTIVATIONS[activation](c) if activation else c
        for each in more[bias:]:
            c = c + each
        return c

    told = (
        f"{dtype} {m}x{n}x{k} batch={batch} rows={rows} columns={columns} {activation} "
        f"bias={bias} residual={residual}"
    )
    return _sample(told, function, [a, b, *more], choose)


def convolution(seed: int, number: int) -> Sample:
    """A convolution, most of images whose channels are next to each other."""
    choose, torch_seed = _begin("convolution", seed, number)
    pick = choose.choice
    dims, last = pick([1, 2, 2, 2, 3]), choose.random() < 0.85
    groups = pick([*[1] * 7, 2])
    inputs = groups * pick([*[64] * 8, 128, 128, 72, 24, 8, 3])
    outputs = groups * pick([*[64] * 4, 72, 72, 128, 16, 5])
    window = [pick([1, 2, 3, 3, 5] if dims < 3 else [1, 2, 3]) for _ in range(dims)]
    stride, dilation = ([pick([1, 1, 2, 3]) for _ in range(dims)] for _ in range(2))
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    padding = [choose.randint(0, r // 2) for r in reach]
    most = {1: 60, 2: 9, 3: 3}[dims]
    size = [choose.randint(max(r, 2), r + most) for r in reach]
    dtype, activation, bias = pick(HALVES), pick(["", "relu"]), choose.random() < 0.5
    first = (pick([1, 2, 3]), *size, inputs) if last else (pick([1, 2]), inputs, *size)
    filters = (outputs, *window, inputs // groups) if last else (outputs, inputs // groups, *window)
    x = _numbers(torch_seed, first, dtype)
    w = _numbers(torch_seed + 1, filters, dtype)
    more = [_numbers(torch_seed + 2, (outputs,), dtype)] * bias
    to_first, to_last = (0, dims + 1, *range(1, dims + 1)), (0, *range(2, dims + 2), 1)

    def function(x: Tensor, w: Tensor, *more: Tensor) -> Tensor:
        if last:
            x, w = (t.permute(to_first) for t in (x, w))
        of = (functional.conv1d, functional.conv2d, functional.conv3d)[dims - 1]
        y = of(x, w, more[0] if more else None, stride, padding, dilation, groups)
        y = torch.relu(y) if activation else y
        return (y.permute(to_last) if last else y).contiguous()

    told = (
        f"{dtype} {first} {filters} stride={stride} padding={padding} dilation={dilation} "
        f"groups={groups} last={last} {activation} bias={bias}"
    )
    return _sample(told, function, [x, w, *more], choose)


def attention(seed: int, number: int) -> Sample:
    """An attention of heads of 32 to 128, of the library or written out."""
    choose, torch_seed = _begin("attention", seed, number)
    pick = choose.choice
    while True:
        heads = pick((1, 1, 2)), pick((1, 1, 2)), pick((1, 1, 2, 4))
        queries = choose.randint(65, 260)
        keys = queries if choose.random() < 0.5 else choose.randint(1, 260)
        if heads[0] * heads[1] * heads[2] * queries * keys <= MOST_SCORES:
            break
    size, dtype = pick((32, 40, 64, 64, 80, 96, 128, 128)), pick(HALVES)
    library = choose.random() < 0.5
    mask = pick(
        ["none", "causal", "causal", "boolean"] if library else ["none", "causal", "window"]
    )
    made = Attention(
        *(heads, queries, keys, size, size if choose.random() < 0.8 else pick((32, 64, 128))),
        *(dtype, mask, library, "", torch_seed),
    )
    inputs = made.inputs()
    called = made.function()
    if len(inputs) == 3:
        return _sample(str(made), lambda q, k, v: called(q, k, v), inputs, choose)
    return _sample(str(made), lambda q, k, v, mask: called(q, k, v, mask), inputs, choose)


MAKE = {"products": product, "convolutions": convolution, "attentions": attention}


def outcome_of(sample: Sample) -> Outcome:
    """Run it on the simulated chip: right as eager mode is, of twice its error at most."""
    texts: list[str] = []

    def seen(text: str) -> str:
        texts.append(text)
        return text

    clusters: list[int] = []

    def look(plan: dict[str, Any]) -> None:
        clusters.extend(row.get("cluster", 1) for row in plan["launches"])

    with _forced(sample):
        outputs, launches = simulate(sample.function, sample.inputs, ARCH, look, optimize=seen)
    signs = {"wgmma": "polyblocks.wgmma.m64", "boxes": "g2s.tile", "pixels": "g2s.im2col"}
    used = {name for name, sign in signs.items() if sign in texts[0]}
    used |= {"clusters"} if max(clusters, default=1) > 1 else set()
    findings = [str(f) for launch in launches for f in launch.findings]
    return Outcome(findings[0] if findings else _wrong(sample, outputs[0]), frozenset(used))


def _wrong(sample: Sample, output: np.ndarray) -> str:
    exact = sample.function(*(x if x.dtype is torch.bool else x.double() for x in sample.inputs))
    eager = sample.function(*sample.inputs)
    found = torch.from_numpy(output)
    found = found.view(eager.dtype) if eager.dtype is torch.bfloat16 else found
    if found.shape != exact.shape or found.dtype is not eager.dtype:
        return f"{found.dtype} {tuple(found.shape)}, not {eager.dtype} {tuple(exact.shape)}"
    if not torch.equal(found.isnan(), eager.isnan()):
        return f"{int(found.isnan().sum())} NaN, eager {int(eager.isnan().sum())}"
    if not exact.numel():
        return ""
    mine, theirs = ((x.double() - exact).nan_to_num(0.0).abs().max() for x in (found, eager))
    if mine <= 2 * theirs + 1e-6:
        return ""
    return f"error {float(mine):.3g}, eager {float(theirs):.3g}"


def _begin(kind: str, seed: int, number: int) -> tuple[random.Random, int]:
    choose = random.Random(f"{kind}/{seed}/{number}")
    return choose, choose.randrange(1 << 30)


def _numbers(seed: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.int8:
        return torch.randint(-128, 128, shape, generator=generator, dtype=dtype)
    return torch.randn(shape, generator=generator).to(dtype)


def _sample(
    told: str, function: Callable[..., Tensor], inputs: list[Tensor], choose: random.Random
) -> Sample:
    forced, called = choose.random() < 0.8, _of_as_many(function, len(inputs))
    return Sample(f"{told} forced={forced}", called, inputs, forced, choose)


def _of_as_many(function: Callable[..., Tensor], count: int) -> Callable[..., Tensor]:
    """The function with as many parameters as there are arguments, which the frontend counts."""
    calls: dict[int, Callable[..., Tensor]] = {
        2: lambda a, b: function(a, b),
        3: lambda a, b, c: function(a, b, c),
        4: lambda a, b, c, d: function(a, b, c, d),
    }
    return calls[count]


@contextmanager
def _forced(sample: Sample) -> Iterator[None]:
    """Inside, units of several warps are taken wherever they can be, if the sample says so."""
    if not sample.forced:
        yield
        return
    groups, block, stages = sample.choose.choice(TILES)
    with pytest.MonkeyPatch.context() as patch, any_unit(sample.choose, GroupUnitPlan):
        patch.setattr(chain_products, "_least_seconds", lambda chain, target: inf)
        patch.setattr(chain_products, "parts_to_try", lambda blocks, steps, target: [])
        patch.setattr(chain_products, "BLOCKS", (block,))
        patch.setattr(chain_cost, "_WARPS", ())
        patch.setattr(chain_cost, "_GROUPS", (groups,))
        patch.setattr(chain_cost, "_GROUP_STAGES", (stages,))
        yield

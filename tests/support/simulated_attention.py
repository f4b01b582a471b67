"""Random attentions on simulated GPUs, compared with float64 and eager mode."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
import torch
from attention_fuzz import MASKS, ROUNDINGS, SIZES, SPECIALS, TYPES, WORSE, WRITTEN, Sample
from tests.extended.test_kernels_simulated import simulate
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from polyblocks.affine.gpu.tiles import chain_cost
from polyblocks.passes.contraction import chain_products
from polyblocks.simt import LaunchResult

#: Elements of all scores, at most: seconds of simulation.
MOST_SCORES = 60_000
LENGTHS = (1, 2, 7, 33, 64, 77, 100, 128, 150, 200, 255)
#: How kernels are chosen: as predicted, products as chains where they can be, and those in parts.
CHOICES = ("model", "chains", "tiles", "parts")
#: Warps of a block, rows of a warp, steps of a block, stages.
TILES = ((1, 16, 32, 1), (2, 32, 64, 1), (4, 16, 64, 3), (2, 16, 128, 2), (1, 32, 32, 3))


def make_small(seed: int, number: int) -> Sample:
    """Sample ``number`` of all with a seed, of a size that a simulator computes."""
    choose = random.Random(f"small/{seed}/{number}")
    while True:
        heads = (choose.choice((1, 1, 2)), choose.choice((1, 1, 2, 3)), choose.choice((1, 1, 2, 4)))
        queries = choose.choice(LENGTHS)
        keys = queries if choose.random() < 0.5 else choose.choice((0, *LENGTHS))
        if heads[0] * heads[1] * heads[2] * queries * keys > MOST_SCORES:
            continue
        library = choose.random() < 0.5
        size = choose.choice(SIZES[:-1])
        return Sample(
            *(heads, queries, keys, size),
            value_size=size if choose.random() < 0.7 else choose.choice(SIZES[:-1]),
            dtype=choose.choice((*TYPES, torch.float16, torch.float16, torch.bfloat16)),
            mask=choose.choice([m for m in MASKS if not library or m not in WRITTEN]),
            library=library,
            special=choose.choice([s for s in SPECIALS if not library or s not in ("nan", "inf")]),
            seed=choose.randrange(1 << 30),
        )


def problem_on(sample: Sample, arch: str) -> str:
    """What is wrong with results and gradients on a simulated chip; empty if they are right.

    Where eager mode has NaN, so has ours, and only there; elsewhere its error is at most twice
    eager's.
    """
    choose = random.Random(sample.seed)
    inputs = sample.inputs()
    gradients = bool(sample.keys) and choose.random() < 0.4
    called = _of_as_many(sample.function(), len(inputs))
    if gradients:
        called, inputs = _with_gradients(called, inputs, sample.seed)
    with _chosen(choose):
        found, launches = named_results(called, inputs, arch)
    findings = [str(f) for launch in launches for f in launch.findings]
    if findings:
        return findings[0]
    exact = called(*(x.double() if x.is_floating_point() else x for x in inputs))
    eager = called(*inputs)
    exact, eager = ((x,) if isinstance(x, Tensor) else x for x in (exact, eager))
    for name, ours, theirs, right in zip("oqkv", found, eager, exact, strict=False):
        said = _compared(ours.double(), theirs.double(), right, theirs.dtype)
        if said:
            return f"{name}: {said}"
    return ""


def named_results(
    function: Callable[..., Any], inputs: list[Tensor], arch: str
) -> tuple[list[Tensor], tuple[LaunchResult, ...]]:
    """Results on a simulated chip, in the order of the program, and launches."""
    rows: list[dict[str, Any]] = []
    arrays, launches = simulate(function, inputs, arch, lambda plan: rows.extend(plan["arguments"]))
    outputs = [row for row in rows if row["role"] == "output"]
    made = {row["name"]: _in_place(x, row) for row, x in zip(outputs, arrays, strict=True)}
    return [made[name] for name in _results(function, inputs)], launches


def _results(function: Callable[..., Any], inputs: list[Tensor]) -> list[str]:
    """The names of results, whose arguments are in another order."""
    graph = make_fx(function, tracing_mode="fake")(*inputs).graph
    (given,) = graph.find_nodes(op="output")[0].args
    return [node.name for node in (given if isinstance(given, tuple) else (given,))]


def _in_place(array: np.ndarray, row: dict[str, Any]) -> Tensor:
    """An output as its strides say."""
    found = torch.from_numpy(array.reshape(-1))
    if row["dtype"] == "bfloat16":
        found = found.view(torch.bfloat16)
    return found.as_strided(row["shape"], row["strides"])


def _of_as_many(function: Callable[..., Tensor], count: int) -> Callable[..., Tensor]:
    """The function with as many parameters as there are arguments."""
    if count == 3:
        return lambda q, k, v: function(q, k, v)
    return lambda q, k, v, mask: function(q, k, v, mask)


def _with_gradients(
    function: Callable[..., Tensor], inputs: list[Tensor], seed: int
) -> tuple[Callable[..., tuple[Tensor, ...]], list[Tensor]]:
    """The function with gradients of queries, keys and values; that of the result is an input."""
    generator = torch.Generator().manual_seed(seed)
    like = function(*inputs)
    given = torch.randn(like.shape, generator=generator, dtype=torch.float64).to(like.dtype)

    def both(gradient: Tensor, *operands: Tensor) -> tuple[Tensor, ...]:
        q, k, v = (x.detach().requires_grad_() for x in operands[:3])
        out = function(q, k, v, *operands[3:])
        return (out, *torch.autograd.grad(out, (q, k, v), gradient))

    return both, [given, *inputs]


def _compared(ours: Tensor, eager: Tensor, exact: Tensor, dtype: torch.dtype) -> str:
    if not torch.equal(ours.isnan(), eager.isnan()):
        return f"{int(ours.isnan().sum())} NaN, eager {int(eager.isnan().sum())}"
    exact, eager, ours = (x.nan_to_num(0.0) for x in (exact, eager, ours))
    if not exact.numel():
        return ""
    mine, theirs = ((x - exact).abs().max().item() for x in (ours, eager))
    # Of 16 bits eager mode's error is a rounding of the result at least.
    rounded = ROUNDINGS if dtype in (torch.float32, torch.float64) else 1.0
    least = rounded * torch.finfo(dtype).eps * max(1.0, exact.abs().max().item())
    if mine > max(WORSE * theirs, least):
        return f"error {mine:.3g}, eager {theirs:.3g}, rounding {least:.3g}"
    return ""


@contextmanager
def _chosen(choose: random.Random) -> Iterator[None]:
    """Inside, kernels are chosen in one of the ways of :data:`CHOICES`."""
    choice = choose.choice(CHOICES)
    warps, height, block, stages = choose.choice(TILES)
    with pytest.MonkeyPatch.context() as patch:
        if choice != "model":
            patch.setattr(chain_products, "_least_seconds", lambda chain, target: inf)
        if choice == "tiles":
            patch.setattr(chain_products, "BLOCKS", (block,))
            patch.setattr(chain_cost, "_WARPS", (warps,))
            patch.setattr(chain_cost, "_HEIGHTS", (height,))
            patch.setattr(chain_cost, "_STAGES", (stages,))
        if choice == "parts":
            predict = chain_products.predict_chain

            def preferred(plan: Any, target: Any, chip: Any, length: int = 0) -> Any:
                found = predict(plan, target, chip, length)
                return found if length else replace(found, latency=1.0)

            patch.setattr(chain_products, "BLOCKS", (32,))
            patch.setattr(chain_products, "parts_to_try", lambda *given: [choose.choice((1, 2, 3))])
            patch.setattr(chain_products, "predict_chain", preferred)
        yield

"""Random attention: a softmax between two products, of the library, by functions or written out."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

#: Elements of all scores, at most.
MOST_SCORES = 3 << 20
#: Errors over eager's that are allowed, and of results near 1 in units of the type's precision.
WORSE, ROUNDINGS = 2.0, 32.0

LENGTHS = (1, 2, 7, 64, 77, 128, 255, 256, 384, 509, 512, 640, 1024)
SIZES = (1, 3, 8, 16, 17, 32, 40, 64, 80, 128, 256)
TYPES = (torch.float32, torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16)
MASKS = ("none", "causal", "window", "boolean", "additive", "bias", "capped", "least", "added")
#: Those that are written out only.
WRITTEN = ("window", "capped", "least", "added")
#: Of these, masks of finite minima.
FINITE = ("least", "added")
SPECIALS = ("", "", "", "masked rows", "nan", "inf")


@dataclass(frozen=True)
class Sample:
    """One attention.

    Attributes:
        heads: query heads for each key head, key heads, and batches, the last one first.
        queries, keys: lengths.
        size, value_size: of a head.
        dtype: of all operands.
        mask: one of :data:`MASKS`.
        library: whether it is the framework's own operation.
        special: one of :data:`SPECIALS`.
        seed: of the numbers.
        flex: whether it is ``flex_attention``, with functions of scores and places.
    """

    heads: tuple[int, int, int]
    queries: int
    keys: int
    size: int
    value_size: int
    dtype: torch.dtype
    mask: str
    library: bool
    special: str
    seed: int
    flex: bool = False

    def inputs(self) -> list[Tensor]:
        """Queries, keys, values, and the mask or bias if it is read."""
        generator = torch.Generator().manual_seed(self.seed)
        batch, key_heads, group = self.heads

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        q = normal(batch, key_heads * group, self.queries, self.size)
        k = normal(batch, key_heads, self.keys, self.size)
        v = normal(batch, key_heads, self.keys, self.value_size)
        if self.special in ("nan", "inf"):
            q[..., self.queries // 2, 0] = float(self.special)
        found = [x.to(self.dtype) for x in (q, k, v)]
        allowed = torch.rand(self.queries, self.keys, generator=generator) < 0.7
        if self.special == "masked rows":
            allowed[:: max(1, self.queries // 3)] = False
        if self.mask == "boolean":
            found.append(allowed)
        elif self.mask == "additive":
            zeros = torch.zeros(self.queries, self.keys, dtype=self.dtype)
            found.append(zeros.masked_fill(~allowed, float("-inf")))
        elif self.mask == "bias":
            found.append(normal(1, key_heads * group, self.queries, self.keys).to(self.dtype))
        return found

    def function(self) -> Callable[..., Tensor]:
        """The attention of the inputs."""
        if self.flex:
            return self._flex()
        return self._library if self.library else self._written

    def _flex(self) -> Callable[..., Tensor]:
        """Affine masks are in the block mask, others are captured and read."""
        affine = {
            "causal": lambda b, h, i, j: i >= j,
            "window": lambda b, h, i, j: (i >= j) & (i - j <= 50),
        }.get(self.mask)
        grouped, lengths = self.heads[2] > 1, (self.queries, self.keys)
        blocks = None if affine is None else create_block_mask(affine, None, None, *lengths, "cpu")

        def run(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
            def scored(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
                if self.mask == "capped":
                    return 5 * torch.tanh(s / 5)
                if mask is None:
                    return s
                if self.mask == "boolean":
                    return torch.where(mask[i, j], s, float("-inf"))
                return s + (mask[i, j] if self.mask == "additive" else mask[0, h, i, j])

            return flex_attention(q, k, v, score_mod=scored, block_mask=blocks, enable_gqa=grouped)

        return run

    def _library(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        causal = self.mask == "causal"
        return scaled_dot_product_attention(
            q, k, v, mask, is_causal=causal, enable_gqa=self.heads[2] > 1
        )

    def _written(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        group = self.heads[2]
        k, v = (x.repeat_interleave(group, 1) if group > 1 else x for x in (k, v))
        scores = (q @ k.transpose(-1, -2)) * self.size**-0.5
        low = max(-1e9, torch.finfo(self.dtype).min)
        distance = torch.arange(self.queries)[:, None] - torch.arange(self.keys)[None, :]
        if self.mask == "causal":
            scores = scores.masked_fill(distance < 0, float("-inf"))
        elif self.mask == "window":
            scores = scores.masked_fill((distance < 0) | (distance > 50), float("-inf"))
        elif self.mask == "least":
            # Rows without keys weigh all of them.
            scores = scores.masked_fill((distance < 0) | (distance > 50), low)
        elif self.mask == "added":
            scores = scores + (1.0 - (distance >= 0).to(scores.dtype)) * low
        elif self.mask == "capped":
            scores = 5 * torch.tanh(scores / 5)
        elif self.mask == "boolean":
            assert mask is not None
            scores = scores.masked_fill(~mask, float("-inf"))
        elif mask is not None:
            scores = scores + mask
        return torch.softmax(scores, -1) @ v


def make(seed: int, number: int) -> Sample:
    """Sample ``number`` of all with a seed."""
    choose = random.Random(f"{seed}/{number}")
    while True:
        heads = (choose.choice((1, 1, 2)), choose.choice((1, 2, 3, 8)), choose.choice((1, 1, 2, 4)))
        queries = choose.choice(LENGTHS)
        keys = queries if choose.random() < 0.6 else choose.choice(LENGTHS)
        scores = heads[0] * heads[1] * heads[2] * queries * keys
        # Every second one is too large for caches.
        if scores > MOST_SCORES or (number % 2 and scores < MOST_SCORES // 6):
            continue
        library = choose.random() < 0.5
        mask = choose.choice([m for m in MASKS if not library or m not in WRITTEN])
        size = choose.choice(SIZES)
        return Sample(
            *(heads, queries, keys, size),
            value_size=size if choose.random() < 0.7 else choose.choice(SIZES),
            dtype=choose.choice(TYPES),
            mask=mask,
            library=library,
            # Kernels of the library differ in what they make of NaN and infinite scores.
            special=choose.choice([s for s in SPECIALS if not library or s not in ("nan", "inf")]),
            seed=choose.randrange(1 << 30),
            flex=not library and mask not in FINITE and choose.random() < 0.5,
        )


def problem(sample: Sample) -> str:
    """What is wrong with the compiled result, compared with float64 and eager mode; empty if right.

    Where eager mode has NaN, so has ours; elsewhere its error is at most twice eager's.
    """
    function, inputs = sample.function(), sample.inputs()
    exact = function(*(x.double() if x.is_floating_point() else x for x in inputs))
    eager = function(*inputs).double()
    torch._dynamo.reset()
    ours = polyblocks_jit_torch(function, compile_options={"strict_target": True})(*inputs)
    if ours.dtype != sample.dtype or ours.shape != exact.shape:
        return f"{ours.dtype} of {tuple(ours.shape)}"
    ours = ours.double()
    if not torch.equal(ours.isnan(), eager.isnan()):
        return f"{int(ours.isnan().sum())} NaN, eager {int(eager.isnan().sum())}"
    exact, eager, ours = (x.nan_to_num(0.0) for x in (exact, eager, ours))
    mine, theirs = ((x - exact).abs().max().item() for x in (ours, eager))
    least = ROUNDINGS * torch.finfo(sample.dtype).eps * max(1.0, exact.abs().max().item())
    if mine > max(WORSE * theirs, least):
        return f"error {mine:.3g}, eager {theirs:.3g}, rounding {least:.3g}"
    return ""

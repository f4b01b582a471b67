"""PyTorch programs about numbers: wrap-around, bytes, NaN, constants and Python's numbers."""

# ruff: noqa: E501

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch_run import gradients, group

nan, inf = float("nan"), float("inf")


def t(*values, dtype=None):
    """Makes a tensor, anew at each call."""
    return lambda: torch.tensor(list(values), dtype=dtype)


wrap = group("wrap-around")
wrap.table([
    *((f"shift of {d} by {n}", lambda x, n=n: (x << n, x >> n), f"{d} 5 special")
      for d, n in (("i32", 31), ("i32", 32), ("i32", 33), ("i64", 63), ("i64", 64), ("i16", 16),
                   ("i8", 7), ("i8", 8), ("i8", 40), ("u8", 8), ("u8", 7))),
    ("shift by tensor", lambda x, n: x << n, "i32 5 special", t(0, 31, 32, 33, 5, dtype=torch.int32)),
    ("negative shift", lambda x, n: x >> n, "i32 3", t(-1, 1, 40, dtype=torch.int32)),
    ("sum of int8", lambda x: x.sum(), "i8 300 special"),
    ("sum of int32 in int32", lambda x: x.sum(dtype=torch.int32), t(2**31 - 1, 1, dtype=torch.int32)),
    ("product of bytes", lambda x: x * x, "u8 20 special"),
    ("negation of the smallest", lambda x: (-x, x.abs()), "i8 20 special"),
    ("negation of bytes", lambda x: -x, "u8 20 special"),
    ("difference of bytes", lambda x, y: x - y, "u8 20", "u8 20 special"),
    ("int64 product", lambda x: x * 3, "i64 6 special"),
    ("int64 mean by float", lambda x: x.float().mean(), "i64 6"),
    ("cumsum of int16", lambda x: x.cumsum(0), "i16 50 special"),
    ("cumprod of uint8", lambda x: x.cumprod(0, dtype=torch.uint8), "u8 9"),
    ("power of ints", lambda x: x**7, "i32 9"),
    ("power to a negative base", lambda x: (-3) ** x.abs(), "i32 9"),
    ("floor division of negatives", lambda x: (x // 3, x % 3, x // -3, x % -3), "i32 9 special"),
    ("remainder of bytes", lambda x: (x // 7, x % 7), "u8 20 special"),
    ("division of the smallest by -1", lambda x: torch.div(x, -1, rounding_mode="trunc"), t(-128, 5, dtype=torch.int8)),
    ("fmod of negatives", lambda x: torch.fmod(x, 4), "i64 9 special"),
    ("float to int8", lambda x: x.to(torch.int8), t(-1.5, 127.0, -128.0, 3.9)),
    ("float to uint8", lambda x: x.to(torch.uint8), t(1.5, 255.0, 200.7)),
    ("int64 to int8", lambda x: x.to(torch.int8), t(300, -129, 2**40 + 5)),
    ("int to bool", lambda x: x.to(torch.bool), t(256, 0, 2**32, -1)),
    ("float to bool", lambda x: x.bool(), t(0.5, -0.0, nan, 0.0)),
    ("bool sum", lambda x: (x.sum(), x.sum(dtype=torch.bool), x.sum(dtype=torch.uint8)), t(True, True, False)),
    ("bool arithmetic", lambda x: (x + True, x * True, x + x, x * 2), t(True, False)),
    ("bool power", lambda x: x ** True, t(True, False)),
    ("bool floor division", lambda x: x // torch.tensor([True, True]), t(True, False)),
    ("bitwise not", lambda x: ~x, "u8 9"),
    ("bits of bool", lambda x: ((x > 0) & 1, (x > 0) ^ 1, (x > 0) | 2), "f32 5"),
    ("gcd and lcm", lambda x, y: (torch.gcd(x, y), torch.lcm(x, y)), "i32 9", "i32 9"),
    ("alpha of ints", lambda x, y: torch.sub(x, y, alpha=-3), "i32 5", "i32 5"),
    ("addcmul of ints", lambda x, y: torch.addcmul(x, x, y, value=-2), "i32 5", "i32 5"),
    ("prod of int32", lambda x: x.prod(), "i32 30"),
    ("dot of int8", lambda x, y: x.to(torch.int8) @ y.to(torch.int8), "i8 9", "i8 9"),
    ("arange of negatives", lambda x: torch.arange(5, -5, -2) * x, "i64 -"),
    ("hash", lambda x: ((x * 2654435761) ^ (x >> 3)) & 0xFFFF, "i64 9 special"),
    ("linear congruence", lambda x: (x * 1103515245 + 12345) % 2**31, "i64 9"),
    ("pack four bytes", lambda x: sum(x[i].int() << (8 * i) for i in range(4)), "u8 4"),
    ("popcount", lambda x: sum((x >> i) & 1 for i in range(8)), "u8 20"),
    ("int8 as uint8", lambda x: x.view(torch.uint8).int(), "i8 20"),
    ("abs difference of bytes", lambda x, y: (x.int() - y.int()).abs().to(torch.uint8), "u8 20", "u8 20"),
])  # fmt: skip

byte = group("bytes")
byte.table([
    ("max_pool2d", lambda x: F.max_pool2d(x, 2), "u8 1x1x4x4"),
    ("clamp by tensor", lambda x, y: torch.clamp(x, min=y), "u8 20", "u8 20"),
    ("clamp by numbers", lambda x: x.clamp(100, 200), "u8 30"),
    ("scatter_reduce amax", lambda x, y: x.scatter_reduce(0, torch.tensor([0, 0, 1]), y, "amax"), "u8 3", "u8 3"),
    ("index_reduce amax", lambda x, y: x.index_reduce(0, torch.tensor([0, 0, 1]), y, "amax"), "u8 3", "u8 3"),
    ("cat with float", lambda x, y: torch.cat([x, y]), "u8 9", "f32 3"),
    ("cat with int64", lambda x, y: torch.cat([y, x]), "u8 9", "i64 3"),
    ("stack with int16", lambda x, y: torch.stack([x, y]), "u8 9", "i16 9"),
    ("stack with bool", lambda x, y: torch.stack([x, y]), "u8 9", "bool 9"),
    ("hstack with float16", lambda x, y: torch.hstack([x, y]), "u8 9", "f16 3"),
    ("maximum", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), "u8 20", "u8 20"),
    ("comparison", lambda x, y: (x < y, x >= y, x > 127), "u8 20", "u8 20"),
    ("comparison with int8", lambda x, y: (x < y, x == y, torch.maximum(x, y)), "u8 20", "i8 20"),
    ("sort", lambda x: x.sort().values, "u8 20"),
    ("argmax", lambda x: (x.argmax(), x.amax(), x.amin()), "u8 20"),
    ("cummax", lambda x: x.cummax(0), "u8 20"),
    ("topk", lambda x: x.topk(3).values, "u8 20"),
    ("median", lambda x: x.median(0).values, "u8 21"),
    ("mean as float", lambda x: x.float().mean(), "u8 300"),
    ("normalize an image", lambda x: (x.float() / 255 - 0.5) / 0.25, "u8 3x5x4"),
    ("image times a number", lambda x: x * 1.5, "u8 3x5x4"),
    ("image as half", lambda x: x.half() / 255, "u8 3x5x4"),
    ("add saturated", lambda x: (x.int() + 100).clamp(max=255).to(torch.uint8), "u8 20"),
    ("threshold", lambda x: torch.where(x > 128, 255, 0).to(torch.uint8), "u8 20"),
    ("where of byte and number", lambda x: torch.where(x > 128, x, 7), "u8 20"),
    ("interpolate", lambda x: F.interpolate(x[None, None], scale_factor=2), "u8 3x4"),
    ("pad", lambda x: F.pad(x, (1, 1), value=200), "u8 3x4"),
    ("table lookup", lambda x, y: y[x.long()], "u8 20", "f32 256"),
    ("bincount", lambda x: torch.bincount(x.flatten(), minlength=256), "u8 20"),
    ("blend", lambda x, y: ((x.int() * 3 + y.int()) // 4).to(torch.uint8), "u8 20", "u8 20"),
    ("invert", lambda x: 255 - x, "u8 20"),
    ("bucketize", lambda x: torch.bucketize(x, torch.tensor([10, 200], dtype=torch.uint8)), "u8 20"),
    ("isin", lambda x: torch.isin(x, torch.tensor([200, 3], dtype=torch.uint8)), t(200, 3, 5, dtype=torch.uint8)),
    ("float minus byte", lambda x, y: y - x, "u8 9", "f32 9"),
    ("cast to int8 and back", lambda x: x.to(torch.int8).to(torch.int32), "u8 20"),
    ("any of 0-d", lambda x: (x.any(), x.any(0), x.all(0)), lambda: torch.tensor(128, dtype=torch.uint8)),
    ("logical", lambda x: (x.logical_not(), x.logical_and(x)), "u8 9"),
    ("gray scale", lambda x: (x.float() * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(0).round().to(torch.uint8), "u8 3x4x5"),
    ("unique counts", lambda x: (x == x.amax()).sum(), "u8 20"),
])  # fmt: skip

choose = group("NaN that chooses")
V = t(1.0, nan, -2.0, inf, -inf, 0.0, -0.0)
choose.table([
    ("max and min", lambda x: (x.max(), x.min(), x.amax(), x.amin()), V),
    ("argmax", lambda x: (x.argmax(), x.argmin()), V),
    ("max with index", lambda x: torch.max(x, 0), V),
    ("min with index", lambda x: torch.min(x, 0), V),
    ("maximum and fmax", lambda x: (torch.maximum(x, x.flip(0)), torch.fmax(x, x.flip(0))), V),
    ("minimum and fmin", lambda x: (torch.minimum(x, x.flip(0)), torch.fmin(x, x.flip(0))), V),
    ("clamp", lambda x: x.clamp(-1, 1), V),
    ("clamp by NaN", lambda x: (x.clamp(max=nan), x.clamp(min=nan)), V),
    ("clamp by tensors with NaN", lambda x, y: torch.clamp(x, min=y, max=y), V, t(nan, 1, 1, 2, 2, nan, 0.0)),
    ("relu", lambda x: (F.relu(x), F.relu6(x), F.hardtanh(x), F.leaky_relu(x)), V),
    ("max_pool2d", lambda x: F.max_pool2d(x.view(1, 1, 2, 2), 2, return_indices=True), t(1.0, nan, 3.0, 2.0)),
    ("max_pool2d whole", lambda x: F.max_pool2d(x.view(1, 1, 1, 7), (1, 3), 1, (0, 1), return_indices=True), V),
    ("adaptive max pool", lambda x: F.adaptive_max_pool1d(x.view(1, 1, 7), 2), V),
    ("sort", lambda x: x.sort(), V),
    ("sort descending", lambda x: x.sort(descending=True).values, V),
    ("topk", lambda x: x.topk(3).values, V),
    ("median and nanmedian", lambda x: (x.median(), x.nanmedian()), V),
    ("kthvalue", lambda x: x.kthvalue(2).values, V),
    ("mode", lambda x: x.mode().values, t(1.0, nan, nan, 2.0)),
    ("cummax", lambda x: torch.cummax(x, 0), V),
    ("cummin", lambda x: torch.cummin(x, 0), V),
    ("nan_to_num", lambda x: torch.nan_to_num(x, 5.0), V),
    ("nansum and nanmean", lambda x: (x[:3].nansum(), x[:3].nanmean()), V),
    ("sign", lambda x: (x.sign(), x.sgn(), x.signbit()), V),
    ("comparison", lambda x: (x == x, x != x, x < x, x >= 0, ~(x < 0)), V),
    ("where", lambda x: torch.where(x > 0, x, -x), V),
    ("NaN constant equal to itself", lambda x: (lambda c: (c == c, c != c, x == c))(torch.tensor([nan, 1.0])), t(nan, 1.0)),
    ("isclose", lambda x: (torch.isclose(x, x), torch.isclose(x, x, equal_nan=True)), V),
    ("unique of NaN by comparison", lambda x: (x[:, None] == x[None]).sum(), V),
    ("searchsorted", lambda x: torch.searchsorted(torch.tensor([0.0, 1.0, 2.0]), x), V),
    ("softmax", lambda x: (x.softmax(0), x[:1].softmax(0)), V),
    ("logsumexp of -inf", lambda x: x.logsumexp(0), t(-inf, -inf)),
    ("softmax of -inf", lambda x: x.softmax(0), t(-inf, -inf)),
    ("pow of NaN", lambda x: (x**0, x**2, 1**x), V),
    ("hypot", lambda x: torch.hypot(x, x.flip(0)), V),
    ("aminmax", lambda x: torch.aminmax(x), V),
    ("scatter_reduce amax", lambda x: torch.zeros(2).scatter_reduce(0, torch.tensor([0, 0, 1, 1, 0, 1, 0]), x, "amax"), V),
    ("round", lambda x: (x.round(), x.floor(), x.trunc(), x.frac()), V),
    ("fmod", lambda x: (torch.fmod(x, 2), torch.remainder(x, 2)), V),
    ("float16", lambda x: (x.half().max(), x.half() > 0, x.half().clamp(-1, 1)), V),
    ("bfloat16", lambda x: (x.bfloat16().max(0), x.bfloat16().sort().values), V),
    ("histc", lambda x: torch.histc(x, 4, -2, 2), t(1.0, -1.0, 2.0)),
    ("heaviside", lambda x: torch.heaviside(x, torch.tensor(0.5)), V),
    ("nan in a norm", lambda x: (x.norm(), x.norm(p=inf), x[:1].norm(p=0)), V),
    ("any and all", lambda x: (x.any(), x.all()), V),
    ("count_nonzero", lambda x: x.count_nonzero(), V),
    ("logaddexp", lambda x: torch.logaddexp(x, x.flip(0)), V),
    ("xlogy", lambda x: torch.xlogy(x, x.flip(0)), V),
])  # fmt: skip
choose.table([
    ("gradient of max_pool2d with NaN", lambda x: F.max_pool2d(x.view(1, 1, 2, 3), 2, 1), t(1.0, nan, 3.0, 2.0, 1.0, 0.0)),
    ("gradient of max with ties", lambda x: x.amax(), t(1.0, 3.0, 3.0)),
    ("gradient of maximum with ties", lambda x: torch.maximum(x, torch.tensor([1.0, 3.0, 2.0])), t(1.0, 3.0, 3.0)),
    ("gradient of clamp at its ends", lambda x: x.clamp(-1, 1), t(-1.0, 1.0, 0.5, 2.0)),
    ("gradient of abs at zero", lambda x: x.abs(), t(0.0, -0.0, 1.0, nan)),
    ("gradient of sqrt at zero", lambda x: torch.where(x > 0, x.sqrt(), 0.0), t(0.0, 4.0)),
    ("gradient of norm at zero", lambda x: x.norm(), t(0.0, 0.0)),
    ("gradient of std of equals", lambda x: x.std(), t(3.0, 3.0, 3.0, dtype=torch.float64)),
    ("gradient of relu at zero", lambda x: (F.relu(x), F.leaky_relu(x), F.elu(x), F.selu(x)), t(0.0, -0.0, -1.0)),
    ("gradient of hardtanh at its ends", lambda x: (F.hardtanh(x), F.relu6(x), F.hardswish(x), F.hardsigmoid(x)), t(-1.0, 1.0, 3.0, -3.0, 6.0)),
    ("gradient of atan2 at zero", lambda x, y: torch.atan2(x, y), t(0.0, 1.0), t(0.0, 0.0)),
    ("gradient of pow at zero", lambda x: x**2 + x**0.5, t(0.0, 4.0)),
    ("gradient of prod with zero", lambda x: x.prod(), t(0.0, 4.0, 2.0)),
    ("gradient of prod with two zeros", lambda x: x.prod(), t(0.0, 0.0, 2.0)),
    ("gradient of cumprod with zero", lambda x: x.cumprod(0), t(3.0, 0.0, 2.0)),
    ("gradient of median", lambda x: x.median(), t(3.0, 1.0, 2.0)),
    ("gradient of sort", lambda x: x.sort(descending=True).values, t(3.0, 1.0, 2.0)),
    ("gradient of xlogy at zero", lambda x: torch.special.xlogy(x, x), t(0.5, 1.0)),
    ("gradient of logsumexp of -inf", lambda x: x.logsumexp(0), t(-inf, 1.0)),
    ("gradient of cdist", lambda x: torch.cdist(x.view(2, 2), x.view(2, 2)), t(0.0, 1.0, 0.0, 1.0)),
    ("gradient of where with NaN behind", lambda x: torch.where(x > 0, x.log(), x), t(-1.0, 2.0)),
    ("gradient of fmax with NaN", lambda x, y: torch.fmax(x, y), t(nan, 1.0), t(2.0, nan)),
    ("gradient of masked softmax", lambda x: torch.softmax(x.masked_fill(torch.tensor([True, False, False]), -inf), 0), t(1.0, 2.0, 3.0)),
    ("gradient of layer norm of equals", lambda x: F.layer_norm(x, (3,)), t(2.0, 2.0, 2.0)),
    ("gradient of rrelu in eval", lambda x: F.rrelu(x, training=False), t(-1.0, 2.0)),
    ("gradient of soft margin loss", lambda x: F.soft_margin_loss(x, torch.tensor([1.0, -1.0])), t(20.0, -20.0)),
    ("gradient of nearest upsampling", lambda x: F.interpolate(x, size=(5, 7)), "f32 1x1x3x4"),
    ("gradient of nearest upsampling of one axis", lambda x: F.interpolate(x, size=(3, 7)), "f32 1x1x3x4"),
    ("gradient of multilabel margin loss", lambda x: F.multilabel_margin_loss(x.view(1, 3), torch.tensor([[0, 2, -1]])), t(1.0, 2.0, 0.5)),
], call=gradients)  # fmt: skip

const = group("constants and Python's numbers")
const.table([
    ("constant times -1", lambda x: x + torch.tensor([0.5, 0.25, 2.0]) * -1, "f32 3"),
    ("constant floor division", lambda x: x + torch.tensor([-3]) // 2, "i64 1"),
    ("constant remainder", lambda x: x + torch.tensor([-3]) % 2, "i64 1"),
    ("int32 constant floor division", lambda x: x + torch.tensor([-5], dtype=torch.int32) // 3, "i32 1"),
    ("sign of constant", lambda x: x + torch.sign(torch.tensor(-0.75)), "f32 2"),
    ("constant bools", lambda x: (torch.tensor([False, True]) == True) & x, "bool 2"),  # noqa: E712
    ("bool constant plus True", lambda x: torch.tensor([False, True]) + True + x, "i64 2"),
    ("alpha -1 of constants", lambda x: torch.add(x, torch.tensor([1, 2]), alpha=-1), "i64 2"),
    ("bfloat16 constant", lambda x: x + torch.tensor([1.01, 3.3], dtype=torch.bfloat16), "b16 2"),
    ("float16 constant", lambda x: x * torch.tensor([65504.0, 6e-8], dtype=torch.float16), "f16 2"),
    ("constant to int", lambda x: x + torch.tensor([-1.7, 2.9]).int(), "i32 2"),
    ("nan to int64", lambda x: x + torch.zeros(2, dtype=torch.int64), "i64 2"),
    ("full of bool", lambda x: torch.full((2,), 42, dtype=torch.bool) ^ x, "bool 2"),
    ("full of float as int", lambda x: torch.full((2,), 3) * x, "f32 2"),
    ("largest int as pad", lambda x: F.pad(x, (1, 1), value=2**53), "i64 3"),
    ("compare with numbers outside", lambda x: (x == 255, x < 300, x > -200), "i8 20"),
    ("compare bytes with numbers outside", lambda x: (x == -1, x < 300, x > -1), "u8 20"),
    ("compare bool with numbers", lambda x: (x < 1, x >= -1, x == 2, x > True), "bool 5"),
    ("compare bool with ints", lambda x, y: (x < y, x >= y, x == y, x > -1), "bool 5", "i32 5"),
    ("compare bool with bytes", lambda x, y: (x < y, x >= y), "bool 5", "u8 5"),
    ("compare bool with int8", lambda x, y: (x < y, x >= y), "bool 5", "i8 5"),
    ("compare float16 with bfloat16", lambda x, y: (x < y, torch.maximum(x, y)), "f16 9", "b16 9"),
    ("int plus float number", lambda x: (x + 0.5, x * 2.0, x / 2, x // 2.0), "i32 5"),
    ("bool plus numbers", lambda x: (x + 1, x + 0.5, x * True), "bool 3"),
    ("float16 plus a large number", lambda x: (x + 1e5, x * 2**40), "f16 3"),
    ("int32 times 2**40", lambda x: x * 2**40, "i64 3"),
    ("0-d promotes little", lambda x: (x + torch.tensor(1.5, dtype=torch.float64), x * torch.tensor(2)), "f16 3"),
    ("0-d int64 and int8", lambda x: x + torch.tensor(300), "i8 3"),
    ("0-d float and int tensor", lambda x: x * torch.tensor(0.5), "i32 3"),
    ("int64 and float32", lambda x, y: (x + y, torch.maximum(x, y.to(x.dtype))), "i64 5", "f32 5"),
    ("int64 beyond float32", lambda x: x + torch.tensor([1.0, 2.0]), t(2**53 + 1, -(2**60))),
    ("mean of half", lambda x: (x.mean(), x.sum(), x.std()), "f16 300"),
    ("round decimals of half", lambda x: x.round(decimals=2), t(700.0, 0.126, dtype=torch.float16)),
    ("round half to even", lambda x: x.round(), t(0.5, 1.5, 2.5, -0.5)),
    ("ldexp of half", lambda x: torch.ldexp(x, torch.tensor(2)), "f16 -"),
    ("frac of -0.0", lambda x: x.frac(), t(-0.0, -1.5, 2.0)),
    ("float of div of ints", lambda x: torch.div(x, 2).float(), "i64 4"),
    ("hypot of int8 and number", lambda x: torch.hypot(x.float(), torch.tensor(0.0)), t(-128, 3, dtype=torch.int8)),
    ("isin of a number", lambda x: torch.isin(x, torch.tensor([0.001], dtype=torch.float64)), t(0.001, 1.0, dtype=torch.float64)),
    ("bucketize by fractions", lambda x: torch.bucketize(x, torch.tensor([0.5, 1.5])), "i64 9"),
    ("elu of small numbers", lambda x: F.elu(x), t(-1e-6, -3e-7)),
    ("selu of small numbers", lambda x: F.selu(x), t(-1e-6, -3e-7)),
    ("expm1 and log1p of small numbers", lambda x: (x.expm1(), x.log1p()), t(1e-7, -2e-8)),
    ("std of equal numbers", lambda x: (x.std(), x.var()), t(0.25, 0.25, 0.25, dtype=torch.float64)),
    ("-0.0 stays", lambda x: (1 / x.trunc(), 1 / F.elu(x), 1 / F.softshrink(x)), t(-0.0, 0.0)),
    ("addmm with beta 0", lambda x, y: torch.addmm(torch.full((2, 2), nan), x, y, beta=0), "f32 2x3", "f32 3x2"),
    ("addmm with alpha 0", lambda x, y: torch.addmm(x, y * inf, y, alpha=0), "f32 2x2", "f32 2x2"),
    ("baddbmm with beta 0", lambda x, y: torch.baddbmm(torch.full((2, 2, 2), nan), x, y, beta=0), "f32 2x2x3", "f32 2x3x2"),
    ("conv_transpose of inf", lambda x: F.conv_transpose1d(x, torch.tensor([[[inf, 1.0]]]), stride=2), "f32 1x1x3"),
    ("linspace and logspace", lambda x: (torch.linspace(0, 1, 7) * x, torch.logspace(0, 2, 5) * x), "f32 -"),
    ("arange of floats", lambda x: torch.arange(0, 1, 0.1) * x, "f32 -"),
    ("complex number", lambda x: x * (1 + 2j), "f32 3"),
    ("embedding_bag", lambda w: F.embedding_bag(torch.tensor([1, 2, 0]), w, torch.tensor([0, 2])), "f32 4x3"),
    ("one_hot", lambda x: F.one_hot(x.abs() % 4, 5), "i64 4"),
    ("cosine similarity of zeros", lambda x: F.cosine_similarity(x, x * 0, 0), "f32 4"),
    ("tensor of a number of each dtype", lambda x: [x + torch.tensor(1, dtype=d) for d in (torch.uint8, torch.int16, torch.bool, torch.float16)], "i8 3"),
    ("result_type of where", lambda x: torch.where(x > 0, 1, 0.5), "f16 4"),
    ("where of bool and int", lambda x: torch.where(x > 0, x > 1, 3), "f16 4"),
    ("true division of bools", lambda x: x / 2, "bool 3"),
    ("sum of bools as float", lambda x: (x > 0).sum() / x.numel(), "f32 30"),
    ("mixed matmul by cast", lambda x, y: x.float() @ y, "f16 3x4", "f32 4x2"),
    ("integer matmul", lambda x, y: x @ y, "i32 3x4 special", "i32 4x2"),
    ("int8 matmul in int32", lambda x, y: x.int() @ y.int(), "i8 3x4 special", "i8 4x2 special"),
])  # fmt: skip


@const.program
def changing_large_integers(jit):
    f = jit(lambda x, n: x + n)
    return [f(torch.zeros(2, dtype=torch.int64), n) for n in (1, 2, 2**40, -(2**62), 3)]


@const.program
def changing_floats(jit):
    f = jit(lambda x, n: x * n)
    return [f(torch.ones(2), n) for n in (1.5, 2.5, nan, inf, -0.0, 1, True)]


@const.program
def changing_kinds_of_numbers(jit):
    f = jit(lambda x, n: x + n)
    return [f(torch.ones(2, dtype=torch.int32), n) for n in (1, 2.5, True, 3, 1j)]


@const.program
def shift_by_a_changing_number(jit):
    f = jit(lambda x, n: (x << n, x >> n))
    x = torch.tensor([1, -1, 2**30], dtype=torch.int32)
    return [f(x, n) for n in (1, 2, 31, 32, 33, 3)]

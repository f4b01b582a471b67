"""PyTorch programs about indices, layers and derivatives."""

# ruff: noqa: E501

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch_run import called, derived_twice, gradients, group


def idx(*values, dtype=torch.int64):
    """Makes indices, anew at each call."""
    return lambda: torch.tensor(list(values), dtype=dtype)


def put(x, where, value):
    x[where] = value
    return x


index = group("indices")
index.table([
    ("negative read", lambda x, i: x[i], "f32 5x2", idx(-1, 0, -5)),
    ("negative store", lambda x, i: put(x, i, 0.0), "f32 5x2", idx(-1, 0)),
    ("negative store in a column", lambda x, i: put(x, (slice(None), i), 7.0), "f32 2x5", idx(-1, 1)),
    ("negative store of pairs", lambda x, i, j: put(x, (i, j), 3.0), "f32 4x5", idx(-1, 2), idx(0, -5)),
    ("store of a tensor", lambda x, i, v: put(x, i, v), "f32 5x2", idx(-2, 0), "f32 2x2"),
    ("store into int16", lambda x, i: put(x, i, -7), "i16 5", idx(-2, 0)),
    ("store into bool", lambda x, i: put(x, i, True), "bool 5", idx(-2, 0)),
    ("int32 indices", lambda x, i: x[i], "f32 5", idx(-1, 2, dtype=torch.int32)),
    ("uint8 mask", lambda x, i: x * (i > 0), "f32 3", "u8 3"),
    ("constant negative indices", lambda x: x[[-1, 1]], "f32 5x2"),
    ("constant negative store", lambda x: put(x, [-1, 1], 4.0), "f32 5x2"),
    ("index and slice", lambda x, i: x[1:, i, :2], "f32 3x4x5", idx(-1, 0)),
    ("indices around a slice", lambda x, i: x[i, :, i], "f32 3x4x5", idx(-1, 0)),
    ("broadcast indices", lambda x, i, j: x[i[:, None], j], "f32 4x5", idx(0, -1), idx(1, 2, -1)),
    ("store with broadcast indices", lambda x, i, j: put(x, (i[:, None], j), 0.0), "f32 4x5", idx(0, -1), idx(1, 2, -1)),
    ("index_put accumulate", lambda x, i, v: x.index_put((i,), v, accumulate=True), "f32 5", idx(-1, -1, 4, 0), "f32 4"),
    ("index_put accumulate of ints", lambda x, i, v: x.index_put((i,), v, accumulate=True), "i32 5", idx(-1, -1, 4, 0), "i32 4"),
    ("0-d index", lambda x, i: x[i], "f32 5x2", lambda: torch.tensor(-2)),
    ("0-d index store", lambda x, i: put(x, i, 1.0), "f32 5x2", lambda: torch.tensor(-2)),
    ("step by -1 with flip", lambda x: x.flip(0)[::2], "f32 5"),
    ("empty indices", lambda x, i: x[i], "f32 5x2", lambda: torch.empty(0, dtype=torch.int64)),
    ("take", lambda x, i: x.take(i), "f32 3x4", idx(-1, 0, 11)),
    ("take_along_dim", lambda x: x.take_along_dim(x.argsort(1), 1), "f32 3x4"),
    ("gather", lambda x, i: x.gather(1, i.view(2, 2)), "f32 3x4", idx(0, 3, 1, 2)),
    ("index_select", lambda x, i: x.index_select(1, i), "f32 3x4", idx(3, 0, 3)),
    ("index_fill", lambda x, i: x.index_fill(0, i, 2.5), "f32 3x4", idx(-1, 0)),
    ("index_copy", lambda x, i, v: x.index_copy(0, i, v), "f32 3x4", idx(2, 0), "f32 2x4"),
    ("index_add", lambda x, i, v: x.index_add(0, i, v, alpha=-2), "i32 3x4", idx(2, 2), "i32 2x4"),
    *((f"index_reduce {how}", lambda x, i, v, how=how: x.index_reduce(0, i, v, how), "f32 3", idx(2, 2, 0), "f32 3")
      for how in ("prod", "mean", "amax", "amin")),
    *((f"scatter_reduce {how} {self}", lambda x, i, v, how=how, self=self: x.scatter_reduce(0, i, v, how, include_self=self), "f32 3", idx(2, 2, 0), "f32 3")
      for how in ("sum", "prod", "mean", "amax", "amin") for self in (True, False)),
    *((f"scatter_reduce {how} of int8", lambda x, i, v, how=how: x.scatter_reduce(0, i, v, how), "i8 3 special", idx(2, 2, 0), "i8 3 special")
      for how in ("sum", "prod", "amax", "amin")),
    ("scatter value", lambda x, i: x.scatter(0, i, 9), "i64 4", idx(3, 0)),
    ("scatter with reduce add", lambda x, i, v: x.scatter(0, i, v, reduce="add"), "f32 4", idx(3, 3), "f32 2"),
    ("scatter with reduce multiply", lambda x, i, v: x.scatter(0, i, v, reduce="multiply"), "f32 4", idx(3, 3), "f32 2"),
    ("scatter_add of half", lambda x, i, v: x.scatter_add(0, i, v), "f16 4", idx(3, 3, 0), "f16 3"),
    ("masked_scatter", lambda x, m, v: x.masked_scatter(m, v), "f32 5", "bool 5", "f32 5"),
    ("select_scatter of another dtype", lambda x, v: x.select_scatter(v, 0, 1), "f32 3x4", "f32 4"),
    ("diagonal_scatter", lambda x, v: x.diagonal_scatter(v, 1), "f32 3x4", "f32 3"),
    ("slice_scatter", lambda x, v: x.slice_scatter(v, 1, 0, 4, 2), "f32 3x4", "f32 3x2"),
    ("as_strided_scatter", lambda x, v: x.as_strided_scatter(v, (2,), (3,), 1), "f32 6", "f32 2"),
    ("put", lambda x, i, v: x.put(i, v), "f32 2x3", idx(-1, 0), "f32 2"),
    ("put_ accumulate", lambda x, i, v: x.put_(i, v, accumulate=True), "f32 2x3", idx(-1, -1), "f32 2"),
    ("embedding with padding", lambda w, i: F.embedding(i, w, padding_idx=0), "f32 5x3", idx(0, 4, 2)),
    ("searchsorted and gather", lambda x, v: x.gather(0, torch.searchsorted(x.sort().values, v).clamp(max=4)), "f32 5", "f32 3"),
    ("cumulative index", lambda x: x[torch.arange(5).cumsum(0) % 5], "f32 5"),
    ("static cache", lambda c, p, k: c.index_copy_(1, p % 4, k), "f32 2x4x3", idx(4, 5), "f32 2x2x3"),
    ("rolling cache by negatives", lambda c, i, k: put(c, (slice(None), i), k), "f32 2x4", idx(-1, -2), "f32 2x2"),
    ("argmax as index", lambda x: x[x.argmax()], "f32 5"),
    ("where as index", lambda x: put(x.clone(), x < 0, x.abs().mean()), "f32 5"),
    ("tril_indices", lambda x: x[torch.tril_indices(4, 4)[0], torch.tril_indices(4, 4)[1]], "f32 4x4"),
    ("one row many times", lambda x, i: x.index_select(0, i).sum(0), "f32 3x4", idx(1, 1, 1)),
    ("out of range read", lambda x, i: x[i], "f32 3", idx(3)),
    ("out of range store", lambda x, i: put(x, i, 0.0), "f32 3", idx(-4)),
])  # fmt: skip
index.table([
    ("gradient of a negative read", lambda x, i: x[i] * 2, "f32 5x2", idx(-1, 0, -1)),
    ("gradient of a read in two dimensions", lambda x, i, j: x[i, j] * 2, "f32 5x4", idx(-1, 0, -1), idx(-4, 0, 0)),
    ("gradient of a column read", lambda x, i: x[:, i] * 2, "f32 5x4", idx(-1, 0, -1)),
    ("gradient of gather", lambda x, i: x.gather(0, i), "f32 5", idx(0, 0, 4)),
    ("gradient of scatter", lambda x, i, v: x.scatter(0, i, v) ** 2, "f32 5", idx(0, 4), "f32 2"),
    ("gradient of scatter_reduce amax", lambda x, i, v: x.scatter_reduce(0, i, v, "amax"), "f32 3", idx(2, 2, 0), "f32 3"),
    ("gradient of scatter_reduce mean", lambda x, i, v: x.scatter_reduce(0, i, v, "mean"), "f32 3", idx(2, 2, 0), "f32 3"),
    ("gradient of scatter_reduce prod", lambda x, i, v: x.scatter_reduce(0, i, v, "prod"), "f32 3", idx(2, 2, 0), "f32 3"),
    ("gradient of an embedding", lambda w, i: F.embedding(i, w, padding_idx=0), "f32 5x3", idx(0, 4, 2, 4)),
    ("gradient of embedding_bag", lambda w, i: F.embedding_bag(i.view(2, 2), w, mode="mean"), "f32 5x3", idx(0, 4, 2, 4)),
    ("gradient of take", lambda x, i: x.take(i), "f32 3x4", idx(-1, 0, 0)),
    ("gradient of index_add", lambda x, i, v: x.index_add(0, i, v, alpha=2), "f32 3", idx(2, 2), "f32 2"),
    ("gradient of masked_scatter", lambda x, v: x.masked_scatter(torch.tensor([True, False, True]), v), "f32 3", "f32 3"),
    ("gradient of topk", lambda x: x.topk(2).values, "f32 5"),
    ("gradient of roll and flip", lambda x: x.roll(2, 0) * x.flip(0), "f32 5"),
    ("gradient of cross entropy", lambda x, i: F.cross_entropy(x, i, ignore_index=0), "f32 4x5", idx(0, 4, 2, 1)),
    ("gradient of label smoothing", lambda x, i: F.cross_entropy(x, i, label_smoothing=0.1, weight=torch.tensor([1.0, 2, 3, 4, 5])), "f32 4x5", idx(0, 4, 2, 1)),
    ("gradient of grid_sample", lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), "f32 1x2x4x4", "f32 1x3x3x2"),
], call=gradients)  # fmt: skip

conv = group("convolutions")
conv.table([
    (f"{name} groups {g} stride {s} dilation {d}", lambda x, w, g=g, s=s, d=d, o=o, f=f: f(x, w * 0.5, stride=s, padding=1, dilation=d, groups=g, **o), x, w)
    for name, f, o, x, w, g, s, d in [
        ("conv1d", F.conv1d, {}, "f32 2x4x9", "f32 4x2x3", 2, 2, 1),
        ("conv1d", F.conv1d, {}, "f32 2x4x9", "f32 4x1x3", 4, 3, 1),
        ("conv1d", F.conv1d, {}, "f32 2x4x9", "f32 8x1x3", 4, 2, 2),
        ("conv2d", F.conv2d, {}, "f32 2x8x8x8", "f32 8x1x3x3", 8, 2, 1),
        ("conv2d", F.conv2d, {}, "f32 1x4x7x6", "f32 6x2x3x3", 2, 2, 1),
        ("conv2d", F.conv2d, {}, "f32 1x4x7x6", "f32 6x2x3x3", 2, (2, 1), 2),
        ("conv2d", F.conv2d, {}, "f32 1x4x7x6", "f32 6x4x3x3", 1, 2, 1),
        ("conv2d", F.conv2d, {}, "f32 1x4x7x6", "f32 4x1x1x1", 4, 2, 1),
        ("conv2d", F.conv2d, {}, "f64 1x4x7x6", "f64 4x2x2x3", 2, 3, 1),
        ("conv3d", F.conv3d, {}, "f32 1x2x5x5x5", "f32 2x1x3x3x3", 2, 2, 1),
        ("conv_transpose1d", F.conv_transpose1d, {}, "f32 2x4x5", "f32 4x2x3", 2, 2, 1),
        ("conv_transpose1d", F.conv_transpose1d, {"output_padding": 1}, "f32 2x4x5", "f32 4x1x3", 4, 2, 1),
        ("conv_transpose2d", F.conv_transpose2d, {}, "f32 1x4x3x4", "f32 4x1x3x3", 4, 2, 1),
        ("conv_transpose2d", F.conv_transpose2d, {"output_padding": (1, 0)}, "f32 1x4x3x4", "f32 4x3x3x3", 2, 2, 1),
        ("conv_transpose2d", F.conv_transpose2d, {}, "f32 1x4x3x4", "f32 4x2x3x3", 1, 3, 2),
    ]
], call=gradients)  # fmt: skip
conv.table([
    ("weight standardization", lambda x, w: F.conv2d(x, (w - w.mean((1, 2, 3), True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5), stride=2, groups=4), "f32 2x4x7x7", "f32 4x1x3x3"),
    ("weight used twice", lambda x, w: F.conv2d(F.conv2d(x, w, padding=1, groups=4), w, stride=2, groups=4), "f32 1x4x7x7", "f32 4x1x3x3"),
    ("penalty on the weight", lambda x, w: (F.conv2d(x, w, stride=2, groups=2), w.square().sum()), "f32 1x4x7x7", "f32 4x2x3x3"),
    ("depthwise then pointwise", lambda x, w, v: F.conv2d(F.relu6(F.conv2d(x, w, stride=2, padding=1, groups=4)), v), "f32 1x4x7x7", "f32 4x1x3x3", "f32 6x4x1x1"),
    ("bias", lambda x, w, b: F.conv2d(x, w, b, stride=2, groups=2), "f32 1x4x7x7", "f32 6x2x3x3", "f32 6"),
    ("circular padding", lambda x, w: F.conv2d(F.pad(x, (1, 1, 1, 1), "circular"), w * 2), "f32 1x2x4x5", "f32 3x2x3x3"),
    ("reflect padding", lambda x, w: F.conv1d(F.pad(x, (2, 2), "reflect"), w), "f32 1x2x7", "f32 3x2x3"),
    ("channels last", lambda x, w: F.conv2d(x.to(memory_format=torch.channels_last), w * 0.5, stride=2, groups=2), "f32 2x4x6x6", "f32 4x2x3x3"),
    ("unbatched", lambda x, w: F.conv2d(x, w * 0.5, stride=2), "f32 3x7x7", "f32 4x3x3x3"),
    ("max pool with indices and unpool", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), "f32 1x2x4x4"),
    ("average pool with padding", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), "f32 1x2x5x5"),
    ("adaptive average pool", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), "f32 1x2x7x5"),
    ("bilinear", lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), "f32 1x2x4x5"),
    ("bicubic", lambda x: F.interpolate(x, size=(7, 3), mode="bicubic", align_corners=True), "f32 1x1x4x5"),
    ("pixel shuffle", lambda x: F.pixel_shuffle(x * 2, 2), "f32 1x4x2x3"),
    ("local response norm", lambda x: F.local_response_norm(x, 3), "f32 1x4x3x3"),
    ("group norm", lambda x, w, b: F.group_norm(x, 2, w, b), "f32 2x4x3", "f32 4", "f32 4"),
    ("instance norm", lambda x: F.instance_norm(x), "f32 2x4x5"),
    ("attention causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), "f32 1x2x4x3", "f32 1x2x4x3", "f32 1x2x4x3"),
    ("attention with a mask of bools", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(4, 4, dtype=torch.bool).tril()), "f32 1x2x4x3", "f32 1x2x4x3", "f32 1x2x4x3"),
], call=gradients)  # fmt: skip


@conv.program
def autocast_of_a_depthwise_convolution(jit):
    x, w = torch.randn(1, 4, 7, 7), torch.randn(4, 1, 3, 3, requires_grad=True)

    def f(x, w):
        with torch.autocast("cpu", torch.bfloat16):
            return F.conv2d(x, w, stride=2, groups=4)

    y = jit(f)(x, w)
    y.float().square().sum().backward()
    return y, w.grad


@conv.program
def a_mobile_block_that_trains(jit):
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU6(),
        torch.nn.Conv2d(8, 8, 3, 2, 1, groups=8, bias=False), torch.nn.BatchNorm2d(8), torch.nn.Hardswish(),
        torch.nn.Conv2d(8, 4, 1),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=0.1)
    f, x, seen = jit(net), torch.randn(2, 3, 6, 6), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = f(x).square().mean()
        loss.backward()
        optimizer.step()
        seen.append(loss.detach())
    return seen, [p.detach() for p in net.parameters()], [b.clone() for b in net.buffers()]


grad = group("derivatives")
grad.table([
    (f"twice {name}", derived_twice(f), *a)
    for name, f, *a in [
        ("tanh", lambda x: x.tanh(), "f64 4"),
        ("sigmoid times x", lambda x: F.silu(x), "f64 4"),
        ("gelu", lambda x: F.gelu(x), "f64 4"),
        ("softplus", lambda x: F.softplus(x), "f64 4"),
        ("elu", lambda x: F.elu(x), "f64 4"),
        ("celu and selu", lambda x: (F.celu(x, 0.7), F.selu(x)), "f64 4"),
        ("mish", lambda x: F.mish(x), "f64 4"),
        ("softmax", lambda x: x.softmax(-1), "f64 2x4"),
        ("log_softmax", lambda x: x.log_softmax(-1), "f64 2x4"),
        ("matrix product", lambda x, y: x @ y, "f64 2x3", "f64 3x2"),
        ("layer norm", lambda x, w: F.layer_norm(x, (4,), w), "f64 2x4", "f64 4"),
        ("batch norm", lambda x: F.batch_norm(x, None, None, training=True), "f64 5x3"),
        ("conv1d", lambda x, w: F.conv1d(x, w, stride=2), "f64 1x2x7", "f64 2x2x3"),
        ("depthwise conv1d", lambda x, w: F.conv1d(x, w, stride=2, groups=2), "f64 1x2x7", "f64 2x1x3"),
        ("conv_transpose1d", lambda x, w: F.conv_transpose1d(x, w, stride=2), "f64 1x2x4", "f64 2x2x3"),
        ("index", lambda x: x[[-1, 0, -1]] ** 3, "f64 4"),
        ("cumsum", lambda x: x.cumsum(0) ** 3, "f64 4"),
        ("cumprod", lambda x: x.cumprod(0), "f64 4"),
        ("prod", lambda x: x.prod(), "f64 4"),
        ("norm", lambda x: x.norm(), "f64 4"),
        ("std", lambda x: x.std(), "f64 4"),
        ("logsumexp", lambda x: x.logsumexp(0), "f64 4"),
        ("cdist", lambda x, y: torch.cdist(x, y), "f64 3x2", "f64 4x2"),
        ("cosine similarity", lambda x, y: F.cosine_similarity(x, y), "f64 3x2", "f64 3x2"),
        ("max_pool", lambda x: F.max_pool1d(x, 2) ** 3, "f64 1x1x6"),
        ("avg_pool", lambda x: F.avg_pool1d(x, 2) ** 3, "f64 1x1x6"),
        ("interpolate", lambda x: F.interpolate(x, scale_factor=2, mode="linear") ** 3, "f64 1x1x4"),
        ("where", lambda x: torch.where(x > 0, x**3, -(x**2)), "f64 4"),
        ("bce with logits", lambda x: F.binary_cross_entropy_with_logits(x, torch.full((4,), 0.3, dtype=torch.float64)), "f64 4"),
        ("smooth l1 and huber", lambda x: (F.smooth_l1_loss(x, x.detach() * 0.5), F.huber_loss(x, x.detach() * 3)), "f64 4"),
        ("kl_div", lambda x: F.kl_div(x.log_softmax(0), torch.full((4,), 0.25, dtype=torch.float64)), "f64 4"),
        ("atan2 and hypot", lambda x, y: (torch.atan2(x, y), torch.hypot(x, y)), "f64 4", "f64 4"),
        ("pow of tensors", lambda x, y: x.abs() ** y, "f64 4", "f64 4"),
        ("erf and expm1", lambda x: (x.erf(), x.expm1(), x.abs().log1p()), "f64 4"),
        ("complex", lambda z: (z * z.conj()).real ** 2, "c128 4"),
        ("einsum", lambda x, y: torch.einsum("ij,kj->ik", x, y), "f64 2x3", "f64 4x3"),
        ("attention by hand", lambda q, k: (q @ k.mT / 2).softmax(-1) @ k, "f64 3x2", "f64 4x2"),
        ("grid of sinc", lambda x: torch.sinc(x), "f64 4"),
        ("unfold", lambda x: (x * 2).unfold(0, 3, 1) ** 3, "f64 6"),
    ]
], call=called)  # fmt: skip


@grad.program
def hooks_on_values_and_leaves(jit):
    seen = []
    x = torch.arange(3.0, requires_grad=True)
    x.register_hook(lambda g: seen.append(g.clone()))
    y = jit(lambda x: x.sin() * 2)(x)
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    return x.grad, seen


@grad.program
def a_hook_inside(jit):
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return y.sin()

    x = torch.arange(3.0, requires_grad=True)
    jit(f)(x).sum().backward()
    return x.grad


@grad.program
def module_hooks(jit):
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    seen = []
    net[1].register_forward_hook(lambda m, i, o: o * 2)
    net[0].register_full_backward_hook(lambda m, gi, go: seen.append(go[0].shape))
    net[2].register_forward_pre_hook(lambda m, i: (i[0] + 1,))
    y = jit(net)(torch.ones(2, 3))
    y.sum().backward()
    return y, seen, net[0].weight.grad


@grad.program
def accumulated_over_calls(jit):
    w = torch.randn(3, requires_grad=True)
    f = jit(lambda x: (w * x).sin().sum())
    for i in range(3):
        f(torch.full((3,), float(i))).backward()
    return w.grad


@grad.program
def backward_twice(jit):
    x = torch.randn(3, requires_grad=True)
    y = jit(lambda x: x.exp())(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@grad.program
def checkpointed(jit):
    w = torch.randn(3, 3, requires_grad=True)
    f = jit(lambda x: checkpoint(lambda t: torch.tanh(t @ w).sin(), x, use_reentrant=False))
    x = torch.randn(2, 3, requires_grad=True)
    f(x).sum().backward()
    return x.grad, w.grad


@grad.program
def checkpoint_around(jit):
    w = torch.randn(3, 3, requires_grad=True)
    f = jit(lambda x: torch.tanh(x @ w))
    x = torch.randn(2, 3, requires_grad=True)
    checkpoint(f, x, use_reentrant=False).sum().backward()
    return x.grad, w.grad


@grad.program
def checkpoint_with_dropout(jit):
    x = torch.ones(1000, requires_grad=True)
    f = jit(lambda x: checkpoint(lambda t: F.dropout(t * 2, 0.5), x, use_reentrant=False))
    y = f(x)
    y.sum().backward()
    # The gradient has to know the mask of the forward pass.
    return torch.equal(x.grad * 2, y.detach() * 2), y.detach().unique(), x.grad.unique()


@grad.program
def dropout_and_its_gradient(jit):
    x = torch.ones(1000, requires_grad=True)
    y = jit(lambda x: F.dropout(x, 0.25))(x)
    y.sum().backward()
    return torch.equal(x.grad, y.detach()), x.grad.unique()


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.limit = limit
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.clamp(-ctx.limit, ctx.limit) * x, None


@grad.program
def a_function_with_its_own_gradient(jit):
    x = torch.randn(4, requires_grad=True)
    f = jit(lambda x: Clipped.apply(x, 0.5) * torch.tensor([0.1, 1.0, -3.0, 0.3]))
    f(x).sum().backward()
    return x.grad


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


@grad.program
def straight_through(jit):
    x = torch.randn(4, requires_grad=True)
    jit(lambda x: Straight.apply(x * 3) * x)(x).sum().backward()
    return x.grad


@grad.program
def detach_and_no_grad(jit):
    def f(x):
        with torch.no_grad():
            scale = x.abs().max()
        y = x / scale
        return y + (y.round() - y).detach()

    x = torch.randn(4, requires_grad=True)
    y = jit(f)(x)
    y.sum().backward()
    return y, x.grad


@grad.program
def gradient_inside(jit):
    def f(x):
        x = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(x.sin().sum(), x)
        return g * 2

    return jit(f)(torch.arange(3.0))


@grad.program
def functional_transforms(jit):
    def f(x):
        return torch.func.vmap(torch.func.grad(lambda t: (t.sin() * t).sum()))(x)

    return jit(f)(torch.randn(3, 4))


@grad.program
def hessian_and_jacobian(jit):
    def f(x):
        g = lambda t: (t.exp() * t.flip(0)).sum()  # noqa: E731
        return (
            torch.func.hessian(g)(x),
            torch.func.jacrev(torch.sin)(x),
            torch.func.jacfwd(torch.cos)(x),
        )

    return jit(f)(torch.randn(3))


@grad.program
def only_some_need_gradients(jit):
    f = jit(lambda x, y: (x * y, x.detach() + y))
    seen = []
    for a, b in ((True, False), (False, True), (False, False), (True, True)):
        x, y = torch.ones(3, requires_grad=a), torch.full((3,), 2.0, requires_grad=b)
        r = f(x, y)
        if a or b:
            (r[0].sum() + r[1].sum()).backward()
        seen.append((r, x.grad, y.grad))
    return seen


@grad.program
def gradient_penalty(jit):
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Softplus(), torch.nn.Linear(5, 1))
    f = jit(net)
    x = torch.randn(4, 3, requires_grad=True)
    (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    (g.norm(dim=1) - 1).square().mean().backward()
    return [p.grad for p in net.parameters() if p.grad is not None]


@grad.program
def inference_mode_then_training(jit):
    net = torch.nn.Linear(3, 2)
    f = jit(net)
    x = torch.ones(1, 3)
    with torch.inference_mode():
        first = f(x).clone()
    second = f(x)
    second.sum().backward()
    return first + 0, second, net.weight.grad


@grad.program
def gradients_of_a_scan(jit):
    def f(x, w):
        h = torch.zeros(2)
        for i in range(x.shape[0]):
            h = torch.tanh(h @ w + x[i])
        return h

    x, w = torch.randn(5, 2, requires_grad=True), torch.randn(2, 2, requires_grad=True)
    jit(f)(x, w).sum().backward()
    return x.grad, w.grad


@grad.program
def an_unused_result(jit):
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    r = jit(lambda x, y: (x * 2, y * 3))(x, y)
    r[0].sum().backward()
    # torch.compile gives zeros where eager mode gives None.
    return x.grad, y.grad is None or not y.grad.any()

"""Operations of random typed programs, as source text with places for operands.

A place is a letter in braces; the first operand is called x. A letter in front, with a colon, picks
x without writing it.

==========  ================================================================
place       is filled with
==========  ================================================================
``f``       a value of real numbers
``i``       a value of integers
``b``       a value of bools
``z``       a complex value
``r``       a value of real numbers or integers
``n``       a value of real numbers, integers or bools
``a``       any value
``x``       the first operand again
``l``       a value that broadcasts to the shape of x, not complex
``s``       a value of x's dtype that broadcasts to the shape of x
``c``       a value of x's shape
``m``       a mask that broadcasts to the shape of x
``o``       a mask of x's shape
``e``       a constant made in the program that broadcasts to the shape of x
``k``       a Python number
``w``       how far to shift
``q``       an integer from 1 to 3
``d``       a dimension of x, counted from either end
``p``       a permutation of the dimensions of x
``t``       a dtype
``g``       an index expression in brackets
``j``       indices into dimension d of x, some negative
``jp``      such indices, none negative
``j0``      indices into the first dimension
``jl``      indices into the last dimension
``h``       a tensor of indices into dimension d, of x's shape
``u``       such a tensor without repetitions along d
==========  ================================================================
"""

from __future__ import annotations

#: Functions of one value, each an operation of its own.
FLOAT_FUNCTIONS = """tanh sigmoid sin cos exp expm1 log1p sqrt rsqrt erf erfc sinh cosh atan asinh
floor ceil trunc round frac reciprocal log log2 exp2 tan asin acos logit sinc lgamma digamma i0
deg2rad rad2deg nan_to_num isnan isinf isfinite""".split()
NUMBER_FUNCTIONS = "neg abs sign square positive".split()
ACTIVATIONS = """relu relu6 elu selu celu gelu silu mish hardswish hardtanh softplus
softsign tanhshrink softshrink hardshrink leaky_relu logsigmoid""".split()
BINARY_FUNCTIONS = """add sub mul maximum minimum true_divide remainder fmod floor_divide eq ne lt
le gt ge logical_and logical_or logical_xor""".split()
FLOAT_BINARY_FUNCTIONS = "atan2 hypot fmax fmin pow logaddexp xlogy heaviside".split()
INTEGER_BINARY_FUNCTIONS = "bitwise_and bitwise_or bitwise_xor gcd lcm".split()
COMPLEX_FUNCTIONS = "abs angle exp sin cos tanh sqrt neg square reciprocal sgn".split()

#: Expressions whose rounding depends on the order in which they add.
ADDING = [
    "torch.fft.fft({f}.float())",
    "torch.fft.irfft(torch.fft.rfft({f}.double()) * 1j)",
    "torch.sum({a}, {d})",
    "{a}.sum()",
    "torch.sum({n}, {d}, dtype={t})",
    "torch.mean({f}, {d}, keepdim=True)",
    "torch.prod({n}, {d})",
    "torch.var({f}, {d}, keepdim=True)",
    "torch.std({f})",
    "torch.logsumexp({f}, {d})",
    "torch.softmax({f}, {d})",
    "torch.log_softmax({f}, {d})",
    "F.layer_norm({f}, ({x}.shape[-1],), eps=1e-2)",
    "torch.cumsum({a}, {d})",
    "torch.cumprod({f}, {d})",
    "torch.logcumsumexp({f}, {d})",
    "torch.linalg.vector_norm({f}, dim={d})",
    "F.normalize({f}, dim={d})",
    "matrix({s}) @ matrix({x}).T",
    "torch.outer({f}.flatten()[:7], {s}.flatten()[:5])",
    "torch.einsum('...i,...i->...', {f}, {s})",
    "F.conv1d(rows({f}), kernel({x}, {q}), padding=1)",
    "F.conv1d(rows({f}), kernel({x}, {q}), stride=2, groups=1)",
    "F.conv_transpose1d(rows({f}), kernel({x}, {q}), stride=2)",
    "F.avg_pool1d(rows({f}), 2, 1)",
    "torch.index_add({a}, {d}, torch.tensor({j}), {x}.index_select({d}, torch.tensor({j})))",
    "torch.scatter_add({n}, {d}, {h}, {x})",
    "torch.scatter_reduce({r}, {d}, {h}, {x}, 'mean', include_self=False)",
    "torch.scatter_reduce({r}, {d}, {h}, {x}, 'prod')",
    "torch.trapezoid({f}, dim={d})",
    "torch.count_nonzero({n}, {d})",
    "torch.kron({f}.flatten()[:4], {s}.flatten()[:3])",
    "F.interpolate(rows({f}), scale_factor=2, mode='linear')",
    "torch.bincount({i}.flatten() & 7)",
]

#: Other expressions.
EXPRESSIONS = [
    *(f"torch.{name}({{f}})" for name in FLOAT_FUNCTIONS),
    *(f"torch.{name}({{n}})" for name in ("sin", "exp", "sqrt", "sigmoid", "isnan", "atan")),
    *(f"torch.{name}({{a}})" for name in NUMBER_FUNCTIONS),
    *(f"F.{name}({{f}})" for name in ACTIVATIONS),
    *(f"torch.{name}({{n}}, {{l}})" for name in BINARY_FUNCTIONS),
    *(f"torch.{name}({{n}}, {{e}})" for name in BINARY_FUNCTIONS),
    *(f"torch.{name}({{f}}, {{l}})" for name in FLOAT_BINARY_FUNCTIONS),
    *(f"torch.{name}({{i}}, {{s}})" for name in INTEGER_BINARY_FUNCTIONS),
    *(f"torch.{name}({{z}})" for name in COMPLEX_FUNCTIONS),
    "{n} + {k}",
    "{n} - {k}",
    "{k} - {n}",
    "{a} * {k}",
    "{n} / {k}",
    "{n} // {k}",
    "{n} % {k}",
    "{k} // {r}",
    "{n} < {k}",
    "{n} >= {k}",
    "{k} == {n}",
    "{a} != {k}",
    "{f} ** {k}",
    "{f} ** {q}",
    "{i} ** {q}",
    "torch.add({n}, {l}, alpha={q})",
    "torch.sub({n}, {l}, alpha={q})",
    "{i} << {w}",
    "{i} >> {w}",
    "{i} << ({s} & 7)",
    "~{i}",
    "~{b}",
    "{b} & {m}",
    "{b} ^ {m}",
    "{b} | {k}",
    "{i} & {k}",
    "{i} ^ {k}",
    "{a}.to({t})",
    "{n}.to({t})",
    "{f}.bool()",
    "{i}.bool()",
    "torch.clamp({r}, min={k})",
    "torch.clamp({r}, {k}, {k})",
    "torch.clamp({r}, min={s})",
    "torch.clamp({f}, max={s}, min={s})",
    "torch.where({b}, {l}, {l})",
    "n: torch.where({m}, {x}, {l})",
    "n: torch.where({m}, {x}, {k})",
    "torch.masked_fill({a}, {m}, {k})",
    "torch.lerp({f}, {s}, 0.25)",
    "torch.addcmul({f}, {s}, {s}, value=-2)",
    "torch.addcdiv({f}, {s}, {s}, value=2)",
    "torch.div({n}, {l}, rounding_mode='floor')",
    "torch.div({n}, {l}, rounding_mode='trunc')",
    "torch.threshold({f}, 0.1, 20)",
    "torch.ldexp({f}, torch.tensor({q}))",
    "torch.round({f}, decimals={q})",
    # PyTorch's own derivative takes a sixth in float32.
    "F.hardsigmoid({f}.float())",
    # The sign of NaN is anyone's.
    "torch.signbit(torch.nan_to_num({f}))",
    "torch.copysign({f}, torch.nan_to_num({s}))",
    "torch.nextafter({f}, {s})",
    "torch.isclose({f}, {s})",
    "torch.bucketize({r}, torch.tensor([-2, 0, 1, 3]))",
    "torch.isin({i}, torch.tensor([1, 2, 5]))",
    # reductions that choose
    "torch.amax({n}, {d})",
    "torch.amin({n}, {d}, keepdim=True)",
    "torch.aminmax({r}, dim={d}).max",
    "torch.max({r}, {d}).values",
    "torch.max({r}, {d}).indices",
    "torch.min({n}, {d}).values",
    "torch.argmax({r}, {d})",
    "torch.argmin({r})",
    "torch.any({a}, {d})",
    "torch.all({a}, {d})",
    "torch.all({n})",
    "torch.cummax({r}, {d}).values",
    "torch.cummin({r}, {d}).indices",
    "torch.sort({r}, {d}).values",
    "torch.argsort({r}, {d}, stable=True)",
    "torch.sort({r}, {d}, descending=True, stable=True).indices",
    # Of equal elements any may get the gradient.
    "torch.topk({r}, 1, {d}).values.detach()",
    "torch.median({r}, {d}).values.detach()",
    "torch.kthvalue({r}, 1, {d}).values.detach()",
    "torch.mode({i}, {d}).values",
    "F.max_pool1d(rows({f}), 2, 1)",
    "F.max_pool1d(rows({f}), 3, 2, padding=1, return_indices=True)[1]",
    "F.adaptive_max_pool1d(rows({f}), 2)",
    # moving
    "{a}.permute({p})",
    "{a}.transpose(0, {d})",
    "{a}.flatten()",
    "{a}.reshape(-1)",
    "{a}.unsqueeze({d})",
    "{a}.flip({d})",
    "{a}.roll({q}, {d})",
    "{a}.unsqueeze(0).expand(2, *{x}.shape)",
    "{a}.repeat_interleave({q}, {d})",
    "torch.tile({a}, ({q},))",
    "{a}{g}",
    "{a}{g}",
    "{a}.narrow({d}, 0, 1)",
    "{a}.select({d}, -1)",
    "{a}.diagonal()",
    "torch.diag_embed({a}[..., :4])",
    "torch.tril({a})",
    "torch.triu({a}, 1)",
    "{a}.unfold({d}, 2, 1)",
    "{a}.unfold({d}, 3, 2)",
    "{a}.chunk(2, {d})[-1]",
    "{a}.unbind({d})[0]",
    "{a}.movedim({d}, -1)",
    "{a}.contiguous()",
    "{a}.clone()",
    "{a}.mT",
    "torch.diff({r}, dim={d})",
    "torch.cat([{a}, {c}], {d})",
    "torch.cat([{a}, {c}], {d})",
    "torch.stack([{n}, {c}], {d})",
    "torch.stack([{a}, {x}.roll(1, {d})], -1)",
    "F.pad({n}, (1, 2), value={k})",
    "F.pad({n}, (-1, 1))",
    "F.pad(rows({f}), (1, 1), mode='reflect')",
    "F.pad(rows({f}), (1, 1), mode='replicate')",
    "F.one_hot({i} & 3, 4)",
    "torch.rot90({a}, 1, (0, -1))",
    "torch.broadcast_to({a}, (2, *{x}.shape))",
    "F.pixel_shuffle({f}.reshape(1, -1, 1, 1)[:, :4], 2)",
    "F.interpolate(rows({f}), scale_factor=2)",
    # indices
    "{a}.index_select({d}, torch.tensor({jp}))",
    "{a}[torch.tensor({j0})]",
    "{a}[..., torch.tensor({jl})]",
    "torch.gather({a}, {d}, {h})",
    "torch.take({a}, torch.tensor([0, -1]))",
    "torch.take_along_dim({a}, {h}, {d})",
    "torch.scatter({a}, {d}, {u}, {x})",
    "torch.scatter({n}, {d}, {h}, {k})",
    "torch.scatter_reduce({r}, {d}, {h}, {x}, 'amax')",
    "torch.scatter_reduce({r}, {d}, {h}, {x}, 'amin', include_self=False)",
    "torch.index_fill({a}, {d}, torch.tensor({j}), {k})",
    "torch.index_copy({a}, {d}, torch.tensor([0]), {x}.narrow({d}, -1, 1))",
    "torch.index_put({a}, (torch.tensor({j0}),), {x}[0])",
    "torch.select_scatter({a}, {x}.select({d}, 0), {d}, -1)",
    "torch.slice_scatter({a}, {x}.narrow({d}, 0, 1), {d}, 0, 1)",
    "torch.diagonal_scatter({a}, {x}.diagonal().clone())",
    "torch.masked_scatter({a}, {o}, {x}.flip(0))",
    "torch.searchsorted(torch.tensor([-1.0, 0.0, 2.0]), {f}.float())",
    # complex numbers
    "torch.complex({f}, {s})",
    "torch.polar({f}, {s})",
    "{z}.conj()",
    "{z}.conj() * {s}",
    "{z}.real",
    "{z}.imag",
    "{z}.conj().imag",
    "{z} * {s}",
    "{z} + {l}",
    "{z} / {s}",
    "{z} * 1j",
    "{f} * 1j",
    "torch.view_as_real({z}.resolve_conj())",
    "torch.view_as_complex({f}.reshape(-1, 2))",
    "{z} == {s}",
    # made in the program
    "torch.zeros_like({a})",
    "torch.full_like({n}, {k})",
    "n: torch.full({x}.shape, {k}, dtype={t})",
    "{n} * torch.arange({x}.shape[-1])",
    "{n} + torch.linspace(-1, 1, {x}.shape[-1], dtype=torch.float64)",
    "{n} * {e}",
    "{n} + {e}",
    "n: {e} - {x}",
    "{r} // {e}",
    "{r} % {e}",
    "n: torch.ones({x}.shape, dtype={t}) - {x}",
    "n: torch.eye({x}.shape[-1]) * {x}",
]

#: Expressions that PyTorch runs itself, in the middle of a program.
LEFT = [
    "opaque({a})",
    "opaque_transposed({a})",
    "torch.linalg.inv(square({f}))",
    "torch.linalg.ldl_factor_ex(square({f})).LD",
    "torch.special.gammainc({f}.double().abs() + 1, {x}.double().abs())",
    "torch.unique({i}.flatten())[:3]",
    "{a}[{o}]",
    "torch.nonzero({n})",
    "torch.histc({f}.float(), 4, -1, 1)",
    "{n} * int({i}.flatten()[0])",
]

#: Statements that update a value in place, often through a view of it.
UPDATES = [
    "{a}{g} = {k}",
    "{a}{g} = {x}{g} * 2",
    "{n}{g} += {k}",
    "{n}{g} *= 3",
    "{a}{g}.zero_()",
    "{n}{g}.add_({q})",
    "{n}.view(-1)[::2].neg_()",
    "{a}.transpose(0, -1)[0].mul_(2)",
    "{a}.add_({s})",
    "{n}.mul_({k})",
    "{n}.copy_({l})",
    "{a}[torch.tensor({j0})] = {k}",
    "{a}[..., torch.tensor({jl})] = {k}",
    "{n}[torch.tensor({j0})] += {q}",
    "{a}[{o}] = {k}",
    "{a}.masked_fill_({m}, {k})",
    "{a}.index_fill_({d}, torch.tensor({j}), {k})",
    "{a}.index_add_({d}, torch.tensor([0, 0]), {x}.narrow({d}, 0, 1).repeat_interleave(2, {d}))",
    "{n}.scatter_({d}, {h}, {k})",
    "{r}.clamp_(min={k})",
    "{f}.relu_()",
    "{i}.bitwise_xor_({q})",
    "{n}.diagonal().fill_({k})",
    "{a}.unbind(0)[0].mul_(2)",
    "{z}.imag.mul_(2)",
    "{z}.conj().mul_(1j)",
    "{a}.resize_as_({x}).swapaxes_(0, -1)",
    "{n}.index_put_((torch.tensor({j0}),), {x}[0].clone(), accumulate=True)",
]

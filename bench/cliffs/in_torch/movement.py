"""Operations that move or lay out elements."""

from __future__ import annotations

import torch
from torch.nn import functional

from bench.cliffs.case import Array, Case, Draw, rows, side


def _square(draw: Draw, n: int) -> tuple[Array, ...]:
    return (draw.normal(side(n), side(n)),)


def _images(draw: Draw, n: int) -> tuple[Array, ...]:
    extent = side(n, 2, 4 * 32)
    return (draw.normal(4, 32, extent, extent),)


def _pair(draw: Draw, n: int) -> tuple[Array, ...]:
    return draw.normal(*rows(n // 2, 512)), draw.normal(*rows(n // 2, 512))


def _flat_pair(draw: Draw, n: int) -> tuple[Array, ...]:
    return draw.normal(n // 2), draw.normal(n // 2)


CASES = (
    Case("transpose", lambda x: x.t().contiguous(), _square, gradient=True),
    Case("permute, channels last", lambda x: x.permute(0, 2, 3, 1).contiguous(), _images),
    Case(
        "permute of heads",
        lambda x: x.view(-1, 64, 8, 64).transpose(1, 2).contiguous(),
        lambda d, n: (d.normal(n // 32768 * 32768),),
    ),
    Case("flip", lambda x: x.flip(0, 1), _square),
    Case("fliplr", torch.fliplr, _square),
    Case("rot90", torch.rot90, _square),
    Case("roll", lambda x: x.roll((3, 5), (0, 1)), _square, gradient=True),
    Case("roll, flat", lambda x: x.roll(7), lambda d, n: (d.normal(n),)),
    Case("roll then flip", lambda x: x.roll(3, 1).flip(0), _square),
    Case("cat of rows", lambda x, y: torch.cat((x, y)), _pair, gradient=True),
    Case("cat of columns", lambda x, y: torch.cat((x, y), 1), _pair),
    Case("stack, last", lambda x, y: torch.stack((x, y), -1), _pair, gradient=True),
    Case("hstack", lambda x, y: torch.hstack((x, y)), _pair),
    Case("dstack", lambda x, y: torch.dstack((x, y)), _pair),
    Case("column_stack", lambda x, y: torch.column_stack((x, y)), _flat_pair),
    Case(
        "block_diag",
        torch.block_diag,
        lambda d, n: (d.normal(side(n // 4), side(n // 4)), d.normal(side(n // 4), side(n // 4))),
    ),
    Case("chunks rearranged", lambda x: torch.cat(x.chunk(4, 1)[::-1], 1), _square),
    Case("split and sum", lambda x: sum(x.split(x.shape[1] // 4, 1)), _square),
    Case("repeat", lambda x: x.repeat(2, 3), lambda d, n: (d.normal(*rows(n // 6, 256)),)),
    Case("tile of rows", lambda x: x.tile(1, 4), lambda d, n: (d.normal(*rows(n // 4, 16)),)),
    Case(
        "repeat_interleave",
        lambda x: x.repeat_interleave(4, -1),
        lambda d, n: (d.normal(*rows(n // 4, 256)),),
        gradient=True,
    ),
    Case(
        "expand and clone",
        lambda x: x.expand(64, -1, -1).clone(),
        lambda d, n: (d.normal(*rows(n // 64, 256)),),
    ),
    Case("tril", torch.tril, _square, gradient=True),
    Case("triu", torch.triu, _square),
    Case("diag_embed", torch.diag_embed, lambda d, n: (d.normal(n // 4096, 64),)),
    Case(
        "diagonal",
        lambda x: x.diagonal(0, 1, 2).clone(),
        lambda d, n: (d.normal(n // 4096, 64, 64),),
    ),
    Case(
        "diagonal_scatter",
        lambda x, y: torch.diagonal_scatter(x, y),
        lambda d, n: (d.normal(side(n), side(n)), d.normal(side(n))),
    ),
    Case(
        "slice_scatter",
        lambda x, y: torch.slice_scatter(x, y, 1, 0, y.shape[1]),
        lambda d, n: (d.normal(*rows(n, 1024)), d.normal(*rows(n // 2, 512))),
    ),
    Case(
        "select_scatter",
        lambda x, y: torch.select_scatter(x, y, 1, 3),
        lambda d, n: (d.normal(*rows(n, 1024)), d.normal(n // 1024)),
    ),
    Case(
        "unfold, windows of 16",
        lambda x: x.unfold(-1, 16, 4).contiguous(),
        lambda d, n: (d.normal(*rows(n // 4, 1024)),),
    ),
    Case(
        "as_strided, overlapping",
        lambda x: x.as_strided((x.shape[0] // 2, 8), (1, 3)).clone(),
        lambda d, n: (d.normal(n // 4),),
    ),
    Case("pad, zeros", lambda x: functional.pad(x, (1, 1, 1, 1)), _images, gradient=True),
    Case(
        "pad, reflect", lambda x: functional.pad(x, (1, 1, 1, 1), "reflect"), _images, gradient=True
    ),
    Case(
        "pad, replicate",
        lambda x: functional.pad(x, (2, 1, 0, 3), "replicate"),
        _images,
        gradient=True,
    ),
    Case(
        "pad, circular",
        lambda x: functional.pad(x, (1, 1, 1, 1), "circular"),
        _images,
        gradient=True,
    ),
    Case("pad, cropped", lambda x: functional.pad(x, (-1, -1, -1, -1)), _images),
    Case("pixel_shuffle", lambda x: functional.pixel_shuffle(x, 2), _images, gradient=True),
    Case("pixel_unshuffle", lambda x: functional.pixel_unshuffle(x, 2), _images),
    Case("channel_shuffle", lambda x: functional.channel_shuffle(x, 4), _images),
    Case(
        "im2col 3x3",
        lambda x: functional.unfold(x, 3, padding=1),
        lambda d, n: (d.normal(2, 16, side(n, 2, 288), side(n, 2, 288)),),
        gradient=True,
    ),
    Case(
        "fold 3x3",
        lambda x: functional.fold(x, (64, 64), 3, padding=1),
        lambda d, n: (d.normal(max(1, n // (72 * 4096)), 72, 4096),),
        gradient=True,
    ),
    Case("fftshift", lambda x: torch.fft.fftshift(x, (0, 1)), _square),
    Case(
        "meshgrid",
        lambda x, y: torch.meshgrid(x, y, indexing="ij"),
        lambda d, n: (d.normal(side(n // 2)), d.normal(side(n // 2))),
    ),
    Case(
        "cartesian_prod",
        torch.cartesian_prod,
        lambda d, n: (d.normal(side(n // 2)), d.normal(side(n // 2))),
    ),
    Case(
        "kron",
        torch.kron,
        lambda d, n: (d.normal(side(n) // 8, side(n) // 8), d.normal(8, 8)),
        gradient=True,
    ),
    Case("outer", torch.outer, lambda d, n: (d.normal(side(n)), d.normal(side(n)))),
    Case("vander", lambda x: torch.linalg.vander(x, N=8), lambda d, n: (d.uniform(-1, 1, n // 8),)),
    Case(
        "one_hot", lambda x: functional.one_hot(x, 64), lambda d, n: (d.integers(0, 64, n // 64),)
    ),
    Case("glu", functional.glu, _square, gradient=True),
    Case(
        "where",
        torch.where,
        lambda d, n: (d.flags(n // 2), d.normal(n // 2), d.normal(n // 2)),
        gradient=True,
    ),
    Case(
        "masked_fill",
        lambda x, m: x.masked_fill(m, 0.5),
        lambda d, n: (d.normal(n), d.flags(n)),
        gradient=True,
    ),
    Case("clamp", lambda x: x.clamp(-1, 1), lambda d, n: (d.normal(n),), gradient=True),
    Case(
        "lerp",
        torch.lerp,
        lambda d, n: (d.normal(n // 2), d.normal(n // 2), d.uniform(0, 1, n // 2)),
        gradient=True,
    ),
    Case(
        "addcdiv",
        torch.addcdiv,
        lambda d, n: (d.normal(n // 2), d.normal(n // 2), d.uniform(1, 2, n // 2)),
        gradient=True,
    ),
    Case(
        "view_as_complex, product",
        lambda x, y: torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(y)),
        lambda d, n: (d.normal(n // 4, 2), d.normal(n // 4, 2)),
    ),
    Case("abs of complex", torch.abs, lambda d, n: (d.complex(n // 2),)),
    Case("exp of complex", torch.exp, lambda d, n: (d.complex(n // 2),)),
    Case("polar of rows", lambda x, y: torch.polar(x.abs(), y), _pair),
    Case("gradient", lambda x: torch.gradient(x), _square),
    Case(
        "bytes to normalized floats",
        lambda x: (x.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25,
        lambda d, n: (d.integers(0, 256, 4, side(n, 2, 12), side(n, 2, 12), 3, dtype="uint8"),),
    ),
)

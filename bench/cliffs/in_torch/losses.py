"""Losses."""

from __future__ import annotations

from collections.abc import Callable

from torch.nn import functional

from bench.cliffs.case import Array, Case, Draw, rows

Maker = Callable[[Draw, int], tuple[Array, ...]]


def _pair(draw: Draw, n: int) -> tuple[Array, ...]:
    return draw.normal(n // 2), draw.normal(n // 2)


def _probabilities(draw: Draw, n: int) -> tuple[Array, ...]:
    return draw.uniform(0.01, 0.99, n // 2), draw.uniform(0, 1, n // 2)


def _signs(draw: Draw, n: int) -> tuple[Array, ...]:
    return draw.normal(n // 2), (2 * draw.flags(n // 2) - 1).astype("float32")


def _classes(width: int) -> Maker:
    def make(draw: Draw, n: int) -> tuple[Array, ...]:
        count, _ = rows(n, width)
        return draw.normal(count, width), draw.integers(0, width, count)

    return make


def _triples(draw: Draw, n: int) -> tuple[Array, ...]:
    return tuple(draw.normal(*rows(n // 3, 128)) for _ in range(3))


CASES = (
    Case("mse_loss", functional.mse_loss, _pair, gradient=True),
    Case("l1_loss", functional.l1_loss, _pair, gradient=True),
    Case("smooth_l1_loss", functional.smooth_l1_loss, _pair, gradient=True),
    Case("huber_loss", functional.huber_loss, _pair, gradient=True),
    Case("binary_cross_entropy", functional.binary_cross_entropy, _probabilities, gradient=True),
    Case(
        "binary_cross_entropy_with_logits",
        functional.binary_cross_entropy_with_logits,
        _probabilities,
        gradient=True,
    ),
    Case("soft_margin_loss", functional.soft_margin_loss, _signs),
    Case("hinge_embedding_loss", functional.hinge_embedding_loss, _signs),
    Case("poisson_nll_loss", functional.poisson_nll_loss, _probabilities),
    Case("kl_div", functional.kl_div, _probabilities, gradient=True),
    Case(
        "gaussian_nll_loss",
        functional.gaussian_nll_loss,
        lambda d, n: (d.normal(n // 3), d.normal(n // 3), d.uniform(0.5, 2, n // 3)),
    ),
    Case("cross_entropy, 1000 classes", functional.cross_entropy, _classes(1000), gradient=True),
    Case("cross_entropy, 50257 classes", functional.cross_entropy, _classes(50257), gradient=True),
    Case("nll_loss, 1000 classes", functional.nll_loss, _classes(1000)),
    Case("multi_margin_loss, 100 classes", functional.multi_margin_loss, _classes(100)),
    Case(
        "multilabel_soft_margin_loss",
        functional.multilabel_soft_margin_loss,
        lambda d, n: (d.normal(*rows(n // 2, 64)), d.flags(*rows(n // 2, 64)).astype("float32")),
    ),
    Case("triplet_margin_loss", functional.triplet_margin_loss, _triples, gradient=True),
    Case(
        "margin_ranking_loss",
        functional.margin_ranking_loss,
        lambda d, n: (d.normal(n // 3), d.normal(n // 3), d.normal(n // 3)),
    ),
    Case(
        "cosine_embedding_loss",
        lambda x, y: functional.cosine_embedding_loss(x, y, x[:, 0].sign()),
        lambda d, n: (d.normal(*rows(n // 2, 128)), d.normal(*rows(n // 2, 128))),
    ),
)

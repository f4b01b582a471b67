"""Networks that differentiate, integrate, check or draw numbers on their way: physics, fields,
graphs, checkpoints, weights that are normalized at each call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

Example = tuple[nn.Module, dict[str, Any]]


class SchNet(nn.Module):
    """Schütt et al. 2017: the energy of atoms, and the forces on them, its negative gradient."""

    def __init__(self, width: int = 16, bases: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, width)
        self.centers = nn.Parameter(torch.linspace(0, 4, bases), requires_grad=False)
        self.filters = nn.ModuleList(
            nn.Sequential(nn.Linear(bases, width), nn.Softplus(), nn.Linear(width, width))
            for _ in range(2)
        )
        self.updates = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.Softplus(), nn.Linear(width, width))
            for _ in range(2)
        )
        self.energy = nn.Linear(width, 1)

    def forward(self, numbers: Tensor, places: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        """Of ``(n,)`` atoms at ``(n, 3)`` with ``(2, m)`` pairs: energy and forces, ``(n, 3)``."""
        places = places.detach().requires_grad_()
        first, second = edges
        distance = (places[first] - places[second]).norm(dim=-1)
        spread = torch.exp(-2 * (distance[:, None] - self.centers) ** 2)
        x = self.embedding(numbers)
        for make_filter, update in zip(self.filters, self.updates, strict=True):
            messages = x[second] * make_filter(spread)
            x = x + update(torch.zeros_like(x).index_add(0, first, messages))
        energy = self.energy(x).sum()
        (gradient,) = torch.autograd.grad(energy, places, create_graph=True)
        return energy, -gradient


def schnet() -> Example:
    """Five atoms, all pairs of them."""
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    return SchNet(), {
        "": [torch.randint(1, 10, (5,)), torch.randn(5, 3), torch.tensor(pairs).T.contiguous()]
    }


class Sine(nn.Module):
    """A layer of SIREN (Sitzmann et al. 2020)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, inputs)`` to ``(n, outputs)``."""
        return torch.sin(5 * self.linear(x))


class Siren(nn.Module):
    """An image's values, gradient and Laplacian at places."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(Sine(2, 16), Sine(16, 16), nn.Linear(16, 1))

    def forward(self, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of ``(n, 2)``: values ``(n, 1)``, gradients ``(n, 2)``, Laplacians ``(n,)``."""
        places = places.detach().requires_grad_()
        values = self.layers(places)
        (slope,) = torch.autograd.grad(values.sum(), places, create_graph=True)
        laplacian = torch.zeros(len(places), dtype=places.dtype)
        for axis in range(2):
            (second,) = torch.autograd.grad(slope[:, axis].sum(), places, create_graph=True)
            laplacian = laplacian + second[:, axis]
        return values, slope, laplacian


class BurgersResidual(nn.Module):
    """A physics-informed network (Raissi et al. 2019): what is left of Burgers' equation."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
        )

    def forward(self, points: Tensor) -> Tensor:
        """Of ``(n, 2)`` times and places, ``(n,)`` residuals."""

        def at(point: Tensor) -> Tensor:
            return self.layers(point).squeeze(-1)

        value = torch.func.vmap(at)(points)
        slope = torch.func.vmap(torch.func.grad(at))(points)
        curved = torch.func.vmap(torch.func.hessian(at))(points)
        return slope[:, 0] + value * slope[:, 1] - 0.01 / math.pi * curved[:, 1, 1]


class NeuralOde(nn.Module):
    """Chen et al. 2018: a state that a network moves, by Runge and Kutta's method."""

    def __init__(self, steps: int = 4) -> None:
        super().__init__()
        self.steps = steps
        self.speed = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))

    def _moved(self, time: Tensor, state: Tensor) -> Tensor:
        return self.speed(torch.cat([state, time.expand(len(state), 1)], -1))

    def forward(self, state: Tensor, until: Tensor) -> Tensor:
        """From ``(n, 3)`` at 0 to ``(n, 3)`` at ``until``."""
        step = until / self.steps
        for index in range(self.steps):
            time = index * step
            a = self._moved(time, state)
            b = self._moved(time + step / 2, state + step / 2 * a)
            c = self._moved(time + step / 2, state + step / 2 * b)
            d = self._moved(time + step, state + step * c)
            state = state + step / 6 * (a + 2 * b + 2 * c + d)
        return state


class CheckpointedEncoder(nn.Module):
    """Layers of attention with dropout that are computed again for their gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
            for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, s, 32)`` to the same."""
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


class WaveNet(nn.Module):
    """Van den Oord et al. 2016, with normalized weights (Salimans and Kingma 2016)."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        norm = parametrizations.weight_norm
        self.begin = norm(nn.Conv1d(1, width, 1))
        self.dilated = nn.ModuleList(
            norm(nn.Conv1d(width, 2 * width, 2, dilation=2**i)) for i in range(3)
        )
        self.end = norm(nn.Conv1d(width, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, 1, t)`` to the same."""
        x = self.begin(x)
        for layer in self.dilated:
            both = layer(F.pad(x, (layer.dilation[0], 0)))
            wave, gate = both.chunk(2, 1)
            x = x + torch.tanh(wave) * torch.sigmoid(gate)
        return self.end(x)


class StandardizedConv(nn.Conv2d):
    """Weight standardization (Qiao et al. 2019)."""

    def forward(self, x: Tensor) -> Tensor:
        """As a convolution does."""
        weight = self.weight
        weight = weight - weight.mean((1, 2, 3), keepdim=True)
        weight = weight / (weight.std((1, 2, 3), keepdim=True) + 1e-5)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


def big_transfer() -> nn.Module:
    """Kolesnikov et al. 2020: standardized weights, normalized groups of channels."""
    layers: list[nn.Module] = []
    for inputs, outputs, groups in ((3, 16, 1), (16, 32, 4), (32, 32, 32)):
        conv = StandardizedConv(inputs, outputs, 3, 2, 1, groups=groups)
        layers += [conv, nn.GroupNorm(4, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


class MaskHead(nn.Module):
    """Mask R-CNN's heads (He et al. 2017): boxes cut out of features by bilinear reading."""

    def __init__(self, channels: int = 16, classes: int = 5, size: int = 7) -> None:
        super().__init__()
        self.size = size
        self.box = nn.Sequential(
            *(nn.Flatten(), nn.Linear(channels * size * size, 32), nn.ReLU()),
            nn.Linear(32, classes * 5),
        )
        self.mask = nn.Sequential(
            *(nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU()),
            *(nn.ConvTranspose2d(16, 16, 2, 2), nn.ReLU(), nn.Conv2d(16, classes, 1)),
        )

    def _cut(self, features: Tensor, boxes: Tensor) -> Tensor:
        """``(k, c, size, size)`` of ``(1, c, h, w)`` at ``(k, 4)`` boxes between -1 and 1."""
        at = (torch.arange(self.size, dtype=boxes.dtype) + 0.5) / self.size
        x = boxes[:, 0:1] + at * (boxes[:, 2:3] - boxes[:, 0:1])
        y = boxes[:, 1:2] + at * (boxes[:, 3:4] - boxes[:, 1:2])
        count = len(boxes)
        grid = torch.stack(
            [
                x[:, None, :].expand(count, self.size, self.size),
                y[:, :, None].expand(count, self.size, self.size),
            ],
            -1,
        )
        return F.grid_sample(features.expand(count, *features.shape[1:]), grid, align_corners=False)

    def forward(self, features: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        """Of features and boxes: classes with boxes ``(k, 25)``, masks ``(k, 5, 14, 14)``."""
        cut = self._cut(features, boxes)
        return self.box(cut), torch.sigmoid(self.mask(cut))


def mask_head() -> Example:
    """Three boxes of features of 11 x 13."""
    corners = torch.rand(3, 2) - 0.9
    return MaskHead(), {
        "": [torch.rand(1, 16, 11, 13), torch.cat([corners, corners + 0.2 + torch.rand(3, 2)], 1)]
    }


class SpatialTransformer(nn.Module):
    """Jaderberg et al. 2015: an image turned as the network says, and then classified."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Sequential(
            *(nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            nn.Linear(8 * 4 * 4, 6),
        )
        self.classify = nn.Sequential(
            *(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(3), nn.Flatten()),
            nn.Linear(72, 10),
        )

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, 1, 20, 20)`` to ``(n, 10)``."""
        turned = self.look(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3, dtype=x.dtype)
        grid = F.affine_grid(turned, list(x.shape), align_corners=False)
        return self.classify(F.grid_sample(x, grid, padding_mode="border", align_corners=False))


class Critic(nn.Module):
    """A critic with spectral norm and a gradient penalty (Gulrajani et al. 2017)."""

    def __init__(self) -> None:
        super().__init__()
        norm = parametrizations.spectral_norm
        self.layers = nn.Sequential(
            *(norm(nn.Conv2d(1, 8, 4, 2, 1)), nn.LeakyReLU(0.2)),
            *(norm(nn.Conv2d(8, 16, 4, 2, 1)), nn.LeakyReLU(0.2), nn.Flatten()),
            norm(nn.Linear(64, 1)),
        )

    def forward(self, real: Tensor, made: Tensor, mix: Tensor) -> Tensor:
        """Of two ``(n, 1, 8, 8)`` and ``(n, 1, 1, 1)``: the loss."""
        between = (mix * real + (1 - mix) * made).detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.layers(between).sum(), between, create_graph=True)
        penalty = (slope.flatten(1).norm(dim=1) - 1) ** 2
        return self.layers(made).mean() - self.layers(real).mean() + 10 * penalty.mean()


class Autoencoder(nn.Module):
    """A variational autoencoder (Kingma and Welling 2014): draws in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(20, 16), nn.GELU(), nn.Linear(16, 8))
        self.decode = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 20))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Of ``(n, 20)``: the loss of each row, and the rows made again."""
        mean, log_variance = self.encode(x).chunk(2, -1)
        noise = torch.randn_like(mean) if self.training else torch.zeros_like(mean)
        again = torch.sigmoid(self.decode(mean + noise * torch.exp(log_variance / 2)))
        loss = F.binary_cross_entropy(again, x, reduction="none").sum(-1)
        return loss - 0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(-1), again


class GraphAttention(nn.Module):
    """Veličković et al. 2018: a softmax over each node's neighbours, a mask that is checked."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.values = nn.Linear(8, width)
        self.source, self.target = (nn.Parameter(torch.randn(heads, width // heads)) for _ in "ab")

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """Of ``(n, 8)`` nodes and ``(2, m)`` edges, ``(n, 16)``."""
        count = len(nodes)
        torch._assert_async((edges < count).all(), "an edge of a node that is not there")
        x = self.values(nodes).view(count, self.heads, -1)
        scores = (x * self.source).sum(-1)[edges[0]] + (x * self.target).sum(-1)[edges[1]]
        scores = F.leaky_relu(scores, 0.2)
        index = edges[1][:, None].expand(-1, self.heads)
        largest = torch.full((count, self.heads), -torch.inf, dtype=nodes.dtype)
        largest = largest.scatter_reduce(0, index, scores, "amax")
        weights = torch.exp(scores - largest[edges[1]])
        total = torch.zeros(count, self.heads, dtype=nodes.dtype).index_add(0, edges[1], weights)
        messages = x[edges[0]] * (weights / total[edges[1]])[..., None]
        return torch.zeros_like(x).index_add(0, edges[1], messages).flatten(1)


def graph_attention() -> Example:
    """Seven nodes with an edge to themselves and to ten others."""
    edges = torch.cat([torch.arange(7).expand(2, 7), torch.randint(0, 7, (2, 10))], 1)
    return GraphAttention(), {"": [torch.randn(7, 8), edges]}


class Radiance(nn.Module):
    """NeRF (Mildenhall et al. 2020): the colour of rays, by what is left of the light."""

    def __init__(self) -> None:
        super().__init__()
        self.field = nn.Sequential(nn.Linear(3 + 3 * 8, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, origins: Tensor, directions: Tensor) -> Tensor:
        """Of ``(n, 3)`` both, ``(n, 3)`` colours."""
        depths = torch.linspace(1, 3, 9, dtype=origins.dtype)
        points = origins[:, None] + directions[:, None] * depths[:, None]
        waves = points[..., None] * 2.0 ** torch.arange(4, dtype=origins.dtype)
        seen = self.field(torch.cat([points, waves.sin().flatten(-2), waves.cos().flatten(-2)], -1))
        opaque = 1 - torch.exp(-F.relu(seen[..., 3]) * 0.25)
        left = torch.cumprod(torch.cat([torch.ones_like(opaque[:, :1]), 1 - opaque], 1), 1)
        return (torch.sigmoid(seen[..., :3]) * (opaque * left[:, :-1])[..., None]).sum(1)


class CountedSteps(nn.Module):
    """A recurrent cell with a counter, a moving mean and a warning, as people write them."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 16)
        self.register_buffer("mean", torch.zeros(16))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        """From ``(t, n, 8)`` to ``(n, 16)``."""
        self.calls += 1
        state = x.new_zeros(x.shape[1], 16)
        for row in x:
            state = self.cell(row, state)
        if self.training:
            self.mean.lerp_(state.detach().mean(0), 0.1)
        return state * (1 + 0.01 * self.calls) - self.mean


def with_inputs(make: Callable[[], nn.Module], *shapes: tuple[int, ...]) -> Callable[[], Example]:
    """A network and numbers between 0 and 1 in these shapes."""
    return lambda: (make(), {"": [torch.rand(shape) for shape in shapes]})


#: By name: what makes the network and its arguments.
SCIENTIFIC: dict[str, Callable[[], Example]] = {
    "BiT, standardized weights": with_inputs(big_transfer, (2, 3, 32, 32)),
    "Burgers, physics-informed": with_inputs(BurgersResidual, (11, 2)),
    "counted GRU": with_inputs(CountedSteps, (4, 3, 8)),
    "critic with a gradient penalty": with_inputs(Critic, (3, 1, 8, 8), (3, 1, 8, 8), (3, 1, 1, 1)),
    "encoder, checkpointed": with_inputs(CheckpointedEncoder, (2, 9, 32)),
    "graph attention": graph_attention,
    "Mask R-CNN's heads": mask_head,
    "NeRF": with_inputs(Radiance, (5, 3), (5, 3)),
    "neural ODE": with_inputs(NeuralOde, (5, 3), ()),
    "SchNet with forces": schnet,
    "SIREN with a Laplacian": with_inputs(Siren, (13, 2)),
    "spatial transformer": with_inputs(SpatialTransformer, (2, 1, 20, 20)),
    "VAE": with_inputs(Autoencoder, (5, 20)),
    "WaveNet, normalized weights": with_inputs(WaveNet, (2, 1, 31)),
}

#: Those that take gradients on their way.
DIFFERENTIATING = frozenset(
    {"critic with a gradient penalty", "SchNet with forces", "SIREN with a Laplacian"}
)

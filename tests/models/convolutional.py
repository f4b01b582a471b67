"""Networks of convolutions in the manner of their papers, with few channels and random weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def convolution(
    inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1, dilation: int = 1
) -> nn.Sequential:
    """A convolution that keeps the image's size (but for the stride), normalized and rectified."""
    around = dilation * (size // 2)
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, around, dilation, groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def head(channels: int) -> nn.Sequential:
    """The mean of each channel, and ten classes from them."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def alexnet() -> nn.Module:
    """Krizhevsky et al. 2012: large windows first, pools that overlap, dropout."""
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.LocalResponseNorm(5), nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten()),
        *(nn.Dropout(), nn.Linear(288, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 10)),
    )


def vgg() -> nn.Module:
    """Simonyan and Zisserman 2014: pairs of 3 x 3 windows between pools."""
    layers: list[nn.Module] = []
    inputs = 3
    for channels in (16, 32, 64):
        layers += [convolution(inputs, channels), convolution(channels, channels), nn.MaxPool2d(2)]
        inputs = channels
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(64 * 16, 64), nn.ReLU(), nn.Linear(64, 10)
    )


class Fire(nn.Module):
    """SqueezeNet (Iandola et al. 2016): few channels, then many by two sizes of window."""

    def __init__(self, inputs: int, few: int, many: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, few, 1)
        self.small, self.large = nn.Conv2d(few, many, 1), nn.Conv2d(few, many, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, inputs, h, w)`` to ``(n, 2 * many, h, w)``."""
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.small(x)), F.relu(self.large(x))], 1)


def squeezenet() -> nn.Module:
    """Fires between pools that keep what is left over at the border."""
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True)),
        *(Fire(16, 8, 16), Fire(32, 8, 16), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(32, 8, 32)),
        *(nn.Conv2d(64, 10, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    )


class Dense(nn.Module):
    """DenseNet (Huang et al. 2017): every layer reads the results of all before it."""

    def __init__(self, inputs: int, growth: int, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(inputs + i * growth),
                nn.ReLU(),
                nn.Conv2d(inputs + i * growth, growth, 3, padding=1, bias=False),
            )
            for i in range(count)
        )

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, inputs, h, w)`` to ``(n, inputs + count * growth, h, w)``."""
        found = [x]
        for layer in self.layers:
            found.append(layer(torch.cat(found, 1)))
        return torch.cat(found, 1)


def densenet() -> nn.Module:
    """Two dense blocks with a transition."""
    return nn.Sequential(
        *(convolution(3, 16, 7, 2), nn.MaxPool2d(3, 2, 1), Dense(16, 8, 3)),
        *(convolution(40, 20, 1), nn.AvgPool2d(2), Dense(20, 8, 3), nn.BatchNorm2d(44), head(44)),
    )


class Inception(nn.Module):
    """GoogLeNet (Szegedy et al. 2014): windows of several sizes and a pool side by side."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            [
                convolution(inputs, width, 1),
                nn.Sequential(convolution(inputs, width, 1), convolution(width, 2 * width)),
                nn.Sequential(convolution(inputs, width, 1), convolution(width, width, 5)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), convolution(inputs, width, 1)),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, inputs, h, w)`` to ``(n, 5 * width, h, w)``."""
        return torch.cat([branch(x) for branch in self.branches], 1)


def googlenet() -> nn.Module:
    """Three of these blocks."""
    return nn.Sequential(
        *(convolution(3, 16, 7, 2), nn.MaxPool2d(3, 2, ceil_mode=True), Inception(16, 8)),
        *(Inception(40, 8), nn.MaxPool2d(3, 2, ceil_mode=True), Inception(40, 12)),
        *(nn.Dropout(), head(60)),
    )


class Shuffle(nn.Module):
    """ShuffleNet V2 (Ma et al. 2018): half of the channels pass, then all are dealt like cards."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.layers = nn.Sequential(
            convolution(half, half, 1),
            convolution(half, half, groups=half),
            convolution(half, half, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, channels, h, w)`` to the same."""
        left, right = x.chunk(2, 1)
        x = torch.cat([left, self.layers(right)], 1)
        n, c, h, w = x.shape
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet() -> nn.Module:
    """Three of these blocks."""
    blocks = [Shuffle(16), Shuffle(16), convolution(16, 32, 3, 2), Shuffle(32)]
    return nn.Sequential(convolution(3, 16, 3, 2), nn.MaxPool2d(3, 2, 1), *blocks, head(32))


class Inverted(nn.Module):
    """MobileNetV3 (Howard et al. 2019): wide, each channel alone, weighed by its mean, narrow."""

    def __init__(self, channels: int, width: int, size: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.wide = nn.Sequential(
            *(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), activation()),
            nn.Conv2d(width, width, size, padding=size // 2, groups=width, bias=False),
            *(nn.BatchNorm2d(width), activation()),
        )
        self.weigh = nn.Sequential(
            *(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 8, 1), nn.ReLU()),
            *(nn.Conv2d(8, width, 1), nn.Hardsigmoid()),
        )
        self.narrow = nn.Sequential(
            nn.Conv2d(width, channels, 1, bias=False), nn.BatchNorm2d(channels)
        )

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, channels, h, w)`` to the same."""
        wide = self.wide(x)
        return x + self.narrow(wide * self.weigh(wide))


def mobilenet_v3() -> nn.Module:
    """Three of these blocks."""
    blocks = [Inverted(16, 32, 3, nn.ReLU), Inverted(16, 48, 5, nn.Hardswish), nn.AvgPool2d(2)]
    return nn.Sequential(
        convolution(3, 16, 3, 2), *blocks, Inverted(16, 64, 5, nn.Hardswish), head(16)
    )


def efficientnet() -> nn.Module:
    """Tan and Le 2019: the same blocks with SiLU."""
    blocks = [Inverted(16, 32, 3, nn.SiLU), convolution(16, 24, 5, 2), Inverted(24, 48, 5, nn.SiLU)]
    return nn.Sequential(convolution(3, 16, 3, 2), *blocks, nn.Dropout(), head(24))


class Aggregated(nn.Module):
    """ResNeXt (Xie et al. 2017): a bottleneck whose windows are in groups."""

    def __init__(self, inputs: int, outputs: int, stride: int, groups: int = 8) -> None:
        super().__init__()
        width = outputs // 2
        self.layers = nn.Sequential(
            convolution(inputs, width, 1),
            convolution(width, width, 3, stride, groups),
            *(nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)),
        )
        self.shortcut = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
        )

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, inputs, h, w)`` to ``(n, outputs, h / stride, w / stride)``."""
        return F.relu(self.layers(x) + self.shortcut(x))


def resnext() -> nn.Module:
    """Three of these blocks."""
    blocks = [Aggregated(16, 32, 1), Aggregated(32, 64, 2), Aggregated(64, 64, 2)]
    return nn.Sequential(convolution(3, 16, 7, 2), nn.MaxPool2d(3, 2, 1), *blocks, head(64))


class UNet(nn.Module):
    """Ronneberger et al. 2015: down and up again, with what was seen on the way down beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([convolution(3, 8), convolution(8, 16), convolution(16, 32)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
        self.join = nn.ModuleList([convolution(32, 16), convolution(16, 8)])
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, 3, h, w)`` to ``(n, 2, h, w)``; h and w are multiples of 4."""
        seen = []
        for layer in self.down:
            seen.append(layer(x))
            x = F.max_pool2d(seen[-1], 2)
        x = seen.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([seen.pop(), up(x)], 1))
        return self.last(x)


class DeepLab(nn.Module):
    """DeepLabV3 (Chen et al. 2017): windows with holes of several sizes, and the image's mean."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(convolution(3, 16, 3, 2), convolution(16, 32, 3, 2))
        self.branches = nn.ModuleList(
            convolution(32, 16, 3 if rate > 1 else 1, dilation=rate) for rate in (1, 2, 4, 6)
        )
        self.mean = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 16, 1), nn.ReLU())
        self.last = nn.Conv2d(80, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, 3, h, w)`` to ``(n, 5, h, w)``."""
        features = self.body(x)
        mean = self.mean(features).expand(-1, -1, *features.shape[2:])
        found = self.last(torch.cat([branch(features) for branch in self.branches] + [mean], 1))
        return F.interpolate(found, x.shape[2:], mode="bilinear", align_corners=False)


class Pyramid(nn.Module):
    """A feature pyramid (Lin et al. 2017): coarse features are added to finer ones."""

    def __init__(self) -> None:
        super().__init__()
        widths = (8, 16, 32)
        self.body = nn.ModuleList(
            convolution(i, o, 3, 2) for i, o in zip((3, *widths), widths, strict=False)
        )
        self.lateral = nn.ModuleList(nn.Conv2d(width, 16, 1) for width in widths)
        self.smooth = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1) for _ in widths)

    def forward(self, x: Tensor) -> list[Tensor]:
        """From ``(n, 3, h, w)`` to three of ``(n, 16, h / s, w / s)``, s = 2, 4, 8."""
        found = []
        for layer, lateral in zip(self.body, self.lateral, strict=True):
            x = layer(x)
            found.append(lateral(x))
        for i in (1, 0):
            found[i] = found[i] + F.interpolate(found[i + 1], found[i].shape[2:], mode="nearest")
        return [smooth(x) for smooth, x in zip(self.smooth, found, strict=True)]


def video_net() -> nn.Module:
    """R(2+1)D (Tran et al. 2018): windows over space, then over time."""

    def pair(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
        return [
            nn.Conv3d(inputs, outputs, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False),
            *(nn.BatchNorm3d(outputs), nn.ReLU()),
            nn.Conv3d(outputs, outputs, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False),
            *(nn.BatchNorm3d(outputs), nn.ReLU()),
        ]

    last = [nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 10)]
    return nn.Sequential(*pair(3, 8, 1), nn.MaxPool3d(2), *pair(8, 16, 2), *last)


class Mixer(nn.Module):
    """MLP-Mixer (Tolstikhin et al. 2021): layers over the patches, then over the channels."""

    def __init__(self, patches: int = 16, channels: int = 32) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, channels, 8, 8)
        self.norms = nn.ModuleList([nn.LayerNorm(channels), nn.LayerNorm(channels)])
        self.over = nn.ModuleList(
            nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))
            for n in (patches, channels)
        )
        self.last = nn.Linear(channels, 10)

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, 3, 32, 32)`` to ``(n, 10)``."""
        x = self.cut(x).flatten(2).transpose(1, 2)
        x = x + self.over[0](self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        x = x + self.over[1](self.norms[1](x))
        return self.last(x.mean(1))


def generator() -> nn.Module:
    """DCGAN's generator (Radford et al. 2015): an image out of noise by transposed convolutions."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((16, 32), (32, 16), (16, 8)):
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False)]
        layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(8, 3, 3, padding=1, padding_mode="reflect"), nn.Tanh())


class SuperResolution(nn.Module):
    """ESPCN (Shi et al. 2016): pixels of a larger image out of channels."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(3, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 27, 3, padding=1)),
            nn.PixelShuffle(3),
        )

    def forward(self, x: Tensor) -> Tensor:
        """From ``(n, 3, h, w)`` to ``(n, 3, 3 h, 3 w)``."""
        enlarged = F.interpolate(x, scale_factor=3, mode="bicubic", align_corners=False)
        return enlarged + self.layers(x)


class Detector(nn.Module):
    """YOLO's head (Redmon et al. 2016): boxes and classes of every cell of a grid."""

    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(convolution(3, 16, 3, 2), convolution(16, 32, 3, 2), convolution(32, 32, 3, 2)),
            nn.Conv2d(32, 5 + classes, 1),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """From ``(n, 3, h, w)`` to boxes and scores, ``(n, h w / 64, 4)`` and ``(.., classes)``."""
        grid = self.body(x).permute(0, 2, 3, 1)
        _, h, w, _ = grid.shape
        y, left = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        center = (grid[..., :2].sigmoid() + torch.stack([left, y], -1)) * 8
        size = grid[..., 2:4].exp() * 8
        boxes = torch.cat([center - size / 2, center + size / 2], -1)
        scores = grid[..., 4:5].sigmoid() * grid[..., 5:].softmax(-1)
        return boxes.flatten(1, 2), scores.flatten(1, 2)


#: By name: what makes it, and the shape of its input.
NETWORKS = {
    "AlexNet": (alexnet, (1, 3, 64, 64)),
    "DCGAN": (generator, (1, 16, 4, 4)),
    "DeepLabV3": (DeepLab, (1, 3, 32, 32)),
    "DenseNet": (densenet, (1, 3, 32, 32)),
    "EfficientNet": (efficientnet, (1, 3, 32, 32)),
    "ESPCN": (SuperResolution, (1, 3, 20, 20)),
    "FPN": (Pyramid, (1, 3, 32, 32)),
    "GoogLeNet": (googlenet, (1, 3, 32, 32)),
    "MLP-Mixer": (Mixer, (1, 3, 32, 32)),
    "MobileNetV3": (mobilenet_v3, (1, 3, 32, 32)),
    "R(2+1)D": (video_net, (1, 3, 8, 16, 16)),
    "ResNeXt": (resnext, (1, 3, 32, 32)),
    "ShuffleNetV2": (shufflenet, (1, 3, 32, 32)),
    "SqueezeNet": (squeezenet, (1, 3, 64, 64)),
    "U-Net": (UNet, (1, 3, 32, 32)),
    "VGG": (vgg, (1, 3, 32, 32)),
    "YOLO": (Detector, (1, 3, 32, 32)),
}

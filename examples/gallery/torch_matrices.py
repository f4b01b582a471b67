"""A matrix of 3 x 3 at every pixel, in PyTorch: colours that are known coarsely are made sharp.

An effect was computed for squares of some pixels only. Around each pixel, the matrix is found that
best makes the effect of the coarse photograph (least squares: an inverse and a product); it is then
applied to the photograph itself. Writes the coarse effect and the sharp one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from PIL import Image
from skimage import data

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def box(image: torch.Tensor, radius: int = 12) -> torch.Tensor:
    """Means over squares of (channels, height, width); edges are mirrored."""
    padded = F.pad(image, (radius,) * 4, mode="reflect")
    return F.avg_pool2d(padded, 2 * radius + 1, stride=1)


def covariances(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Of the colours around every pixel: two images (3, height, width) -> (height, width, 3, 3)."""
    products = box((one[:, None] * other).flatten(0, 1)).unflatten(0, (3, 3))
    return (products - box(one)[:, None] * box(other)).permute(2, 3, 0, 1)


def inverse(matrix: torch.Tensor) -> torch.Tensor:
    """Inverses (..., 3, 3) from the cross products of the rows."""
    first, second, third = matrix.unbind(-2)
    pairs = ((second, third), (third, first), (first, second))
    columns = torch.stack([torch.linalg.cross(*pair) for pair in pairs], dim=-1)
    return columns / (first * columns[..., 0]).sum(-1)[..., None, None]


@polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
def transfer(image: torch.Tensor, coarse: torch.Tensor, effect: torch.Tensor) -> torch.Tensor:
    """Give an image (3, height, width) the effect that its coarse version was given."""
    spread = covariances(coarse, coarse) + 1e-3 * torch.eye(3, dtype=image.dtype)
    matrices = inverse(spread) @ covariances(coarse, effect)
    apart = (image - box(coarse)).permute(1, 2, 0)[..., None, :]
    return (apart @ matrices)[..., 0, :].permute(2, 0, 1) + box(effect)


def main(arguments: Sequence[str] | None = None) -> int:
    """Transfer colours; the exit status is 1 if the result is not PyTorch's in float64."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=280, help="a multiple of 8")
    parser.add_argument("--out", type=Path, default=Path("out/torch_matrices.png"))
    args = parser.parse_args(arguments)

    pixels = data.astronaut()[: args.size, 90 : 90 + args.size]
    image = torch.from_numpy(pixels).permute(2, 0, 1).float() / 255
    coarse = F.avg_pool2d(image, 8).repeat_interleave(8, 1).repeat_interleave(8, 2)
    turned = torch.tensor([[0.1, 0.3, 0.6], [0.1, 0.8, 0.1], [0.7, 0.3, 0.0]])
    effect = torch.einsum("ij,jhw->ihw", turned, coarse) ** 1.3
    result = transfer(image, coarse, effect)
    exact = transfer.__wrapped__(image.double(), coarse.double(), effect.double())
    difference = float((result - exact).abs().max())
    print(f"largest difference: {difference:.1e}")
    print(transfer.polyblocks_report())

    both = (torch.cat([effect, result], dim=2).clamp(0, 1) * 255).permute(1, 2, 0)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.round().to(torch.uint8).numpy()).save(args.out)
    return 0 if difference < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())

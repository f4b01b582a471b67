"""Multi-scale interpolation in PyTorch: a photograph of which few pixels are known is filled.

What is known is averaged in a pyramid of ever smaller images, until there are no holes; on the way
back each level fills its own from the one below. Writes before and after.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from skimage import data

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def halved(image: torch.Tensor) -> torch.Tensor:
    """(channels, height, width) at half the resolution, with four taps along either side."""
    taps = image.new_tensor([1, 3, 3, 1]) / 8
    padded = F.pad(image[:, None], (1, 1, 1, 1), mode="replicate")
    down = F.conv2d(padded, taps.view(1, 1, 4, 1), stride=(2, 1))
    return F.conv2d(down, taps.view(1, 1, 1, 4), stride=(1, 2))[:, 0]


@polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
def fill(image: torch.Tensor, known: torch.Tensor, levels: int = 6) -> torch.Tensor:
    """Fill an image (3, height, width) where the mask (height, width) is 0."""
    pyramid = [torch.cat([image * known, known[None]])]
    for _ in range(levels - 1):
        pyramid.append(halved(pyramid[-1]))
    filled = pyramid.pop()
    for level in reversed(pyramid):
        coarse = F.interpolate(filled[None], size=level.shape[1:], mode="bilinear")[0]
        filled = level + (1 - level[3]) * coarse
    return filled[:3] / filled[3].clamp(min=1e-6)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill a photograph; the exit status is 1 if the result is not PyTorch's in float64."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=280)
    parser.add_argument("--known", type=float, default=0.15, help="part of the pixels")
    parser.add_argument("--out", type=Path, default=Path("out/torch_fill.png"))
    args = parser.parse_args(arguments)

    pixels = data.chelsea()[: args.size, 60 : 60 + args.size].astype(np.float32) / 255
    image = torch.from_numpy(pixels).permute(2, 0, 1).contiguous()
    drawn = np.random.default_rng(0).random(image.shape[1:]) < args.known
    known = torch.from_numpy(drawn.astype(np.float32))
    result = fill(image, known)
    exact = fill.__wrapped__(image.double(), known.double())
    difference = float((result - exact).abs().max())
    error = float((result - image).abs().mean())
    print(f"mean error {error:.3f}, largest difference to PyTorch's: {difference:.1e}")
    print(fill.polyblocks_report())

    both = (torch.cat([image * known, result], dim=2).clamp(0, 1) * 255).permute(1, 2, 0)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.round().to(torch.uint8).numpy()).save(args.out)
    return 0 if difference < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())

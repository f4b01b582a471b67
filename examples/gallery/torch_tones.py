"""Local tone mapping in PyTorch: shadows are lifted, highlights kept, details sharpened.

The brightness is split into a coarse part (an edge-preserving guided filter of box blurs) and
details. The coarse part is compressed, the details are amplified. Writes before and after.
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


def box(image: torch.Tensor, radius: int) -> torch.Tensor:
    """Means over squares of an image (1, 1, height, width); edges are repeated."""
    padded = F.pad(image, (radius, radius, radius, radius), mode="replicate")
    return F.avg_pool2d(padded, 2 * radius + 1, stride=1)


def guided(image: torch.Tensor, radius: int, softness: float) -> torch.Tensor:
    """He, Sun and Tang's guided filter, with the image as its own guide."""
    mean = box(image, radius)
    variance = box(image * image, radius) - mean * mean
    slope = variance / (variance + softness)
    return box(slope, radius) * image + box(mean - slope * mean, radius)


@polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
def tones(image: torch.Tensor, strength: float = 0.55, detail: float = 1.6) -> torch.Tensor:
    """Map the tones of a float32 image (3, height, width) with values from 0 to 1."""
    weights = torch.tensor([0.2126, 0.7152, 0.0722]).view(3, 1, 1)
    brightness = (image * weights).sum(0, keepdim=True) + 1e-3
    logarithm = torch.log(brightness)
    coarse = guided(logarithm[None], 8, 0.1)[0]
    mapped = torch.exp(strength * coarse + detail * (logarithm - coarse))
    return torch.clamp(image * (mapped / brightness), 0, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Map a dark photograph; the exit status is 1 if the result is not PyTorch's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("out/torch_tones.png"))
    args = parser.parse_args(arguments)

    pixels = data.astronaut()[: args.size, : args.size]
    dark = torch.from_numpy(pixels.astype(np.float32) / 255).permute(2, 0, 1) ** 2.2
    result = tones(dark)
    difference = float((result - tones.__wrapped__(dark)).abs().max())
    print(f"largest difference: {difference:.1e}")
    print(tones.polyblocks_report())

    both = torch.cat([dark, result], dim=2).permute(1, 2, 0) * 255
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.round().to(torch.uint8).numpy()).save(args.out)
    return 0 if difference < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())

"""Non-local means in PyTorch: noise goes where a picture repeats itself.

Each pixel becomes a mean of the 7 x 7 around it, in which pixels weigh more the more alike the
5 x 5 around either are. Writes before and after.
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

#: Pixels from the middle to the border: of the window that is searched, and of a patch.
SEARCH, PATCH = 3, 2


@polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
def non_local_means(image: torch.Tensor, strength: float = 0.006) -> torch.Tensor:
    """Smooth an image (height, width); the weight is 1/e at this mean square between patches."""
    height, width = image.shape
    margin = SEARCH + PATCH
    padded = F.pad(image[None, None], (margin,) * 4, mode="reflect")[0, 0]

    def seen(y: int, x: int, more: int = 0) -> torch.Tensor:
        """What lies so far from every pixel, and from some more around the image."""
        y, x = margin + y - more, margin + x - more
        return padded[y : y + height + 2 * more, x : x + width + 2 * more]

    total, weights = torch.zeros_like(image), torch.zeros_like(image)
    for y in range(-SEARCH, SEARCH + 1):
        for x in range(-SEARCH, SEARCH + 1):
            squares = (seen(y, x, PATCH) - seen(0, 0, PATCH)) ** 2
            apart = F.avg_pool2d(squares[None, None], 2 * PATCH + 1, stride=1)[0, 0]
            weight = torch.exp(-apart / strength)
            total, weights = total + weight * seen(y, x), weights + weight
    return total / weights


def main(arguments: Sequence[str] | None = None) -> int:
    """Clean a wall of bricks; the exit status is 1 if the result is not PyTorch's in float64."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=240)
    parser.add_argument("--out", type=Path, default=Path("out/torch_patches.png"))
    args = parser.parse_args(arguments)

    torch.manual_seed(0)
    clean = torch.from_numpy(data.brick()[: args.size, : args.size].astype(np.float32) / 255)
    noisy = clean + 0.07 * torch.randn_like(clean)
    result = non_local_means(noisy)
    exact = non_local_means.__wrapped__(noisy.double())
    difference = float((result - exact).abs().max())
    before, after = (float((x - clean).square().mean()) for x in (noisy, result))
    print(f"mean square error {before:.4f} -> {after:.4f}")
    print(f"largest difference: {difference:.1e}")
    print(non_local_means.polyblocks_report())

    both = (torch.cat([noisy, result], dim=1).clamp(0, 1) * 255).round().to(torch.uint8)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.numpy()).convert("RGB").save(args.out)
    return 0 if difference < 1e-5 and after < before / 2 else 1


if __name__ == "__main__":
    sys.exit(main())

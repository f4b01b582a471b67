"""Harris' corner detector in PyTorch: gradients, products, a blur, a score, its local maxima.

Six convolutions and a maximum over windows are compiled as one program. Writes the photograph
without and with its corners marked.
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


def filtered(image: torch.Tensor, vertical: list[float], across: list[float]) -> torch.Tensor:
    """A separable filter over (n, 1, height, width), with zeros around."""
    radius = len(vertical) // 2
    image = F.conv2d(image, torch.tensor(vertical).view(1, 1, -1, 1), padding=(radius, 0))
    return F.conv2d(image, torch.tensor(across).view(1, 1, 1, -1), padding=(0, radius))


@polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
def corners(gray: torch.Tensor, threshold: float = 0.01) -> torch.Tensor:
    """Where the corners of a float32 image (height, width) are, as a mask."""
    image = gray[None, None]
    smooth, slope = [0.25, 0.5, 0.25], [-0.5, 0.0, 0.5]
    dx, dy = filtered(image, smooth, slope), filtered(image, slope, smooth)
    binomial = [1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16]
    xx, xy, yy = filtered(torch.cat([dx * dx, dx * dy, dy * dy]), binomial, binomial)
    score = (xx * yy - xy * xy - 0.05 * (xx + yy) ** 2)[None]
    largest = F.max_pool2d(score, 9, stride=1, padding=4)
    return ((score == largest) & (score > threshold * score.max()))[0, 0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Find corners; the exit status is 1 if they are not those that PyTorch finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=360)
    parser.add_argument("--out", type=Path, default=Path("out/torch_corners.png"))
    args = parser.parse_args(arguments)

    pixels = data.camera()[: args.size, : args.size]
    gray = torch.from_numpy(pixels.astype(np.float32) / 255)
    found = corners(gray)
    # Where two scores are equal but for rounding, either may be the larger one.
    different = int((found != corners.__wrapped__(gray)).sum())
    print(f"{int(found.sum())} corners, {different} pixels differ from PyTorch's")
    print(corners.polyblocks_report())

    marks = F.max_pool2d(found[None, None].float(), 5, stride=1, padding=2)[0, 0].bool().numpy()
    marked = np.repeat(pixels[:, :, None], 3, axis=2)
    photograph = marked.copy()
    marked[marks] = (255, 60, 40)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate([photograph, marked], axis=1)).save(args.out)
    return 0 if found.any() and different <= 4 else 1


if __name__ == "__main__":
    sys.exit(main())

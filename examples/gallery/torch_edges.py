"""Canny's edges in PyTorch: thin lines where the brightness changes most.

A blur, the gradient, its maxima along its own direction, and two thresholds: weak edges stay gray
where no strong one is beside them. Writes before and after.
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
    """A separable filter over (1, 1, height, width); edges are repeated."""
    radius = len(vertical) // 2
    image = F.pad(image, (radius, radius, radius, radius), mode="replicate")
    image = F.conv2d(image, image.new_tensor(vertical).view(1, 1, -1, 1))
    return F.conv2d(image, image.new_tensor(across).view(1, 1, 1, -1))


@polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
def edges(gray: torch.Tensor, low: float = 0.15, high: float = 0.4) -> torch.Tensor:
    """Edges of an image (height, width): 1 strong or beside a strong one, 0.5 weak, 0 none."""
    binomial = [1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16]
    smooth = filtered(gray[None, None], binomial, binomial)
    dx = filtered(smooth, [1.0, 2.0, 1.0], [-1.0, 0.0, 1.0])[0, 0]
    dy = filtered(smooth, [-1.0, 0.0, 1.0], [1.0, 2.0, 1.0])[0, 0]
    size = torch.sqrt(dx * dx + dy * dy)

    def beside(down: int, right: int) -> torch.Tensor:
        """The larger of the two neighbours in a direction and against it."""
        return torch.maximum(*(size.roll((n * down, n * right), (0, 1)) for n in (1, -1)))

    flat, steep = dy.abs() <= 0.414 * dx.abs(), dy.abs() >= 2.414 * dx.abs()
    slanted = torch.where(dx * dy > 0, beside(1, 1), beside(1, -1))
    around = torch.where(flat, beside(0, 1), torch.where(steep, beside(1, 0), slanted))
    thin = torch.where(size >= around, size, 0.0)
    strong = F.max_pool2d(thin[None, None], 3, stride=1, padding=1)[0, 0] >= high
    return torch.where(thin >= low, torch.where(strong, 1.0, 0.5), 0.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Find the edges of coins; the exit status is 1 if they are not those that PyTorch finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("out/torch_edges.png"))
    args = parser.parse_args(arguments)

    gray = torch.from_numpy(data.coins()[: args.size, : args.size].astype(np.float32) / 255)
    found = edges(gray)
    # Where a number is near a threshold, or near its neighbour's, rounding decides.
    different = int((found != edges.__wrapped__(gray)).sum())
    print(f"{int((found > 0).sum())} pixels on edges, {different} differ from PyTorch's")
    print(edges.polyblocks_report())

    both = (torch.cat([gray, found], dim=1) * 255).round().to(torch.uint8).numpy()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both).convert("RGB").save(args.out)
    return 0 if found.any() and different <= 4 else 1


if __name__ == "__main__":
    sys.exit(main())

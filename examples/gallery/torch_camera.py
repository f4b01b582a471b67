"""What a camera does to the numbers of its sensor, in PyTorch: one colour a pixel, to a picture.

Hot pixels are held within their neighbours' range, missing colours are interpolated, a matrix makes
RGB of the sensor's colours, a table bends the tones. Writes the mosaic and the picture.
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

#: What the sensor's red, green and blue see of RGB, and where each is in squares of 2 x 2 pixels.
SEEN = torch.tensor([[0.7, 0.25, 0.05], [0.15, 0.7, 0.15], [0.05, 0.3, 0.65]])
PLACES = torch.tensor([[[0.0, 1], [0, 0]], [[1, 0], [0, 1]], [[0, 0], [1, 0]]])


@polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
def develop(raw: torch.Tensor, matrix: torch.Tensor, curve: torch.Tensor) -> torch.Tensor:
    """A picture (3, height, width) from a mosaic (height, width), 3 x 3 numbers and a table."""
    height, width = raw.shape
    padded = F.pad(raw[None, None], (2, 2, 2, 2), mode="reflect")[0, 0]
    shifts = ((0, 2), (4, 2), (2, 0), (2, 4))  # to the nearest pixels of the same colour
    around = torch.stack([padded[y : y + height, x : x + width] for y, x in shifts])
    calm = torch.minimum(torch.maximum(raw, around.amin(0)), around.amax(0))
    known = PLACES.tile(1, height // 2, width // 2)
    planes = F.pad((known * calm)[:, None], (1, 1, 1, 1), mode="reflect")
    cross = torch.tensor([[0.0, 1, 0], [1, 4, 1], [0, 1, 0]]) / 4
    square = torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]) / 4
    kernels = torch.stack([square, cross, square])[:, None].to(raw.dtype)
    colours = F.conv2d(planes.transpose(0, 1), kernels, groups=3)[0]
    right = torch.einsum("ij,jhw->ihw", matrix, colours).clamp(0, 1)
    place = right * (len(curve) - 1)
    below = place.long().clamp(max=len(curve) - 2)
    return torch.lerp(curve[below], curve[below + 1], place - below)


def main(arguments: Sequence[str] | None = None) -> int:
    """Develop; the exit status is 1 if the result is not PyTorch's in float64."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=280, help="an even number")
    parser.add_argument("--out", type=Path, default=Path("out/torch_camera.png"))
    args = parser.parse_args(arguments)

    pixels = data.astronaut()[: args.size, 90 : 90 + args.size].astype(np.float32) / 255
    light = torch.einsum("ij,hwj->ihw", SEEN, torch.from_numpy(pixels) ** 2.2)
    known = PLACES.tile(1, args.size // 2, args.size // 2)
    raw = (known * light).sum(0)
    raw[torch.from_numpy(np.random.default_rng(0).random(raw.shape) < 2e-3)] = 1.0
    given = (raw, torch.linalg.inv(SEEN), torch.linspace(0, 1, 257) ** (1 / 2.2))
    result = develop(*given)
    difference = float((result - develop.__wrapped__(*(x.double() for x in given))).abs().max())
    print(f"largest difference: {difference:.1e}")
    print(develop.polyblocks_report())

    both = (torch.cat([known * raw ** (1 / 2.2), result], dim=2) * 255).permute(1, 2, 0)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.round().to(torch.uint8).numpy()).save(args.out)
    return 0 if difference < 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())

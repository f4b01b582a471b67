"""A small convolutional network in PyTorch learns to take noise off a photograph.

Forward and backward pass of the training are compiled; the trained network is then applied to a
part of the photograph that it has not seen. Writes the noisy and the cleaned part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from skimage import data
from torch import nn

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


@polyblocks_jit_torch(compile_options={"target": "cpu", "strict_target": True})
class Denoiser(nn.Module):
    """Four convolutions that predict the noise in images (n, 3, height, width)."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU()]
        for _ in range(2):
            layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
        self.noise = nn.Sequential(*layers, nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """The image without what is taken for noise."""
        return image - self.noise(image)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and apply; the exit status is 1 if the error did not go down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("out/torch_denoise.png"))
    args = parser.parse_args(arguments)

    torch.manual_seed(0)
    photograph = torch.from_numpy(data.astronaut().astype(np.float32) / 255).permute(2, 0, 1)
    seen, unseen = photograph[:, 256:], photograph[:, : args.size, 140 : 140 + args.size]
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(args.steps):
        corners = torch.randint(0, 256 - 32, (8, 2)).tolist()
        clean = torch.stack([seen[:, y : y + 32, x : x + 32] for y, x in corners])
        loss = (model(clean + 0.12 * torch.randn_like(clean)) - clean).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: mean square error {loss.item():.4f}")

    noisy = unseen + 0.12 * torch.randn_like(unseen)
    with torch.no_grad():
        cleaned = model(noisy[None])[0]
    before, after = (float((x - unseen).square().mean()) for x in (noisy, cleaned))
    print(f"mean square error {before:.4f} -> {after:.4f}")
    print(model.polyblocks_report())

    both = (torch.cat([noisy, cleaned], dim=2).clamp(0, 1) * 255).permute(1, 2, 0)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(both.round().to(torch.uint8).numpy()).save(args.out)
    return 0 if after < before else 1


if __name__ == "__main__":
    sys.exit(main())

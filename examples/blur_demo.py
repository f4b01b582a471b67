"""The demo: a photograph blurred by generated code, against PyTorch eager and Inductor.

Run ``make demo``, or ``python examples/blur_demo.py --help``. Writes ``before.png``, ``after.png``
and ``detail.png`` (the same crop of both, enlarged), and prints one table.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table

from polyblocks.cache.cache import default_cache
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bench import measure, peers

height = width = 2048

#: The compiled result may be off by this much from float64; pixels are 0 to 1.
MAX_ERROR = 1e-5


@polyblocks_jit_torch(compile_options={'target': 'cpu'})  # fmt: skip
def blur_x_blur_y(img):
    kernel = torch.tensor([0.0625, 0.25, 0.375, 0.25, 0.0625], device=img.device).float()
    blur_kernel = kernel.view(1, 1, 1, 5)
    img_reshaped = img.view(3, 1, height, width)
    blurx = torch.nn.functional.conv2d(img_reshaped, blur_kernel, stride=1, padding=0)
    blur_kernel = kernel.view(1, 1, 5, 1)
    blury = torch.nn.functional.conv2d(blurx, blur_kernel, stride=1, padding=0)
    return blury.view(3, height - 4, width - 4)


def photograph(size: int) -> torch.Tensor:
    """scikit-image's astronaut (NASA, public domain), enlarged: float32, 3 x size x size, 0 to 1.

    The picture lies inside scikit-image's wheel. Every pixel becomes a block of equal ones, so
    that a blur of five taps shows.
    """
    from skimage import data

    small = data.astronaut()
    times = -(-size // min(small.shape[:2]))
    large = small.repeat(times, axis=0).repeat(times, axis=1)[:size, :size]
    return torch.from_numpy(large.astype(np.float32) / 255).permute(2, 0, 1).contiguous()


def save(image: torch.Tensor, path: Path) -> None:
    """Write a 3 x H x W image of values from 0 to 1 as a PNG."""
    pixels = (image.permute(1, 2, 0).clamp(0, 1) * 255).round().to(torch.uint8)
    Image.fromarray(pixels.numpy()).save(path)


def detail(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """The same crop of both, side by side, each pixel enlarged eight times."""
    size = min(64, after.shape[-1])
    top, left = int(after.shape[-2] * 0.18), int(after.shape[-1] * 0.40)
    top, left = min(top, after.shape[-2] - size), min(left, after.shape[-1] - size)
    # The blurred picture is two pixels short at each end.
    crops = [
        image[:, top + shift : top + shift + size, left + shift : left + shift + size]
        for image, shift in ((before, 2), (after, 0))
    ]
    return torch.cat(crops, dim=2).repeat_interleave(8, dim=1).repeat_interleave(8, dim=2)


def table(timings: Sequence[measure.Timing], floor_bytes: int, moved_bytes: int) -> Table:
    """One row per peer.

    Args:
        timings: with one called ``copy`` and one called ``polyblocks``; others may not have run.
        floor_bytes: input plus output.
        moved_bytes: what our kernels move.
    """
    by_name = {timing.peer: timing for timing in timings}
    ours, copy = by_name["polyblocks"], by_name["copy"]
    rows = Table(
        title=f"blur_x_blur_y, 3 x {height} x {width} float32, {torch.get_num_threads()} threads",
        caption=(
            "first call: captured, compiled and run, with imports warm and caches empty. "
            "ratio: minimum over the minimum of ours. max error: against float64. "
            f"floor: input and output moved once, at the {floor_bytes / copy.minimum / 1e9:.1f} "
            "GB/s (read + written) that a copy reaches in the same rounds."
        ),
    )
    rows.add_column("", no_wrap=True)
    titles = (
        "first call s",
        "min ms",
        "median ms",
        "ratio",
        "max error",
        "MiB moved",
        "% of floor",
    )
    for title in titles:
        rows.add_column(title, justify="right")
    for timing in timings:
        if timing.problem:
            rows.add_row(timing.peer, "not run", *[""] * (len(titles) - 1))
            continue
        moved = {"polyblocks": moved_bytes, "copy": floor_bytes}.get(timing.peer)
        rows.add_row(
            timing.peer,
            f"{timing.first_call:.2f}" if timing is not copy else "-",
            f"{timing.minimum * 1e3:.2f}",
            f"{timing.median * 1e3:.2f}",
            f"{timing.minimum / ours.minimum:.1f}",
            f"{timing.max_error:.1e}" if timing is not copy else "-",
            f"{moved / 2**20:.1f}" if moved else "-",
            f"{100 * copy.minimum / timing.minimum:.3g}",
        )
    return rows


def bytes_moved() -> int:
    """What the compiled program moves: arguments once, intermediates written and read.

    Read off the artifact in the cache, which is this run's own.
    """
    manifests = [entry.read().manifest for entry in default_cache().entries()]
    (manifest,) = (m for m in manifests if m.get("name") == "blur_x_blur_y")
    sizes = {"input": 1, "output": 1, "workspace": 2, "status": 0}
    return sum(
        sizes[row["role"]] * math.prod(row["shape"]) * np.dtype(row["dtype"]).itemsize
        for row in manifest["arguments"]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit status is 1 if the result is wrong or anything fell back."""
    global height, width
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=2048, help="height and width (default: 2048)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of timing (default: 5)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the pictures")
    args = parser.parse_args(arguments)
    height = width = args.size

    console = Console()
    if not console.is_terminal:
        console = Console(width=140)
    image = photograph(args.size)
    # The first calls compile: nobody is to find the work of an earlier run in a cache.
    with tempfile.TemporaryDirectory(prefix="blur-demo-") as caches:
        os.environ["POLYBLOCKS_CACHE_DIR"] = f"{caches}/polyblocks"
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{caches}/inductor"
        return compare(image, args.rounds, args.out, console)


def compare(image: torch.Tensor, rounds: int, out: Path, console: Console) -> int:
    """Time everybody, write the pictures, print the table and what was compiled."""
    plain: Callable[..., torch.Tensor] = blur_x_blur_y.__wrapped__
    with torch.no_grad():
        expected = measure.blur_reference(image.double())
        contestants = [
            peers.eager(plain),
            peers.inductor(plain),
            peers.polyblocks(blur_x_blur_y),
            peers.copy(image.nbytes + expected.nbytes // 2),
        ]
        timings = measure.compare(contestants, (image,), expected, rounds=rounds)
        result = blur_x_blur_y(image)
    report = blur_x_blur_y.polyblocks_report()

    out.mkdir(parents=True, exist_ok=True)
    save(image, out / "before.png")
    save(result, out / "after.png")
    save(detail(image, result), out / "detail.png")
    floor_bytes = image.nbytes + result.nbytes
    console.print(table(timings, floor_bytes, bytes_moved()))
    for timing in timings:
        if timing.problem:
            console.print(f"{timing.peer} did not run: {timing.problem}", highlight=False)
    console.print(str(report), highlight=False, markup=False)
    console.print(f"wrote {out}/before.png, {out}/after.png and {out}/detail.png", highlight=False)

    ours = next(t for t in timings if t.peer == "polyblocks")
    if not report.whole:
        print("error: not everything was compiled; the lines above say why", file=sys.stderr)
        return 1
    if not ours.max_error <= MAX_ERROR:
        print(f"error: off by {ours.max_error:g} from float64", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

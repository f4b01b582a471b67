"""`polyblocks bisect` finds nothing in what the unmodified pipeline makes of PyTorch programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from sweeps import sweep

from polyblocks.bisect import command
from polyblocks.bisect.collect import collect_folder, dumping, folders_of
from polyblocks.bisect.search import Settings, search
from polyblocks.options import CompileOptions
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

pytestmark = pytest.mark.cpu

Arrays = tuple[torch.Tensor, ...]


def blur(x: torch.Tensor) -> torch.Tensor:
    kernel = torch.tensor([0.0625, 0.25, 0.375, 0.25, 0.0625])
    rows = F.conv2d(x.view(3, 1, 9, 11), kernel.view(1, 1, 1, 5))
    return F.conv2d(rows, kernel.view(1, 1, 5, 1)).view(3, 5, 7)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (17,), w, b)


def cumsum(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x * 2, 1)


def gather(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return torch.gather(x, 1, i) + x[i[0]].sum()


def integers(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a * 3 - b // 4) % 7 + (a << 1)


def booleans(x: torch.Tensor, m: torch.Tensor) -> Arrays:
    return (x > 0.5) & m, (x > 0).any(1)


def several(x: torch.Tensor) -> Arrays:
    y = torch.sin(x)
    return y.t(), y.sum(0), x.argmax(1), torch.amax(y, (0, 1))


def in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.mul_(y)
    return x.t().exp()


def halves(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x + y.to(torch.float16)) * 2


N = torch.zeros
I64 = torch.int64
PROGRAMS: dict[Callable[..., object], Arrays] = {
    blur: (N(3, 9, 11),),
    softmax: (N(5, 17),),
    layer_norm: (N(5, 17), N(17), N(17)),
    cumsum: (N(5, 17),),
    gather: (N(8, 9), N(8, 3, dtype=I64)),
    integers: (N(5, 17, dtype=torch.int32), N(17, dtype=torch.int32)),
    booleans: (N(5, 17), N(5, 17, dtype=torch.bool)),
    several: (N(5, 17),),
    in_place: (N(5, 17), N(5, 1).expand(5, 17)),
    halves: (N(5, 17, dtype=torch.float16), N(17, dtype=torch.bfloat16)),
}


#: Of these every module is run; of the others, to save time, those that a search needs.
THOROUGH = (blur, several)


@pytest.mark.parametrize(
    "function", sweep(PROGRAMS, softmax, gather, booleans), ids=lambda f: f.__name__
)
def test_nothing_is_found(function: Callable[..., object], tmp_path: Path) -> None:
    with dumping(tmp_path):
        compiled = polyblocks_jit_torch(compile_options={"strict_target": True})(function)
        compiled(*(x.clone() for x in PROGRAMS[function]))
    folders = folders_of(tmp_path)
    assert folders
    for folder in folders:
        settings = Settings(all_passes=function in THOROUGH)
        result = search(collect_folder(folder, CompileOptions(), tmp_path), settings)
        assert result.suspects == [], command.verdict(result)
        assert result.kinds == ["plain", "wide", "special"]
        assert [row.status for row in result.rows[-2:]] in (["ok", "ok"], ["unchanged", "ok"])
        assert "not runnable" not in {row.status for row in result.rows}

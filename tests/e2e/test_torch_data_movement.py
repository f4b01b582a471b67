"""Pads, slices, concatenations and their kin against eager execution."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from sweeps import sweep

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return polyblocks_jit_torch(function, compile_options={"strict_target": True})


def numbers(*shape: int) -> torch.Tensor:
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)


def overwritten_interior(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    u = u.clone()
    u[1:-1, 1:-1] = v
    return u


def overwritten_twice(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    u = u.clone()
    before = u[2:-2] * 1
    u[1:-1, 1:-1] = v
    u[2:-2] += before
    return u


def part_that_others_read(x: torch.Tensor) -> torch.Tensor:
    rows = torch.softmax(x, 1)
    return torch.cat([rows, rows[:, :3] * 2, x, rows.sum(1, keepdim=True)], 1)


def same_part_twice(x: torch.Tensor) -> torch.Tensor:
    part = torch.cumsum(x, 0)
    return torch.cat([part, part, part.T.reshape(part.shape)], 0)


def dense_block(x: torch.Tensor) -> torch.Tensor:
    for k in range(3):
        x = torch.cat([x, (x * x).sum(1, keepdim=True) + k], 1)
    return x


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "pad slice cat": (
        lambda x, y, z: torch.cat([F.pad(x, (1, 2, 3, 4)), y[:, 2:9], z], 1),
        [(13, 8), (20, 11), (20, 5)],
    ),
    "cat of cats": (
        lambda x, y: torch.cat([torch.cat([x, y], 0), torch.cat([y, x * 2], 0)], 1),
        [(3, 4), (5, 4)],
    ),
    "overwritten interior": (overwritten_interior, [(9, 11), (7, 9)]),
    "overwritten twice": (overwritten_twice, [(9, 11), (7, 9)]),
    "part that others read": (part_that_others_read, [(6, 7)]),
    "same part twice": (same_part_twice, [(6, 6)]),
    "dense block": (dense_block, [(5, 4)]),
    "pad of a pad": (lambda x: F.pad(F.pad(x, (1, 1), value=2.0), (2, 0, 1, 3)), [(4, 5)]),
    "cropping pad": (lambda x: F.pad(x, (-1, 2, 1, -2)), [(6, 7)]),
    "roll": (lambda x: torch.roll(x, (3, -5), (0, 1)), [(7, 11)]),
    "flip": (lambda x: x.flip(0, 1) + x, [(7, 11)]),
    "rot90": (lambda x: torch.rot90(x, 1, (0, 1)) * 2, [(7, 11)]),
    "reflect": (lambda x: F.pad(x, (3, 2, 4, 1), mode="reflect"), [(2, 3, 7, 9)]),
    "replicate": (lambda x: F.pad(x, (3, 2, 4, 1), mode="replicate"), [(2, 3, 7, 9)]),
    "circular": (lambda x: F.pad(x, (3, 2, 4, 1), mode="circular"), [(2, 3, 7, 9)]),
    "replicate crops": (lambda x: F.pad(x, (3, -2), mode="replicate"), [(2, 3, 9)]),
    "replicate crops all": (lambda x: F.pad(x, (-4, 6), mode="replicate"), [(2, 3, 3)]),
    "stack": (lambda x, y: torch.stack([x, y * 2, x], 1), [(5, 6), (5, 6)]),
    "split": (
        lambda x: torch.cat([p * (k + 1) for k, p in enumerate(x.split([2, 3, 4], 1))], 1),
        [(5, 9)],
    ),
    "unfold": (lambda x: x.unfold(1, 4, 2) * 1, [(5, 12)]),
    "pixel shuffle": (lambda x: F.pixel_shuffle(x, 3) + 1, [(2, 18, 4, 5)]),
    "pixel unshuffle": (lambda x: F.pixel_unshuffle(x, 2) + 1, [(2, 3, 4, 6)]),
    "slice scatter": (
        lambda x, y: torch.slice_scatter(x, y, 1, 2, 9, 3),
        [(5, 12), (5, 3)],
    ),
    "select scatter": (lambda x, y: torch.select_scatter(x, y, 1, 2), [(5, 12), (5,)]),
    "index copy": (
        lambda x, y: x.index_copy(0, torch.tensor([3, 1]), y),
        [(5, 12), (2, 12)],
    ),
    "nothing to add": (lambda x, y: torch.cat([x, y], 1), [(4, 3), (4, 0)]),
}


@pytest.mark.parametrize(
    "name",
    sweep(
        PROGRAMS,
        "pad slice cat",
        "cat of cats",
        "overwritten interior",
        "overwritten twice",
        "part that others read",
        "dense block",
        "pad of a pad",
        "cropping pad",
        "roll",
        "flip",
        "reflect",
        "replicate",
        "replicate crops all",
        "stack",
        "unfold",
        "pixel shuffle",
        "slice scatter",
        "index copy",
        "nothing to add",
    ),
)
def test_equals_eager(name: str) -> None:
    function, shapes = PROGRAMS[name]
    inputs = [numbers(*shape) / 7 for shape in shapes]
    torch.testing.assert_close(compiled(function)(*inputs), function(*inputs))


@pytest.mark.simulated
def test_what_is_read_of_an_empty_tensor_is_set_later() -> None:
    """The simulator would find reads of what nobody has written."""

    def framed(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(6, 8)
        out[1:-1, 2:-2] = x
        out[0], out[-1] = out[1], out[2]
        out[:, :2], out[:, -2:] = 1, 2
        return out.relu().sum(0)

    torch.manual_seed(0)
    convolution = torch.nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular")
    with torch.no_grad():
        for function, x in [(framed, numbers(4, 4)), (convolution, torch.rand(2, 3, 5, 7))]:
            torch.testing.assert_close(compiled(function)(x), function(x))


def test_large_parts_are_copied_exactly() -> None:
    x, y, z = numbers(1022, 510), numbers(1024, 600), numbers(1024, 512)

    def join(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return torch.cat([F.pad(x, (1, 1, 1, 1)), y[:, 40:552], z], 1)

    function = compiled(join)
    torch.testing.assert_close(function(x, y, z), join(x, y, z), rtol=0, atol=0)


def some_program(seed: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """A chain of eight movements of two tensors and of what has become of them so far."""
    choices = random.Random(seed)
    steps = [(choices.randrange(8), choices.randrange(1000)) for _ in range(8)]

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        have = [x, y]
        for kind, number in steps:
            a, b = have[number % len(have)], have[number // 7 % len(have)]
            rows, columns = min(a.shape[0], b.shape[0]), min(a.shape[1], b.shape[1])
            top, left = number % rows, number // 3 % columns
            if kind == 0:
                new = torch.cat([a[:rows], b[:rows]], 1)
            elif kind == 1:
                new = torch.cat(
                    [a[:, :columns], b[:, left:columns].sum(1, True).expand(-1, columns)]
                )
            elif kind == 2:
                new = F.pad(a, (number % 3, number % 2, number % 4, 1), value=number)
            elif kind == 3:
                new = a.clone()
                new[top:rows, left:columns] = b[top:rows, left:columns] * 2
            elif kind == 4:
                new = torch.roll(a, (number % 5, number % 3), (0, 1))
            elif kind == 5:
                new = a.flip(number % 2) + 1
            elif kind == 6:
                new = a[top:, left:] * 1
            else:
                new = torch.stack([a[:rows, :columns], b[:rows, :columns]], 1).flatten(0, 1)
            have.append(new[:40, :40])
        return torch.cat([h.reshape(-1) for h in have])

    return program


@pytest.mark.parametrize("seed", sweep(range(8), 0, extended=[1]))
def test_random_compositions(seed: int) -> None:
    program = some_program(seed)
    x, y = numbers(9, 13) / 7, numbers(12, 8) / 3
    torch.testing.assert_close(compiled(program)(x, y), program(x, y))

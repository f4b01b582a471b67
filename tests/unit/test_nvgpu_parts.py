"""PTX of a large program is written by several processes, and is the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import polyblocks
from polyblocks_nvgpu import emit, ptxas

PARTS = [
    """//
.version 7.0
.target sm_80
.address_size 64

.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .b8 table[8] = {1, 2};

.visible .entry first()
{
	ret;
}
""",
    """//
.version 7.0
.target sm_80
.address_size 64

.extern .shared .align 16 .b8 dynamic[];
.global .align 4 .b8 other[4];
.global .align 4 .b8 table[8] = {1, 2};

.visible .entry second()
{
	ret;
}
""",
]


def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Several kernels, each of the one before, two of which read constants of one value."""
    table = torch.tensor([1.5, -2.0, 3.25, 0.5, 9.0])
    sums = torch.softmax(table[x.long().clamp(0, 4)], -1).cumsum(0)
    products = sums @ sums.mT
    most = products.amax(0)
    return sums, products, most, table.flip(0)[most.long().clamp(0, 4)].cumsum(0)


def entries(text: str) -> dict[str, str]:
    """Kernels by name, without the numbers of their blocks."""
    found = {}
    for kernel in text.split(".visible .entry ")[1:]:
        name, _, rest = kernel.partition("(")
        found[name] = re.sub(r"L__BB[0-9]+_", "", rest[: rest.index("\n}")])
    return found


def test_what_stands_before_kernels_stands_there_once() -> None:
    text = emit.joined(PARTS)
    for line in (".version 7.0", ".extern .shared", ".b8 table[8]", ".b8 other[4]"):
        assert text.count(line) == 1
    assert list(entries(text)) == ["first", "second"]
    # A kernel that is assembled alone gets what stands before all.
    assert text.index("other[4]") < text.index("first()") < text.index("second()")


@pytest.mark.extended
@pytest.mark.parametrize("parts", [2, 3])
def test_kernels_are_the_same_in_parts(
    parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_ISOLATE", "0")
    texts, codes = [], []
    for number in (1, parts):
        monkeypatch.setattr(emit, "parts_for", lambda _, number=number: number)
        monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path / str(number)))
        torch._dynamo.reset()
        options = {"target": "nvgpu", "arch": "sm_80"}
        artifact = polyblocks.aot(program, [torch.zeros(40, 40)], options, frontend="torch")
        texts.append(artifact.blobs["kernels.sm_80.ptx"].decode())
        codes.append(artifact.blobs.get("kernels.sm_80.cubin"))
    whole, split = map(entries, texts)
    assert len(whole) > 3
    assert list(whole) != list(split)
    assert whole == split
    assembler = ptxas.find()
    if assembler is not None and "sm_80" in ptxas.architectures(assembler):
        assert all(codes)

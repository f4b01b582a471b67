"""Machine code for Hopper: units of several warps that the assembler leaves asynchronous."""

from __future__ import annotations

from typing import Any

import pytest
from bench.gpu_static import cases, sass
from bench.gpu_static.build import build
from bench.gpu_static.instructions import Kind, Wait
from bench.gpu_static.loops import split
from tests.support.sweeps import sweep

from polyblocks_nvgpu import ptxas

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(ptxas.find() is None, reason="no ptxas"),
]

#: How the assembler's notes begin that say it has put calls in order, and waits behind each.
SERIALIZED = "C75"
#: A case of each program: one that is compiled already is not assembled again.
CASES = {
    each.program or each.name: each
    for group in ("products", "resnet-50", "attention")
    for each in cases.GROUPS[group]
}
CHOSEN = (
    next(name for name in CASES if "float16 8192x" in name),
    next(name for name in CASES if "3x3 /1 128->128" in name),
    # The assembler has too few registers for what it would compute ahead.
    next(name for name in CASES if "1x1 /2 256->512" in name),
    next(name for name, each in CASES.items() if each.group == "attention"),
)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the assembler says."""
    found: list[str] = []
    run = ptxas.run_tool

    def heard(*given: Any) -> Any:
        code, text = run(*given)
        found.append(text)
        return code, text

    monkeypatch.setattr(ptxas, "run_tool", heard)
    return found


def waits_for_all(instructions: Any) -> bool:
    """Whether it waits until no group of products is under way."""
    return any(Wait("gsb0", 0) in each.waits for each in instructions)


@pytest.mark.parametrize("name", sweep(list(CASES), *CHOSEN))
def test_units_of_several_warps_stay_asynchronous(name: str, said: list[str]) -> None:
    launches = build(CASES[name], "sm_90a")
    assert "Compiling entry function" in "".join(said)
    assert not [line for text in said for line in text.splitlines() if SERIALIZED in line]
    for each in launches:
        resources = each.row["resources"]
        assert (resources["spill_bytes"], resources["stack_bytes"]) == (0, 0)
        loop = split(each.code).loop
        products = [at for at, i in enumerate(loop) if i.kind is Kind.MATRIX and i.asynchronous]
        # Those of attention are waited for one by one: what follows computes with their sums.
        if products and CASES[name].group != "attention":
            # Behind the last one a tile ends, in a loop over tiles.
            assert not waits_for_all(loop[products[0] : products[-1]])


@pytest.mark.parametrize(
    ("size", "overlaps", "groups"), [("32x2048x64", True, 3), ("16x4096x128", False, 2)]
)
def test_weights_are_computed_under_the_products_of_the_block_before(
    size: str, overlaps: bool, groups: int
) -> None:
    """Where what is between both products takes longer than these: of heads of 64."""
    (launch,) = build(CASES[f"attention float16 {size}"], "sm_90a")
    assert launch.launch.threads == 128 * (groups + 1)
    loop = split(launch.code).loop
    powers = [at for at, each in enumerate(loop) if each.name.startswith("MUFU.EX2")]
    waits = [at for at, each in enumerate(loop) if waits_for_all((each,))]
    last = max(at for at, each in enumerate(loop) if each.kind is Kind.MATRIX)
    end = min((at for at in waits if at > last), default=last)
    under = [at for at in powers if last < at < end]
    # Those that rows are scaled by may come later.
    assert len(under) >= len(powers) - 2 if overlaps else not under


def test_a_wait_in_a_loop_is_found() -> None:
    """As the assembler writes it where it puts calls in order."""
    product = sass.instruction("HGMMA.64x256x16.F32", 0)
    wait = sass._instruction("WARPGROUP.DEPBAR.LE gsb0, 0x0", 0)
    one = sass._instruction("WARPGROUP.DEPBAR.LE gsb0, 0x1", 0)
    assert waits_for_all((product, wait, product))
    assert not waits_for_all((product, one, product))

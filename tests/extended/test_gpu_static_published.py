"""The tables of chips and the static model against what others have measured."""

from __future__ import annotations

import pytest
from bench.gpu import published
from bench.gpu_static import against, page
from bench.gpu_static.__main__ import main
from bench.gpu_static.against import Compared


@pytest.fixture(scope="module")
def groups() -> dict[str, list[Compared]]:
    return against.everything()


def test_there_are_enough_measurements_with_sources() -> None:
    rows = (
        *published.RATES,
        *published.KERNELS,
        *published.ATTENTION,
        *published.LIBRARIES,
    )
    assert len(rows) >= 20
    assert all(row.source.title and row.source.url and row.source.authors for row in rows)
    assert len({row.chip for row in rows}) >= 8


def test_rates_of_instructions(groups: dict[str, list[Compared]]) -> None:
    assert [row for row in groups["instructions"] if not row.holds] == []


def test_times_of_kernels(groups: dict[str, list[Compared]]) -> None:
    assert [row.name for row in groups["kernels"] if not row.holds] == []
    ladder = [row for row in groups["kernels"] if row.name.startswith("sm_90a-boxes")]
    # Six techniques by four sizes, and two smaller tiles by two of these.
    assert len(ladder) == 28
    assert all(row.tolerance == 0.15 for row in ladder)


def test_times_of_attention(groups: dict[str, list[Compared]]) -> None:
    rows = groups["attention"]
    assert [row.name for row in rows if not row.holds] == []
    for name in ("flash-attention", "triton-attention"):
        found = [row for row in rows if name in row.name]
        assert any(row.chip.startswith("a100") for row in found)
        # A causal one is predicted slower for its operations, as it was measured.
        assert any("causal" in row.name for row in found)
    assert against.misordered(rows) == []
    groups_of_warps = [row for row in rows if "sm_90a" in row.name]
    assert len(groups_of_warps) == 5
    assert all(0.85 <= row.ratio <= 1.15 for row in groups_of_warps)


def test_kernels_are_in_the_order_of_their_measured_rates(
    groups: dict[str, list[Compared]],
) -> None:
    assert against.misordered(groups["kernels"]) == []


def test_no_library_exceeds_the_described_peak(groups: dict[str, list[Compared]]) -> None:
    for row in groups["libraries, against the described peak"]:
        assert row.holds, row
        # And none of the described ones is beyond anything that was ever reached.
        assert row.measured > 0.4 * row.predicted, row


def test_our_rows_are_those_of_the_results() -> None:
    import json

    path = against.LISTINGS.parents[1] / "results" / "2026-11-26-nvidia-h100-80gb-hbm3.json"
    measured = {}
    for case in json.loads(path.read_text())["cases"]:
        (ours,) = (row for row in case["peers"] if row["peer"] == "polyblocks")
        measured[case["case"]] = ours["minimum"]
    for row in published.KERNELS:
        if row.chip == "h100":
            name = "a @ b.T" if row.listing.endswith("rows") else "a @ b"
            case = f"{name} float16 {'x'.join(map(str, row.extents))}"
            assert row.milliseconds == pytest.approx(measured[case] * 1e3, rel=2e-3)


def test_pairs_in_the_wrong_order() -> None:
    def row(chip: str, measured: float, predicted: float) -> Compared:
        return Compared(chip, "", measured, predicted, "TFLOP/s", 0.25, "")

    slow, fast = row("a", 100, 90), row("a", 120, 80)
    assert against.misordered([slow, fast]) == [(slow, fast)]
    assert against.misordered([slow, row("a", 110, 80)]) == []
    assert against.misordered([slow, row("b", 120, 80)]) == []


def test_the_page(capsys: pytest.CaptureFixture[str], groups: dict[str, list[Compared]]) -> None:
    text = page.published(groups)
    assert "| rx-7900-xtx: float16 into float32 (stated) | 32.0 | 32.0 | clocks |" in text
    assert "In the wrong order:\n\n- none" in text
    assert main(["--published"]) == 0
    assert capsys.readouterr().out.strip() == text.strip()

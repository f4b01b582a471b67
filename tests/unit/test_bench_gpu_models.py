"""The benchmark of whole models on GPUs by prediction: counting, products, and its page."""

from __future__ import annotations

import pytest
from bench.gpu_models import __main__ as command
from bench.gpu_models import page, published, zoo
from bench.gpu_models.predicted import moved, of_memory, problem
from bench.gpu_models.worker import period
from bench.gpu_static.build import describe
from bench.gpu_static.instructions import Code, Instruction, Kind
from bench.gpu_static.loops import phases

KERNEL = {
    "name": "mm", "kind": "contraction", "calls": 12, "seconds": 1e-5, "floor": 5e-6,
    "bound": "schedule", "extents": [[128, 768, 768, 1]], "tile": [32, 32, 64], "blocks": 96,
    "private": 0,
}  # fmt: skip
ROW = {
    "model": "BERT-base 128", "batch": 1, "arch": "sm_80", "launches": 87, "layer": 7,
    "seconds": 3.81e-4, "between": 2.61e-4, "floor": 6e-5, "moved": 300, "compulsory": 200,
    "memory": 210, "workspace": 1e6, "artifact": 1000, "compile": 60.0, "processor": 14.0,
    "kernels": [KERNEL],
}  # fmt: skip


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["e", *"abcabcabcabc", "h"], 3),
        (["a"] * 6, 0),
        (list("abcdefgh"), 0),
        ([], 0),
    ],
)
def test_launches_of_a_layer(names: list[str], found: int) -> None:
    assert period(names) == found


def test_a_layer_may_be_one_launch() -> None:
    assert period(["e", *"a" * 11, "b", "h"], 12) == 1
    assert period(["e", *"ab" * 12], 12) == 2


def test_kernels_of_a_launch_end_where_blocks_are_counted() -> None:
    counted = ["BAR.SYNC", "MEMBAR.ALL.GPU", "RED.E.ADD.STRONG.GPU"]
    names = ["HMMA", *counted, "LDG", "HMMA", *counted]
    names += ["ATOMG.E.OR", "BAR.SYNC", "STG"]
    kinds = [Kind.BARRIER if name == "BAR.SYNC" else Kind.CONTROL for name in names]
    code = Code("k", tuple(map(Instruction, names, kinds)), {"a": 5, "b": 0, "c": 9})
    found = phases(code)
    assert [[i.name for i in each.instructions] for each in found] == [
        ["HMMA"],
        ["LDG", "HMMA"],
        ["STG"],
    ]
    assert [each.labels for each in found] == [{"b": 0}, {"a": 1}, {}]


def test_products_side_by_side_are_one() -> None:
    nests = [{"extents": [128, 768, 512, 1], "tile": [1]}, {"extents": [128, 256, 512, 1]}]
    found = problem(nests, 10.0)
    assert (found.rows, found.columns, found.steps) == (128, 1024, 512)
    assert found.products == 128 * 1024 * 512


def test_tiles_read_operands_again() -> None:
    nest = {"extents": [128, 96, 10, 2], "tile": [64, 32, 16]}
    assert moved([nest], 100.0) == 100 + 2 * 2 * 10 * (96 * 1 + 128 * 2)
    assert moved([nest | {"causal": False}], 100.0) == 100 + 2 * 2 * 10 * 96


def test_chains_have_sequences() -> None:
    found = problem([{"extents": [128, 128, 128, 12], "causal": True, "tile": [1]}], 10.0)
    assert (found.rows, found.sequence, found.causal) == (12 * 128, 128, True)


def test_the_page_says_which_bars_are_missed() -> None:
    text = page.markdown({"date": "2026-11-30", "rows": [ROW]})
    assert "| BERT-base 128 | 87 | 7 | 6 missed | 381 | 261 | 60 | 0.50 | 1.50 | 1.05 |" in text
    assert "128x768x768" in text
    assert page.reach(ROW) == pytest.approx(0.5)


def test_the_page_compares_with_what_others_measured() -> None:
    text = page.markdown({"date": "2026-11-30", "rows": [ROW]})
    assert "| BERT-base 128 | TensorRT | 670 | 381 | 0.57 |" in text
    assert page.markdown({"date": "2026-11-30", "rows": [ROW | {"arch": "x"}]}).count("\n## ") == 1


def test_citations_are_of_models_of_the_table() -> None:
    sources = {time.source.url for time in published.TIMES}
    assert len(sources) >= 5
    assert {time.model for time in published.TIMES} <= zoo.MODELS.keys()
    assert all(url.startswith("https://") for url in sources)


def test_five_times_at_least_are_of_inductor() -> None:
    assert sum(time.system == "Inductor" for time in published.TIMES) >= 5


def test_memory_moves_what_the_last_cache_does_not_hold() -> None:
    target = describe("sm_80")
    small, large = [256, 256, 256, 1], [256, 65536, 1024, 1]
    product = {"tile": [128, 128, 64], "compulsory": 1e9, "moved": 5e9}
    assert of_memory(product | {"extents": [small]}, target) == 1e9
    # All columns for each row of tiles, or once for those that are computed together.
    again = 2 * 1024 * 65536
    assert of_memory(product | {"extents": [small, large]}, target) == 1e9 + again
    assert of_memory(product | {"extents": [large], "row_tiles": 2}, target) == 1e9
    # Rows that are too large for the cache, too, come for each column of tiles.
    deep = [256, 65536, 131072, 1]
    product |= {"compulsory": 1e12}
    assert of_memory(product | {"extents": [deep]}, target) == 1e12 + 2 * 131072 * 65536
    together = product | {"extents": [deep], "row_tiles": 2}
    assert of_memory(together, target) == 1e12 + 2 * 131072 * 256 * 511
    # Rows that are gathered bring parts of sectors that nobody reads, wherever they come from.
    assert of_memory({"extents": [], "compulsory": 10, "moved": 13}, target) == 13


def test_a_row_without_a_result_says_why() -> None:
    row = {"model": "U-Net", "batch": 1, "arch": "sm_80", "problem": "no answer"}
    assert "no answer" in page.markdown({"date": "2026-11-30", "rows": [row]})
    assert page.line(row) == "U-Net, batch 1, sm_80: no answer"


def test_unknown_models_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "nothing"]) == 1
    assert "no model is called 'nothing'; there are ResNet-50" in capsys.readouterr().out


def test_models_have_inputs_of_their_batch() -> None:
    for model in zoo.MODELS.values():
        assert any(x.shape[:1] == (3,) for x in model.inputs(3))

"""The sweep of operations on GPUs: floors, rows and the page, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from bench.gpu_operations import cases, page, reasons
from bench.gpu_operations.__main__ import KEYS, main
from bench.gpu_operations.cases import gradients_of
from bench.gpu_operations.floor import SMALLEST_KERNEL, floor
from bench.gpu_operations.traffic import is_elementwise
from bench.gpu_static.build import describe
from torch.nn import functional

GIGA = 1 << 30


def test_there_are_many_and_none_twice() -> None:
    names = [each.name for each in cases.operations()]
    assert len(names) >= 500
    assert len(set(names)) == len(names)


def test_floors() -> None:
    target = describe("h200")
    large = torch.empty(GIGA // 4)
    least = floor(lambda x: x + 1, [large], target)
    assert (least.bytes, least.flops) == (2 * GIGA, 0)
    assert least.seconds == pytest.approx(2 * GIGA / target.memory[-1].bandwidth)
    halves = torch.empty(4096, 4096, dtype=torch.float16)
    least = floor(torch.mm, [halves, halves], target)
    assert least.flops == 2 * 4096**3
    rates = [unit.flops for unit in target.matrix_units if unit.operands == "float16"]
    assert least.seconds == pytest.approx(least.flops / max(rates))
    assert floor(torch.neg, [torch.empty(3)], target).seconds == SMALLEST_KERNEL


def test_floors_of_products_that_pytorch_does_not_count() -> None:
    target = describe("h200")
    heads = [torch.empty(2, 3, n, 8) for n in (5, 7, 7)]
    attention = functional.scaled_dot_product_attention
    assert floor(attention, heads, target).flops == 2 * 2 * (2 * 3 * 5 * 7 * 8)
    gradients = floor(lambda *given: gradients_of(attention, given), heads, target)
    assert gradients.flops == 7 * 2 * (2 * 3 * 5 * 7 * 8)
    points = [torch.empty(n, 16) for n in (6, 9)]
    for p in (1.0, 2.0):
        assert floor(lambda x, y, p=p: torch.cdist(x, y, p), points, target).flops == 2 * 6 * 9 * 16
    assert floor(functional.pdist, points[:1], target).flops == 6 * 5 * 16
    given = [torch.empty(10, 4), torch.empty(10, 5), torch.empty(3, 4, 5)]
    assert floor(functional.bilinear, given, target).flops == 2 * 10 * 3 * (4 * 5 + 5)


def test_floors_of_factorizations() -> None:
    target = describe("h200")
    chip = target.multiprocessor
    assert chip is not None
    linalg, n = torch.linalg, 3000
    square, right = torch.empty(n, n), torch.empty(n, 5)
    once, reduced = chip.latencies.issue, chip.latencies.warp_reduce
    # All of the operations by all multiprocessors take longer than one column after the other.
    least = floor(linalg.cholesky, [square], target)
    assert least.flops == n**3 // 3
    assert least.seconds == pytest.approx(least.flops / target.flops["float32"])
    least = floor(linalg.lu_factor, [square[:320, :320]], target)
    assert least.flops == 320**3 - 320**3 // 3
    # A pivot is one of all rows; what a triangle of a few right-hand sides waits for is one row.
    assert least.seconds == pytest.approx(320 * (once + reduced))
    least = floor(lambda a, b: linalg.solve_triangular(a, b, upper=True), [square, right], target)
    assert (least.flops, least.seconds) == (5 * n * n, pytest.approx(n * (once + reduced / 5)))
    assert floor(torch.cholesky_solve, [right, square], target).flops == 10 * n * n
    assert floor(linalg.solve, [square, right], target).flops == n**3 - n**3 // 3 + 10 * n * n
    assert floor(linalg.inv, [square], target).flops == 2 * n**3
    assert floor(linalg.qr, [square[:, :5]], target).flops == 2 * (50 * n - 2 * 125 // 3)
    assert floor(lambda a: linalg.qr(a, "r").R, [square[:, :5]], target).flops == 50 * n - 83
    # Few columns, of many matrices: memory takes longest.
    many = torch.empty(1 << 20, 3, 3)
    least = floor(linalg.inv, [many], target)
    assert least.flops == 54 << 20
    assert least.seconds == pytest.approx(2 * many.nbytes / target.memory[-1].bandwidth, rel=1e-3)


def test_floors_of_what_has_to_be_read_again() -> None:
    target = describe("h200")
    memory = target.memory[-1].bandwidth
    large = [torch.empty(1 << 13, 1 << 14) for _ in range(2)]
    # A gradient that the value of the loss scales, and one of rows that a multiprocessor holds.
    loss = functional.mse_loss
    least = floor(lambda *given: gradients_of(loss, given), large, target)
    assert least.bytes == 6 * large[0].nbytes
    least = floor(lambda x: x / x.sum(-1, keepdim=True), large[:1], target)
    assert least.bytes == 2 * large[0].nbytes
    least = floor(lambda x: x / x.sum(), large[:1], target)
    assert (least.bytes, least.seconds) == (3 * large[0].nbytes, 3 * large[0].nbytes / memory)
    # A loss over all rows of a few numbers each.
    rows = torch.empty(1 << 15, 1000), torch.empty(1 << 15, dtype=torch.int64)
    least = floor(lambda *given: gradients_of(functional.cross_entropy, given), rows, target)
    assert 0 <= least.bytes - 3 * rows[0].nbytes - rows[1].nbytes <= 64
    # The last cache holds a smaller one.
    small = torch.empty(1 << 20)
    assert floor(lambda x: x / x.sum(), [small], target).bytes == 2 * small.nbytes


def test_floors_of_sums_at_run_time_places() -> None:
    target = describe("h200")
    into, rows = torch.empty(1 << 16, 512), torch.empty(1 << 12, 512)
    places = torch.empty(1 << 12, dtype=torch.int64)
    once = 2 * into.nbytes + rows.nbytes + places.nbytes
    least = floor(lambda x, i, y: x.index_add(0, i, y), [into, places, rows], target)
    assert least.bytes == once + 2 * rows.nbytes
    least = floor(lambda x, i, y: x.index_copy(0, i, y), [into, places, rows], target)
    assert least.bytes == once
    least = floor(lambda x, i, y: x.index_reduce(0, i, y, "amax"), [into, places, rows], target)
    assert least.bytes == once + 2 * rows.nbytes
    # A mean has numbers of updates beside the sums, and divides all elements at the end.
    each = torch.empty(rows.shape, dtype=torch.int64)
    once += each.nbytes - places.nbytes
    mean = [into, each, rows]
    least = floor(lambda x, i, y: x.scatter_reduce(0, i, y, "sum"), mean, target)
    assert least.bytes == once + 2 * rows.nbytes
    least = floor(lambda x, i, y: x.scatter_reduce(0, i, y, "mean"), mean, target)
    assert least.bytes == once + 4 * rows.nbytes + 2 * into.nbytes
    once += places.nbytes - each.nbytes
    # Places that are known.
    least = floor(lambda x, y: x.index_add(0, torch.arange(1 << 12), y), [into, rows], target)
    assert least.bytes == once - places.nbytes


def test_floors_of_rows_at_run_time_places() -> None:
    target = describe("h200")
    assert target.multiprocessor is not None
    near, cache = target.multiprocessor.shared, target.memory[-2].bandwidth
    assert cache is not None
    table, places = torch.empty(1 << 14, 64), torch.empty(1 << 20, dtype=torch.int64)
    for function in (
        lambda x, i: x.index_select(0, i).sum(0),
        lambda x, i: x[i].sum(0) + torch.ones_like(x[i][0]),
        lambda x, i: functional.embedding_bag(i.reshape(1, -1), x),
    ):
        least = floor(function, [table, places], target)
        rows = 256 * places.numel() * (1 - near / table.nbytes)
        assert least.seconds == pytest.approx((rows + places.nbytes) / cache, rel=1e-3)
    # A table that a multiprocessor holds, and columns.
    for x, dim in ((table[:512], 0), (table, 1)):
        least = floor(lambda x, i, d=dim: x.index_select(d, i).sum(), [x, places], target)
        assert least.seconds == pytest.approx(least.bytes / target.memory[-1].bandwidth)


def test_functions_of_single_elements() -> None:
    x = torch.empty(8, 8)
    assert is_elementwise(lambda *given: gradients_of(torch.pow, given), [x, x])
    assert is_elementwise(lambda x: x.exp() * 2, [x])
    assert not is_elementwise(lambda x: x.softmax(0), [x])
    assert not is_elementwise(lambda x: x.nonzero() + 1, [x])


def test_reasons() -> None:
    names = [each.name for each in cases.operations()]
    fitting = {text for name in names if (text := reasons.reason(name)) is not None}
    assert fitting == {text for _, text in reasons.REASONS}
    assert len(fitting) <= 20
    assert reasons.reason("add") is None
    slow = {"name": "cumsum, all", "floor": 1e-6, "predicted": 3e-6, "kernels": []}
    without = {**slow, "name": "add"}
    text = page.markdown({"date": "today", "arch": "h200", "rows": [slow, without]})
    assert "2 at more, 1 of these without a reason below" in text
    assert "| 1 | cumsum, all 3.00 |" in text


def test_rows_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--only", "cummax, 4096|logit, gradients", "--processes", "1", "--results"]
    assert main([*arguments, str(tmp_path)]) == 0
    (written,) = tmp_path.glob("*.json")
    rows = json.loads(written.read_text())["rows"]
    assert [row["name"] for row in rows] == ["cummax, 4096 rows of 1024", "logit, gradients"]
    for row in rows:
        assert row.keys() == KEYS.keys() - {"problem"}
        ratio = page.ratio(row)
        assert ratio is not None
        assert ratio < page.BAR
    assert "2 operations; 2 are predicted at 1.5 times the floor or less" in capsys.readouterr().out


def test_what_fails_is_said() -> None:
    row = {"name": "nothing", "problem": "ValueError: a | b"}
    assert "nothing: ValueError" in page.line(row)
    assert "a / b" in page.markdown({"date": "today", "arch": "h200", "rows": [row]})


def test_an_operation_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "no such thing"]) == 1
    assert "no operation contains 'no such thing'" in capsys.readouterr().err

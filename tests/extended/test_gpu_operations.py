"""The sweep of operations on GPUs: floors, rows and the page, without a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from bench.gpu_operations import cases, page
from bench.gpu_operations.__main__ import KEYS, main
from bench.gpu_operations.floor import SMALLEST_KERNEL, floor
from bench.gpu_static.build import describe

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

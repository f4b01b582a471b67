"""The group ``cliffs`` of the benchmarks: single operations."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bench.cliffs import page, picture, run, worker
from bench.cliffs.case import SIZES, Case, Draw, factorizations, rows, side
from bench.cliffs.table import BAR, COMPILE_BAR_S, FACTORIZATION_BAR_S, FRAMEWORKS, OURS
from bench.silence import Silence
from bench.suites import Request

ONES = np.ones(4, np.float32)


def test_operands_are_the_same_in_every_process() -> None:
    case = Case("x", abs, lambda draw, n: (draw.normal(n), draw.integers(0, 9, 3)))
    one, other = case.draw("small"), case.draw("small")
    assert one[0].shape == (SIZES["small"],)
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert not np.array_equal(one[0], case.draw("large")[0][: SIZES["small"]])


def test_shapes() -> None:
    assert rows(4096, 1024) == (4, 1024)
    assert rows(10, 1024) == (1, 1024)
    assert side(1 << 16) == 256
    assert side(3 * 64 * 64, 2, 3) == 64
    assert side(1) == 8
    definite = Draw(0).positive_definite(5, 3, 3)
    assert (np.linalg.eigvalsh(definite) > 0.9).all()


@pytest.mark.parametrize(
    "found, expected, error",
    [
        ([ONES], [ONES], 0),
        ([ONES * 1.5], [ONES], 0.5),
        ([ONES[1:]], [ONES], np.inf),
        ([ONES, ONES], [ONES], np.inf),
        ([np.array([1, np.nan])], [np.array([1, np.nan])], 0),
        ([np.array([1, np.nan])], [np.array([1.0, 2])], np.inf),
        ([np.array([1.0, 2])], [np.array([1, np.inf])], np.inf),
        ([np.array([1, 2])], [np.array([1, 3])], np.inf),
        ([np.zeros(0)], [np.zeros(0)], 0),
        ([np.array([3 + 4j])], [np.array([0j])], 5),
    ],
)
def test_errors(found: Any, expected: Any, error: float) -> None:
    assert worker.error_of(found, expected) == error


def framework(**peers: Any) -> SimpleNamespace:
    """A framework of arrays; each peer is what it makes of a function."""
    return SimpleNamespace(
        PEERS=peers,
        operands=list,
        call=lambda case, made, operands: lambda: made(*operands),
        arrays=lambda result: [result],
        exact=lambda case, operands: None,
        report=lambda made: {"kernels": 1, "predicted": 2.0},
    )


CASE = Case("negative", np.negative, lambda draw, n: (draw.normal(8),))


def test_peers_take_turns_and_are_compared_with_the_first() -> None:
    def fails(function: Any) -> Any:
        raise RuntimeError("no\nway")

    made = framework(
        eager=lambda f: f, other=fails, off=lambda f: lambda x: f(x) * 1.1, polyblocks=lambda f: f
    )
    answer = worker.measure(made, CASE, "small", list(made.PEERS), 1e-3)
    found = {row["peer"]: row for row in answer["peers"]}
    assert answer["bytes"] == 64
    assert found["other"] == {"peer": "other", "problem": "RuntimeError: no way"}
    assert found["off"]["correct"] is False
    assert found["off"]["error"] == pytest.approx(0.1)
    assert found[OURS]["correct"] is True
    assert found[OURS]["kernels"] == 1
    assert 0 < found[OURS]["minimum"] <= found[OURS]["first_call"]
    assert found[OURS]["faults"] >= 0
    assert "minimum" not in worker.measure(made, CASE, "small", [OURS], 0)["peers"][0]


@pytest.mark.parametrize("factor, right", [(1.002, True), (1.005, False)])
def test_errors_may_be_twice_those_of_the_framework(factor: float, right: bool) -> None:
    made = framework(
        eager=lambda f: lambda x: f(x) * 1.0015, polyblocks=lambda f: lambda x: f(x) * factor
    )
    made.exact = lambda case, operands: [case.function(*operands)]
    answer = worker.measure(made, CASE, "small", list(made.PEERS), 0)
    assert answer["peers"][1]["correct"] is right


@pytest.mark.parametrize("choosing", [False, True])
def test_places_of_equal_elements_may_differ(choosing: bool) -> None:
    case = Case("sorted", lambda x: x, lambda draw, n: (ONES,), choosing=choosing)
    made = framework(eager=lambda f: f, polyblocks=lambda f: f)
    places = iter((0, 1))
    made.arrays = lambda result: [result, np.array([next(places)])]
    answer = worker.measure(made, case, "small", list(made.PEERS), 0)
    assert answer["peers"][1]["correct"] is choosing


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_name_of_a_framework_is_one_case(name: str) -> None:
    cases = importlib.import_module(FRAMEWORKS[name]).CASES
    names = [case.name for case in cases]
    assert sorted(set(names)) == sorted(names)
    assert len(names) >= {"PyTorch": 300, "JAX": 100, "TensorFlow": 60}[name]


class Session(run.Session):
    """One whose answers are given.

    Args:
        seconds: by peer, of a call with large operands.
        first: of the first call beside others, and alone.
    """

    def __init__(self, seconds: dict[str, float], first: tuple[float, float] = (0.5, 0.25)) -> None:
        super().__init__("PyTorch", Request("", 3, 2, Path(), Path()), Path(), Silence(), 1000.0)
        self.seconds = seconds
        self.first = first
        self.asked: list[tuple[str, ...]] = []

    def _asked(
        self, orders: Any, peers: Any, seconds: float, log: str, cache: str = run.SHARED
    ) -> Any:
        first = 9.0 if seconds else self.first[cache != run.SHARED]
        self.asked.append((log, *peers, *(size for _, size in orders)))
        found = []
        for order in orders:
            some: list[Any] = []
            for peer in peers:
                row: Any = {"peer": peer, "first_call": first}
                some.append(row | ({"minimum": self.seconds[peer]} if seconds else {}))
            found.append((order, {"peers": some, "bytes": 750}))
        return found


def test_the_compiler_is_asked_where_it_may_be_faster() -> None:
    slow = Session({"eager": 3.0, "Inductor": 1.5, OURS: 2.0})
    found = slow.rows([CASE])
    assert [row["best"] for row in found] == ["Inductor"] * 2
    assert [row["ratio"] for row in found] == [0.75] * 2
    assert [row["peers"][OURS]["first_call"] for row in found] == [0.5] * 2
    fast = Session({"eager": 3.0, OURS: 0.9})
    assert [row["best"] for row in fast.rows([CASE])] == ["eager"] * 2
    far = Session({"eager": 3.0, "Inductor": 5.0, OURS: 2.0})
    assert [len(row["peers"]) for row in far.rows([CASE])] == [2, 3]


@pytest.mark.parametrize(
    ("first", "kept"), [((2.5, 1.5), 1.5), ((2.5, 3.5), 2.5), ((0.5, 0.25), 0.5)], ids=str
)
def test_first_calls_above_the_bar_are_timed_again_alone(
    first: tuple[float, float], kept: float
) -> None:
    session = Session({"eager": 3.0, OURS: 0.9}, first)
    assert [row["peers"][OURS]["first_call"] for row in session.rows([CASE])] == [kept] * 2
    (alone,) = [sizes for log, _, *sizes in session.asked if log == "alone"]
    assert len(alone) == (2 if first[0] > COMPILE_BAR_S else 0)


def test_compiling_is_what_a_first_call_takes_beyond_a_later_one() -> None:
    session = Session({"eager": 3.0, OURS: 0.125})
    rows = session.rows([CASE])
    assert [row["peers"][OURS]["compile"] for row in rows] == [0.375] * 2
    assert [row["factorization"] for row in rows] == [False] * 2


def test_factorizations_may_compile_for_longer() -> None:
    session = Session({"eager": 3.0, OURS: 0.25}, (1.75, 1.5))
    rows = session.rows(factorizations(CASE))
    assert all(row["factorization"] for row in rows)
    assert [order for order in session.asked if order[0] == "alone"] == [("alone", OURS)]
    assert [entry["slow"] for entry in run.summary(rows)] == [0, 0, 0, 0]
    assert "## Compiled for longer than 1 s" in page.markdown(results() | {"rows": rows})
    usual = [row | {"factorization": False} for row in rows]
    assert [entry["slow"] for entry in run.summary(usual)] == [2, 0, 0, 2]
    slow = Session({"eager": 3.0, OURS: 0.25}, (FACTORIZATION_BAR_S + 1,) * 2)
    assert run.summary(slow.rows(factorizations(CASE)))[0]["slow"] == 2


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_factorizations_of_a_framework_are_known(name: str) -> None:
    cases = importlib.import_module(FRAMEWORKS[name]).CASES
    known = {case.name for case in cases if case.factorization}
    assert {"cholesky", "inv of 16x16", "solve", "eigvalsh of 16x16"} <= known
    assert not [name for name in known if "fft" in name]


def results() -> Any:
    def row(framework: str, ratio: float | None, **ours: Any) -> Any:
        peers = {"eager": {"minimum": 1e-3}, OURS: {"minimum": 1e-3, "first_call": 0.1} | ours}
        return {
            "framework": framework,
            "case": "kron",
            "size": "small",
            "bytes": 8,
            "peers": peers,
            "best": "eager",
            "ratio": ratio,
            "factorization": False,
        }

    rows = [
        row("PyTorch", 4.0),
        row("PyTorch", 0.25, compile=COMPILE_BAR_S + 1),
        row("JAX", None, problem="FallbackError: no"),
        row("TensorFlow", BAR, correct=False),
    ]
    return {
        "date": "2026-01-01",
        "machine": {"cpu": "chip", "threads": 2},
        "rounds": 3,
        "busy": 0.0,
        "rows": rows,
        "summary": run.summary(rows),
    }


def test_summary() -> None:
    torch, jax, tensorflow, all_of_them = results()["summary"]
    assert torch == {
        "framework": "PyTorch", "rows": 2, "geomean": pytest.approx(1.0), "short": 1,
        "refused": 0, "wrong": 0, "slow": 1,
    }  # fmt: skip
    assert (jax["refused"], jax["geomean"]) == (1, None)
    assert (tensorflow["wrong"], tensorflow["short"]) == (1, 0)
    assert all_of_them["rows"] == 4


def test_page_and_picture(tmp_path: Path) -> None:
    found = results()
    text = page.markdown(found)
    assert "| PyTorch: kron (small) | 0.25 | eager | 1 | 1 |" in text
    assert "- JAX: kron (small): FallbackError: no" in text
    assert "- TensorFlow: kron (small)" in text
    assert f"| PyTorch: kron (small) | {COMPILE_BAR_S + 1:.2f} |" in text
    assert "Inductor was not asked for any of PyTorch's rows." in text
    assert "do not trust" not in text
    assert "do not trust" in page.markdown(found | {"busy": 1.5})
    picture.draw(found, tmp_path / "all.png")
    assert (tmp_path / "all.png").stat().st_size > 1000

"""The report of one decorated function, without a framework."""

from __future__ import annotations

import logging

import pytest

from polyblocks.errors import FallbackError
from polyblocks.frontends.function_report import FunctionReport, Variant


def report() -> FunctionReport:
    return FunctionReport("f", "cpu", "Framework")


def test_a_way_of_calling_that_is_not_compiled_is_logged_once_and_stands_in_the_report(caplog):
    made = report()
    with caplog.at_level(logging.WARNING, "polyblocks"):
        for _ in range(3):
            made.not_compiled("fit", "it trains by itself; compile a step", "train.py:7")
    assert caplog.messages == [
        "f: Framework runs f (fit) at train.py:7: it trains by itself; compile a step"
    ]
    assert [str(f) for f in made.fallbacks] == [
        "f (fit) at train.py:7: it trains by itself; compile a step"
    ]
    assert not made.whole
    assert "no fallbacks" not in str(made)


def test_a_way_of_calling_that_is_not_compiled_is_an_error_with_strict_target():
    with pytest.raises(
        FallbackError, match=r"f \(fit\).*strict_target forbids that Framework runs it"
    ):
        report().not_compiled("fit", "it trains by itself", strict=True)


def test_a_report_without_a_call_says_so():
    made = report()
    assert str(made) == "f: not called yet"
    made.variants.append(Variant("f"))
    assert str(made) == "f: nothing to compute"


def test_a_part_of_another_function_says_of_which():
    made = report()
    for caller in ("g", "h", "g"):
        made.part_of(caller)
    assert str(made) == "f: compiled as a part of g, h"
    assert made.to_json()["callers"] == ["g", "h"]
    made.not_compiled("call", "it is called otherwise")
    assert str(made).endswith("f: compiled as a part of g, h")
    assert "f (call): it is called otherwise" in str(made)


def met(made: FunctionReport, *arguments: str, kind: str = "inference") -> None:
    made.add_variant(Variant("f", kind, arguments=list(arguments)))


def test_the_fourth_size_of_a_dimension_is_worth_one_line(caplog):
    made = report()
    for size in (17, 18, 19):
        met(made, f"float32[{size}, 3]", "float32[3]")
    assert not caplog.messages
    for size in (20, 21, 22):
        met(made, f"float32[{size}, 3]", "float32[3]")
    (line,) = caplog.messages
    assert "f: compiled for 4 sizes of dimension 0 of argument 0 (17, 18, 19, 20)" in line
    assert "pad to a few sizes" in line


def test_sizes_that_change_together_are_told_together(caplog):
    made = report()
    for size in (1, 2, 3, 4):
        met(made, f"f32[{size},5]", f"f32[{size}]")
    (line,) = caplog.messages
    assert "and as many of 1 other dimensions" in line


@pytest.mark.parametrize(
    "variants",
    [
        [("float32[2]",), ("float64[3]",), ("int32[4]",), ("int64[5]",)],
        [("float32[2]",), ("float32[2, 3]",), ("float32[2, 3, 4]",), ("float32[]",)],
        [("float32[2, 3]",), ("float32[4, 5]",), ("float32[2, 5]",), ("float32[4, 3]",)],
    ],
)
def test_other_dtypes_ranks_and_few_sizes_are_no_matter(variants, caplog):
    made = report()
    for arguments in variants:
        met(made, *arguments)
    assert not caplog.messages


def test_forward_and_backward_are_not_counted_together(caplog):
    made = report()
    for size in (1, 2):
        met(made, f"float32[{size}]", kind="forward")
        met(made, f"float32[{size + 2}]", kind="backward")
    assert not caplog.messages

"""Passes of rules: found by the names of their rules, and run, dumped and resumed rule by rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from polyblocks import mlir
from polyblocks.affine.model import Sequence
from polyblocks.bisect.steps import read_steps
from polyblocks.options import CompileOptions
from polyblocks.passes.base import NestPass
from polyblocks.passes.normalize.normalize_nests import NormalizeNestsPass
from polyblocks.passes.rules import RulePass, rules_of
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import FunctionPass, PassContext, Pipeline, run_stage
from polyblocks_cpu.describe import describe

OPTIONS = CompileOptions(arch="x86-64-v4")
TARGET = describe(OPTIONS)
TEXT = """
func.func @main(%a: memref<8xf32>) {
  %x = arith.constant 1.0 : f32
  affine.for %i = 0 to 8 { affine.store %x, %a[%i] : memref<8xf32> }
  return
}
"""
RAN: list[str] = []


class First(NestPass):
    name: ClassVar[str] = "first"

    def transform(self, sequence: Sequence, context: Any) -> None:
        """Note that it ran."""
        RAN.append(self.name)


class Second(First):
    name: ClassVar[str] = "second"


class Third(First):
    name: ClassVar[str] = "third"


BOTH = RulePass("both", "two rules.", (First(), Second()))


def make() -> Pipeline:
    return Pipeline({"S2": [NormalizeNestsPassOfText()], "S3": [NormalizeNestsPass(), BOTH]})


class NormalizeNestsPassOfText:
    """Establishes what a module that was read as text has already."""

    name = "read"
    establishes = frozenset({"affine-loops", "buffers"})

    def run(self, module: Any, context: Any) -> bool:
        """Do nothing."""
        return False


def test_a_pass_is_one_name_and_runs_as_its_rules() -> None:
    pipeline = make()
    assert pipeline.names() == ["read", "normalize-nests", "both"]
    assert pipeline.steps() == ["read", "normalize-nests", "first", "second"]
    RAN.clear()
    pipeline.run(mlir.parse(TEXT), PassContext(TARGET, OPTIONS))
    assert RAN == ["first", "second"]


def test_a_rule_is_removed_by_its_name() -> None:
    pipeline = make()
    pipeline.remove("first")
    assert pipeline.steps() == ["read", "normalize-nests", "second"]
    pipeline.remove("second")
    assert pipeline.names() == ["read", "normalize-nests"]
    whole = make()
    whole.remove("both")
    assert whole.steps() == ["read", "normalize-nests"]


def test_a_rule_is_replaced_by_its_name() -> None:
    pipeline = make()
    pipeline.replace("first", Third())
    assert pipeline.steps() == ["read", "normalize-nests", "third", "second"]
    with pytest.raises(
        ValueError, match="'second' is a rule of pass 'both': expected a NestPass in"
    ):
        pipeline.replace("second", FunctionPass("f", lambda *_: None))
    with pytest.raises(ValueError, match="there is a pass 'third' already"):
        pipeline.replace("second", Third())


def test_passes_go_before_and_after_the_pass_of_a_rule() -> None:
    pipeline = make()
    pipeline.insert_after("first", FunctionPass("after", lambda *_: None))
    pipeline.insert_before("second", FunctionPass("before", lambda *_: None))
    assert pipeline.names() == ["read", "normalize-nests", "before", "both", "after"]


def test_names_of_rules_are_names_of_passes() -> None:
    with pytest.raises(ValueError, match="there is a pass 'second' already"):
        make().insert_after("both", Second())
    with pytest.raises(ValueError, match="pass names must be unique; twice: first"):
        Pipeline({"S3": [First(), BOTH]})
    with pytest.raises(ValueError, match="pass 'none' has no rules; expected at least one"):
        RulePass("none", "nothing.", ())


def test_rules_are_dumped_and_resumed_one_by_one(tmp_path: Path) -> None:
    context = PassContext(TARGET, OPTIONS, tmp_path, dump_passes=True)
    RAN.clear()
    make().run(mlir.parse(TEXT), context)
    labels = [step.label for step in read_steps(tmp_path)]
    assert labels == ["S2:read", "S3:normalize-nests", "S3:first", "S3:second"]
    for label, rest in (("first", ["second"]), ("second", []), ("both", [])):
        module = mlir.parse(next(tmp_path.glob("*-S3-first.mlir")).read_text())
        with module.context:
            module.operation.attributes["polyblocks.done"] = mlir.ir.StringAttr.get(f"S3:{label}")
        RAN.clear()
        passes = [NormalizeNestsPass(), BOTH]
        run_stage("S3", passes, module, PassContext(TARGET, OPTIONS))
        assert rest == RAN


def test_needs_of_rules_are_needs_of_the_pass() -> None:
    assert BOTH.needs == {"nests"}
    assert (BOTH.establishes, BOTH.breaks) == (set(), set())
    with pytest.raises(ValueError, match=r"pass 'first' \(stage S3\) needs 'nests'"):
        Pipeline({"S3": [BOTH]})


def test_the_standard_pipeline_has_rules() -> None:
    stages = standard_pipeline(TARGET, OPTIONS).stages
    made = {p.name: [r.name for r in rules_of(p)] for p in stages["S3"] if isinstance(p, RulePass)}
    assert set(made) == {"lay-out-arrays", "fuse-parts", "specialize-bodies"}
    assert made["fuse-parts"] == ["inline-stacks", "split-ranges", "merge-margins"]


def test_what_rules_make_and_break_is_made_and_broken_by_the_pass() -> None:
    class Makes(First):
        name: ClassVar[str] = "makes"
        establishes: ClassVar[frozenset[str]] = frozenset({"x.made", "x.lost"})
        breaks: ClassVar[frozenset[str]] = frozenset({"unfused"})

    class Loses(First):
        name: ClassVar[str] = "loses"
        needs: ClassVar[frozenset[str]] = frozenset({"x.made", "x.lost", "reductions"})
        establishes: ClassVar[frozenset[str]] = frozenset({"unfused"})
        breaks: ClassVar[frozenset[str]] = frozenset({"x.lost", "kinds"})

    found = RulePass("p", "two rules.", (Makes(), Loses()))
    assert found.needs == {"reductions", "nests"}
    assert found.establishes == {"x.made", "unfused"}
    assert found.breaks == {"x.lost", "kinds"}
    # What an earlier rule breaks is needed of the module no less.
    again = RulePass("p", "two rules.", (Makes(), Loses(), Loses()))
    assert again.needs == {"x.lost", "reductions", "nests"}

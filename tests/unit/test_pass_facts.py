"""The order of a pipeline: what passes need, establish and break is checked at every change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.gpu_target import gpu_target

from polyblocks.options import CompileOptions
from polyblocks.passes.base import NestPass
from polyblocks.passes.facts import AT_START, FACTS, declared
from polyblocks.passes.rules import steps
from polyblocks.passes.standard import standard_pipeline
from polyblocks.pipeline import FunctionPass, PassContext, Pipeline, UpstreamPass
from polyblocks_cpu.describe import describe

OPTIONS = CompileOptions(arch="x86-64-v4")


@dataclass(frozen=True)
class Facts:
    """A pass with facts that does nothing."""

    name: str
    needs: Any = frozenset()
    establishes: Any = frozenset()
    breaks: Any = frozenset()

    def run(self, module: Any, context: PassContext) -> None:
        """Do nothing."""


def standard() -> Pipeline:
    return standard_pipeline(describe(OPTIONS), OPTIONS)


def test_a_pass_before_what_it_needs() -> None:
    early = Facts("early", needs={"kinds"})
    message = (
        r"pass 'early' \(stage S3\) needs 'kinds' \(every nest has a kind and a name\), which does "
        r"not hold there: 'classify-nests' establishes it later; put 'early' after 'classify-nests'"
    )
    with pytest.raises(ValueError, match=message):
        standard().insert_before("classify-nests", early)
    standard().insert_after("classify-nests", early)


def test_a_pass_after_what_breaks_its_need() -> None:
    late = Facts("late", needs={"unfused"})
    message = (
        r"pass 'late' \(stage S3\) needs 'unfused' .*: 'fuse-slices' has broken it; put 'late' "
        r"after 'normalize-nests' and before 'fuse-slices'"
    )
    with pytest.raises(ValueError, match=message):
        standard().insert_after("fuse-slices", late)
    standard().insert_before("fuse-slices", late)


def test_a_pass_that_others_need_cannot_be_removed_alone() -> None:
    pipeline = standard()
    message = (
        r"pass 'tile-contractions' \(stage S3\) needs 'plans' .*: 'plan-contractions' would "
        r"establish it, which was taken out; take 'tile-contractions' out as well"
    )
    names = pipeline.names()
    with pytest.raises(ValueError, match=message):
        pipeline.remove("plan-contractions")
    assert pipeline.names() == names, "a refused change is undone"
    with pipeline.editing():
        pipeline.remove("plan-contractions")
        pipeline.remove("tile-contractions")
    assert "plan-contractions" not in pipeline.names()


def test_stages_are_changed_by_methods_alone() -> None:
    """A change past these would go unchecked."""
    pipeline = standard()
    names = pipeline.names()
    with pytest.raises(TypeError, match="does not support item assignment"):
        pipeline.stages["S3"] = ()  # type: ignore[index]
    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'append'"):
        pipeline.stages["S3"].append(Facts("mine"))  # type: ignore[attr-defined]
    assert pipeline.names() == names


#: Pass -> what does not hold behind it, of targets with teams and of those with blocks.
TEAM = {
    "fuse-slices": "padding unfused",
    "absorb-loops": "unfused",
    "mask-absent": "padding",
    "order-loops": "reductions untiled whole-loops",
    "block-summation": "whole-loops",
    "tile-transposes": "untiled whole-loops",
    "tile-scans": "reductions untiled whole-loops",
    "vectorize-nests": "kinds nests padding reductions",
}
BLOCKS = {
    "hoist-factors": "unfused",
    "absorb-margins": "padding unfused",
    "join-nests": "unfused",
    "roll-nests": "unfused",
    "split-contractions": "unfused whole-loops",
}


@pytest.mark.parametrize(
    ("target", "name", "lost"),
    [(t, name, lost) for t, rows in enumerate((TEAM, BLOCKS)) for name, lost in rows.items()],
)
def test_what_does_not_hold_behind_a_pass(target: int, name: str, lost: str) -> None:
    description = (describe(OPTIONS), gpu_target())[target]
    stages = standard_pipeline(description, OPTIONS).stages
    (broken,) = (declared(p, "breaks") for p in steps(stages["S3"]) if p.name == name)
    assert broken == set(lost.split())
    for fact in broken:
        with pytest.raises(ValueError, match=rf"pass 'late' \(stage S3\) needs '{fact}'"):
            standard_pipeline(description, OPTIONS).insert_after(
                name, Facts("late", needs=frozenset({fact}))
            )


def test_passes_that_only_improve_code_can_be_removed() -> None:
    for name in ("fuse-slices", "fuse-tiles", "unroll-reductions", "split-stacks", "roll-sums"):
        standard().remove(name)


def test_a_pass_that_breaks_what_later_ones_need() -> None:
    with pytest.raises(ValueError, match=r"pass 'form-scans' .* 'rough' has broken it"):
        standard().insert_after("form-reductions", Facts("rough", breaks={"reductions"}))


def test_a_replacement_establishes_what_the_pass_did() -> None:
    with pytest.raises(ValueError, match=r"needs 'kinds' .*: 'classify-nests' would establish it"):
        standard().replace("classify-nests", Facts("mine"))
    standard().replace("classify-nests", Facts("mine", establishes={"kinds"}))


def test_upstreams_cse_merges_empty_tensors_whoever_runs_it() -> None:
    with pytest.raises(ValueError, match=r"'eliminate-empties' .* 'own-empties' .* 'tidy' has bro"):
        standard().insert_after("separate-empties", UpstreamPass("tidy", "canonicalize,cse"))
    standard().insert_before("separate-empties", UpstreamPass("tidy", "canonicalize,cse"))


def test_facts_of_a_plugin() -> None:
    with pytest.raises(ValueError, match=r"needs 'toy\.x', .*: no pass of this pipeline establ"):
        Pipeline({"S1": [Facts("a", needs={"toy.x"})]})
    makes = FunctionPass("b", lambda *_: None, establishes=frozenset({"toy.x"}))
    Pipeline({"S1": [makes, Facts("a", needs={"toy.x"})]})


def test_a_name_that_is_no_fact() -> None:
    message = r"'needs' of pass 'a': 'kind' is no fact; did you mean 'kinds'\? the facts are tensor"
    with pytest.raises(ValueError, match=message):
        Pipeline({"S1": [Facts("a", needs={"kind"})]})
    with pytest.raises(ValueError, match=r"'breaks' of pass 'a': expected a set .* got 'k"):
        Pipeline({"S1": [Facts("a", breaks="kinds")]})


def test_every_fact_is_used() -> None:
    passes = [
        p
        for target in (describe(OPTIONS), gpu_target())
        for members in standard_pipeline(target, OPTIONS).stages.values()
        for p in steps(members)
    ]
    needed, made = (
        frozenset().union(*(declared(p, what) for p in passes)) for what in ("needs", "establishes")
    )
    assert needed == set(FACTS)
    assert made | AT_START == set(FACTS)
    nest_passes = [p for p in passes if isinstance(p, NestPass) and p.name != "normalize-nests"]
    assert all("nests" in declared(p, "needs") for p in nest_passes)

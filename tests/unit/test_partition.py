"""The planner of partitions, on a program that is only pretended."""

from __future__ import annotations

import os

import pytest

from polyblocks.artifact import TRANSIENT
from polyblocks.errors import MachineError, NativeCrashError, PassError, UnsupportedError
from polyblocks.frontends.partition import (
    CRASH,
    MACHINE,
    UNSUPPORTED,
    FallbackOp,
    Operations,
    Plan,
    Step,
    fallback_row,
    one_line,
    order,
    run_probes,
)
from polyblocks.frontends.planner import make_plan


class Pretended(Operations):
    """Operations with given operands; a part fails if it holds a bad one, or a bad combination."""

    def __init__(self, operands, bad=(), together=(), effects=(), obvious=(), groups=()):
        self.groups = groups
        self.probed = []
        self.reads = operands
        self.bad = set(bad)
        self.together = [set(group) for group in together]
        self.effects = effects
        self.known = obvious
        self.compiled = []

    def __len__(self):
        return len(self.reads)

    def operands(self, node):
        return self.reads[node]

    def op_name(self, node):
        return f"op{node}"

    def location(self, node):
        return f"file.py:{node}"

    def compile(self, nodes):
        if self.bad & set(nodes):
            raise UnsupportedError("a bad one")
        if any(group <= set(nodes) for group in self.together):
            raise NativeCrashError("a crash")
        self.compiled.append(tuple(nodes))

    def probe(self, nodes):
        self.probed += nodes
        return {node: ("bad alone", UNSUPPORTED) for node in nodes if node in self.bad}

    def inseparable(self):
        return self.groups

    def obvious(self):
        return dict.fromkeys(self.known, ("it is obvious", UNSUPPORTED))

    def is_ordered(self, node):
        return node in self.effects


CHAIN = [[], [0], [1], [2], [3]]


def plan_of(operations):
    artifact = make_plan(operations, UnsupportedError("whole"))
    return Plan.of(artifact), artifact


def test_one_bad_operation_splits_a_chain(caplog):
    operations = Pretended(CHAIN, bad=[2])
    plan, artifact = plan_of(operations)
    assert not caplog.records
    assert plan == Plan((FallbackOp(2, "op2", "bad alone", UNSUPPORTED),), ())
    assert order(operations, {2}) == [
        Step(True, (0, 1)), Step(False, (2,)), Step(True, (3, 4))
    ]  # fmt: skip
    assert operations.compiled == [(0, 1), (3, 4)]
    (row,) = artifact.manifest["report"]["fallbacks"]
    assert row == {
        "op": "op2", "reason": "bad alone", "cause": UNSUPPORTED, "location": "file.py:2"
    }  # fmt: skip
    assert row == fallback_row(operations, plan.left[0])
    assert artifact.from_bytes(artifact.to_bytes()).manifest["kind"] == "plan"


def test_independent_work_is_not_split():
    # 0 -> 1 (bad) -> 3, and 2 beside them.
    operations = Pretended([[], [0], [], [1, 2]], bad=[1])
    assert order(operations, {1}) == [
        Step(True, (0, 2)), Step(False, (1,)), Step(True, (3,))
    ]  # fmt: skip


def test_what_fails_only_together_is_cut(caplog):
    operations = Pretended(CHAIN, together=[(1, 3)])
    plan, _ = plan_of(operations)
    (record,) = caplog.records
    assert "program does not compile whole: it is cut in 1 places" in record.getMessage()
    assert record.getMessage().endswith("the first error: whole")
    assert plan.left == ()
    assert plan.cuts == (2,)
    assert [step.nodes for step in order(operations, (), plan.cuts)] == [(0, 1), (2, 3, 4)]


def test_what_cannot_be_placed_is_left_whole():
    class Stubborn(Pretended):
        def compile(self, nodes):
            raise NativeCrashError("always")

    plan, _ = plan_of(Stubborn(CHAIN))
    assert {left.index for left in plan.left} == {0, 1, 2, 3, 4}
    assert {(left.reason, left.kind) for left in plan.left} == {("always", CRASH)}


def test_a_plan_that_the_machine_made_is_marked():
    chain = [[], [0], [1], [2]]

    class Failing(Pretended):
        failure = MachineError("no space")

        def compile(self, nodes):
            raise self.failure

    artifact = make_plan(Failing(chain), MachineError("no space"))
    assert artifact.manifest[TRANSIENT]
    assert {left.kind for left in Plan.of(artifact).left} == {MACHINE}
    # Also where it is a part that met it, or a single operation.
    artifact = make_plan(Failing(chain, bad=[1]), UnsupportedError("a bad one"))
    assert artifact.manifest[TRANSIENT]
    assert [left.kind for left in Plan.of(artifact).left] == [
        MACHINE,
        UNSUPPORTED,
        MACHINE,
        MACHINE,
    ]

    class Alone(Pretended):
        def probe(self, nodes):
            return {node: ("killed", MACHINE) for node in nodes if node in self.bad}

    assert make_plan(Alone(chain, bad=[1]), UnsupportedError("no")).manifest[TRANSIENT]
    assert TRANSIENT not in make_plan(Pretended(chain, bad=[1]), UnsupportedError("no")).manifest


def test_obvious_operations_are_not_tried():
    operations = Pretended(CHAIN, obvious=[1])
    plan, _ = plan_of(operations)
    assert [left.reason for left in plan.left] == ["it is obvious"]
    assert operations.compiled == [(0,), (2, 3, 4)]


def test_effects_keep_their_order():
    # Two effects that do not read each other; the first needs more before it.
    operations = Pretended([[], [0], [1], []], effects=[2, 3], obvious=[2, 3])
    steps = order(operations, {2, 3})
    assert [step.nodes for step in steps if not step.compiled] == [(2,), (3,)]


def test_a_compiled_operation_with_an_effect_stays_compiled_behind_one_that_is_left():
    # 1 (left) has an effect, and so has 2, which does not read it.
    operations = Pretended([[], [0], []], effects=[1, 2], obvious=[1])
    assert order(operations, {1}) == [
        Step(True, (0,)), Step(False, (1,)), Step(True, (2,))
    ]  # fmt: skip


class Named(Pretended):
    """Its errors name the operation at fault."""

    def compile(self, nodes):
        culprits = sorted(self.bad & set(nodes))
        if culprits:
            raise UnsupportedError("named", op=f"op{culprits[0]}")


def test_an_operation_that_the_error_names_is_asked_alone():
    count = 500
    operations = Named([[node - 1] if node else [] for node in range(count)], bad=[7, 300])
    plan = Plan.of(make_plan(operations, UnsupportedError("named", op="op7")))
    assert [left.index for left in plan.left] == [7, 300]
    assert operations.probed == [7, 300]


def test_operations_of_the_kind_that_fails_are_asked_at_once():
    class Kinds(Named):
        def op_name(self, node):
            return f"op{node % 10}"

    count, bad = 500, {node for node in range(500) if node % 10 == 3}
    operations = Kinds([[node - 1] if node else [] for node in range(count)], bad=bad)
    rounds = []
    operations.compile = lambda nodes: (rounds.append(nodes), Named.compile(operations, nodes))
    plan = Plan.of(make_plan(operations, UnsupportedError("named", op="op3")))
    assert {left.index for left in plan.left} == bad
    assert set(operations.probed) == bad
    assert len(rounds) == len(bad) + 1  # each of the parts, once


def test_an_operation_that_no_error_names_is_found_by_halving():
    count = 4096
    operations = Pretended([[node - 1] if node else [] for node in range(count)], bad=[1234])
    plan, _ = plan_of(operations)
    assert [left.index for left in plan.left] == [1234]
    assert len(operations.probed) <= 32
    assert len(operations.compiled) < 12  # log2(4096 / 32) halves that compile, and two parts


def test_more_kinds_of_bad_operations_than_rounds_are_all_found():
    bad = range(0, 60, 3)
    operations = Named([[node - 1] if node else [] for node in range(60)], bad=bad)
    plan = Plan.of(make_plan(operations, UnsupportedError("named", op="op0")))
    assert {left.index for left in plan.left} == set(bad)


def test_what_is_inseparable_is_one_part():
    # 0 and 3 share a list; 1 is left, 2 reads it, and 3 reads 2.
    operations = Pretended([[], [], [1], [0, 2], [3]], obvious=[1], groups=[(0, 3)])
    plan, _ = plan_of(operations)
    assert [left.index for left in plan.left] == [1]
    assert order(operations, {1}) == [Step(False, (1,)), Step(True, (0, 2, 3, 4))]


def test_what_is_inseparable_from_a_bad_operation_is_left_and_says_so():
    operations = Pretended([[], [0], [1], [2]], bad=[1], groups=[(0, 1, 2)])
    plan, _ = plan_of(operations)
    assert {left.index: left.reason for left in plan.left} == {
        0: "a bad one",
        1: "it shares what is no array with op0, which is left: a bad one",
        2: "it shares what is no array with op0, which is left: a bad one",
    }
    assert operations.compiled == [(3,)]


def test_a_group_around_what_is_left_is_no_unit():
    # 0 and 2 share a list, and 2 needs 1, which needs 0.
    operations = Pretended([[], [0], [1], [2]], groups=[(0, 2)])
    assert [step.nodes for step in order(operations, {1})] == [(0,), (1,), (2, 3)]
    # What comes after the circle stays together.
    chain = Pretended([[], [0], [1], [2], [], [3, 4]], groups=[(0, 2), (3, 5)])
    assert [step.nodes for step in order(chain, {1})] == [(0, 4), (1,), (2, 3, 5)]


def test_probes_share_a_process_and_a_crash_is_pinned_down():
    def attempt(probe):
        if probe == "crash":
            os.abort()
        if probe == "unsupported":
            raise UnsupportedError("no lowering")
        if probe == "pass":
            raise PassError("p", "S3", "broken")
        if probe == "other":
            raise KeyError("x")

    probes = ["fine", "unsupported", "crash", "pass", "other", "fine"]
    outcomes = run_probes(probes, attempt)
    assert outcomes[0] is outcomes[5] is None
    assert outcomes[1] == ("no lowering", UNSUPPORTED)
    assert outcomes[2] is not None
    assert outcomes[2][1] == CRASH
    assert "SIGABRT" in outcomes[2][0]
    assert outcomes[3] is not None
    assert "broken" in outcomes[3][0]
    assert outcomes[4] == ("KeyError: 'x'", UNSUPPORTED)


@pytest.mark.parametrize("text", ["short", "two\nlines", "x" * 400])
def test_reasons_are_one_line(text):
    line = one_line(text)
    assert "\n" not in line
    assert len(line) <= 300

"""Run the modules between the passes, and name the pass whose module is the first to differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from polyblocks.attributes import RESUME_ATTRIBUTE
from polyblocks.bisect import rounds as rounds_
from polyblocks.bisect.collect import Compilation
from polyblocks.bisect.execute import VARIANTS, Program, RunError
from polyblocks.bisect.generated import load_code
from polyblocks.bisect.reference import NotRunnableError, lower
from polyblocks.bisect.rounds import Outcome, Round
from polyblocks.bisect.steps import Step
from polyblocks.errors import InputError
from polyblocks.failures import reproducer
from polyblocks.isolation.forks import fork_lock

#: The code generator behind the last pass.
CODE = "S5"
_BAD = ("differs", "fails", "compiler fails")


@dataclass
class Settings:
    """Settings of a search.

    Attributes:
        rounds: sets of inputs.
        seed: of the inputs.
        limit_s: seconds that one run may take.
        until: the last ``stage:pass`` to look at; None for all and the generated code.
        all_passes: run every module, not only those that a binary search needs.
    """

    rounds: int = 3
    seed: int = 0
    limit_s: float = 60.0
    until: str | None = None
    all_passes: bool = False


@dataclass
class Row:
    """One pass: its label and what became of the module behind it.

    ``status`` is that of :class:`Outcome`, ``reference`` for the module that the others are
    compared with, ``unchanged`` if the pass changed nothing, ``compiler fails``, or empty if the
    module was not needed.
    """

    label: str
    status: str = ""
    reason: str = ""
    kind: str = ""
    error: float | None = None
    seconds: float = 0.0


@dataclass
class Result:
    """The result of a search.

    Attributes:
        name: of the program.
        kinds: of the rounds that were run.
        seed: of the inputs.
        rows: one per pass, in order; then ``S5``, or the pass that failed.
        suspects: labels of the passes one of which is the first to differ: one, unless the modules
            between could not be run. Empty if nothing differs.
        reproducer: the file with the module before the first of them.
        command: runs only that pass.
    """

    name: str
    kinds: list[str] = field(default_factory=list)
    seed: int = 0
    rows: list[Row] = field(default_factory=list)
    suspects: list[str] = field(default_factory=list)
    reproducer: str | None = None
    command: str | None = None

    @property
    def bad(self) -> Row | None:
        """The row of the last suspect."""
        return next((row for row in self.rows if row.label in self.suspects[-1:]), None)


def search(compilation: Compilation, settings: Settings) -> Result:
    """Find the first pass that changes what a program computes.

    Raises:
        InputError: no module can be run, or none with random inputs; or no pass is called
            ``settings.until``.
    """
    warm_up()
    steps = _until(compilation.steps, settings.until)
    whole = settings.until is None
    found = _Search(steps, settings)
    rows = found.rows
    if whole and compilation.artifact is not None:
        load = partial(load_code, compilation.artifact)
        judge = partial(rounds_.judge_program, load, found.rounds, settings.limit_s)
        rows.append(_timed(CODE, judge))
    elif whole and compilation.failed:
        rows.append(Row(compilation.failed, "compiler fails", compilation.reason))
    good, bad = found.all_modules() if settings.all_passes else found.bisect()
    if bad is None and rows[-1].status in _BAD:
        bad = len(rows) - 1
    result = Result(compilation.name, [r.kind for r in found.rounds], settings.seed, rows)
    if bad is not None:
        result.suspects = [row.label for row in rows[good + 1 : bad + 1]]
        _write_reproducer(result, steps[good])
    return result


class _Search:
    """The modules of one program, with what is known of them."""

    def __init__(self, steps: Sequence[Step], settings: Settings) -> None:
        self._limit_s = settings.limit_s
        self._data = [step.module() for step in steps]
        self.rows = [Row(step.label or "input") for step in steps]
        self.first, self.rounds = self._reference(settings)
        for k in range(self.first + 1, len(steps)):
            if self._data[k] == self._data[k - 1]:
                self.rows[k].status = "unchanged"

    def _reference(self, settings: Settings) -> tuple[int, list[Round]]:
        """The first module that can be run, and rounds by it."""
        reason = ""
        for k, data in enumerate(self._data):
            begin = time.perf_counter()
            try:
                made = rounds_.make_rounds(data, settings.rounds, settings.seed, self._limit_s)
            except NotRunnableError as error:
                reason = str(error)
                self.rows[k] = Row(self.rows[k].label, "not runnable", reason)
                continue
            seconds = time.perf_counter() - begin
            self.rows[k] = Row(self.rows[k].label, "reference", seconds=seconds)
            return k, made
        raise InputError(f"none of the modules can be run: {reason}")

    def bisect(self) -> tuple[int, int | None]:
        """The last module known to be right and the first known to be wrong around one change."""
        good = self.first
        bad = next((k for k in range(len(self._data) - 1, good, -1) if self._known(k)), good)
        if not self._is_bad(bad):
            return bad, None
        while bad - good > 1:
            middle = (good + bad) // 2
            # From the middle outwards, past what cannot be run.
            order = sorted(range(good + 1, bad), key=lambda k: abs(k - middle))
            probe = next((k for k in order if self._known(k)), None)
            if probe is None:
                break
            if self._is_bad(probe):
                bad = probe
            else:
                good = probe
        return good, bad

    def all_modules(self) -> tuple[int, int | None]:
        """Run all of them; the last right one before the first wrong one, and this one."""
        good = self.first
        for k in range(self.first + 1, len(self._data)):
            if not self._known(k):
                continue
            if self._is_bad(k):
                for later in range(k + 1, len(self._data)):
                    self._known(later)
                return good, k
            good = k
        return good, None

    def _known(self, k: int) -> bool:
        """Run a module, unless that was done; whether it can be run."""
        k = self._same(k)
        if not self.rows[k].status:
            judge = partial(rounds_.judge, self._data[k], self.rounds, self._limit_s)
            self.rows[k] = _timed(self.rows[k].label, judge)
        return self.rows[k].status != "not runnable"

    def _is_bad(self, k: int) -> bool:
        return self.rows[self._same(k)].status in _BAD

    def _same(self, k: int) -> int:
        """The first of the equal modules that end at this one."""
        while self.rows[k].status == "unchanged":
            k -= 1
        return k


def _timed(label: str, run: Callable[[], Outcome]) -> Row:
    begin = time.perf_counter()
    outcome = run()
    seconds = time.perf_counter() - begin
    return Row(label, outcome.status, outcome.reason, outcome.kind, outcome.error, seconds)


def _until(steps: Sequence[Step], until: str | None) -> list[Step]:
    if until is None:
        return list(steps)
    labels = [step.label for step in steps]
    if until not in labels:
        raise InputError(f"there is no module after '{until}'; there are {', '.join(labels[1:])}")
    return list(steps[: labels.index(until) + 1])


def _write_reproducer(result: Result, before: Step) -> None:
    """Write the module before the suspects, marked so that compiling it goes on with them."""
    from polyblocks import mlir
    from polyblocks.api import stage_of_file
    from polyblocks.stages import mark

    module = mlir.parse(before.path.read_bytes())
    done = stage_of_file(before.path)
    if RESUME_ATTRIBUTE not in module.operation.attributes and done is not None:
        mark(module, done)
    text = str(module.operation.get_asm(enable_debug_info=True)) + "\n"
    stage, _, name = result.suspects[0].partition(":")
    result.reproducer = reproducer.save(text, name or stage)
    if result.reproducer is not None:
        last = result.suspects[-1]
        until = "" if last == CODE else f" --until {last} -o after.mlir"
        result.command = f"polyblocks compile {result.reproducer}{until}"


_TINY = b"""
func.func @main(%a: tensor<1xf32>) -> tensor<1xf32> {
  %e = tensor.empty() : tensor<1xf32>
  %r = linalg.exp ins(%a : tensor<1xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  return %r : tensor<1xf32>
}
"""
_warm = False


def warm_up() -> None:
    """Load MLIR and LLVM into this process, so that not every forked child has to.

    Raises:
        InputError: code for this machine cannot be made and run.
    """
    global _warm
    if _warm:
        return
    from polyblocks import mlir

    with fork_lock:
        mlir.preload()
        try:
            Program(lower(_TINY))([np.zeros(1, np.float32)], VARIANTS[0], 60.0)
        except (NotRunnableError, RunError) as error:
            raise InputError(f"nothing can be run on this machine: {error}") from None
    _warm = True

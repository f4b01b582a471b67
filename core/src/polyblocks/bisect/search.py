"""Run the module after each pass and name the first one whose result differs."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from polyblocks import driver, reproducer
from polyblocks.artifact import Artifact
from polyblocks.bisect import rounds as rounds_
from polyblocks.bisect.collect import Compilation
from polyblocks.bisect.execute import (
    VARIANTS,
    Arguments,
    Array,
    CheckError,
    Program,
    RunError,
    Variant,
)
from polyblocks.bisect.guarded import Guarded
from polyblocks.bisect.reference import NotRunnableError, lower
from polyblocks.bisect.rounds import Outcome, Round
from polyblocks.bisect.steps import Step
from polyblocks.errors import InputError
from polyblocks.isolation import native_lock

#: The code generator behind the last pass.
CODE = "S5"
_BAD = ("differs", "fails", "compiler fails")


@dataclass
class Settings:
    """What to run.

    Attributes:
        rounds: sets of inputs.
        seed: of the inputs.
        limit_s: seconds that one run may take.
        until: the last ``stage:pass`` to look at; None for all and the generated code.
        all_passes: go on behind the first difference.
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
    compared with, ``unchanged`` if the pass changed nothing, or ``compiler fails``.
    """

    label: str
    status: str
    reason: str = ""
    kind: str = ""
    error: float | None = None
    seconds: float = 0.0


@dataclass
class Result:
    """What a search found.

    Attributes:
        name: of the program.
        kinds: of the rounds that were run.
        seed: of the inputs.
        rows: one per pass, in order, as far as it went.
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
        """The first row that differs or fails."""
        return next((row for row in self.rows if row.status in _BAD), None)


def search(
    compilation: Compilation,
    settings: Settings,
    progress: Callable[[Row], None] = lambda row: None,
) -> Result:
    """Run a program's modules in order.

    Args:
        compilation: the modules.
        settings: what to run.
        progress: receives every row when it is known.

    Raises:
        InputError: no module can be run, or none with random inputs.
    """
    result = Result(compilation.name, seed=settings.seed)
    steps = list(compilation.steps)
    warm_up()

    def add(row: Row) -> None:
        result.rows.append(row)
        progress(row)

    rounds = _reference(steps, settings, add)
    result.kinds = [r.kind for r in rounds]
    first = len(result.rows) - 1
    previous = steps[first].module()
    for step in steps[first + 1 :]:
        if _is_enough(result, settings):
            break
        data = step.module()
        if data == previous:
            add(Row(step.label, "unchanged"))
        else:
            judge = partial(rounds_.judge, data, rounds, settings.limit_s)
            add(_timed(step.label, judge))
        previous = data
    if not _is_enough(result, settings):
        if compilation.artifact is not None:
            load = partial(load_code, compilation.artifact)
            add(_timed(CODE, partial(rounds_.judge_program, load, rounds, settings.limit_s)))
        elif compilation.failed:
            add(Row(compilation.failed, "compiler fails", compilation.reason))
    _blame(result, steps)
    return result


def _is_enough(result: Result, settings: Settings) -> bool:
    if settings.until is not None and result.rows[-1].label == settings.until:
        return True
    return result.bad is not None and not settings.all_passes


def _reference(
    steps: Sequence[Step], settings: Settings, add: Callable[[Row], None]
) -> list[Round]:
    """The rounds by the first module that can be run; rows up to it."""
    reason = ""
    for step in steps:
        begin = time.perf_counter()
        label = step.label or "input"
        try:
            rounds = rounds_.make_rounds(
                step.module(), settings.rounds, settings.seed, settings.limit_s
            )
        except NotRunnableError as error:
            reason = str(error)
            add(Row(label, "not runnable", reason))
            continue
        add(Row(label, "reference", seconds=time.perf_counter() - begin))
        return rounds
    raise InputError(f"none of the modules can be run: {reason}")


def _timed(label: str, run: Callable[[], Outcome]) -> Row:
    begin = time.perf_counter()
    outcome = run()
    seconds = time.perf_counter() - begin
    return Row(label, outcome.status, outcome.reason, outcome.kind, outcome.error, seconds)


def _blame(result: Result, steps: Sequence[Step]) -> None:
    """Name the suspects and write the module before the first of them."""
    if result.bad is None:
        return
    bad = result.rows.index(result.bad)
    first = bad
    while first > 0 and result.rows[first - 1].status == "not runnable":
        first -= 1
    result.suspects = [row.label for row in result.rows[first : bad + 1]]
    label = result.suspects[0]
    stage, _, name = label.partition(":")
    before = steps[first - 1]
    text = _marked(before)
    result.reproducer = reproducer.save(text, name or stage)
    if result.reproducer is not None:
        until = "" if label == CODE else f" --until {result.suspects[-1]} -o after.mlir"
        result.command = f"polyblocks compile {result.reproducer}{until}"


def _marked(step: Step) -> str:
    """The module's text with the mark of how far it came; a dump has it already."""
    from polyblocks import mlir
    from polyblocks.api import stage_of_file
    from polyblocks.pipeline import RESUME_ATTRIBUTE, mark

    text = step.path.read_bytes()
    module = mlir.parse(text)
    done = stage_of_file(step.path)
    if RESUME_ATTRIBUTE not in module.operation.attributes and done is not None:
        mark(module, done)
    return str(module.operation.get_asm(enable_debug_info=True)) + "\n"


def load_code(artifact: Artifact) -> Callable[[Sequence[Array], Variant, float], list[Array]]:
    """The generated code as a function of inputs, variant and time limit, like a ``Program``."""
    executable: Any = driver.load(artifact)
    rows = executable.manifest["arguments"]
    checks = executable.manifest.get("checks", [])

    def call(inputs: Sequence[Array], variant: Variant, limit_s: float) -> list[Array]:
        del limit_s  # the process has one
        memory = Guarded(not variant.backwards, variant.fill)
        arguments = Arguments(rows, memory, inputs)
        packed = struct.pack(f"{len(rows)}Q", *arguments.addresses)
        status = executable.entry(packed, 1 if variant is VARIANTS[0] else 2)
        if status:
            known = 0 < status <= len(checks)
            raise CheckError(f"a check fails: {checks[status - 1] if known else status}")
        return arguments.outputs()

    return call


_TINY = b"""
func.func @main(%a: tensor<1xf32>) -> tensor<1xf32> {
  %e = tensor.empty() : tensor<1xf32>
  %r = linalg.exp ins(%a : tensor<1xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  return %r : tensor<1xf32>
}
"""
_warm = False


def warm_up() -> None:
    """Load MLIR and LLVM into this process, so that not every forked child has to."""
    global _warm
    if _warm:
        return
    from polyblocks import mlir

    with native_lock:
        mlir.preload()
        try:
            Program(lower(_TINY))([np.zeros(1, np.float32)], VARIANTS[0], 60.0)
        except (NotRunnableError, RunError) as error:
            raise InputError(f"nothing can be run on this machine: {error}") from None
    _warm = True

"""The rounds of a search: inputs, and what the first module makes of them."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyblocks import signature
from polyblocks.attributes import ARGUMENT_ATTRIBUTE, RESULT_ATTRIBUTE
from polyblocks.bisect import inputs as random_inputs
from polyblocks.bisect.compare import Difference, Expected
from polyblocks.bisect.execute import VARIANTS, Array, Program, RunError
from polyblocks.bisect.reference import NotRunnableError, lower
from polyblocks.errors import InputError, MachineError, NativeCrashError, PolyBlocksError
from polyblocks.isolation.isolation import run_isolated

log = logging.getLogger("polyblocks")

#: Runs of the first module with inputs changed in the last place.
NEIGHBOURS = 2

#: Conversions of NaN and infinities to integers are undefined.
_TO_INTEGER = re.compile(rb"arith\.fpto[su]i")


@dataclass
class Round:
    """One set of inputs and the outputs that they must give."""

    kind: str
    inputs: list[Array]
    expected: Expected


@dataclass(frozen=True)
class Outcome:
    """The outcome of one module.

    Attributes:
        status: ``ok``, ``differs``, ``fails`` (it crashes, a check fails, it does not end) or
            ``not runnable``.
        reason: of ``fails`` and ``not runnable``; for ``differs`` where and by how much.
        kind: of the round that showed it.
        error: the largest absolute difference, for ``differs``.
    """

    status: str
    reason: str = ""
    kind: str = ""
    error: float | None = None


def input_rows(data: bytes) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of a module's inputs, and of its outputs in the order of execution's results."""
    from polyblocks import mlir

    module = mlir.parse(data)
    if not signature.is_in(data):
        signature.infer(module)
    rows = signature.rows(module)
    inputs = [row for row in rows if row["role"] == "input"]
    outputs = [row for row in rows if row["role"] == "output"]
    updated = {
        k: row
        for k, row in enumerate(rows)
        if row["role"] == "input" and row["updates"] is not None
    }
    if RESULT_ATTRIBUTE.encode() in data or ARGUMENT_ATTRIBUTE.encode() not in data:
        outputs = signature.rows(module, results=True)
        updated = {row["updates"]: row for row in outputs if row["updates"] is not None}
    fresh = [row for row in outputs if row["updates"] is None]
    return inputs, [*fresh, *(updated[k] for k in sorted(updated))]


def make_rounds(data: bytes, count: int, seed: int, limit_s: float) -> list[Round]:
    """Find inputs with which a module runs, and run it.

    Args:
        data: the module.
        count: how many rounds are wanted; kinds with which it never runs are left out.
        seed: of the inputs.
        limit_s: seconds that one run may take.

    Raises:
        NotRunnableError: the reference lowering does not know something in the module.
        InputError: it does not run with any inputs; says how it ended with the last ones.
    """
    inputs, outputs = input_rows(data)
    finite = _TO_INTEGER.search(data) is not None
    rounds = []
    reason = ""
    for number in range(count):
        kind = random_inputs.KINDS[number % len(random_inputs.KINDS)]
        first = seed + number // len(random_inputs.KINDS)
        for arrays in random_inputs.candidates(inputs, kind, first, finite):
            near = [
                random_inputs.perturbed(arrays, inputs, n)
                for n in range(NEIGHBOURS if _has_floats(inputs) else 0)
            ]
            try:
                results = _isolated_outputs(data, [arrays, *near], outputs, limit_s)
            except RunError as error:
                reason = str(error)
                continue
            expected = Expected(outputs, results[0], results[1:])
            rounds.append(Round(kind, arrays, expected))
            break
    if not rounds:
        raise InputError(f"the first module does not run with random inputs: {reason}")
    return rounds


def judge(data: bytes, rounds: Sequence[Round], limit_s: float) -> Outcome:
    """Run a module on all rounds, in a process that may die, and compare."""

    def execute() -> Callable[..., list[Array]]:
        return Program(lower(data))

    return judge_program(execute, rounds, limit_s)


def judge_program(
    load: Callable[[], Callable[..., list[Array]]], rounds: Sequence[Round], limit_s: float
) -> Outcome:
    """As :func:`judge`, for whatever ``load`` returns: ``f(inputs, variant, limit_s)``."""

    def job() -> bytes:
        kind = ""
        try:
            program = load()
            for round_ in rounds:
                kind = round_.kind
                found = _first_difference(program, round_, limit_s)
                if found is not None:
                    return _report("differs", str(found), kind, found.error)
        except NotRunnableError as error:
            return _report("not runnable", str(error))
        except RunError as error:
            return _report("fails", str(error), kind)
        return _report("ok")

    try:
        return Outcome(**json.loads(run_isolated(job, timeout_s=_total(rounds, limit_s))))
    except (NativeCrashError, MachineError) as error:
        return Outcome("fails", str(error).removeprefix("the compiler "))
    except PolyBlocksError as error:
        return Outcome("not runnable", str(error))


def _first_difference(
    program: Callable[..., list[Array]], round_: Round, limit_s: float
) -> Difference | None:
    for variant in VARIANTS:
        outputs = program(round_.inputs, variant, limit_s)
        found = round_.expected.difference(outputs)
        if found is not None:
            return found
    return None


def _report(status: str, reason: str = "", kind: str = "", error: float | None = None) -> bytes:
    return json.dumps({"status": status, "reason": reason, "kind": kind, "error": error}).encode()


def _isolated_outputs(
    data: bytes, sets: list[list[Array]], rows: list[dict[str, Any]], limit_s: float
) -> list[list[Array]]:
    """The outputs for several sets of inputs.

    Raises:
        NotRunnableError, RunError: as :class:`Program` does; also for a crash.
    """

    def job() -> bytes:
        buffer = io.BytesIO()
        try:
            program = Program(lower(data))
            results = [program(inputs, VARIANTS[0], limit_s) for inputs in sets]
        except (NotRunnableError, RunError) as error:
            kind = "R" if isinstance(error, RunError) else "N"
            return f"{kind}{error}".encode()
        arrays = {f"{k}-{n}": a for k, result in enumerate(results) for n, a in enumerate(result)}
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        return b"O" + buffer.getvalue()

    try:
        answer = run_isolated(job, timeout_s=limit_s * (len(sets) + 1) + 60)
    except (NativeCrashError, MachineError) as error:
        raise RunError(str(error).removeprefix("the compiler ")) from None
    if answer[:1] == b"N":
        raise NotRunnableError(answer[1:].decode())
    if answer[:1] == b"R":
        raise RunError(answer[1:].decode())
    with np.load(io.BytesIO(answer[1:]), allow_pickle=False) as found:
        return [[found[f"{k}-{n}"] for n in range(len(rows))] for k in range(len(sets))]


def _has_floats(rows: Sequence[dict[str, Any]]) -> bool:
    return any("float" in row["dtype"] or "complex" in row["dtype"] for row in rows)


def _total(rounds: Sequence[Round], limit_s: float) -> float:
    return limit_s * len(rounds) * len(VARIANTS) + 60

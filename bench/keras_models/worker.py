"""``python -m bench.keras_models.worker MODEL ROUNDS THREADS ANSWER``: one network in a process.

It writes a list of rows into the file ANSWER, anew after each mode: ``mode``, ``peer``,
``first_call``, ``minimum`` (seconds of the fastest later call), ``ratio`` (median over the rounds:
the time of a rival's turn over that of ours), ``error``, ``correct``; or a ``problem``. Errors are
against the same in float64.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench import crew
from bench.calls import timed
from bench.contest import IDLE_S
from bench.keras_models.table import FORWARD, MODES, OURS, TOLERANCES
from bench.orders import in_one_line
from bench.silence import Silence

Json = dict[str, Any]
Array = np.ndarray[Any, Any]

#: Seconds of calls in a turn; two calls at least, unless one takes a second.
TURN_S = 0.1


def compilers() -> dict[str, Callable[[Any], Any]]:
    """By peer; TensorFlow itself is the first one, whose error is that of rounding."""
    import tensorflow as tf

    from polyblocks.tf_polyblocks_compiler import polyblocks_jit_tf

    strict = {"target": "cpu", "strict_target": True}
    return {
        "tf.function": tf.function,
        OURS: lambda function: polyblocks_jit_tf(function, compile_options=strict),
        "XLA": lambda function: tf.function(function, jit_compile=True),
    }


def error_of(found: Array, expected: Array, mode: str) -> float:
    """Relative to the largest magnitude; of a training step to the length of all updates."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    difference = found.astype(np.float64) - expected
    if mode == FORWARD:
        return float(np.abs(difference).max() / np.abs(expected).max())
    return float(np.linalg.norm(difference) / np.linalg.norm(expected.astype(np.float64)))


def is_right(error: float, theirs: float, mode: str) -> bool:
    """Whether an error is one of rounding.

    What normalizes a few numbers, as the last layers of a training step on small images do,
    magnifies roundings: a result may be off by as much as TensorFlow's, twice.

    Args:
        error: of a result.
        theirs: of TensorFlow's.
        mode: of :data:`bench.keras_models.table.MODES`.
    """
    return error <= max(TOLERANCES[mode], 2 * theirs)


def compare(
    make: Callable[[], Any],
    exact: Array,
    by_peer: dict[str, Callable[[Any], Any]],
    mode: str,
    rounds: int,
    silence: Silence,
    idle_s: float = IDLE_S,
) -> list[Json]:
    """Compile, check, and take turns.

    Args:
        make: a new :class:`bench.keras_models.networks.Job`.
        exact: the outcome in float64.
        by_peer: compilers; the first one's error says what rounding does.
        mode: of :data:`bench.keras_models.table.MODES`.
        rounds: turns of each peer.
        silence: before each turn.
        idle_s: seconds of it.
    """
    rows, running = [], []
    yardstick = next(iter(by_peer))
    theirs = 0.0
    for peer, compiler in by_peer.items():
        row: Json = {"mode": mode, "peer": peer}
        rows.append(row)
        try:
            job = make()
            function = compiler(job.function)
            begin = time.perf_counter()
            result = function(*job.arguments)
            outcome = job.outcome(result)
            row["first_call"] = time.perf_counter() - begin
            error = error_of(outcome, exact, mode)
            if peer == yardstick and np.isfinite(error):
                theirs = error
            # JSON has no infinity.
            row["error"] = error if np.isfinite(error) else None
            row["correct"] = is_right(error, theirs, mode)
            running.append((row, lambda f=function, j=job: j.finish(f(*j.arguments))))
        except Exception as failure:  # a peer that cannot is a row that says why
            row["problem"] = in_one_line(failure)
    turns: dict[str, list[float]] = {row["peer"]: [] for row, _ in running}
    for turn in range(rounds):
        # No peer always comes after the same other one.
        shift = turn % max(1, len(running))
        for row, call in running[shift:] + running[:shift]:
            silence.keep(idle_s)
            samples = timed(call, TURN_S)
            turns[row["peer"]].append(statistics.median(samples))
            row["minimum"] = min(row.get("minimum", samples[0]), *samples)
    for row, _ in running:
        if row["peer"] != OURS and turns.get(OURS):
            pairs = zip(turns[row["peer"]], turns[OURS], strict=True)
            row["ratio"] = statistics.median(theirs / ours for theirs, ours in pairs)
    return rows


def main() -> None:
    """Measure one network."""
    name, rounds, threads, answer = sys.argv[1:]
    # XLA takes all processors that it sees.
    crew.hold(int(threads))
    import tensorflow as tf

    from bench.keras_models import networks

    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(1)
    silence, found = Silence(), []
    for mode, batch in MODES.items():
        make = lambda mode=mode, batch=batch: networks.job(name, mode, batch)  # noqa: E731
        exact = networks.exact(name, mode, batch)
        found += compare(make, exact, compilers(), mode, int(rounds), silence)
        Path(answer).write_text(json.dumps({"rows": found, "busy": silence.busy()}))
        gc.collect()


if __name__ == "__main__":
    main()

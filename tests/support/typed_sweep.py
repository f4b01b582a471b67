"""Many random typed programs in forked workers, and what became of them."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from forked_sweep import SAMPLE_LIMIT, Entry, Outcome, sweep
from preloading import preload
from rich.progress import Progress
from typed_check import check
from typed_fuzz import Program, make, operations, shortened

from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

#: Programs of one worker: forking takes as long as compiling one.
BATCH = 20


@dataclass(frozen=True)
class Sample:
    """A seed, how long its program is (None: as it comes), and whether to shorten a failing one."""

    seed: int
    length: int | None
    shorten: bool


def check_sample(sample: Sample) -> Outcome:
    """Make, run and compare the program of one seed."""
    program = make(sample.seed, sample.length)
    outcome = check(program, polyblocks_jit_torch)
    text = ""
    if outcome.kind == "wrong":
        text = str(program)
        if sample.shorten:
            short = shortened(program, lambda p: _alike(check(p, polyblocks_jit_torch), outcome))
            text = f"{check(short, polyblocks_jit_torch).reason}\n{short}"
    measured = {"gradient": float(program.gradient)}
    reason = f"{outcome.reason}\n{text}" if text else outcome.reason
    return Outcome(outcome.kind, reason, outcome.ops, outcome.left, measured)


def _alike(a: Outcome, b: Outcome) -> bool:
    """Whether both are wrong, and both or neither by an exception."""
    raised = [o.reason.startswith("raised") for o in (a, b)]
    return a.kind == b.kind == "wrong" and raised[0] == raised[1]


def _dies(program: Program) -> bool:
    """Whether a process that runs the program ends without a word."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SAMPLE_LIMIT)
        try:
            check(program, polyblocks_jit_torch)
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def sweep_typed(
    seeds: Sequence[int],
    length: int | None,
    workers: int,
    path: Path | None = None,
    resume: bool = False,
    shorten: bool = False,
) -> int:
    """Run the programs of seeds and print what is not right; returns how many are wrong or died.

    Args:
        seeds: of the programs.
        length: of each; None: 3 to 15.
        workers: processes at once.
        path: where outcomes are kept.
        resume: keep what is there, and run the other seeds only.
        shorten: print failing programs without the lines that are not needed.
    """
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    from torch_mlir.extras import fx_importer  # noqa: F401

    preload("cpu")
    known: dict[str, Any] = {}
    if resume and path and path.exists():
        known = json.loads(path.read_text())
    missing = [seed for seed in seeds if str(seed) not in known]
    entries = [
        Entry(f"{batch[0]}", [(str(s), Sample(s, length, shorten)) for s in batch])
        for batch in (missing[i : i + BATCH] for i in range(0, len(missing), BATCH))
    ]
    began = time.monotonic()
    with Progress(transient=True) as progress:
        task = progress.add_task("programs", total=len(missing))
        for entry in sweep(entries, check_sample, workers):
            progress.update(task, advance=len(entry.samples))
            for seed, outcome in entry.outcomes:
                known[seed] = vars(outcome)
                if outcome.kind in ("wrong", "crashed", "timeout"):
                    reason = outcome.reason
                    if outcome.kind != "wrong":
                        program = make(int(seed), length)
                        program = shortened(program, _dies) if shorten else program
                        reason += f"\n{program}"
                    print(f"seed {seed}: {outcome.kind}: {reason}\n", flush=True)
            if path:
                path.write_text(json.dumps(known, indent=1))
    outcomes = [Outcome(**known[str(seed)]) for seed in seeds]
    kinds = Counter(outcome.kind for outcome in outcomes)
    met = {name for outcome in outcomes for name in outcome.ops}
    gradients = sum(outcome.measured.get("gradient", 0) for outcome in outcomes)
    print(
        f"{len(outcomes)} programs, {gradients:.0f} of them with gradients, of {len(met)} of "
        f"{len(operations())} operations, {time.monotonic() - began:.0f} s: "
        f"{kinds['compiled']} right, {kinds['fallback']} right and partly run by PyTorch, "
        f"{kinds['wrong']} wrong, {kinds['crashed'] + kinds['timeout']} died, "
        f"{kinds['skipped']} that PyTorch or torch.compile refuses"
    )
    return kinds["wrong"] + kinds["crashed"] + kinds["timeout"]

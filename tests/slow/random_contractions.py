"""Compile random contractions, compare them with float64 and time them: `--count 400`.

A sample is a matrix product, an einsum or a convolution of random extents, types and layouts, with
what stands before and behind such a thing in a program. Its result has to be as exact as eager
PyTorch's. What cannot be compiled has to be a reported fallback. `--seed S --only N` repeats one
sample and prints it.

`--plot FILE.png` draws how many times as long as ours the better of eager mode and `torch.compile`
takes. The latter compiles C++ for seconds, so it gets a share of the samples only, beginning with
those in which eager mode is the slowest for what it computes.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT)]

#: Samples of one worker: few, so that what a process keeps does not add up.
PER_WORKER = 10


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=400, help="samples; default: 400")
    parser.add_argument("--seed", type=int, default=0, help="of all samples; default: 0")
    parser.add_argument("--only", type=int, metavar="N", help="sample N alone, and what it is")
    parser.add_argument("--threads", type=int, default=2, help="of every peer; default: 2")
    parser.add_argument("--no-times", action="store_true", help="judge only")
    parser.add_argument("--workers", type=int, default=1, help="samples at a time, with --no-times")
    parser.add_argument("--no-inductor", action="store_true", help="compare with eager mode only")
    parser.add_argument(
        "--inductor-share",
        type=float,
        default=0.3,
        metavar="SHARE",
        help="of the samples that torch.compile gets as well; default: 0.3",
    )
    parser.add_argument("--plot", type=Path, help="PNG of the ratios; the numbers beside it, JSON")
    arguments = parser.parse_args()
    if arguments.no_times and arguments.plot:
        parser.error("--plot needs the times that --no-times leaves out")
    if arguments.workers > 1 and not arguments.no_times:
        parser.error("--workers needs --no-times: one sample at a time is timed")
    return arguments


def main() -> int:
    """Print what is wrong and what is slow; the exit status is the number wrong, at most 100."""
    arguments = parsed()
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory(prefix="polyblocks-contractions-") as folder:
        os.environ["POLYBLOCKS_CACHE_DIR"] = folder
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        # One file of C++ per sample, and no pool of processes to start for it.
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        if arguments.only is not None:
            return _one(arguments)
        os.environ["POLYBLOCKS_REPRODUCERS"] = folder
        # The workers of the sweep are the isolation.
        os.environ["POLYBLOCKS_ISOLATE"] = "0"
        logging.disable(logging.ERROR)
        return _all(arguments)


def _one(arguments: argparse.Namespace) -> int:
    import torch
    from contraction_check import check, time_inductor
    from contraction_fuzz import make

    torch.set_num_threads(arguments.threads)
    sample = make(arguments.seed, arguments.only)
    print(f"{sample.name}, {sample.contraction.flops} FLOP", *sample.text, sep="\n  ", flush=True)
    outcomes = [check(sample, timed=not arguments.no_times)]
    if not arguments.no_times and not arguments.no_inductor:
        outcomes.append(time_inductor(sample))
    for outcome in outcomes:
        print(outcome.kind, outcome.reason)
        for name, seconds in outcome.measured.items():
            print(f"  {name}: {seconds * 1e3:.4g} ms")
    return int(outcomes[0].kind == "wrong")


def _all(arguments: argparse.Namespace) -> int:
    import contraction_report as report
    from contraction_check import check, time_inductor
    from contraction_fuzz import make
    from preloading import preload
    from torch_mlir.extras import fx_importer  # noqa: F401

    from polyblocks_torch.importing import importer  # noqa: F401

    preload("cpu")
    begin = time.monotonic()
    timed = not arguments.no_times
    rows: dict[int, report.Row] = {}

    def judged(number: int, outcome: Any) -> None:
        rows[number] = row = report.Row.of(number, make(arguments.seed, number), outcome)
        if row.outcome in report.BAD:
            print(*report.bad_lines(row, arguments.seed), sep="\n", flush=True)

    def judge(sample: Any) -> Any:
        return check(sample, timed=timed)

    _sweep(range(arguments.count), judge, judged, arguments)
    if timed and not arguments.no_inductor:
        # PyTorch imports it when it is first used, for seconds.
        import torch._inductor.compile_fx  # noqa: F401

        def compared(number: int, outcome: Any) -> None:
            rows[number].measured |= outcome.measured

        chosen = _slowest(rows.values(), round(arguments.inductor_share * arguments.count))
        _sweep(chosen, time_inductor, compared, arguments)
    ordered = [rows[number] for number in sorted(rows)]
    print(*report.counts(ordered), *(report.times(ordered) if timed else ()), sep="\n")
    print(f"{time.monotonic() - begin:.0f} s")
    if arguments.plot:
        report.write(ordered, arguments.plot)
    return min(sum(row.outcome in report.BAD for row in ordered), 100)


def _slowest(rows: Any, count: int) -> list[int]:
    """The numbers of so many samples, those first for which eager mode takes longest per FLOP."""
    timed = [row for row in rows if row.ratio is not None and row.flops]
    timed.sort(key=lambda row: row.measured["eager"] / row.flops, reverse=True)
    return [row.number for row in timed[:count]]


def _sweep(
    numbers: Sequence[int],
    check: Callable[[Any], Any],
    done: Callable[[int, Any], None],
    arguments: argparse.Namespace,
) -> None:
    """Check samples in forked processes; ``done(number, outcome)`` is called for each."""
    import torch
    from contraction_fuzz import make
    from forked_sweep import Entry, sweep
    from rich.progress import Progress

    def in_worker(number: int) -> Any:
        # Not before the fork: a team of threads does not survive it.
        torch.set_num_threads(arguments.threads)
        try:
            return check(make(arguments.seed, number))
        finally:
            torch._dynamo.reset()

    entries = [
        Entry(str(first), [(str(number), number) for number in numbers[first : first + PER_WORKER]])
        for first in range(0, len(numbers), PER_WORKER)
    ]
    with Progress(transient=True) as progress:
        task = progress.add_task("contractions", total=len(numbers))
        for entry in sweep(entries, in_worker, arguments.workers):
            for label, outcome in entry.outcomes:
                done(int(label), outcome)
            progress.update(task, advance=len(entry.samples))


if __name__ == "__main__":
    sys.exit(main())

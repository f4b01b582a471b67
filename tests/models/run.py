"""``make models``: architectures of many kinds, compiled whole, some with a training step.

Small random weights; compared with eager mode and with float64. Writes ``results.md`` (committed,
a page of the documentation): the rows of what has run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

#: Seconds for one architecture: the largest training steps take 100 on a quiet machine.
LIMIT = 400


def main() -> int:
    """Run all, or those named.

    The exit status is 1 if one is wrong, or not as ``known.py`` says: whole, or in part.
    """
    sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of architectures; default: all")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--exported", action="store_true", help="as torch.export gives them: twenty"
    )
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory(prefix="polyblocks-models-") as folder:
        os.environ["POLYBLOCKS_CACHE_DIR"] = folder
        os.environ["POLYBLOCKS_REPRODUCERS"] = folder
        # The workers are the isolation.
        os.environ["POLYBLOCKS_ISOLATE"] = "0"
        # No weights are asked for.
        os.environ["HF_HUB_OFFLINE"] = "1"
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    import logging

    import torch

    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    import transformers
    from exported import NAMES, check_exported
    from forked_sweep import Entry, sweep
    from known import known
    from model_check import check
    from preloading import preload
    from rich.console import Console
    from rich.progress import Progress
    from torch_mlir.extras import fx_importer  # noqa: F401
    from zoo import models

    transformers.logging.set_verbosity_error()
    preload("cpu")
    every = list(models())
    unknown = set(arguments.names) - {model.name for model in every}
    if unknown:
        print(f"no such architecture: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    names = arguments.names or (NAMES if arguments.exported else [model.name for model in every])
    chosen = [model for model in every if model.name in names]
    entries = [Entry(model.name, [("", model)], LIMIT) for model in chosen]
    began, console = time.monotonic(), Console()
    with Progress(transient=True, console=console) as progress:
        task = progress.add_task("architectures", total=len(entries))
        for entry in sweep(
            entries, check_exported if arguments.exported else check, arguments.workers
        ):
            progress.update(task, advance=1, description=entry.name)
            ((_, outcome),) = entry.outcomes
            seen = ", ".join(f"{name} {value:.3g}" for name, value in outcome.measured.items())
            progress.print(f"{entry.name}: {outcome.kind} {outcome.reason}{seen}", markup=False)
    bad = 0
    for entry in entries:
        kind = entry.outcomes[0][1].kind
        if known(entry.name) and kind == "compiled":
            console.print(f"{entry.name} is compiled whole: take it out of known.py")
        bad += kind != ("fallback" if known(entry.name) else "compiled")
    seconds = time.monotonic() - began
    console.print(f"{len(entries) - bad} of {len(entries)} as expected, {seconds:.0f} s")
    if not bad and not arguments.exported:
        write_page(every, {entry.name: entry.outcomes[0][1].measured for entry in entries})
    return int(bad > 0)


def write_page(models: list[Any], measured: dict[str, dict[str, float]]) -> None:
    """Write the table of results; architectures that have not run now keep their rows.

    Args:
        models: all architectures.
        measured: weights, seconds and error of those that have run.
    """
    import torch
    import transformers
    from known import known

    page = HERE / "results.md"
    written = page.read_text().splitlines() if page.exists() else []
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in written}
    for model in models:
        seen = measured.get(model.name)
        if seen is None:
            continue
        numbers = (
            f"in part: {known(model.name)} | | |"
            if known(model.name)
            else f"{seen['weights']:,.0f} | {seen['seconds']:.1f} | {seen['error']:.0e} |"
        )
        rows[model.name] = f"| {model.name} | {model.kind} | {numbers}"
    table = [rows[model.name] for model in models if model.name in rows]
    lines = [
        f"`make models`, with PyTorch {torch.__version__.split('+')[0]} and transformers "
        f"{transformers.__version__}: {len(table)} architectures.",
        "",
        "| architecture | works on | weights | first call, s | error |",
        "|---|---|---:|---:|---:|",
        *table,
    ]
    page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())

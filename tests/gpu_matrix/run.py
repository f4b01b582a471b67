"""``make gpu-matrix``: all that is checked of GPUs' matrix units without a GPU, a row each.

Commands run two at a time, but for the one that measures seconds, which comes first and alone.
Writes tables to ``bench/results`` (committed), this one among them, and what each command said to
``build/gpu-matrix``. Exit status 1 if a row does not hold.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "gpu-matrix"
RESULTS = ("--results", "bench/results")
#: Commands that run at the same time.
AT_ONCE = int(os.environ.get("TEST_PROCESSES", "2"))


@dataclass(frozen=True)
class Check:
    """One row.

    Attributes:
        what: is checked.
        command: of Python: exit status 0 if it holds; its last line says what was seen.
        alone: whether nothing else may run beside it.
    """

    what: str
    command: tuple[str, ...]
    alone: bool = False


def pytest(*files: str) -> tuple[str, ...]:
    """The command for some files of tests."""
    return ("-m", "pytest", "-q", "-n", "0", *files)


def static(groups: str) -> tuple[str, ...]:
    """The command for groups of :mod:`bench.gpu_static`."""
    return ("-m", "bench.gpu_static", "--groups", groups, *RESULTS)


CHECKS = (
    Check("networks", ("-m", "bench.gpu_networks", *RESULTS), alone=True),
    Check("random products", ("tests/slow/random_matrix_products.py", "--count", "160")),
    Check("random convolutions", ("tests/slow/random_convolutions.py", "--count", "60")),
    Check("random networks", ("tests/slow/random_networks.py", "--count", "20")),
    Check("machine code of products", static("products")),
    Check("machine code of ResNet-50", static("resnet-50")),
    Check("machine code of vector kernels", static("vector")),
    Check("published measurements", ("-m", "bench.gpu_static", "--published", *RESULTS)),
    Check(
        "each convolution of ResNet-50 is one kernel",
        pytest("tests/e2e/test_network_convolutions.py"),
    ),
    Check("fragments", pytest("tests/unit/test_fragments.py")),
    Check(
        "kernels, and faults planted in them",
        pytest("tests/unit/test_simt_planted.py", "tests/extended/test_matrix_units_simulated.py"),
    ),
    Check("modes", pytest("tests/extended/test_precision_modes_simulated.py")),
)


def main() -> int:
    """Run the checks and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="checks whose names contain this")
    arguments = parser.parse_args()
    checks = [check for check in CHECKS if arguments.only in check.what]
    if not checks:
        names = "; ".join(check.what for check in CHECKS)
        parser.error(f"no check contains {arguments.only!r}; the checks are {names}")
    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    lines = {check: run(check) for check in checks if check.alone}
    together = [check for check in checks if not check.alone]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        lines |= dict(zip(together, pool.map(run, together), strict=True))
    minutes = (time.monotonic() - began) / 60
    held = [line for line in lines.values() if line.startswith("| yes")]
    text = (
        f"# Matrix units of GPUs, without a GPU, {datetime.date.today().isoformat()}\n\n"
        f"Written by `make gpu-matrix` in {minutes:.0f} minutes; {len(held)} of {len(lines)} rows "
        "hold. What is behind a row is in the other tables, or in `build/gpu-matrix` where it ran."
        "\n\n| holds | what | seconds | seen |\n| --- | --- | ---: | --- |\n"
        + "".join(f"{lines[check]}\n" for check in checks)
    )
    print(text)
    if not arguments.only:
        date = datetime.date.today().isoformat()
        (ROOT / "bench" / "results" / f"{date}-gpu-matrix.md").write_text(text)
    return int(len(held) < len(lines))


def run(check: Check) -> str:
    """The line of a check."""
    began = time.monotonic()
    log = LOGS / f"{check.what.replace(' ', '-').replace(',', '')}.log"
    with log.open("w") as file:
        done = subprocess.run(
            [sys.executable, *check.command], cwd=ROOT, stdout=file, stderr=subprocess.STDOUT
        )
    seconds = time.monotonic() - began
    line = f"| {'no' if done.returncode else 'yes'} | {check.what} | {seconds:.0f} | {seen(log)} |"
    print(line, flush=True)
    return line


def seen(log: Path) -> str:
    """What a log says: how many things do not hold, or its last line."""
    lines = [line for line in log.read_text().splitlines() if line.strip()]
    if "## What does not hold" in lines:
        behind = lines[lines.index("## What does not hold") + 1 :]
        missed = [line for line in behind if line.startswith("- ")]
        return f"{len(missed)} bars are missed" if missed else "every bar holds"
    return lines[-1].strip("= ") if lines else "nothing"


if __name__ == "__main__":
    sys.exit(main())

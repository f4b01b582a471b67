"""What the vendor's tools find in the small programs, and whether they count what we simulated."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.gpu.bundle import Bundle

Json = dict[str, Any]
#: Runs a command: ``(exit status, everything that it printed)``.
Execute = Callable[[Sequence[str]], tuple[int, str]]

SANITIZER, PROFILER = "compute-sanitizer", "ncu"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
#: The sanitizer ends with this status if it finds something; a wrong result ends with 1.
FOUND = 86
#: Sectors of 32 bytes that loads and stores of global memory use, as the simulator counts them.
METRICS = (
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
)
#: Part by which the counted sectors may differ from the simulated ones: copies that go around
#: the counters' unit, and atomics.
MARGIN = 0.05
_SUMMARY = "========= ERROR SUMMARY"
_RACES = "========= RACECHECK SUMMARY"


def execute(command: Sequence[str]) -> tuple[int, str]:
    """Run a command; its standard error is a part of what it prints."""
    # The kit, where these benchmarks come from one.
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1800,
        check=False,
    )
    return done.returncode, done.stdout


def once(bundle: Bundle) -> list[str]:
    """The command that runs all small programs."""
    return [sys.executable, "-m", "bench.gpu", "once", str(bundle.folder)]


def sanitize(bundle: Bundle, execute: Execute = execute) -> Json:
    """By tool ``clean``, what it ``said`` at the end, or ``problem`` if it is not there."""
    if shutil.which(SANITIZER) is None:
        return {tool: {"problem": f"{SANITIZER} is not installed"} for tool in TOOLS}
    found: Json = {}
    for tool in TOOLS:
        command = [SANITIZER, "--tool", tool, "--error-exitcode", str(FOUND), *once(bundle)]
        status, said = execute(command)
        lines = [line for line in said.splitlines() if line.startswith((_SUMMARY, _RACES))]
        found[tool] = {
            "clean": status == 0 and bool(lines),
            "status": status,
            "said": lines[-1] if lines else "\n".join(said.splitlines()[-5:]),
        }
    return found


def compare_bytes(bundle: Bundle, execute: Execute = execute) -> list[Json]:
    """By kernel the sectors that the profiler counts beside those of the simulator.

    Keys: ``kernel``, ``simulated``, ``counted``, ``agree``; or one row with a ``problem``.
    """
    if shutil.which(PROFILER) is None:
        return [{"problem": f"{PROFILER} is not installed"}]
    command = [PROFILER, "--csv", "--print-units", "base", "--metrics", ",".join(METRICS)]
    status, said = execute([*command, *once(bundle)])
    counted = sectors(said)
    if status or not counted:
        last = said.splitlines()[-1:] or ["it printed nothing"]
        return [{"problem": f"{PROFILER} ended with {status}: {last[0]}"}]
    simulated = simulated_sectors(bundle)
    return [
        {
            "kernel": kernel,
            "simulated": simulated.get(kernel),
            "counted": count,
            "agree": kernel in simulated
            and abs(count - simulated[kernel]) <= MARGIN * simulated[kernel],
        }
        for kernel, count in counted.items()
    ]


def simulated_sectors(bundle: Bundle) -> dict[str, int]:
    """Sectors by kernel, of all its launches, as the simulator counted them."""
    from bench.gpu.device import chosen

    found: dict[str, int] = {}
    for pair in bundle.pairs("small"):
        arch, manifest = chosen(bundle.program(pair, "small"))
        counted = bundle.facts["cases"][pair.slug]["simulation"][arch]["kernels"]
        for kernel in manifest["kernels"]:
            # Equal kernels are one on a device; the simulator keeps them apart.
            own = sum(counted[name]["sectors"] for name in dict.fromkeys(kernel["nests"]))
            found[kernel["name"]] = found.get(kernel["name"], 0) + own
    return found


def sectors(said: str) -> dict[str, int]:
    """Sectors by kernel, of all its launches, from the profiler's table."""
    lines = said.splitlines()
    starts = [k for k, line in enumerate(lines) if line.startswith('"ID"')]
    if not starts:
        return {}
    found: dict[str, int] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[starts[0] :]))):
        if row.get("Metric Name") in METRICS:
            name = row["Kernel Name"].partition("(")[0]
            found[name] = found.get(name, 0) + round(float(row["Metric Value"].replace(",", "")))
    return found


def failures(found: Json) -> list[str]:
    """What is not as it should be, in one line each; tools that are missing do not count."""
    lines = [
        f"{tool}: {row['said']}"
        for tool, row in found["sanitizer"].items()
        if row.get("clean") is False
    ]
    for row in found["bytes"]:
        if row.get("agree") is False:
            lines.append(
                f"{row['kernel']}: {row['counted']} sectors counted, {row['simulated']} simulated"
            )
    return lines


def check(bundle: Bundle, execute: Execute = execute) -> Json:
    """Both, with the keys ``sanitizer`` and ``bytes``."""
    return {"sanitizer": sanitize(bundle, execute), "bytes": compare_bytes(bundle, execute)}

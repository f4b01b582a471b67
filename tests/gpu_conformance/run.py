"""``make gpu-conformance``: the end-to-end tests on simulated GPUs.

Each test runs with the options of the simulated chip in the place of its own target. Writes
``results.md`` (committed).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "support"))

#: Seconds for one test.
LIMIT = 300


def main() -> int:
    """Run the tests; the exit status is 1 if anything was wrong, found or crashed."""
    from simulated_chips import CHIPS
    from summary import BAD, print_table, write_markdown

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", help="files, or tests of pytest; default: all")
    parser.add_argument("--arch", choices=CHIPS, action="append", help="default: all")
    parser.add_argument("--log", type=Path, help="folder of the outcomes; those in it are kept")
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds for one test")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th test only")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="begin with test K")
    parser.add_argument(
        "--programs",
        type=Path,
        help="folder that gets the programs, for assemble; also those of tests that are too large "
        "for a simulator, which run on the CPU",
    )
    parser.add_argument(
        "--calls",
        type=Path,
        help="file that gets what one architecture's simulator computed, for replay on a GPU",
    )
    arguments = parser.parse_args()
    if arguments.calls and len(arguments.arch or ()) != 1:
        parser.error("--calls is for one architecture; name it by --arch")
    archs = arguments.arch or list(CHIPS)
    with tempfile.TemporaryDirectory(prefix="polyblocks-conformance-") as folder:
        logs = arguments.log or Path(folder)
        logs.mkdir(parents=True, exist_ok=True)
        rows = {arch: _run(arch, logs / f"{arch}.jsonl", arguments, folder) for arch in archs}
        if arguments.calls:
            from call_files import pack

            pack(Path(folder) / "calls", arguments.calls)
    well = not arguments.programs or _keep_large(arguments)
    print_table(rows)
    if not arguments.tests and set(archs) == set(CHIPS):
        write_markdown(HERE / "results.md", rows, arguments.every)
    bad = any(row["kind"] in BAD for tests in rows.values() for row in tests.values())
    return int(bad or not well)


def _run(
    arch: str, log: Path, arguments: argparse.Namespace, folder: str
) -> dict[str, dict[str, Any]]:
    """The outcomes by test. A process that dies is followed by one that does the rest."""
    variables = {
        "CONFORMANCE_ARCH": arch,
        "CONFORMANCE_LOG": str(log.resolve()),
        "CONFORMANCE_EVERY": str(arguments.every),
        "CONFORMANCE_FIRST": str(arguments.first),
        # A death is a crash and counted here, not a fallback.
        "POLYBLOCKS_ISOLATE": "0",
        "POLYBLOCKS_REPRODUCERS": folder,
    }
    if arguments.calls:
        variables["CONFORMANCE_CALLS"] = str(Path(folder) / "calls")
    while True:
        before = _read(log)
        plugins = ["record", "keep_calls"] if arguments.calls else ["record"]
        status = _pytest("not cpu and not large", arguments, plugins, variables)
        rows = _read(log)
        for row in rows.values():
            if row["kind"] == "begun":
                row |= {"kind": "crashed", "reason": f"the process ended with status {status}"}
                with log.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        # 0, 1 and 5: it went through all tests, some of which failed, or there were none.
        if status in (0, 1, 5):
            return rows
        if len(rows) == len(before):
            raise SystemExit(f"expected pytest to run tests, but it ended with status {status}")


def _keep_large(arguments: argparse.Namespace) -> bool:
    """Run the large tests on the CPU, for their programs; whether they went well."""
    # 5: none of the chosen tests is large.
    return _pytest("large and not cpu", arguments, [], {}) in (0, 5)


def _pytest(
    marks: str, arguments: argparse.Namespace, plugins: list[str], variables: dict[str, str]
) -> int:
    """Run the chosen tests that have these marks, with plugins of this folder; pytest's status."""
    paths = [str(HERE), str(HERE.parent / "support"), *sys.path]
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), **variables}
    if arguments.programs:
        plugins = [*plugins, "keep_programs"]
        variables["CONFORMANCE_PROGRAMS"] = str(arguments.programs.resolve())
    command = [sys.executable, "-m", "pytest", "-q", "-m", marks, "-p", "no:cacheprovider"]
    command += [part for plugin in plugins for part in ("-p", plugin)]
    command += ["--tb=no", f"--timeout={arguments.limit}", *(arguments.tests or ["tests/e2e"])]
    return subprocess.run(command, cwd=ROOT, env=os.environ | variables, check=False).returncode


def _read(log: Path) -> dict[str, dict[str, Any]]:
    """The last line about each test."""
    lines = log.read_text().splitlines() if log.exists() else []
    return {row["test"]: row for row in map(json.loads, lines)}


if __name__ == "__main__":
    sys.exit(main())

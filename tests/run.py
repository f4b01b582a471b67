"""``make test``: pytest in several processes, each with the files that import the same frameworks.

Files and folders among the arguments say what runs, by default all tests; all other arguments are
pytest's, for each process. The exit status is 0 if all tests passed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).parent / "support"))

import parts  # noqa: E402
from durations import DURATIONS, VARIABLE  # noqa: E402
from summary import summary  # noqa: E402

#: Parts for each process, if all take equally long: so many that no process is left with one.
PARTS_PER_PROCESS = 4
#: Exit status of pytest where no test was selected.
NO_TESTS = 5


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts, the longest first; print what pytest says of each, and what all come to."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--processes", type=int, default=2, help="at once; 0: all in this one")
    arguments, rest = parser.parse_known_args(argv)
    os.chdir(ROOT)
    if arguments.processes == 0:
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *rest])
    wanted = {name: [] for name in files_of(rest)}
    for name in (name for name in rest if is_path(name)):
        for file in files_of([name]):
            wanted[file].append(name if "::" in name else file)
    options = [argument for argument in rest if not is_path(argument)]
    durations = json.loads(DURATIONS.read_text())
    total = sum(durations.get(file, parts.GUESS) for file in wanted)
    longest = max(1.0, total / (arguments.processes * PARTS_PER_PROCESS))
    todo = parts.split(wanted, durations, longest)
    ended = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.processes) as pool:
        runs = {
            pool.submit(
                run,
                [name for file in part.files for name in wanted[file] or [file]],
                options,
                Path(folder) / str(number),
            ): part
            for number, part in enumerate(todo)
        }
        try:
            for number, done in enumerate(as_completed(runs), 1):
                status, seconds, output = done.result()
                name = f"part {number} of {len(todo)}: {runs[done].label}"
                ended.append((name, status, output))
                print(f"--- {name}, {seconds:.0f} s")
                print(output, flush=True)
        except BaseException:  # an interrupt ends the running parts, too; no other begins
            pool.shutdown(cancel_futures=True)
            raise
        if path := os.environ.get(VARIABLE):
            found = [json.loads(file.read_text()) for file in sorted(Path(folder).iterdir())]
            merged = dict(sorted(row for rows in found for row in rows.items()))
            Path(path).write_text(json.dumps(merged, indent=0) + "\n")
    print(f"--- all parts\n{summary(ended)}")
    statuses = {status for _, status, _ in ended}
    failed = statuses - {0, NO_TESTS}
    return max(failed, default=0 if 0 in statuses else NO_TESTS)


def is_path(argument: str) -> bool:
    """Whether an argument names tests: a folder, a file, or ``file::test``."""
    path = Path(argument.partition("::")[0]).resolve()
    return path.exists() and path.is_relative_to(ROOT / "tests")


def files_of(arguments: Sequence[str]) -> list[str]:
    """Files of tests that arguments name; all, if they name none."""
    named = [Path(name.partition("::")[0]) for name in arguments if is_path(name)]
    found = {
        str(file.resolve().relative_to(ROOT))
        for path in named or [Path("tests")]
        for file in ([path] if path.is_file() else path.rglob("test_*.py"))
    }
    return sorted(found)


def run(tests: Sequence[str], options: Sequence[str], durations: Path) -> tuple[int, float, str]:
    """Run pytest; its exit status, what it took in seconds, and its output."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, *tests],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=os.environ | ({VARIABLE: str(durations)} if VARIABLE in os.environ else {}),
    )
    return done.returncode, time.monotonic() - began, done.stdout


if __name__ == "__main__":
    sys.exit(main())

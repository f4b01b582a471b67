"""``make test``: pytest in several processes, each with the files that import the same frameworks.

Files and folders among the arguments select tests, by default all; all other arguments are
pytest's, for each process, with values as in ``--option=value``. The exit status is 0 if all tests
passed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).parent / "support"))

import junit  # noqa: E402
import parts  # noqa: E402
import preloaded  # noqa: E402
from durations import DURATIONS, VARIABLE  # noqa: E402
from outcomes import NO_TESTS, PASSED, Run, exit_status, summary  # noqa: E402

#: Seconds after which a part hangs; pytest ends each test much earlier.
PATIENCE_S = 3600.0
#: Options of one letter whose value is the next argument.
WITH_VALUE = ("-c", "-k", "-m", "-n", "-o", "-p", "-r", "-W")
#: Options that write a file, of which each part would leave its own.
WRITES_A_FILE = ("--report-log", "--resultlog")
#: Where a test, or a value of a sweep, is marked.
MARKED = re.compile(r"\bmark\.extended\b|\bextended=|\"extended\"")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts, the longest first; print what pytest says of each, and what all come to."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--processes", type=int, default=2, help="at once; 0: all in this one")
    parser.add_argument("--without", metavar="FOLDER", help="unless something is selected")
    parser.add_argument(
        "--extended",
        metavar="FOLDER",
        help="unless something is selected: its files, and those with tests marked extended",
    )
    parser.add_argument("--junitxml", metavar="FILE", help="results of all parts, as pytest's")
    arguments, rest = parser.parse_known_args(argv)
    results = Path(arguments.junitxml).absolute() if arguments.junitxml else None
    os.chdir(ROOT)
    if arguments.processes == 0:
        rest += [f"--junitxml={results}"] if results else []
        if arguments.without and not any(map(is_path, rest)):
            rest.append(f"--ignore={arguments.without}")
        if arguments.extended and not any(map(is_path, rest)):
            rest += extended(Path(arguments.extended))
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *rest])
    try:
        selected, options = split(rest)
    except ValueError as error:
        parser.error(str(error))
    if arguments.without and not selected:
        selected = others(Path(arguments.without))
    if arguments.extended and not selected:
        selected = extended(Path(arguments.extended))
    wanted: dict[str, list[str]] = {name: [] for name in files_of(selected)}
    for name in selected:
        for file in files_of([name]):
            wanted[file].append(name if "::" in name else file)
    durations = json.loads(DURATIONS.read_text())
    todo = parts.plan(wanted, durations, arguments.processes)
    stops = any(o in ("-x", "--exitfirst") or o.startswith("--maxfail") for o in options)
    ended: list[Run] = []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as shared:
        os.environ[preloaded.FOLDER] = shared
        # Each of some 200 processes would compile all modules anew.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        with Processes(arguments.processes) as processes:
            runs = {
                processes.pool.submit(
                    processes.run,
                    [name for file in part.files for name in wanted[file] or [file]],
                    [*options, *([f"--junitxml={folder}/{number}.xml"] if results else [])],
                    Path(folder) / f"{number}.json",
                ): part
                for number, part in enumerate(todo)
            }
            for number, done in enumerate(as_completed(runs), 1):
                status, seconds, output = done.result()
                name = f"part {number} of {len(todo)}: {runs[done].label}"
                ended.append(Run(name, status, output))
                print(f"--- {name}, {seconds:.0f} s")
                print(output, flush=True)
                if stops and exit_status(ended) not in (PASSED, NO_TESTS):
                    break
        print(f"--- all parts\n{summary(ended)}")
        if path := os.environ.get(VARIABLE):
            _record(Path(path), sorted(Path(folder).glob("*.json")), arguments.extended or ".")
        if results:
            junit.merge(sorted(Path(folder).glob("*.xml")), results)
    return exit_status(ended)


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What selects tests, and pytest's options.

    Raises:
        ValueError: an argument may be one or the other, or parts cannot do what it asks for.
    """
    selected: list[str] = []
    options: list[str] = []
    before = ""
    for argument in arguments:
        if argument.partition("=")[0] in WRITES_A_FILE:
            raise ValueError(f"{argument}: each part would write the file; use --processes=0")
        if before in WITH_VALUE or not is_path(argument):
            options.append(argument)
        elif before.startswith("--") and "=" not in before:
            raise ValueError(
                f"'{argument}' may be the value of {before}: write {before}={argument}, or name "
                "what selects tests first"
            )
        else:
            selected.append(argument)
        before = argument
    return selected, options


def is_path(argument: str) -> bool:
    """Whether an argument names tests: a folder, a file, or ``file::test``."""
    path = Path(argument.partition("::")[0]).resolve()
    return path.exists() and path.is_relative_to(ROOT / "tests")


def others(folder: Path) -> list[str]:
    """Files of all tests that are not in a folder."""
    return [name for name in files_of([]) if not (ROOT / name).is_relative_to(folder.resolve())]


def extended(folder: Path) -> list[str]:
    """Files of a folder, and of all others those in which something is marked ``extended``."""
    rest = others(folder)
    return [*files_of([str(folder)]), *(name for name in rest if MARKED.search(_text(name)))]


def _text(name: str) -> str:
    return (ROOT / name).read_text()


def files_of(selected: Sequence[str]) -> list[str]:
    """Files of the selected tests; all, if nothing is selected."""
    named = [Path(name.partition("::")[0]) for name in selected]
    found = {
        str(file.resolve().relative_to(ROOT))
        for path in named or [Path("tests")]
        for file in ([path] if path.is_file() else path.rglob("test_*.py"))
    }
    return sorted(found)


class Processes:
    """Runs of pytest, each in a process group that ends with the block.

    Args:
        count: how many run at once.
    """

    def __init__(self, count: int) -> None:
        self.pool = ThreadPoolExecutor(count)
        self._running: set[subprocess.Popen[str]] = set()

    def __enter__(self) -> Processes:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        for process in [*self._running]:
            _kill(process)
        self.pool.shutdown()

    def run(
        self, tests: Sequence[str], options: Sequence[str], durations: Path
    ) -> tuple[int, float, str]:
        """Run pytest; its exit status, what it took in seconds, and its output."""
        began = time.monotonic()
        with self._process(
            [sys.executable, "-m", "pytest", "-q", *options, *tests],
            os.environ | ({VARIABLE: str(durations)} if VARIABLE in os.environ else {}),
        ) as process:
            try:
                output, _ = process.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                _kill(process)
                output, _ = process.communicate()
                output += f"\nkilled after {PATIENCE_S:.0f} s\n"
        return process.returncode, time.monotonic() - began, output

    @contextlib.contextmanager
    def _process(
        self, command: Sequence[str], environment: dict[str, str]
    ) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            yield process
        finally:
            self._running.discard(process)


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _record(path: Path, found: Sequence[Path], folder: str) -> None:
    """Write the durations of a folder's files that ran, beside those that a file has of others.

    Of files with extended tests beside others it has what ``make test`` takes.
    """
    known = json.loads(path.read_text()) if path.exists() else {}
    for file in found:
        ran = json.loads(file.read_text())
        known |= {name: s for name, s in ran.items() if Path(name).is_relative_to(folder)}
    there = {name: seconds for name, seconds in sorted(known.items()) if Path(name).exists()}
    path.write_text(json.dumps(there, indent=0) + "\n")


if __name__ == "__main__":
    sys.exit(main())

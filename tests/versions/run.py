"""``make test-versions``: the tests of each frontend, at both ends of the range that it accepts.

Ranges are read from the projects' ``pyproject.toml``. pip says what would change in this
environment for an end; that alone is installed, into a folder that comes first in PYTHONPATH, so
that everything else stays as it is. Prints a row for each end; the exit status is 1 if a test
failed, or none ran.

``make test-newest`` is ``--end high --brief``: a part of the tests, with the newest release, which
users get; none where the environment has that one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import junit  # noqa: E402
from ranges import HIGH, LOW, changed, range_of, without  # noqa: E402
from subjects import ROOT, SUBJECTS, Subject  # noqa: E402

#: Where the installed releases lie; they are made once.
OVERLAYS = ROOT / "build" / "versions"
_NOT_INSTALLED = (
    "error: pip has not installed the releases of {name} to be tested, for what it says above. It "
    "needs a package index: without a network, name one that can be reached in PIP_INDEX_URL, or "
    "copy {folder} from where it was made. A release that cannot be installed or used "
    "belongs out of the range in pyproject.toml."
)


def main() -> int:
    """Run all, or what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subjects", nargs="*", help=f"of {', '.join(SUBJECTS)}; default: all")
    parser.add_argument("--end", choices=(LOW, HIGH), help="default: both")
    parser.add_argument("--brief", action="store_true", help="a part of the tests, if any changes")
    parser.add_argument("--processes", type=int, default=1, help="at once")
    parser.add_argument("--pytest", default="", help="more arguments for pytest, by spaces")
    arguments = parser.parse_args()
    if unknown := set(arguments.subjects) - set(SUBJECTS):
        parser.error(f"no such subject: {', '.join(sorted(unknown))}; of {', '.join(SUBJECTS)}")
    options = [f"--processes={max(1, arguments.processes)}", *arguments.pytest.split()]
    rows = [
        _row(name, end, options, brief=arguments.brief)
        for name in arguments.subjects or SUBJECTS
        for end in ([arguments.end] if arguments.end else (LOW, HIGH))
    ]
    print("\n| subject | end | version | passed | failed | skipped | seconds |")
    print("|---|---|---|---|---|---|---|")
    for _, row in rows:
        print(f"| {row} |")
    return int(not all(good for good, _ in rows))


def _row(name: str, end: str, options: Sequence[str], *, brief: bool) -> tuple[bool, str]:
    """Whether an end is good, and the row that says so.

    Args:
        name: of a subject.
        end: of its range.
        options: for pytest.
        brief: take a part of its tests, and none where pip changes nothing.
    """
    subject = SUBJECTS[name]
    folder = OVERLAYS / f"{name}-{end}"
    print(f"== {name}, {end} end", flush=True)
    try:
        _install(subject, end, folder)
        version = _version(subject, end, folder)
    except subprocess.CalledProcessError as error:
        print(error.stderr or error, file=sys.stderr)
        print(_NOT_INSTALLED.format(name=subject.name, folder=folder), file=sys.stderr)
        return False, f"{name} | {end} | not installed | | | |"
    if brief and not any(folder.glob("*.dist-info")):
        return True, f"{name} | {end} | {version}, that of make test | | | |"
    began = time.monotonic()
    results = folder.with_suffix(".xml")
    results.unlink(missing_ok=True)
    command = [sys.executable, str(ROOT / "tests" / "run.py"), *subject.files(brief=brief)]
    chosen = "not slow and not extended" if brief else "not slow"
    command += ["-p", "no:cacheprovider", "-m", chosen, f"--junitxml={results}", *options]
    status = subprocess.run(command, cwd=ROOT, env=_environment(folder), check=False).returncode
    passed, failed, skipped = junit.counts(results) if results.exists() else (0, 0, 0)
    seconds = time.monotonic() - began
    good = status == 0 and passed > 0
    row = f"{name} | {end} | {version} | {passed} | {failed} | {skipped} | {seconds:.0f}"
    return good, row if good or failed else f"{row}, pytest exited with {status}"


def _install(subject: Subject, end: str, folder: Path) -> None:
    """Make the folder with what differs from this environment, unless it is there already.

    Raises:
        subprocess.CalledProcessError: pip found no such set of releases.
    """
    pyproject = ROOT / subject.pyproject
    wanted = [range_of(pyproject, subject.name).requirement(end, subject.installed)]
    wanted += [*subject.used, *(subject.lowest if end == LOW else ())]
    done = folder / "wanted.json"
    if done.exists() and json.loads(done.read_text()) == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    free = (subject.name, subject.installed, *subject.used, *subject.pinned)
    constraints = folder / "constraints.txt"
    constraints.write_text(without((ROOT / "constraints.txt").read_text(), free))
    # What is in the environment stays, but for what is asked for.
    upgraded = ["--upgrade"] if end == HIGH else []
    report = _pip(constraints, "--dry-run", "--report", "-", *upgraded, *wanted)
    if replaced := changed(json.loads(report)):
        print(f"installs {' '.join(replaced)}", flush=True)
        _pip(constraints, "--no-deps", "--upgrade", "--target", str(folder), *replaced)
    done.write_text(json.dumps(wanted))


def _pip(constraints: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "install", "--quiet", *arguments]
    environment = {**os.environ, "PIP_CONSTRAINT": str(constraints)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def _version(subject: Subject, end: str, folder: Path) -> str:
    """The version that the tests will import.

    Raises:
        subprocess.CalledProcessError: it is not the one that was asked for.
    """
    code = f"import importlib.metadata as m; print(m.version({subject.installed!r}))"
    command = [sys.executable, "-c", code]
    environment = _environment(folder)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    version = done.stdout.strip()
    accepted = range_of(ROOT / subject.pyproject, subject.name)
    if not accepted.holds(version, end):
        wanted = accepted.requirement(end, subject.installed)
        text = f"{subject.installed} {version} is what Python imports, not {wanted}"
        raise subprocess.CalledProcessError(1, command, stderr=text)
    return version


def _environment(folder: Path) -> dict[str, str]:
    """This environment's variables, with a folder before all others in the path."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    # No flags of ours, which another release of XLA may not know.
    return {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}


if __name__ == "__main__":
    sys.exit(main())

"""Fixtures for all tests: an own cache, plugins made up on the spot, plugins really installed."""

from __future__ import annotations

import copy
import fcntl
import functools
import gc
import logging
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import durations
import each_choice
import preloaded as processes
import pytest

ROOT = Path(__file__).resolve().parent.parent
EXTENDED = ROOT / "tests" / "extended"
WHOLE_PROGRAMS = [ROOT / "tests" / name for name in ("e2e", "users", "extended")]

# What a program leaves unwritten of its results shows. Read where the package is first imported, in
# child processes as well.
os.environ.setdefault("POLYBLOCKS_POISON", "1")
# Threads that wait for work sleep, and do not spin on the cores that other processes of tests need.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# XLA compiles every operation and shape of what results are compared with: without optimizations in
# a third of the time. ``make test-versions`` runs with them.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1",
)


def pytest_configure(config: pytest.Config) -> None:
    durations.register(config)
    # To import three frameworks makes a million objects and few cycles.
    gc.set_threshold(0)


class Folder(pytest.Dir):
    """A folder that is read once: pytest's is read anew for each file of it that is named."""

    _found: list[pytest.Item | pytest.Collector] | None = None

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        if self._found is None:
            self._found = list(super().collect())
        return self._found


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> Folder:
    return Folder.from_parent(parent, path=path)


@pytest.hookimpl(tryfirst=True)  # before -m takes its choice
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of products of parameters, most combinations are slow; a folder is marked as a whole."""
    for item in items:
        if item.path.is_relative_to(EXTENDED):
            item.add_marker(pytest.mark.extended)
    each_choice.mark_slow(items)


def pytest_collection_finish() -> None:
    """Spare the run what grows with all that a process of many tests has imported."""
    # Imported to stay: a full collection of three frameworks takes a second.
    processes.freeze()
    # To compile makes many objects and few cycles.
    gc.set_threshold(100_000, 20, 50)
    _spare_pytorchs_records()
    _spare_autographs_parses()


def _spare_pytorchs_records() -> None:
    """No record of how PyTorch compiles: it takes a tenth of the time of a small function."""
    if "torch" not in sys.modules:
        return
    # It writes a trace for whoever listens: pytest, to each logger that passes nothing on.
    logging.getLogger("torch.__trace").propagate = True
    if "torch._dynamo.guards" in sys.modules:
        # It clears the caches and times its guards at each compilation, for its log alone.
        sys.modules["torch._dynamo.guards"].profile_guard_manager = lambda *_: 0.0
        # It prints its configuration at each compilation, for its log as well.
        for config in ("_get_dynamo", "_scrubbed_inductor", "_compiler", "_functorch"):
            setattr(sys.modules["torch._dynamo.utils"], f"{config}_config_for_logging", lambda: "")
        # Files of tests end with one, see below.
        sys.modules["torch._dynamo.config"].run_gc_after_compile = False


def _spare_autographs_parses() -> None:
    """No file is parsed anew for each lambda in it: a tenth of the time of small functions."""
    parser = sys.modules.get("tensorflow.python.autograph.pyct.parser")
    if parser is None:
        return
    names = {
        **vars(parser),
        "parse": functools.lru_cache(4)(parser.parse),
        # It gives the lambda other line numbers, and who asked for it converts it in place.
        "_without_context": lambda node, *more: parser._without_context(copy.deepcopy(node), *more),
    }
    parser._parse_lambda = types.FunctionType(parser._parse_lambda.__code__, names)


#: CPU seconds of tests after which a file of them ends with a collection.
COLLECTED_AFTER_S = 10.0
_collected = 0.0


@pytest.fixture(scope="module", autouse=True)
def survivors_are_not_collected() -> Iterator[None]:
    """Neither does a collection look at what earlier files of tests have left behind."""
    global _collected
    yield
    if time.process_time() - _collected > COLLECTED_AFTER_S:
        gc.collect()
        gc.freeze()
        _collected = time.process_time()


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's cache or leaves reproducers behind; S3 is verified."""
    base = tmp_path_factory.mktemp("polyblocks")
    (base / "cache").mkdir(mode=0o700)
    wanted = {
        "POLYBLOCKS_CACHE_DIR": str(base / "cache"),
        "POLYBLOCKS_REPRODUCERS": str(base / "reproducers"),
        # In child processes as well.
        "POLYBLOCKS_VERIFY": "1",
    }
    saved = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    yield
    for name, value in saved.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture
def compiled_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process per compilation: to fork one of three frameworks takes as long as to compile."""
    monkeypatch.setenv("POLYBLOCKS_ISOLATE", "0")


@pytest.fixture(autouse=True)
def isolated_where_it_is_marked(request: pytest.FixtureRequest) -> None:
    """End-to-end tests and those of users' programs are about processes where they say so."""
    whole_programs = any(request.path.is_relative_to(folder) for folder in WHOLE_PROGRAMS)
    if whole_programs and request.node.get_closest_marker("isolated") is None:
        request.getfixturevalue("compiled_in_this_process")


@pytest.fixture(autouse=True)
def fresh_dynamo(request: pytest.FixtureRequest) -> None:
    """Dynamo keeps compiled code per code object: no test sees another's."""
    torch = sys.modules.get("torch")  # tests of other frameworks do not load it
    if torch is not None and request.path.parent.name in ("e2e", "extended"):
        torch._dynamo.reset()
        torch.manual_seed(0)


#: A target that does as little as a target can.
TARGET = """
from polyblocks.hookspecs import hookimpl
from polyblocks.target import TargetDescription

POLYBLOCKS_API = 2

@hookimpl
def describe_target(options):
    return TargetDescription({name!r}, "v1", (), ())

@hookimpl
def lower_program(module):
    return "lowered by {name}"

@hookimpl
def load_artifact(artifact):
    return "loaded by {name}"
"""


@pytest.fixture
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The registry is made anew in the test, and the one of the process hears events after it."""
    from polyblocks import events
    from polyblocks.registry import registry

    monkeypatch.setattr(registry, "_registry", None)
    sink = events.set_sink(None)
    yield
    events.set_sink(sink)


@pytest.fixture
def fake_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Make an installed distribution with one entry point; returns its module's name.

    ``fake_plugin("toy")`` is a minimal target; ``source`` replaces its code, ``extra`` adds to it.
    """
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(
        name: str,
        *,
        group: str = "polyblocks.targets",
        distribution: str | None = None,
        source: str | None = None,
        extra: str = "",
    ) -> str:
        distribution = distribution or f"dist-{name}"
        module = f"fake_{distribution}_{name}".replace("-", "_")
        text = TARGET.format(name=name) if source is None else textwrap.dedent(source)
        (tmp_path / f"{module}.py").write_text(text + textwrap.dedent(extra))
        info = tmp_path / f"{distribution.replace('-', '_')}-1.2.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n"
        )
        with (info / "entry_points.txt").open("a") as file:
            file.write(f"[{group}]\n{name} = {module}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)
        return module

    return make


@pytest.fixture(scope="session")
def shared_folder() -> Iterator[Path]:
    """A folder of all parts of a run (see tests/run.py), or of this process, until it ends."""
    if processes.FOLDER in os.environ:
        yield Path(os.environ[processes.FOLDER])
        return
    # The paths of sockets are short.
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def installed_plugins(shared_folder: Path) -> Path:
    """A folder into which pip installed tests/plugin_toy and tests/plugin_broken, offline."""
    folder = shared_folder / "plugins"
    with open(shared_folder / "plugins.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder
        made = shared_folder / "plugins.new"
        sources = [str(ROOT / "tests" / name) for name in ("plugin_toy", "plugin_broken")]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(made)]
        subprocess.run(command + sources, check=True, timeout=300)
        return made.rename(folder)


@pytest.fixture(scope="session")
def run_python(shared_folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run Python code, or ``-m`` with arguments, in a process of its own.

    With ``preloaded`` it begins where a framework is imported, see tests/support/preloaded.py: for
    tests that do not look at imports, or at what is read while they run.
    """

    def run(
        code: str = "",
        *arguments: str,
        path: Path | None = None,
        limit: float = 300,
        preloaded: str = "",
        **environment: Any,
    ) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **{name: str(value) for name, value in environment.items()}}
        if path is not None:
            env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), env.get("PYTHONPATH")]))
        if preloaded:
            code = textwrap.dedent(code)
            if path is not None:  # which the server has not read
                code = f"import sys\nsys.path.insert(1, {str(path)!r})\n{code}"
            done = processes.run(preloaded, shared_folder, code, arguments, env, limit)
            durations.add(done.seconds)
            return subprocess.CompletedProcess(code, done.status, done.output, done.errors)
        command = [sys.executable, *(["-c", textwrap.dedent(code)] if code else []), *arguments]
        # A session of its own, so that what it has forked ends with it: else a child that hangs
        # would keep the pipes open, and the test waiting.
        with subprocess.Popen(
            command,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=limit)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    return run

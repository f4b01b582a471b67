"""Another project's distribution ``polyblocks``: what is documented does not install it, and where
it is installed, it is noticed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from sweeps import sweep
from tests.support.wheels import NAMESAKE, make_stand_ins, make_wheel

from polyblocks.registry.registry import OFFICIAL

ROOT = Path(__file__).resolve().parents[2]
CORE = "polyblocks-compiler"
PROJECTS = [ROOT / "core", *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
PLUGINS = [p.name for project in PROJECTS[1:] for p in (project / "src").iterdir()]
REMEDY = f"pip uninstall polyblocks, then install {CORE} with --force-reinstall --no-deps"

TEXTS = [
    *(ROOT / name for name in ("README.md", "core/README.md")),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("plugins/*/README.md"),
    *ROOT.glob("core/src/**/*.py"),
    *ROOT.glob("plugins/*/src/**/*.py"),
    *ROOT.glob("examples/**/*.py"),
    *ROOT.glob("examples/**/pyproject.toml"),
]
#: What follows `pip install`, to the end of the line or of the code.
COMMAND = re.compile(r"pip install ((?:[^\n`;,\\]|\\\n)+)")
#: What is to be installed there: a distribution of ours, or a folder of the checkout.
WHAT = re.compile(r"(polyblocks[\w-]*|\./[\w/]+)(\[\w+\])?")


def documented() -> list[str]:
    """The arguments of every documented `pip install` of ours, once each."""
    found = {name for official in OFFICIAL.values() for name in official.values()}
    for path in TEXTS:
        for text in COMMAND.findall(path.read_text()):
            words = []
            for word in (each.strip("'\"") for each in text.replace("\\\n", " ").split()):
                if not (word.startswith("--") or WHAT.fullmatch(word)):
                    break
                words.append(word)
            if any(WHAT.fullmatch(word) for word in words):
                found.add(" ".join(words))
    return sorted(found)


#: Documented: a plugin, with a target, of a checkout, with what is optional, and the compiler.
EXAMPLES = (
    "polyblocks-torch polyblocks-cpu",
    "./core ./plugins/target_nvgpu[cuda]",
    "polyblocks-compiler[compile] polyblocks-cpu",
)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two folders of wheels: of the namesake and of third parties, and of ours as well."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("theirs", "both")}
    for folder in folders.values():
        for version in ("0.1.5", "0.4.0"):
            make_wheel(folder, "polyblocks", version, NAMESAKE)
        make_stand_ins(folder, [*PROJECTS, ROOT / "examples" / "extension"])
        make_wheel(folder, "tensorflow-cpu", "2.21.0")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check"]
    command += ["--wheel-dir", str(folders["both"]), *map(str, PROJECTS)]
    subprocess.run(command, check=True, timeout=300)
    return folders


@pytest.fixture
def resolve(indexes, tmp_path):
    """What `pip install` would install where nothing is: name -> version; None if it fails."""

    def run(index: str, *arguments: str) -> dict[str, str] | None:
        report = tmp_path / "report.json"
        command = [sys.executable, "-m", "pip", "--isolated", "install", "--dry-run", "--quiet"]
        command += ["--ignore-installed", "--no-build-isolation", "--disable-pip-version-check"]
        command += ["--no-index", "--find-links", str(indexes[index]), "--report", str(report)]
        done = subprocess.run(
            [*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            assert "No matching distribution found for polyblocks-" in done.stderr
            return None
        rows = [row["metadata"] for row in json.loads(report.read_text())["install"]]
        return {row["name"]: row["version"] for row in rows}

    return run


def test_the_documented_commands_are_found():
    found = documented()
    assert "./examples/extension" in found
    assert set(EXAMPLES) < set(found)
    assert not any(re.search(r"polyblocks( |$)", command) for command in found)


@pytest.mark.extended
@pytest.mark.parametrize("command", sweep(documented(), *EXAMPLES))
def test_what_is_documented_installs_this_compiler_or_fails(resolve, command):
    # First as long as ours are in no index.
    found = resolve("theirs", *command.split()) or resolve("both", *command.split())
    assert found is not None
    assert "polyblocks" not in found
    if "--no-deps" not in command:
        assert CORE in found


@pytest.mark.extended
def test_the_index_would_bring_the_namesake(resolve):
    assert resolve("both", "polyblocks>=0.1,<0.2") == {"polyblocks": "0.1.5"}


@pytest.fixture
def install(indexes, tmp_path):
    """Install wheels over each other, as pip does; the folder."""

    def run(*patterns: str) -> Path:
        for pattern in patterns:
            with zipfile.ZipFile(next(indexes["both"].glob(f"{pattern}-*.whl"))) as wheel:
                wheel.extractall(tmp_path / "site")
        return tmp_path / "site"

    return run


@pytest.mark.extended
@pytest.mark.each_choice
@pytest.mark.parametrize("package", PLUGINS)
@pytest.mark.parametrize("how", ["alone", "over ours", "ours is gone"])
def test_plugins_refuse_another_package(install, run_python, package, how):
    if how == "alone":
        site = install("polyblocks-0.1.5")
    else:
        site = install("polyblocks_compiler", "polyblocks-0.1.5")
    if how == "ours is gone":
        # What `pip uninstall polyblocks` leaves: no __init__.py.
        for path in NAMESAKE:
            (site / path).unlink()
    # A .pth file puts the folder on the path for good; a package without __init__.py comes last.
    code = f"import sys; sys.path[:] = [{str(site)!r}] + [p for p in sys.path if 'core' not in p]\n"
    done = run_python(code + f"import {package}")
    where = [f"{site}/polyblocks"] if how == "ours is gone" else f"{site}/polyblocks/__init__.py"
    last = done.stderr.strip().splitlines()[-1]
    assert last == f"ImportError: {package} needs {CORE}, but {where} is not part of it; {REMEDY}"


@pytest.mark.extended
def test_the_decorators_refuse_it_too(install, run_python):
    site = install("polyblocks_compiler", "polyblocks-0.1.5")
    for frontend in ("torch", "jax", "tf"):
        done = run_python(f"import polyblocks.{frontend}_polyblocks_compiler", path=site)
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith(f"ImportError: polyblocks_{frontend} needs {CORE}, but {site}")


LIST = "import sys; sys.argv[1:] = ['plugins']; from polyblocks.cli import main; main()"


@pytest.mark.extended
def test_the_list_of_plugins_names_it_where_it_overwrote_ours(install, run_python):
    site = install("polyblocks_compiler", "polyblocks-0.1.5")
    done = run_python(LIST, path=site)
    assert done.returncode == 0, done.stderr
    init = site / "polyblocks" / "__init__.py"
    assert done.stderr.splitlines() == [f"warning: {init} is not part of {CORE}; {REMEDY}"]
    text = " ".join(done.stdout.split())
    assert "target cpu polyblocks-cpu 0.1.0 - broken" in text
    assert f"cannot be loaded: ImportError: polyblocks_cpu needs {CORE}, but" in text


@pytest.mark.extended
def test_the_list_of_plugins_names_it_beside_ours(install, run_python):
    site = install("polyblocks-0.1.5", "polyblocks_compiler")
    done = run_python(LIST, path=site)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        f"warning: the distribution polyblocks 0.1.5 in {site} has a package of the same name as "
        f"{CORE}; {REMEDY}"
    ]
    assert "target cpu polyblocks-cpu 0.1.0 2 loaded" in " ".join(done.stdout.split())


@pytest.mark.extended
def test_the_remedy_puts_it_right(install, run_python):
    site = install("polyblocks_compiler", "polyblocks-0.1.5")
    for path in NAMESAKE:
        (site / path).unlink()
    shutil.rmtree(site / "polyblocks-0.1.5.dist-info")
    install("polyblocks_compiler")
    done = run_python(LIST, path=site)
    assert (done.returncode, done.stderr) == (0, "")
    assert "target cpu polyblocks-cpu 0.1.0 2 loaded" in " ".join(done.stdout.split())


@pytest.mark.extended
def test_make_uninstalls_what_the_core_was_called(tmp_path):
    made = tmp_path / ".done-packages"
    command = ["make", "--dry-run", "--always-make", f"VENV={tmp_path}", str(made)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if " -m pip " in line]
    (uninstalls,) = (i for i, line in enumerate(lines) if "pip uninstall" in line)
    assert lines[uninstalls].endswith(" polyblocks")
    assert "./core" in lines[uninstalls + 1]

"""Names of attributes are written once: the core's in attributes.py, a plugin's where it is set."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from offenders import offenders
from tests.support.syntax import nodes

from polyblocks import attributes

ROOT = Path(__file__).resolve().parents[2]
NAMES = {name: value for name, value in vars(attributes).items() if name.endswith("_ATTRIBUTE")}
OF_THE_CORE = re.compile(
    "|".join(rf"{re.escape(value).replace('_', '[_]')}(?![\w.])" for value in NAMES.values())
)
ANY = re.compile(r"polyblocks\.[a-z_]+")


def texts(source: str) -> list[str]:
    """The strings of a module that are no docstrings, those of f-strings included."""
    docstrings = set()
    found: list[str] = []
    data: list[str] = []
    for node in nodes(source):  # what holds a string comes before it
        if type(node) is ast.Expr:
            docstrings.add(id(node.value))
        elif type(node) is ast.Constant and id(node) not in docstrings:
            if isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node.value, bytes):
                data.append(node.value.decode("latin-1"))
    return found + data


def written_names(source: str) -> list[str]:
    """Attribute names of the core that the strings of a module spell out."""
    # A regular expression escapes the dot.
    return [m.group() for t in texts(source) for m in OF_THE_CORE.finditer(t.replace("\\", ""))]


def sources() -> list[Path]:
    found = [*ROOT.glob("core/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    assert len(found) > 300
    return [path for path in found if path != Path(attributes.__file__)]


def test_no_two_constants_have_one_name():
    assert [value for value, n in Counter(NAMES.values()).items() if n > 1] == []


def test_the_names_are_written_nowhere_else():
    assert offenders(sources(), lambda path: written_names(path.read_text())) == []


def test_a_name_is_found_however_it_is_written():
    code = '''
def f(op, data, name):
    """Sets ``polyblocks.kernel``."""
    op.attributes["polyblocks.kernel"] = b"polyblocks.arg" in data
    return re.compile(r'polyblocks\\.done = ".*"'), f"{name} {{polyblocks.level}}"
'''
    names = ["polyblocks.kernel", "polyblocks.done", "polyblocks.level", "polyblocks.arg"]
    assert written_names(code) == names
    assert written_names("import_module('polyblocks.signature'), 'polyblocks.kernels'") == []


def test_a_plugin_writes_a_name_of_its_own_once():
    modules = {
        ".".join(p.relative_to(ROOT / "core/src").with_suffix("").parts)
        for p in (ROOT / "core/src/polyblocks").rglob("*")
    }
    count = Counter(
        text
        for path in ROOT.glob("plugins/*/src/**/*.py")
        for text in texts(path.read_text())
        if ANY.fullmatch(text) and text not in modules
    )
    assert set(count) >= {"polyblocks.team", "polyblocks.trips"}
    assert [name for name, n in count.items() if n > 1] == []

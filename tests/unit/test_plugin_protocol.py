"""The core takes from plugins what is specified, and nothing else."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from pathlib import Path

import pytest
from offenders import offenders
from tests.support.syntax import nodes

from polyblocks import driver, hookspecs
from polyblocks.errors import PluginError
from polyblocks.registry import registry

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core/src/polyblocks"
_spec = importlib.util.spec_from_file_location("_generate", ROOT / "docs/_generate.py")
generate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generate)

HOOKS = set(hookspecs.INTERFACES[hookspecs.API_VERSION])
#: What plugins hand over, as the core calls it.
PLUGIN_SIDE = re.compile(
    r"(^|\.|_)(plugin|implementation|capture|executable|target|frontend|source|hook|interface|"
    r"function)(\(\))?$"
)
#: Names that classes of the core define for what plugins hand over.
DEFINED = {
    name
    for cls in generate.plugin_classes()
    for name in (*generate.plugin_members(cls), *cls.__annotations__)
    if name not in ("name", "device", "dtype", "entry", "pointer")  # what else may be called so
}
#: What is no plugin's: the module that a hook is looked up in, the frame's globals and the code of
#: a user's function, an option by its name.
ELSEWHERE = {
    ("registry/plugin.py", "implementation"),
    ("registry/plugin.py", "self._manager.hook"),
    ("registry/registry.py", "implementation"),
    ("registry/frontend_choice.py", "function"),
    ("ahead_of_time/weight_names.py", "function"),
}


def lookups(source: str) -> set[str]:
    """What ``getattr`` and ``hasattr`` are called on that comes from a plugin, or by its name."""
    found = set()
    for node in nodes(source):
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        if isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            owner, name = ast.unparse(node.args[0]), node.args[1]
            known = isinstance(name, ast.Constant) and name.value in DEFINED | HOOKS
            if known or PLUGIN_SIDE.search(owner):
                found.add(owner)
    return found


def test_nothing_is_looked_up_on_plugins():
    def banned(path):
        file = str(path.relative_to(CORE))
        return [x for x in lookups(path.read_text()) if (file, x) not in ELSEWHERE]

    assert offenders(sorted(CORE.rglob("*.py")), banned) == []


def test_a_lookup_is_found():
    code = """
prepare = getattr(capture, "any", None)
if hasattr(x, "native_entry") or hasattr(plugin.implementation, "x"):
    getattr(mmap, "MADV_HUGEPAGE", -1), getattr(registry.target(), name, 0)
"""
    assert lookups(code) == {"capture", "x", "plugin.implementation", "registry.target()"}


def test_only_the_registry_knows_what_an_entry_point_named():
    files = [*CORE.rglob("*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    users = {
        path.name
        for path in files
        if re.search(
            r"\.implementation\b(?!\.cache)", path.read_text().replace("sys.implementation", "")
        )
    }
    assert users <= {"plugin.py", "registry.py"}


def test_hooks_that_the_core_calls_are_specified():
    called = set()
    for path in [*CORE.rglob("*.py"), *ROOT.glob("plugins/*/src/**/*.py")]:
        called |= set(re.findall(r"\bhook\.(\w+)\(", path.read_text()))
    assert called <= HOOKS
    assert called >= {"tools", "preload", "device_kinds", "synchronize", "framework"}


def test_what_plugins_hand_over_is_on_the_page():
    page = generate.up_to_date((ROOT / "docs/plugins.md").read_text())
    for cls in generate.plugin_classes():
        section = page.split(f"### `{cls.__module__}.{cls.__name__}`")[1].split("\n#")[0]
        for name in (*generate.plugin_members(cls), *cls.__annotations__):
            assert re.search(rf"^\| `{name}[`(].* \| \S", section, re.MULTILINE), name
    for name in HOOKS:
        assert f"\n### {name}\n" in page


@pytest.mark.parametrize("name", sorted(HOOKS))
def test_a_hook_without_a_body_is_required_or_does_nothing(name):
    from polyblocks.registry.plugin import REQUIRED_HOOKS

    function = getattr(hookspecs, name)
    required = {hook for hooks in REQUIRED_HOOKS.values() for hook in hooks} | {"jit"}
    arguments = dict.fromkeys(inspect.signature(function).parameters, object())
    gives = function(**arguments) is not None
    has_result = inspect.signature(function).return_annotation not in (None, "None")
    assert gives == (has_result and name not in required)


def test_defaults_of_hooks(fake_plugin, fresh_registry):
    fake_plugin("plain")
    hook = registry.get_registry().target("plain").hook
    assert (dict(hook.tools()), [*hook.preload()], [*hook.device_kinds()]) == ({}, [], [])
    assert hook.synchronize() in (None, [])


def test_a_hook_that_is_not_marked(fake_plugin, fresh_registry):
    fake_plugin("one", extra="def tools(): return {}\n")
    message = r"target 'one' \(.*\) has a function 'tools' that would never be called; mark it with"
    with pytest.raises(PluginError, match=message):
        registry.get_registry().target("one")


def test_a_name_that_is_imported_is_no_hook(fake_plugin, fresh_registry):
    fake_plugin("one", extra="from functools import partial as tools, reduce as jit\n")
    assert registry.get_registry().target("one")


def test_an_executable_of_another_class(fake_plugin, fresh_registry):
    class Artifact:
        manifest = {"target": "plain"}  # noqa: RUF012

    fake_plugin("plain")
    message = (
        r"target 'plain' \(.*\) gives a str for the hook 'load_artifact'; derive its class from "
        r"polyblocks\.runtime\.executable\.Executable"
    )
    with pytest.raises(PluginError, match=message):
        driver.load(Artifact())

"""hookspecs.py is the manual of plugin authors: it must be complete and exact."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap

import pytest

from polyblocks import events, hookspecs

HOOKS = hookspecs.INTERFACES[hookspecs.API_VERSION]


def test_the_interface_lists_exactly_the_hooks():
    marked = {
        name
        for name, value in vars(hookspecs).items()
        if hasattr(value, f"{hookspecs.PROJECT}_spec")
    }
    assert marked == set(HOOKS)
    assert max(hookspecs.INTERFACES) == hookspecs.API_VERSION


@pytest.mark.parametrize("name", HOOKS)
def test_each_hook_says_when_it_is_called_and_what_with(name):
    hook = getattr(hookspecs, name)
    text = inspect.getdoc(hook)
    assert re.search(r"\bCalled\b", text), "when is it called?"
    arguments = list(inspect.signature(hook).parameters)
    if arguments:
        section = text.split("Args:")[1].split("\n\n")[0]
        assert re.findall(r"^ {4}(\w+):", section, re.MULTILINE) == arguments
    if inspect.signature(hook).return_annotation not in (None, "None"):
        assert "Returns:" in text


@pytest.mark.parametrize("name", HOOKS)
def test_each_example_fits_the_hook(name):
    hook = getattr(hookspecs, name)
    example = textwrap.dedent(inspect.getdoc(hook).split("Example::")[1])
    function = ast.parse(example).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert function.name == name
    assert [ast.unparse(d) for d in function.decorator_list] == ["hookimpl"]
    used = [argument.arg for argument in function.args.args]
    assert set(used) <= set(inspect.signature(hook).parameters)


def test_events_say_what_they_carry():
    assert all(text for text in events.KINDS.values())

"""Every option has a reader, or is refused where it cannot take effect."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest
from tests.support.syntax import nodes

import polyblocks
from polyblocks.errors import OptionError, PluginError
from polyblocks.options import (
    DEFAULTS,
    EVERYWHERE,
    FRONTEND_OPTIONS,
    TARGET_OPTIONS,
    CompileOptions,
)
from polyblocks.registry.honoured_options import checked_options, describe_target

ROOT = Path(__file__).resolve().parents[2]
#: What options are called where they are read.
OPTIONS = {"options", "_options", "checked"}
#: For each target an architecture, so that no device is needed.
ARCHS = {"cpu": "x86-64-v3", "nvgpu": "sm_80", "amdgpu": "gfx1100"}

VALUES = {
    "mm_conv_precision_mode": "mixed_fp16_fp32",
    "polyblocks_gpu_no_tensor_core": True,
    "on_gpu_tensors": True,
    "device_one_time_load": False,
    "freeze_weights": True,
    "use_graph": True,
    "simulate": True,
}


def read_names(source: str) -> set[str]:
    """Attributes of options that a module reads: ``options.x``, ``self._options.x``."""
    found = set()
    for node in nodes(source):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            match node.value:
                case ast.Name(id=owner) | ast.Attribute(attr=owner) if owner in OPTIONS:
                    found.add(node.attr)
    return found


def unread(options: type) -> set[str]:
    """Fields that nothing reads but the module that defines them."""
    files = [*ROOT.glob("core/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    read = set().union(
        *(read_names(path.read_text()) for path in files if path.name != "options.py")
    )
    return {field.name for field in dataclasses.fields(options)} - read


def test_every_option_has_a_reader():
    assert unread(CompileOptions) == set()


def test_an_option_without_a_reader_is_found():
    more = dataclasses.make_dataclass("More", [("never_read_by_anything", bool, False)])
    assert unread(more) == {"never_read_by_anything"}
    assert read_names("a = options.debug; site._options.arch; name.profile; options.x = 1") == {
        "debug",
        "arch",
    }


def test_the_options_of_plugins_are_options():
    assert {*FRONTEND_OPTIONS, *TARGET_OPTIONS} <= set(DEFAULTS)
    assert set(VALUES) == set(TARGET_OPTIONS)


@pytest.mark.parametrize("target", ARCHS)
@pytest.mark.parametrize("name", TARGET_OPTIONS)
def test_a_target_is_given_what_it_honours_only(target, name):
    given = {"target": target, "arch": ARCHS[target]}
    honoured = describe_target(CompileOptions(**given)).options.get(name, ())
    for value in honoured:
        assert describe_target(CompileOptions.from_dict(given | {name: value})).name == target
    refused = CompileOptions.from_dict(given | {name: VALUES[name]})
    if VALUES[name] not in honoured:
        takes = " or ".join(repr(v) for v in (DEFAULTS[name], *honoured, *EVERYWHERE.get(name, ())))
        message = (
            f"^{name}={VALUES[name]!r} is not available for target '{target}'; it takes {takes} "
            rf"\(the default is {DEFAULTS[name]!r}\): leave the option out"
        )
        with pytest.raises(OptionError, match=message):
            describe_target(refused)
    else:
        describe_target(refused)


@pytest.mark.parametrize("target", ARCHS)
def test_what_asks_for_nothing_is_honoured_everywhere(target):
    given = {"target": target, "arch": ARCHS[target], "use_graph": False}
    assert describe_target(CompileOptions.from_dict(given)).name == target


def test_how_graphs_are_asked_for():
    assert CompileOptions().use_graph == "auto"
    for value in ("auto", True, False):
        assert CompileOptions.from_dict({"use_graph": value}).use_graph is value
    with pytest.raises(OptionError, match="'use_graph' must be 'auto', True or False, not 'on'"):
        CompileOptions.from_dict({"use_graph": "on"})


def test_a_foreign_target_ignores_no_option(fake_plugin, fresh_registry):
    fake_plugin("plain")
    assert describe_target(CompileOptions(target="plain", num_iters=2, profile=True))
    for name, value in VALUES.items():
        options = CompileOptions.from_dict({"target": "plain", name: value})
        with pytest.raises(OptionError, match=f"^{name}=.* is not available for target 'plain'"):
            describe_target(options)


@pytest.mark.parametrize("frontend", ["torch", "jax", "tf"])
def test_a_compiled_function_says_which_option_is_not_honoured(frontend):
    framework = {"torch": "torch", "jax": "jax.numpy", "tf": "tensorflow"}[frontend]
    numbers = pytest.importorskip(framework)
    x = numbers.ones((4, 4))
    options = {"use_graph": True}
    compiled = polyblocks.compile(lambda a: a + 1, frontend=frontend, compile_options=options)
    with pytest.raises(
        Exception, match="use_graph=True is not available for target 'cpu'"
    ) as raised:
        compiled(x)
    assert isinstance(raised.value, OptionError) or "OptionError" in str(raised.value)


@pytest.mark.parametrize("frontend", ["torch", "tf"])
def test_a_frontend_refuses_what_it_does_not_honour(frontend):
    message = (
        rf"^static_argnums=\(1,\) is not available for frontend '{frontend}'; it takes \(\) \(the "
        r"default is \(\)\): leave the option out"
    )
    with pytest.raises(OptionError, match=message):
        checked_options({"static_argnums": 1}, frontend)


@pytest.mark.parametrize("frontend", ["jax", "tf"])
def test_only_pytorch_needs_to_be_told_that_weights_are_frozen(frontend):
    message = f"^freeze_weights=True is not available for frontend '{frontend}'"
    with pytest.raises(OptionError, match=message):
        checked_options({"freeze_weights": True}, frontend)


def test_a_frontend_is_given_what_it_honours():
    assert checked_options({"static_argnums": 1}, "jax").static_argnums == (1,)
    assert checked_options({"freeze_weights": True}, "torch").freeze_weights


def test_a_plugin_that_honours_what_does_not_exist(fake_plugin, fresh_registry):
    source = """
    from polyblocks import hookimpl
    from polyblocks.target import TargetDescription
    POLYBLOCKS_API = 2
    @hookimpl
    def describe_target(options):
        return TargetDescription("wrong", "v1", (), (), options={"simulat": (True,)})
    @hookimpl
    def lower_program(module): ...
    @hookimpl
    def load_artifact(artifact): ...
    """
    fake_plugin("wrong", source=source)
    message = r"target 'wrong' \(.*\) says that it honours the option 'simulat'; it can say that of"
    with pytest.raises(PluginError, match=message):
        describe_target(CompileOptions(target="wrong"))


def test_the_hook_is_called_in_one_place():
    files = [*ROOT.glob("core/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    callers = [path.name for path in files if "hook.describe_target(" in path.read_text()]
    assert callers == ["honoured_options.py"]

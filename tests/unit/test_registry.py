"""The registry: lazy, contained, exact about names and versions."""

from __future__ import annotations

import logging
import os
import sys
import threading

import pytest

from polyblocks import events, hookspecs
from polyblocks.errors import PluginError, TargetError
from polyblocks.registry import registry
from polyblocks.registry.registry import EXTENSIONS, TARGETS, Registry, get_registry
from polyblocks.target import TargetDescription

EXTENSION = """
from polyblocks.hookspecs import hookimpl

POLYBLOCKS_API = 2

@hookimpl
def configure_pipeline(pipeline):
    pipeline.append({name!r})
"""


def row(name: str, load: bool = True):
    return next(p for p in Registry().providers(load=load) if p.name == name)


def test_a_target_is_loaded_by_its_name_alone(fake_plugin):
    one, two = fake_plugin("one"), fake_plugin("two")
    found = Registry()
    assert found.target("one").hook.lower_program(module=None, target=None, options=None) == (
        "lowered by one"
    )
    assert one in sys.modules
    assert two not in sys.modules
    assert [p.name for p in found.loaded(TARGETS)] == ["one"]
    assert found.target("one") is found.target("one")


def test_calling_one_target_never_reaches_another(fake_plugin):
    fake_plugin("one")
    fake_plugin("two")
    found = Registry()
    first, second = found.target("one"), found.target("two")
    assert first.hook.load_artifact(artifact=None, device=None) == "loaded by one"
    assert second.hook.load_artifact(artifact=None, device=None) == "loaded by two"


def test_providers_know_their_distribution(fake_plugin):
    fake_plugin("one", distribution="vendor-one")
    before = row("one", load=False)
    assert (before.distribution, before.version, before.status) == (
        "vendor-one",
        "1.2",
        "available",
    )
    after = row("one")
    assert (after.api, after.status, after.error) == ("2", "loaded", "")


def test_unknown_target_names_the_nearest(fake_plugin):
    fake_plugin("frobnicator")
    with pytest.raises(TargetError, match=r"unknown target 'frobnicatr'; did you mean 'frobnicat"):
        Registry().target("frobnicatr")


def test_unknown_target_lists_the_installed(fake_plugin):
    fake_plugin("one")
    with pytest.raises(TargetError, match=r"unknown target 'zzzzzz'; installed: .*\bone\b"):
        Registry().target("zzzzzz")


@pytest.mark.parametrize("name", ["nvgpu", "amdgpu"])
def test_official_target_not_installed(name, monkeypatch):
    monkeypatch.setattr(registry.importlib.metadata, "entry_points", _nothing)
    with pytest.raises(TargetError, match=rf"'{name}' is not installed; pip install polyblocks-"):
        Registry().target(name)


def test_official_frontend_not_installed(monkeypatch):
    monkeypatch.setattr(registry.importlib.metadata, "entry_points", _nothing)
    with pytest.raises(PluginError, match=r"'jax' is not installed; pip install polyblocks-jax"):
        Registry().frontend("jax")


def test_a_broken_plugin_stops_only_who_asks_for_it(fake_plugin):
    fake_plugin("bad", source="import no_such_library")
    fake_plugin("good")
    found = Registry()
    assert found.target("good").name == "good"
    with pytest.raises(PluginError, match=r"'bad' \(dist-bad 1.2\) cannot be loaded: ModuleNotFo"):
        found.target("bad")
    broken = next(p for p in found.providers() if p.name == "bad")
    assert broken.status == "broken"
    assert "no_such_library" in broken.error


@pytest.mark.parametrize(
    "source", ["raise SystemExit(3)", "assert False, 'no'", "1 / 0", "def f(:", "import no_such"]
)
def test_whatever_an_import_raises_is_contained(fake_plugin, source):
    fake_plugin("bad", source=source)
    found = Registry()
    with pytest.raises(PluginError, match="cannot be loaded"):
        found.target("bad")
    with pytest.raises(PluginError, match="cannot be loaded"):
        found.target("bad")


def test_a_plugin_whose_import_failed_is_tried_again(fake_plugin, tmp_path):
    fake_plugin("bad", extra="import no_such_library_yet")
    found = Registry()
    for _ in range(2):
        with pytest.raises(PluginError, match="cannot be loaded: ModuleNotFoundError"):
            found.target("bad")
    (tmp_path / "no_such_library_yet.py").write_text("")
    assert found.target("bad").hook.lower_program(module=None) == "lowered by bad"
    assert next(p for p in found.providers() if p.name == "bad").status == "loaded"


def test_a_missing_attribute_is_contained(fake_plugin):
    module = fake_plugin("bad")
    folder = os.path.dirname(sys.path[0] + "/x")
    with open(os.path.join(folder, "dist_bad-1.2.dist-info", "entry_points.txt"), "w") as file:
        file.write(f"[polyblocks.targets]\nbad = {module}:nothing\n")
    with pytest.raises(PluginError, match="cannot be loaded: AttributeError"):
        Registry().target("bad")


def test_two_providers_of_one_name_are_refused_before_either_is_imported(fake_plugin):
    modules = [fake_plugin("same", distribution=d) for d in ("vendor-a", "vendor-b")]
    found = Registry()
    with pytest.raises(PluginError, match=r"provided by vendor-[ab] and vendor-[ab]; uninstall"):
        found.target("same")
    assert not any(module in sys.modules for module in modules)
    assert [p.status for p in found.providers() if p.name == "same"] == ["refused", "refused"]


def test_one_name_in_two_groups_is_no_clash(fake_plugin):
    fake_plugin("same")
    fake_plugin("same", group=EXTENSIONS, distribution="ext", source=EXTENSION.format(name="same"))
    found = Registry()
    assert found.target("same").provider.kind == "target"
    assert "same" in [p.name for p in found.extensions()]


def test_no_api_number(fake_plugin):
    fake_plugin("one", extra="del POLYBLOCKS_API")
    with pytest.raises(PluginError, match=r"does not say .* add POLYBLOCKS_API = 2 to it"):
        Registry().target("one")


@pytest.mark.parametrize("declared", ["99", "'one'", "1.5"])
def test_an_api_from_elsewhere(fake_plugin, declared):
    fake_plugin("one", extra=f"POLYBLOCKS_API = {declared}")
    with pytest.raises(PluginError, match=r"was written for POLYBLOCKS_API .*speaks 1, 2; install"):
        Registry().target("one")
    assert row("one").status == "refused"
    assert row("one").api == declared.strip("'")


def test_a_plugin_outlives_a_new_interface_that_leaves_its_hooks_alone(fake_plugin, monkeypatch):
    newer = {**hookspecs.INTERFACES[2], "import_program": 2}
    monkeypatch.setitem(hookspecs.INTERFACES, 3, newer)
    monkeypatch.setattr(hookspecs, "API_VERSION", 3)
    fake_plugin("one")
    assert Registry().target("one").name == "one"


def test_a_plugin_is_refused_when_one_of_its_hooks_changed(fake_plugin, monkeypatch):
    newer = {**hookspecs.INTERFACES[2], "lower_program": 3}
    monkeypatch.setitem(hookspecs.INTERFACES, 3, newer)
    monkeypatch.setattr(hookspecs, "API_VERSION", 3)
    fake_plugin("one")
    with pytest.raises(PluginError, match=r"version 2 of the hook 'lower_program', this is ver"):
        Registry().target("one")


def test_a_target_from_before_descriptions_changed_is_refused(fake_plugin):
    fake_plugin("old", extra="POLYBLOCKS_API = 1")
    message = (
        r"target 'old' .* was written for version 1 of the hook 'describe_target', this is "
        r"version 2; upgrade target 'old'"
    )
    with pytest.raises(PluginError, match=message):
        Registry().target("old")
    assert row("old").status == "refused"


def test_an_extension_from_before_descriptions_changed_is_accepted(fake_plugin):
    source = EXTENSION.replace("POLYBLOCKS_API = 2", "POLYBLOCKS_API = 1").format(name="old")
    fake_plugin("old", group=EXTENSIONS, source=source)
    assert row("old").status == "loaded"


def test_versions_of_single_hooks(fake_plugin):
    versions = "{'describe_target': 2, 'lower_program': 2, 'load_artifact': 1}"
    fake_plugin("fits", extra=f"POLYBLOCKS_API = {versions}")
    fake_plugin("ahead", extra=f"POLYBLOCKS_API = {versions.replace('1', '7')}")
    fake_plugin("silent", extra="POLYBLOCKS_API = {'describe_target': 2, 'lower_program': 2}")
    found = Registry()
    assert found.target("fits").name == "fits"
    with pytest.raises(PluginError, match=r"version 7 of the hook .* upgrade polyblocks$"):
        found.target("ahead")
    with pytest.raises(PluginError, match=r"'load_artifact' but its POLYBLOCKS_API says no vers"):
        found.target("silent")


def test_a_misspelt_hook_is_refused(fake_plugin):
    fake_plugin("one", extra="@hookimpl\ndef lower_programm(module): pass\n")
    with pytest.raises(PluginError, match=r"unknown hook 'lower_programm'; did you mean 'lower_pr"):
        Registry().target("one")


def test_a_hook_like_no_other_is_refused_with_the_list(fake_plugin):
    fake_plugin("one", extra="@hookimpl\ndef zzz(): pass\n")
    with pytest.raises(PluginError, match=r"unknown hook 'zzz'; the hooks are fingerprint, "):
        Registry().target("one")


def test_a_hook_with_a_foreign_argument_is_refused(fake_plugin):
    fake_plugin("one", extra="@hookimpl\ndef observe(happening): pass\n")
    with pytest.raises(PluginError, match=r"does not fit the hooks: .*happening"):
        Registry().target("one")


def test_a_target_without_its_hooks_is_refused(fake_plugin):
    fake_plugin("one", extra="del load_artifact")
    with pytest.raises(PluginError, match=r"lacks the hook 'load_artifact', which every target"):
        Registry().target("one")


def test_a_hook_that_gives_nothing(fake_plugin):
    fake_plugin("one", extra="@hookimpl\ndef lower_program(): return None\n")
    hook = Registry().target("one").hook
    with pytest.raises(
        PluginError, match=r"'one' \(dist-one 1.2\) gives no result for the hook 'l"
    ):
        hook.lower_program(module=None, target=None, options=None)
    with pytest.raises(PluginError, match="gives no result for the hook 'array_interface'"):
        hook.array_interface()
    with pytest.raises(AttributeError, match="no hook 'lower_prog'; did you mean"):
        _ = hook.lower_prog


def test_environment_restricts_plugins(fake_plugin, monkeypatch):
    fake_plugin("one")
    two = fake_plugin("two")
    monkeypatch.setenv("POLYBLOCKS_PLUGINS", "one, torch")
    found = Registry()
    assert found.names(TARGETS) == ["one"]
    with pytest.raises(
        PluginError, match=r"'two' .*left out by POLYBLOCKS_PLUGINS=one, torch; add"
    ):
        found.target("two")
    assert {p.name: p.status for p in found.providers(load=True)}["two"] == "disabled"
    assert two not in sys.modules
    monkeypatch.setenv("POLYBLOCKS_PLUGINS", "")
    assert Registry().names(TARGETS) == []


def test_environment_traces_hook_calls(fake_plugin, monkeypatch, capsys):
    fake_plugin("one")
    monkeypatch.setenv("POLYBLOCKS_TRACE_HOOKS", "1")
    found = Registry()
    previous = events.set_sink(found.observe)
    try:
        found.target("one").hook.lower_program(module=object(), target=None, options="x")
    finally:
        events.set_sink(previous)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "polyblocks: target 'one': lower_program(module=object, target=None, options='x')",
        "polyblocks: target 'one': lower_program done",
    ]


def test_nothing_is_traced_unasked(fake_plugin, monkeypatch, capsys):
    fake_plugin("one")
    monkeypatch.delenv("POLYBLOCKS_TRACE_HOOKS", raising=False)
    Registry().target("one").hook.lower_program(module=None, target=None, options=None)
    assert capsys.readouterr().err == ""


def test_pipeline_is_configured_by_the_target_and_then_extensions_by_name(fake_plugin):
    append = "@hookimpl\ndef configure_pipeline(pipeline): pipeline.append('target')\n"
    fake_plugin("one", extra=append)
    for name in ("zeta", "alpha"):
        fake_plugin(name, group=EXTENSIONS, source=EXTENSION.format(name=name))
    pipeline: list[str] = []
    Registry().configure(pipeline, TargetDescription("one", "v1", (), ()), None)
    assert [p for p in pipeline if p in ("target", "alpha", "zeta")] == ["target", "alpha", "zeta"]


def test_an_extension_that_fails_to_configure_is_named(fake_plugin):
    fake_plugin("one")
    source = EXTENSION.format(name="x").replace("pipeline.append('x')", "raise KeyError('gone')")
    fake_plugin("ext", group=EXTENSIONS, source=source)
    with pytest.raises(PluginError, match=r"extension 'ext' .* failed in configure_pipeline: KeyE"):
        Registry().configure([], TargetDescription("one", "v1", (), ()), None)


def test_a_broken_extension_is_logged_once_and_left_out(fake_plugin, caplog):
    fake_plugin("bad", group=EXTENSIONS, source="1 / 0")
    fake_plugin("good", group=EXTENSIONS, source=EXTENSION.format(name="good"))
    found = Registry()
    with caplog.at_level(logging.WARNING, logger="polyblocks"):
        assert [p.name for p in found.extensions() if p.name in ("bad", "good")] == ["good"]
        found.extensions()
    assert len([r for r in caplog.records if "ZeroDivisionError" in r.getMessage()]) == 1


def test_observers_hear_events_and_their_errors_are_dropped(fake_plugin, caplog):
    seen = "SEEN = []\n@hookimpl\ndef observe(event): SEEN.append(event.kind)\n"
    module = fake_plugin("one", extra=seen)
    fake_plugin("bad", extra="@hookimpl\ndef observe(event): 1 / 0\n")
    found = Registry()
    found.observe(events.Event("cache-hit", {}))
    found.target("bad")
    found.target("one")
    with caplog.at_level(logging.WARNING, logger="polyblocks"):
        found.observe(events.Event("cache-miss", {}))
    assert sys.modules[module].SEEN == ["cache-miss"]
    assert "failed while observing 'cache-miss'" in caplog.text


def test_a_watcher_hears_events_until_it_stops():
    found = Registry()
    heard: list[str] = []
    stop = found.watch(lambda event: heard.append(event.kind))
    found.observe(events.Event("a"))
    stop()
    found.observe(events.Event("b"))
    assert heard == ["a"]


def test_versions_and_packages_for_the_cache_key(fake_plugin):
    module = fake_plugin("one")
    ext = fake_plugin("ext", group=EXTENSIONS, source=EXTENSION.format(name="ext"))
    found = Registry()
    plugin = found.target("one")
    assert found.versions(plugin)["target one"] == "dist-one 1.2"
    assert found.versions(plugin)["extension ext"] == "dist-ext 1.2"
    assert {(module, "dist-one"), (ext, "dist-ext")} <= set(found.foreign(plugin))
    assert found.foreign(found.target("cpu")) == found.foreign()


def test_many_threads_load_a_plugin_once(fake_plugin):
    fake_plugin("one", extra="import time, polyblocks\ntime.sleep(0.05)\n")
    found = Registry()
    plugins: list[object] = []
    threads = [
        threading.Thread(target=lambda: plugins.append(found.target("one"))) for _ in "12345678"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(plugins) == 8
    assert len(set(map(id, plugins))) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_not_held_up_by_another_threads_lock():
    found = get_registry()
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with found._lock:
            held.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    try:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if get_registry()._lock.acquire(timeout=5) else 1)
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        release.set()
        thread.join()


def test_the_registry_is_the_sink_of_events_unless_there_is_one(monkeypatch):
    monkeypatch.setattr(registry, "_registry", None)
    previous = events.set_sink(None)
    try:
        made = get_registry()
        assert events._sink == made.observe
        relay = [].append
        events.set_sink(relay)
        monkeypatch.setattr(registry, "_registry", None)
        get_registry()
        assert events._sink == relay
    finally:
        events.set_sink(previous)


def _nothing(**_):
    return registry.importlib.metadata.EntryPoints(())

"""The conformance suite on the targets that are here: ours, and the toy of tests/plugin_toy."""

from __future__ import annotations

import platform
import sys

import numpy as np
import pytest
from simulated_chips import CHIPS

from polyblocks.options import CompileOptions
from polyblocks.testing.conformance import CASES, Case, check, check_description, run


@pytest.mark.usefixtures("compiled_in_this_process")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_cpu(case):
    assert run(case, CompileOptions(target="cpu")).manifest["target"] == "cpu"


@pytest.mark.usefixtures("compiled_in_this_process")
@pytest.mark.each_choice
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_simulated_gpus(case, arch):
    options = CompileOptions(target=CHIPS[arch], arch=arch, simulate=True)
    assert run(case, options).manifest["arch"] == arch


@pytest.mark.each_choice
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs x86-64 code")
@pytest.mark.parametrize("arch", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize("name", ["add f32", "divide f16", "exponential", "sum of rows"])
def test_cpu_of_an_older_architecture(name, arch):
    case = next(case for case in CASES if case.name == name)
    run(case, CompileOptions(target="cpu", arch=arch))


@pytest.fixture
def toy(installed_plugins, monkeypatch, fresh_registry):
    """The toy target in this process."""
    monkeypatch.syspath_prepend(str(installed_plugins))
    monkeypatch.setenv("POLYBLOCKS_PLUGINS", "toy,toy-counter")
    yield CompileOptions(target="toy")
    for name in [name for name in sys.modules if name.startswith("polyblocks_toy")]:
        del sys.modules[name]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_toy(case, toy):
    assert run(case, toy).manifest["target"] == "toy"


def test_description_of_the_cpu():
    check_description("cpu")


@pytest.mark.parametrize(
    "name, arch",
    [("nvgpu", "sm_80"), ("nvgpu", "h200"), ("amdgpu", "gfx1100"), ("amdgpu", "rx-7600")],
)
def test_descriptions_of_gpus_that_are_not_here(name, arch):
    check_description(name, arch)


def test_description_of_the_toy(toy):
    check_description("toy")


CASE = Case("made up", "", lambda _: [], lambda: np.zeros(2, np.float32))


@pytest.mark.parametrize(
    "result, message",
    [
        ((np.zeros(2, np.float32),) * 2, "made up: 2 results, expected 1"),
        (np.zeros(2), "made up: float64, not float32"),
        (np.float32([0, 1]), "made up"),
        (np.zeros(3, np.float32), "made up"),
    ],
)
def test_the_suite_finds_what_is_wrong(result, message):
    with pytest.raises(AssertionError, match=message):
        check(CASE, result, CASE.reference())

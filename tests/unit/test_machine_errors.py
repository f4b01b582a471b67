"""What the machine is to blame for is not remembered, on disk or for later compilations."""

from __future__ import annotations

import errno
import os
import sys

import numpy as np
import pytest
from sweeps import sweep

import polyblocks
from polyblocks import driver, errors
from polyblocks.artifact import TRANSIENT
from polyblocks.cache.cache import Cache, default_cache
from polyblocks.codegen.gpu.external_tool import identity, run_tool
from polyblocks.errors import (
    MachineError,
    NativeCrashError,
    PassError,
    PluginError,
    TargetError,
    UnsupportedError,
    of_machine,
)
from polyblocks.failures.attribution import attribute_failure
from polyblocks.frontends.partition import CRASH, MACHINE, UNSUPPORTED, run_probes
from polyblocks.isolation.isolation import run_isolated
from polyblocks.options import CompileOptions
from polyblocks.registry.registry import get_registry

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def wrapped(problem, error):
    try:
        raise error from problem
    except type(error) as raised:
        return raised


@pytest.mark.parametrize(
    "error, reason",
    [
        (FULL, r"OSError: \[Errno 28\] No space left on device"),
        (FileNotFoundError("no ld"), "FileNotFoundError: no ld"),
        (MemoryError(), "MemoryError: no more is known"),
        (ModuleNotFoundError("no library"), "ModuleNotFoundError: no library"),
        (wrapped(FULL, PassError("p", "S3", "OSError")), r"OSError: \[Errno 28\] No space left"),
        (wrapped(wrapped(FULL, ValueError("x")), UnsupportedError("y")), r"OSError: \[Errno 28\]"),
        (MachineError("the linker does not run"), "the linker does not run"),
    ],
)
def test_errors_of_the_machine(error, reason):
    made = of_machine(error)
    assert made.transient

    def job() -> bytes:
        raise error

    with pytest.raises(MachineError, match=reason) as caught:
        run_isolated(job)
    assert caught.value.reason == made.reason
    assert run_probes([None], lambda _: run_isolated(job)) == [(made.reason, MACHINE)]


def test_errors_of_the_program():
    for error in (ValueError("x"), UnsupportedError("y"), PassError("p", "S3", "no")):
        assert of_machine(error) is None
    itself = UnsupportedError("its own cause")
    itself.__cause__ = itself
    assert of_machine(itself) is None
    assert of_machine(wrapped(FULL, UnsupportedError("no", op="a", location="b"))).location == "b"


def test_no_pass_is_to_blame():
    class Pass:
        name = "write-files"

    with (
        pytest.raises(MachineError, match=r"No space left on device in pass 'write-files'"),
        attribute_failure(b"", "S3", [], None, Pass()),
    ):
        raise FULL


def test_probes_tell_what_is_to_blame():
    def attempt(probe):
        raise probe

    crash = NativeCrashError("killed")
    crash.transient = True
    probes = [UnsupportedError("a"), FULL, NativeCrashError("b"), crash]
    assert [kind for _, kind in run_probes(probes, attempt)] == [
        UNSUPPORTED,
        MACHINE,
        CRASH,
        MACHINE,
    ]
    for problem in (TargetError("install a linker"), PluginError("it does not load")):
        with pytest.raises(type(problem), match=str(problem)):
            run_probes([problem], attempt)


def torch_function():
    torch = pytest.importorskip("torch")

    def function(x):
        y = x * 2 + 1
        return torch.linalg.ldl_factor_ex(y @ y.T / 64).LD.sum(0)

    return "torch", function, torch.from_numpy, 1


def jax_function():
    jax = pytest.importorskip("jax")
    return "jax", lambda x: jax.numpy.tanh(x * 2) + 1, jax.numpy.asarray, 0


def tf_function():
    tf = pytest.importorskip("tensorflow")
    return "tf", lambda x: tf.tanh(x * 2) + 1, tf.constant, 0


def no_space():
    raise FULL


def no_library():
    import no_such_library_at_all  # noqa: F401


def no_tool():
    run_tool("assembler", lambda source, out: ["polyblocks-test-tool", source, out], b"x", ".s")


WORDS = {
    no_space: "OSError: [Errno 28] No space left on device",
    no_library: "ModuleNotFoundError: No module named 'no_such_library_at_all'",
    no_tool: "the assembler does not run: [Errno 2] No such file",
}


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYBLOCKS_CACHE_DIR", str(tmp_path / "cache"))
    return default_cache()


@pytest.mark.extended
@pytest.mark.parametrize("problem", sweep([no_space, no_library, no_tool], no_tool))
@pytest.mark.parametrize("make", [torch_function, jax_function, tf_function])
def test_what_was_missing_is_used_once_it_is_there(make, problem, own_cache, monkeypatch, tmp_path):
    """A target's hook fails for want of something; then that is installed."""
    import polyblocks_cpu.lower

    frontend, function, array, left = make()
    x = array(np.random.default_rng(0).random((3, 5), np.float32))
    real = polyblocks_cpu.lower.lower_program

    def lower(*args):
        problem()
        return real(*args)

    monkeypatch.setattr(polyblocks_cpu.lower, "lower_program", lower)
    compiled = polyblocks.compile(function, frontend=frontend)
    np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(function(x)), rtol=1e-4)
    rows = compiled.polyblocks_report().to_json()["fallbacks"]
    assert len([row for row in rows if WORDS[problem] in row["reason"]]) > 1
    assert own_cache.entries() == []

    if problem is no_tool:
        tool = tmp_path / "bin" / "polyblocks-test-tool"
        tool.parent.mkdir()
        tool.write_text('#!/bin/sh\ncp "$1" "$2"\n')
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tool.parent), prepend=os.pathsep)
    else:
        monkeypatch.setattr(polyblocks_cpu.lower, "lower_program", real)
    for _ in range(2):
        compiled = polyblocks.compile(function, frontend=frontend)
        np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(function(x)), rtol=1e-4)
        rows = compiled.polyblocks_report().to_json()["fallbacks"]
        assert len(rows) == left
    assert own_cache.entries()


def test_strict_target_says_what_the_machine_lacks(own_cache, monkeypatch):
    import polyblocks_cpu.lower

    torch = pytest.importorskip("torch")
    monkeypatch.setattr(polyblocks_cpu.lower, "lower_program", lambda *args: no_tool())
    compiled = polyblocks.compile(
        lambda x: x * 3 + 1, frontend="torch", compile_options={"strict_target": True}
    )
    with pytest.raises(errors.FallbackError, match="the assembler does not run: .*test-tool"):
        compiled(torch.rand(3))


def test_a_missing_library_of_a_target_is_named(own_cache, monkeypatch):
    torch = pytest.importorskip("torch")
    hook = get_registry().target("cpu").hook
    monkeypatch.setattr(hook, "preload", lambda: ("no_such_library_at_all",))
    compiled = polyblocks.compile(lambda x: x * 5 + 1, frontend="torch")
    message = (
        r"target 'cpu' \(.*\) cannot compile: ModuleNotFoundError: .*; install what is missing"
    )
    with pytest.raises(PluginError, match=message):
        compiled(torch.rand(3))
    monkeypatch.undo()
    compiled(torch.rand(3))
    assert compiled.polyblocks_report().whole


def test_a_tool_that_is_stopped_or_does_not_run():
    shell = [sys.executable, "-c"]
    killed = "the linker was stopped by SIGKILL, perhaps out of memory"
    with pytest.raises(MachineError, match=killed):
        run_tool("linker", lambda s, o: [*shell, "import os; os.kill(os.getpid(), 9)"], b"", ".o")
    with pytest.raises(MachineError, match="the linker does not run: .*no/such/tool"):
        run_tool("linker", lambda s, o: ["/no/such/tool"], b"", ".o")
    with pytest.raises(UnsupportedError, match="the linker rejects the generated code: no") as why:
        run_tool("linker", lambda s, o: [*shell, "import sys; sys.exit('no')"], b"", ".o")
    assert not why.value.transient


@pytest.mark.parametrize("target, arch", [("nvgpu", "sm_80"), ("amdgpu", "gfx1100")])
def test_the_cache_tells_tools_apart(target, arch, tmp_path, monkeypatch):
    plugin = get_registry().target(target)
    description = plugin.hook.describe_target(options=CompileOptions(target=target, arch=arch))
    name = {"nvgpu": "ptxas", "amdgpu": "ld.lld"}[target]
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))

    def key():
        return driver.variant_key(b"f", description, CompileOptions(target=target, arch=arch))

    without = key()
    tool = tmp_path / name
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    one = key()
    assert one not in (without,)
    assert key() == one
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert key() not in (without, one)
    assert identity(None) == identity(tmp_path / "none") == "none"


def test_an_assembler_that_does_not_answer(tmp_path, monkeypatch):
    import subprocess

    from polyblocks_nvgpu import ptxas

    def run(command, **_):
        raise subprocess.TimeoutExpired(command, 60)

    monkeypatch.setattr(ptxas.subprocess, "run", run)
    with pytest.raises(MachineError, match="the assembler .*/ptxas does not answer"):
        ptxas.architectures(f"{tmp_path}/ptxas")


def test_a_program_of_this_moment_is_used_and_not_kept(tmp_path):
    cache = Cache(tmp_path / "cache")
    made = polyblocks.artifact.Artifact({"kind": "plan", "plan": {}, TRANSIENT: True})
    assert driver.cached("0" * 64, lambda: made, cache=cache) is made
    assert cache.entries() == []

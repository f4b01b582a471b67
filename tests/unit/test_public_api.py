"""The public names, and what importing the package costs."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import types

import pytest

import polyblocks
from polyblocks import api, device_helpers
from polyblocks.errors import InputError, OptionError, PluginError
from polyblocks.registry import registry

HEAVY = (
    "torch",
    "jax",
    "tensorflow",
    "torch_mlir",
    "llvmlite",
    "numpy",
    "pluggy",
    "stevedore",
    "polyblocks_torch",
    "polyblocks_cpu",
)


def test_importing_polyblocks_loads_nothing_heavy(run_python):
    done = run_python(
        f"""
        import sys, polyblocks
        print([name for name in {HEAVY!r} if name in sys.modules])
        """
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_importing_polyblocks_takes_at_most_150_ms():
    command = [sys.executable, "-X", "importtime", "-c", "import polyblocks"]
    taken = []
    for _ in range(5):
        text = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        line = next(line for line in text.splitlines() if line.endswith("| polyblocks"))
        taken.append(int(line.split("|")[1]) / 1000)
    assert min(taken) <= 150


def test_every_public_name_is_there():
    for name in polyblocks.__all__:
        assert getattr(polyblocks, name) is not None
        assert name in dir(polyblocks)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'polyblocks' has no attribute 'compil'"):
        _ = polyblocks.compil


def test_targets_and_frontends_are_listed_without_loading(run_python):
    done = run_python(
        """
        import sys, polyblocks
        print("cpu" in polyblocks.targets(), "torch" in polyblocks.frontends())
        print([n for n in sys.modules if n in ("torch", "polyblocks_torch", "polyblocks_cpu")])
        """
    )
    assert done.stdout.splitlines() == ["True True", "[]"], done.stderr


FRAMEWORK = """
@hookimpl
def framework():
    return "framework_{name}"
"""
FRONTEND = """
from polyblocks.hookspecs import hookimpl
POLYBLOCKS_API = 2
@hookimpl
def fingerprint(capture): return b""
@hookimpl
def import_program(capture): return None
@hookimpl
def array_interface(): return None
@hookimpl
def jit(function, compile_options): return {name!r}, function, compile_options
"""


def test_compile_asks_the_only_frontend(fake_plugin, fresh_registry, monkeypatch):
    group = registry.FRONTENDS
    fake_plugin("one", group=group, source=FRONTEND.format(name="one"))
    monkeypatch.setenv("POLYBLOCKS_PLUGINS", "one")
    options = {"target": "cpu"}
    assert polyblocks.compile(abs, compile_options=options) == ("one", abs, options)


def test_compile_with_several_frontends_wants_to_know_which(
    fake_plugin, fresh_registry, monkeypatch
):
    for name in ("one", "two"):
        fake_plugin(name, group=registry.FRONTENDS, source=FRONTEND.format(name=name))
    monkeypatch.setenv("POLYBLOCKS_PLUGINS", "one,two")
    with pytest.raises(InputError, match=r"several frontends are installed \(one, two\); say wh"):
        polyblocks.compile(abs)
    assert polyblocks.compile(abs, frontend="two")[0] == "two"


def test_compile_takes_the_frontend_whose_framework_is_loaded(
    fake_plugin, fresh_registry, monkeypatch
):
    for name in ("one", "two", "three"):
        source = FRONTEND.format(name=name) + FRAMEWORK.format(name=name)
        fake_plugin(name, group=registry.FRONTENDS, source=source)
    monkeypatch.setenv("POLYBLOCKS_PLUGINS", "one,two,three")
    monkeypatch.setitem(sys.modules, "framework_two", sys)
    assert polyblocks.compile(abs)[0] == "two"
    monkeypatch.setitem(sys.modules, "framework_three", sys)
    with pytest.raises(InputError, match=r"several frontends are installed \(one, three, two\)"):
        polyblocks.compile(abs)
    # What the function's module uses counts more than what is loaded somewhere.
    used = types.ModuleType("framework_one.numpy")
    function = types.FunctionType((lambda: 0).__code__, {"np": used})
    assert polyblocks.compile(function)[0] == "one"
    assert polyblocks.compile(functools.partial(functools.partial(function)))[0] == "one"
    kind = type("Module", (), {"__module__": "framework_three.nn", "__call__": lambda self: 0})
    assert polyblocks.compile(type("Mine", (kind,), {})())[0] == "three"


def test_compile_without_any_frontend(fresh_registry, monkeypatch):
    monkeypatch.setenv("POLYBLOCKS_PLUGINS", "")
    with pytest.raises(PluginError, match="no frontend is installed; pip install polyblocks-torch"):
        polyblocks.compile(abs)


def test_compile_of_what_is_no_function():
    with pytest.raises(InputError, match="takes a function, not int"):
        polyblocks.compile(3)


def test_compile_checks_options_first():
    with pytest.raises(OptionError, match="unknown compile option 'targt'; did you mean 'target'"):
        polyblocks.compile(abs, compile_options={"targt": "cpu"})


def test_the_torch_path_without_the_torch_frontend(run_python):
    done = run_python(
        """
        import sys
        sys.modules["polyblocks_torch"] = None
        import polyblocks.torch_polyblocks_compiler
        """
    )
    last = done.stderr.strip().splitlines()[-1]
    assert (
        last == "ImportError: the PyTorch frontend is not installed; pip install polyblocks-torch"
    )


def test_the_torch_path_does_not_hide_other_missing_modules(run_python, tmp_path):
    (tmp_path / "polyblocks_torch.py").write_text("import no_such_library\n")
    done = run_python("import polyblocks.torch_polyblocks_compiler", path=tmp_path)
    assert re.search(
        r"ModuleNotFoundError: No module named 'no_such_library'$", done.stderr.strip()
    )


def test_the_tensorflow_path_without_the_frontend_or_tensorflow(run_python):
    for module, what in (("polyblocks_tf", "frontend"), ("tensorflow", "package")):
        done = run_python(
            f"""
            import sys
            sys.modules["{module}"] = None
            import polyblocks.tf_polyblocks_compiler
            """
        )
        last = done.stderr.strip().splitlines()[-1]
        assert last == (
            f"ImportError: the TensorFlow {what} is not installed; pip install polyblocks-tf"
        )


def test_synchronizing_without_a_gpu_target_does_nothing(run_python):
    done = run_python(
        """
        import sys
        from polyblocks.device_helpers import cuda_synchronize
        cuda_synchronize()
        print("polyblocks.registry.registry" in sys.modules)
        """
    )
    assert done.stdout.strip() == "False", done.stderr


def test_synchronizing_asks_the_loaded_targets(fake_plugin, fresh_registry):
    extra = "CALLS = []\n@hookimpl\ndef synchronize(): CALLS.append(1)\n"
    modules = [fake_plugin(name, extra=extra) for name in ("used", "unused")]
    registry.get_registry().target("used")
    device_helpers.cuda_synchronize()
    assert sys.modules[modules[0]].CALLS == [1]
    assert modules[1] not in sys.modules


@pytest.mark.parametrize(
    "name, done",
    [
        ("00-S0-input.mlir", None),
        ("02-S2-affine.mlir", "S2"),
        ("03-S3-midlevel.mlir", "S3"),
        ("07-S3-fuse-slices.mlir", "S3:fuse-slices"),
        ("model.mlir", None),
        ("02-S9-affine.mlir", None),
    ],
)
def test_the_file_name_of_a_dump_says_how_far_it_came(name, done, tmp_path):
    assert api.stage_of_file(tmp_path / name) == done


def test_options_object_is_public():
    assert polyblocks.CompileOptions.from_dict({"num_threads": 3}).num_threads == 3

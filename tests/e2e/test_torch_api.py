"""The decorators: forms, options, and errors that say what to do."""

from __future__ import annotations

import json
import re

import pytest

torch = pytest.importorskip("torch")

import polyblocks  # noqa: E402
from polyblocks.errors import InputError, OptionError, TargetError  # noqa: E402
from polyblocks.registry import registry  # noqa: E402
from polyblocks_torch import polyblocks_jit_torch, polymage_jit_torch  # noqa: E402
from polyblocks_torch.backend import polyblocks_backend  # noqa: E402


def double(x):
    """Twice."""
    return x * 2


@pytest.mark.parametrize(
    "decorate",
    [
        polyblocks_jit_torch,
        lambda f: polyblocks_jit_torch()(f),
        lambda f: polyblocks_jit_torch(compile_options={"target": "cpu"})(f),
        lambda f: polyblocks_jit_torch({"target": "cpu"})(f),
        lambda f: polyblocks_jit_torch(f, compile_options={"num_threads": 1}),
        lambda f: polymage_jit_torch(f),
        lambda f: polymage_jit_torch(execution_backend="polyblocks", runtime_args={})(f),
        lambda f: polymage_jit_torch(compile_options={"target": "cpu"})(f),
        lambda f: polymage_jit_torch(f, execution_backend="std"),
        lambda f: polyblocks.compile(f, frontend="torch"),
    ],
)
def test_forms(decorate):
    compiled = decorate(double)
    assert compiled.__name__ == "double"
    assert compiled.__doc__ == "Twice."
    assert compiled(torch.ones(3)).tolist() == [2.0] * 3


def test_inductor_is_torch_compile(monkeypatch):
    seen = []
    monkeypatch.setattr(torch, "compile", lambda f: seen.append(f) or f)
    polymage_jit_torch(double, execution_backend="inductor")
    polymage_jit_torch(execution_backend="inductor")(double)
    assert seen == [double, double]


def test_two_decorations_of_one_function_do_not_mix():
    one = polyblocks_jit_torch(double, compile_options={"num_threads": 1})
    two = polyblocks_jit_torch(double, compile_options={"num_iters": 2})
    one(torch.ones(2))
    two(torch.ones(2))
    assert len(one.polyblocks_report().variants) == 1
    assert len(two.polyblocks_report().variants) == 1


def test_unknown_option_names_the_nearest():
    with pytest.raises(OptionError, match="unknown compile option 'taget'; did you mean 'target'"):
        polyblocks_jit_torch(compile_options={"taget": "cpu"})
    with pytest.raises(
        OptionError, match=r"static_argnums=\(1,\) is not available for frontend 'torch'"
    ):
        polyblocks_jit_torch(compile_options={"static_argnums": (1,)})
    with pytest.raises(OptionError, match="unknown compile option 'num_thread'"):
        polymage_jit_torch(double, execution_backend="std", runtime_args={"num_thread": 2})


@pytest.mark.cpu
def test_unknown_and_missing_targets(monkeypatch):
    with pytest.raises(TargetError, match=r"did you mean 'cpu'\?"):
        polyblocks_jit_torch(compile_options={"target": "cppu"})
    monkeypatch.setitem(registry.OFFICIAL[registry.TARGETS], "npu", "polyblocks-npu")
    with pytest.raises(TargetError, match="pip install polyblocks-npu"):
        polyblocks_jit_torch(double, compile_options={"target": "npu"})


def test_unknown_execution_backend():
    with pytest.raises(OptionError, match="one of std, inductor, polyblocks, not 'xla'"):
        polymage_jit_torch(double, execution_backend="xla")


def test_options_given_twice():
    with pytest.raises(OptionError, match="which mean the same, not both"):
        polymage_jit_torch(double, compile_options={}, runtime_args={})
    with pytest.raises(InputError, match="pass the options once"):
        polyblocks_jit_torch({}, compile_options={})


def test_no_function():
    with pytest.raises(InputError, match="takes a function or module, not int"):
        polyblocks_jit_torch(3)


def test_without_dynamo_nothing_can_be_captured(monkeypatch):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    with pytest.raises(InputError, match="switched off by TORCHDYNAMO_DISABLE; unset it, or"):
        polyblocks_jit_torch(double)


def test_modes_belong_to_inductor():
    with pytest.raises(OptionError, match="mode='max-autotune' belongs to Inductor"):
        polyblocks_backend(None, [], mode="max-autotune")


@pytest.mark.cpu
def test_wrong_device_names_the_argument():
    def add(first, second):
        return first + second

    pattern = re.escape("second is on meta, but target 'cpu' takes tensors on the CPU")
    with pytest.raises(TargetError, match=pattern + ".*second.cpu") as caught:
        polyblocks_jit_torch(add)(torch.tensor(1.0), torch.ones(2, device="meta"))
    assert "\n" not in str(caught.value)


def test_sparse_layout_is_refused_by_the_backend():
    x = torch.ones(3).to_sparse()
    graph = torch.fx.Graph()
    graph.output(graph.placeholder("L_x_"))
    module = torch.fx.GraphModule({}, graph)
    with pytest.raises(InputError, match="layout torch.sparse_coo.*to_dense"):
        polyblocks_backend(module, [x])


def test_errors_of_the_backend_reach_torch_compile_users():
    compiled = torch.compile(double, backend="polyblocks", options={"taret": "cpu"})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="did you mean 'target'"):
        compiled(torch.ones(2))


@pytest.mark.cpu
def test_the_report_reads_well():
    compiled = polyblocks_jit_torch(double)
    assert str(compiled.polyblocks_report()) == "double: not called yet"
    assert not compiled.polyblocks_report().whole
    compiled(torch.ones(4))
    text = str(compiled.polyblocks_report())
    assert "double: 1 kernel for cpu" in text
    assert "no fallbacks" in text


@pytest.mark.cpu
def test_loading_the_plugin_loads_no_framework(run_python):
    process = run_python(
        """
        import sys
        from polyblocks.registry.registry import get_registry

        get_registry().frontend("torch")
        print("torch" in sys.modules, "torch_mlir" in sys.modules)
        """
    )
    assert process.stdout.split() == ["False", "False"], process.stderr


@pytest.mark.extended
@pytest.mark.cpu
def test_a_warm_start_of_a_decorated_function_loads_no_mlir(run_python, tmp_path):
    code = """
        import json, sys
        import torch
        from polyblocks import events
        from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

        @polyblocks_jit_torch(compile_options={"strict_target": True})
        def function(x, y):
            return torch.softmax(torch.clamp(x @ x, 0, 3), 1), y.clamp(2, 5)

        seen = []
        with events.listening(lambda event: seen.append(event.kind)):
            results = function(torch.arange(16.0).view(4, 4) / 8, torch.arange(9))
        loaded = [name for name in ("torch_mlir", "polyblocks.mlir") if name in sys.modules]
        print(json.dumps([seen, loaded, [r.tolist() for r in results]]))
    """
    runs = [run_python(code, POLYBLOCKS_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert all(run.returncode == 0 for run in runs), runs[-1].stderr
    cold, warm = (json.loads(run.stdout.splitlines()[-1]) for run in runs)
    assert "cache-miss" in cold[0]
    assert cold[1]
    assert warm[:2] == [["cache-hit"], []]
    assert warm[2] == cold[2]


def test_the_package_has_the_decorators_only():
    import polyblocks_torch

    with pytest.raises(AttributeError, match="'polyblocks_torch' has no attribute 'jit'"):
        polyblocks_torch.jit  # noqa: B018

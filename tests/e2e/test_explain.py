"""`polyblocks explain` on small functions: numbers that fit together, also through the command."""

from __future__ import annotations

import contextlib
import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from sweeps import sweep

torch = pytest.importorskip("torch")

import polyblocks  # noqa: E402
from polyblocks import cli  # noqa: E402
from polyblocks.errors import InputError  # noqa: E402
from polyblocks.program import ArraySpec  # noqa: E402
from polyblocks.runtime.numpy_arrays import NumpyArrays  # noqa: E402
from polyblocks_torch import polyblocks_jit_torch  # noqa: E402

pytestmark = pytest.mark.cpu

SIZE = 512


def normalize(x, w):
    y = torch.tanh(x @ w) + 1
    return torch.softmax(y, -1)


def check(data):
    """The schema holds, and no number contradicts another."""
    schema = json.loads((files("polyblocks.explanation") / "schema.json").read_text())
    jsonschema.validate(json.loads(json.dumps(data)), schema)
    for part in data["parts"]:
        totals = part["totals"]
        assert part["measured"]
        assert part["kernels"]
        for kernel in part["kernels"]:
            e = kernel["estimate"]
            assert e["moved_bytes"] >= e["floor_bytes"] > 0
            assert e["bytes"]["L1"] >= e["floor_bytes"]
            assert kernel["measured_seconds"] > 0
            assert kernel["predicted_seconds"] > 0
            assert len(kernel["nests"]) == kernel["calls"]
        # The fastest run of all is no faster than the fastest of each kernel. The clocks of two
        # cores may differ by some nanoseconds.
        together = sum(k["measured_seconds"] for k in part["kernels"])
        assert totals["measured_seconds"] >= 0.999 * together - 1e-7
        assert sum(k["share"] for k in part["kernels"]) == pytest.approx(1)
        assert {p["stage"] for p in part["passes"]} == {"S1", "S2", "S3", "S4", "S5"}


def test_a_function_with_example_inputs():
    x = torch.rand(SIZE, SIZE)
    report = polyblocks.explain(
        normalize, x, x, frontend="torch", compile_options={"num_threads": 2}
    )
    data = report.document()
    check(data)
    (part,) = data["parts"]
    flops = sum(k["estimate"]["flops"] for k in part["kernels"])
    assert flops >= 2 * SIZE**3
    lines = {s["line"] for k in part["kernels"] for s in k["sources"]}
    assert lines == {"y = torch.tanh(x @ w) + 1", "return torch.softmax(y, -1)"}
    assert any(d["what"] in ("fused", "epilogue") and d["kernels"] for d in part["decisions"])
    assert "Cost</h3>" in report.html()
    call = data["call"]
    measured = part["totals"]["measured_seconds"]
    assert measured > 0
    # Both are sums of the same times, in another order.
    assert call["kernel_seconds"] >= measured * (1 - 1e-12)
    assert call["predicted_seconds"] == pytest.approx(part["totals"]["predicted_seconds"])
    assert call["text"] in str(report)


def test_the_hosts_part_of_a_small_call():
    x = torch.rand(16)
    report = polyblocks.explain(lambda x: x * 2 + 1, x, frontend="torch")
    assert report.call.host_is_larger
    assert 1e-7 < report.call.host_seconds < 1e-3
    assert "the host is the larger; compile more" in report.html()
    plain = polyblocks.explain(lambda x: x * 3 + 1, x, frontend="torch", profile=False)
    assert plain.document()["call"] is None


def test_what_was_compiled_before_is_compiled_again_to_be_measured():
    x = torch.rand(64, 64)
    compiled = polyblocks_jit_torch(normalize)
    compiled(x, x)
    check(polyblocks.explain(compiled, x, x).document())
    module = polyblocks_jit_torch(torch.nn.Linear(64, 64))
    with torch.no_grad():
        module(x)
        check(polyblocks.explain(module, x).document())


def test_a_compiled_function_that_tells_nothing_is_refused():
    def function():
        pass

    function.polyblocks_report = lambda: None
    with pytest.raises(InputError, match="give polyblocks.explain the function itself"):
        polyblocks.explain(function)


def test_a_block_is_measured_on_request():
    x = torch.rand(32, 32)
    with polyblocks.explain(profile=True) as report:
        compiled = polyblocks_jit_torch(lambda a: a * 2 + 1)
        for _ in range(3):
            compiled(x)
    check(report.document())
    assert report.document()["parts"][0]["totals"]["runs"] == 3
    with polyblocks.explain() as plain:
        polyblocks_jit_torch(lambda a: a * 3 + 1)(x)
    assert not plain.document()["parts"][0]["profiled"]
    assert report.document()["call"] is plain.document()["call"] is None  # it was not our call


def test_the_command_calls_a_decorated_function(tmp_path: Path, capsys, monkeypatch):
    file = tmp_path / "model.py"
    file.write_text(
        "import torch\n"
        "from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch\n"
        "@polyblocks_jit_torch\n"
        "def pick(x, i, m):\n"
        "    return torch.where(m, x[i], 0)\n"
    )
    inputs = ["-i", "bfloat16[9,8]", "-i", "int64[5]", "-i", "bool[5,8]"]
    html = tmp_path / "pick.html"
    arguments = ["polyblocks", "explain", f"{file}:pick", *inputs, "--json", "--html", str(html)]
    monkeypatch.setattr("sys.argv", arguments)
    with contextlib.suppress(SystemExit):
        cli.main()
    data = json.loads(capsys.readouterr().out)
    check(data)
    assert [a["shape"] for a in data["parts"][0]["arguments"]][:3] == [[9, 8], [5], [5, 8]]
    assert html.stat().st_size > 5000


def test_a_target_that_measures_nothing_is_explained_without_times(
    run_python, installed_plugins, tmp_path
):
    file = tmp_path / "neg.mlir"
    file.write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %e = tensor.empty() : tensor<4xf32>\n"
        "  %r = linalg.negf ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>\n"
        "  return %r : tensor<4xf32>\n"
        "}\n"
    )
    command = ["-m", "polyblocks.cli", "explain", str(file), "--target", "toy"]
    done = run_python("", *command, path=installed_plugins)
    assert done.returncode == 0, done.stderr
    assert "target 'toy' cannot time its kernels" in done.stdout
    # Nor does it say how fast it is.
    shown = " ".join(done.stdout.replace("│", " ").split())
    assert (
        "no flops of float32 and no bandwidth of the main memory in the description of target "
        "'toy': predicted times are unknown" in shown
    )
    assert "time: predicted" not in shown
    done = run_python("", *command, "--json", path=installed_plugins)
    (part,) = json.loads(done.stdout)["parts"]
    assert part["totals"]["predicted_seconds"] is None


@pytest.mark.parametrize(
    "dtype",
    sweep(
        ["float32", "float16", "int32", "uint8", "bool", "complex64"],
        "float32",
        "uint8",
        "bool",
        "complex64",
    ),
)
def test_made_up_inputs(dtype):
    from polyblocks.explanation.run import fill

    array = fill(NumpyArrays(), ArraySpec.contiguous((4, 5), dtype))
    assert (array.shape, array.dtype.name) == ((4, 5), dtype)
    if dtype.startswith(("float", "complex")):
        assert 0 < abs(array).max() <= 1
        assert len(set(array.flatten().tolist())) > 10
    elif dtype != "bool":
        assert (array == 0).all()
    assert fill(NumpyArrays(), ArraySpec.contiguous((0, 3), dtype)).size == 0

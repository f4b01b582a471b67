"""Ahead of time: several architectures in one file, weights, and loading with nothing installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import polyblocks
from polyblocks.ahead_of_time.architectures import options_by_arch
from polyblocks.artifact import Artifact
from polyblocks.cache.artifact_variants import archs_of, variant
from polyblocks.errors import FallbackError, InputError, OptionError

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("compiled_in_this_process")


def test_one_set_of_options_per_architecture():
    for arch in (["a", "b"], "a, b", ("a", "b")):
        made = options_by_arch({"target": "cpu", "arch": arch})
        assert [options.arch for options in made] == ["a", "b"]
    assert [options.arch for options in options_by_arch(None)] == [None]
    with pytest.raises(OptionError, match="'arch' is an empty list; name at least one"):
        options_by_arch({"arch": []})


def weighted(x, y):
    return y * 2 - x, (x + y).sum(0)


def test_a_function_becomes_a_file(tmp_path):
    x, y = torch.rand(5, 4), torch.rand(5, 4)
    polyblocks.aot(weighted, [x, y], {"target": "cpu"}, frontend="torch").write(tmp_path / "f.zip")
    loaded = polyblocks.load(tmp_path / "f.zip")
    for given in ((x, y), (x.numpy(), y.numpy())):
        results = loaded(*given)
        assert type(results[0]) is type(given[0])
        for got, expected in zip(results, weighted(x, y), strict=True):
            np.testing.assert_allclose(np.asarray(got), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("weights", ["stored", "arguments"])
def test_weights(weights, tmp_path):
    model = torch.nn.Linear(4, 3).eval()
    x = torch.rand(5, 4)
    with torch.no_grad():
        made = polyblocks.aot(model, [x], {"target": "cpu"}, frontend="torch", weights=weights)
        expected = model(x).numpy()
    made = Artifact.from_bytes(made.to_bytes())
    loaded = polyblocks.load(made)
    if weights == "stored":
        got = loaded(x.numpy())
        stored = [r for r in made.manifest["arguments"] if r.get("stored")]
        assert len(stored) == 2
    else:
        shapes = [made.manifest["arguments"][k]["shape"] for k in made.manifest["call"]]
        assert shapes[0] == [5, 4]
        held = {(3, 4): model.weight, (3,): model.bias}
        rest = [held[tuple(shape)].detach().numpy() for shape in shapes[1:]]
        got = loaded(x.numpy(), *rest)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    # What was compiled ahead of time is no stand-in for what is called later.
    compiled = polyblocks.compile(model, frontend="torch")
    with torch.no_grad():
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_other_frameworks():
    jax = pytest.importorskip("jax")
    x, y = (jax.numpy.asarray(v) for v in np.random.default_rng(0).random((2, 5, 4), np.float32))
    made = polyblocks.aot(weighted, [x, y], {"target": "cpu"}, frontend="jax")
    for got, expected in zip(polyblocks.load(made)(x, y), weighted(x, y), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    tf = pytest.importorskip("tensorflow")
    given = [tf.constant(np.asarray(v)) for v in (x, y)]
    made = polyblocks.aot(
        lambda x, y: (y * 2 - x, tf.reduce_sum(x + y, 0)), given, {"target": "cpu"}, frontend="tf"
    )
    results = polyblocks.load(made)(*given)
    assert tf.is_tensor(results[0])
    for got, expected in zip(results, weighted(np.asarray(x), np.asarray(y)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    compiled = polyblocks.compile(weighted, frontend="jax")
    np.testing.assert_allclose(compiled(x, y)[0], weighted(x, y)[0], rtol=1e-6)


def cut(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1


@pytest.mark.parametrize(
    "function, inputs, message",
    [
        (cut, 1, "cut: graph break .* strict_target forbids that Python runs the rest"),
        (
            lambda x: x,
            1,
            "no compiled code computes what the function returns: argument 1 as it came",
        ),
        (lambda x, y: x + 1, 2, "does not use its array number 2; leave it out"),
        (
            lambda x: (x + 1, 3),
            1,
            "result number 2 of <lambda> is of type int; a program returns arrays only",
        ),
    ],
)
def test_functions_that_are_no_program(function, inputs, message):
    given = [torch.rand(5, 4) for _ in range(inputs)]
    with pytest.raises((InputError, FallbackError), match=message):
        polyblocks.aot(function, given, {"target": "cpu"}, frontend="torch")


def test_wrong_ways_to_hold_weights():
    with pytest.raises(OptionError, match="weights must be one of stored, arguments, not 'x'"):
        polyblocks.aot(weighted, [], weights="x")


def test_the_command_compiles_a_function(tmp_path):
    from typer.testing import CliRunner

    from polyblocks.cli import app

    source = tmp_path / "model.py"
    source.write_text("import torch\ndef double(x): return x * 2\n")
    command = ["compile", f"{source}:double", "--input", "float32[2,3]", "--arch", "x86-64-v2"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(polyblocks.load(tmp_path / "model.zip")(x), 2 * x)
    for what, message in (("triple", "has no function 'triple'; it has double"),):
        with pytest.raises(InputError, match=message):
            CliRunner().invoke(app, ["compile", f"{source}:{what}"], catch_exceptions=False)
    with pytest.raises(InputError, match="there is no file"):
        CliRunner().invoke(app, ["compile", f"{tmp_path}/none.py:f"], catch_exceptions=False)


#: A driver of the vendor's in two lines, in a process where nothing else can be imported.
WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ("torch", "jax", "jaxlib", "tensorflow", "torch_mlir", "llvmlite"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
sys.path[:0] = PATHS
import numpy as np
import polyblocks
from fake_driver import FakeDriver, view
from polyblocks_nvgpu import driver as vendor

class Driver(FakeDriver):
    rank = vendor.CudaDriver.rank
    def _capability(self, device): return (9, 0)

def double(x, out):
    view(out, 6)[:] = 2 * view(x, 6)

fake = Driver({"double": double})
vendor.connect = lambda: fake
f = polyblocks.load("FILE")
x = np.arange(6, dtype=np.float32).reshape(2, 3)
print(f(x).tolist(), fake.named("load_module"), fake.named("launch")[0][4])
"""


def test_loading_needs_no_compiler_and_no_framework(tmp_path, run_python):
    from fake_driver import artifact, launch
    from manifest_rows import row

    from polyblocks.cache.artifact_variants import join

    def build(arch, form, grid):
        made = artifact(
            [row("input", "x"), row("output", "o")],
            [launch("double", 0, 1, grid=(grid, 1, 1))],
            arch=arch,
            form=form,
        )
        made.manifest["target"] = "nvgpu"
        return made

    both = join([build("sm_80", "ptx", 8), build("sm_90a", "cubin", 9), build("sm_120", "ptx", 1)])
    both.write(tmp_path / "f.zip")
    code = WITHOUT.replace("FILE", str(tmp_path / "f.zip")).replace("PATHS", repr(sys.path))
    done = run_python(code)
    assert done.stdout.strip() == (
        "[[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]] [('load_module', 0, b'code for sm_90a')] (9, 1, 1)"
    ), done.stderr


GPUS = [("nvgpu", "sm_80,sm_90a"), ("amdgpu", "gfx1100")]


def weights_and_sum(framework):
    """A function with an array of its own, and its argument, in one framework."""
    held = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = np.ones((2, 3), np.float32)
    if framework == "torch":
        weight = torch.from_numpy(held)
        return (lambda x: x + weight), torch.from_numpy(x)
    if framework == "jax":
        jax = pytest.importorskip("jax")
        weight = jax.numpy.asarray(held)
        return (lambda x: x + weight), jax.numpy.asarray(x)
    tf = pytest.importorskip("tensorflow")
    weight = tf.Variable(held)
    return (lambda x: x + weight), tf.constant(x)


@pytest.mark.each_choice
@pytest.mark.each_choice("extended")
@pytest.mark.parametrize("target, arch", GPUS)
@pytest.mark.parametrize("framework", ["torch", "jax", "tf"])
def test_every_framework_for_gpus_that_are_not_there(framework, target, arch, tmp_path):
    function, x = weights_and_sum(framework)
    expected = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    options = {"target": target, "arch": arch}
    made = polyblocks.aot(function, [x], options, frontend=framework)
    assert archs_of(made) == arch.split(",")
    forms = {"nvgpu": {"ptx", "cubin"}, "amdgpu": {"hsaco"}}[target]
    suffixes = {name.rpartition(".")[2] for name in made.blobs if name.startswith("kernels.")}
    assert suffixes <= forms
    assert suffixes
    # The same for the simulator runs, with the host's arrays.
    made = polyblocks.aot(
        function,
        [x],
        {"target": target, "arch": arch.split(",")[-1], "simulate": True},
        frontend=framework,
        weights="stored" if framework == "torch" else "arguments",
    )
    made.write(tmp_path / "f.zip")
    loaded = polyblocks.load(tmp_path / "f.zip")
    taken = [row for row in made.manifest["arguments"] if row["role"] == "input"]
    given = [np.ones((2, 3), np.float32)]
    if len(taken) == 2 and framework != "torch":
        given.append(expected - 1)
    np.testing.assert_array_equal(loaded(*given), expected)


@pytest.mark.parametrize(
    "options, inputs, message",
    [
        ({"target": "cpu"}, 1, "on_gpu_tensors=True is not available for target 'cpu'"),
        (
            {"target": "nvgpu", "arch": "sm_80", "simulate": True},
            1,
            "run on a device, and the simulator has none; leave one of the two out",
        ),
        ({"target": "nvgpu", "arch": "sm_80"}, 0, "needs an array among the arguments, whose dev"),
    ],
)
def test_arrays_that_cannot_be_on_a_gpu(options, inputs, message):
    given = [torch.rand(2)] * inputs
    with pytest.raises(OptionError, match=message):
        polyblocks.aot(weighted, given, options | {"on_gpu_tensors": True}, frontend="torch")


#: Runs programs that were really built, with kernels that add, where nothing can be imported.
ADDING = """
class Kernels(dict):
    def __contains__(self, name): return True
    def __getitem__(self, name):
        def add(x, y, out): view(out, 6)[:] = view(x, 6) + view(y, 6)
        return add

class Driver(FakeDriver):
    def __init__(self, kind, arch):
        super().__init__(Kernels())
        self.device_kinds = (kind,)
        self.rank = lambda code, form, device: 0 if code == arch else None

import polyblocks_amdgpu.driver
vendor.connect = lambda: Driver(2, "sm_90a")
polyblocks_amdgpu.driver.connect = lambda: Driver(10, "gfx1100")
x, y = np.full((2, 3), 5, np.float32), np.ones((2, 3), np.float32)
if WITH_TORCH:
    import torch
    x, y = torch.from_numpy(x), torch.from_numpy(y)
for file in FILES:
    f = polyblocks.load(file)
    try:
        result = f(x, y)
        assert type(result) is type(x)
        print(float(result.sum()))
    except polyblocks.errors.InputError as error:
        print(error)
print([name for name in ("jax", "torch_mlir", "llvmlite", "torch") if name in sys.modules])
"""


@pytest.mark.parametrize("with_torch", [False, True])
def test_loading_what_was_built_needs_no_compiler(with_torch, tmp_path, run_python):
    files = []
    for target, arch in GPUS:
        for on_gpu in (False, True):
            files.append(str(tmp_path / f"{target}-{on_gpu}.zip"))
            options = {"target": target, "arch": arch, "on_gpu_tensors": on_gpu}
            given = [torch.rand(2, 3), torch.rand(2, 3)]
            polyblocks.aot(torch.add, given, options, frontend="torch").write(files[-1])
    start, _, _ = WITHOUT.partition("class Driver(")
    if with_torch:
        start = start.replace('("torch", ', "(")
    code = start.replace("PATHS", repr(sys.path)) + ADDING.replace("FILES", repr(files))
    done = run_python(code.replace("WITH_TORCH", str(with_torch)))
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    loaded = ["torch"] if with_torch else []
    assert [lines[0], lines[2], lines[4]] == ["36.0", "36.0", str(loaded)], done.stderr
    for line, target in ((lines[1], "nvgpu"), (lines[3], "amdgpu")):
        assert f"expects its arrays on a device of target '{target}'" in line


@pytest.mark.parametrize("target, arch", GPUS)
def test_the_command_compiles_for_gpus(target, arch, tmp_path):
    from typer.testing import CliRunner

    from polyblocks.cli import app

    source = tmp_path / "model.py"
    source.write_text("import torch\ndef double(x): return x * 2\n")
    command = ["compile", f"{source}:double", "--input", "float32[2,3]", "--target", target]
    done = CliRunner().invoke(app, [*command, "--arch", arch])
    assert done.exit_code == 0, done.output
    made = Artifact.read(tmp_path / "model.zip")
    assert (made.manifest["target"], archs_of(made)) == (target, arch.split(","))


def test_what_is_timed(tmp_path):
    """Two layers of one kernel each; what the rows of a profile are is known before it runs."""
    layers = torch.nn.Sequential(*(torch.nn.Softmax(-1) for _ in range(2)))
    options = {"target": "nvgpu", "arch": "sm_80,sm_90a", "profile": True}
    options["polyblocks_disable_affine_fusion"] = True
    made = polyblocks.aot(layers, [torch.rand(40, 50)], options, frontend="torch")
    for arch in archs_of(made):
        manifest = variant(made, arch).manifest
        whole, *rows = manifest["profile"]
        assert whole == {"kernel": "", "nest": ""}
        assert [row["kernel"] for row in rows] == [row["kernel"] for row in manifest["launches"]]
        # The second layer runs the first one's kernels under names of its own.
        assert len({row["nest"] for row in rows}) == len(rows) > len(manifest["kernels"])
    options |= {"arch": "sm_80", "simulate": True}
    made = polyblocks.aot(layers, [torch.rand(40, 50)], options, frontend="torch")
    assert "profile" not in made.manifest

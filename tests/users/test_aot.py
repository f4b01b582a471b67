"""Ahead of time: modules, specs and exported programs in, one file for several CPUs out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import polyblocks
from polyblocks import driver
from polyblocks.ahead_of_time.python_file import compile_function
from polyblocks.artifact import Artifact
from polyblocks.cache.artifact_variants import archs_of, join
from polyblocks.cli import app
from polyblocks.errors import ArtifactError, InputError
from polyblocks_cpu import describe
from polyblocks_cpu.archs import ARCHS
from polyblocks_cpu.host import ARM_FEATURES, X86_FEATURES, Host, identify
from polyblocks_cpu.load import choose_variant

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.cpu

V3 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(13, 33), torch.nn.ReLU(), torch.nn.Linear(33, 7)
    ).eval()


def expected(module: torch.nn.Module, *inputs: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        return module(*inputs).numpy()


@pytest.fixture(scope="module")
def for_many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("aot") / "model.zip"
    archs = ["x86-64", "x86-64-v3", "x86-64-v4", "neoverse-n1"]
    polyblocks.aot(model(), [torch.rand(5, 13)], {"arch": archs}).write(path)
    return path


def a_machine(
    monkeypatch: pytest.MonkeyPatch, flags: str, machine: str = "x86_64", chip: str | None = None
) -> None:
    """Let the target take this for the machine."""
    kind = "flags" if machine == "x86_64" else "Features"
    arch, features = identify(f"{kind} : {flags}\n")
    here = Host(arch if chip is None else ARCHS[chip], features, {}, 4)
    for module in (describe, sys.modules["polyblocks_cpu.load"]):
        monkeypatch.setattr(module, "host", lambda: here)
    monkeypatch.setattr("platform.machine", lambda: machine)


@pytest.mark.extended
@pytest.mark.parametrize(
    "flags, machine, arch",
    [
        (V4, "x86_64", "x86-64-v4"),
        (V3, "x86_64", "x86-64-v3"),
        ("sse2", "x86_64", "x86-64"),
        ("fp asimd asimddp asimdhp atomics", "aarch64", "neoverse-n1"),
    ],
)
def test_aot_several_cpu_architectures_the_best_is_loaded(
    for_many: Path, monkeypatch: pytest.MonkeyPatch, flags: str, machine: str, arch: str
) -> None:
    artifact = Artifact.read(for_many)
    assert archs_of(artifact) == ["neoverse-n1", "x86-64", "x86-64-v3", "x86-64-v4"]
    a_machine(monkeypatch, flags, machine)
    chosen = choose_variant(artifact)
    assert chosen.manifest["arch"] == arch
    assert chosen.blobs["code.o"] == artifact.blobs[f"{arch}.code.o"]


@pytest.mark.parametrize(
    "chip, flags, arch",
    [
        ("cortex-a72", "fp asimd evtstrm crc32 cpuid", "armv8-a"),
        ("cortex-a76", "fp asimd atomics asimddp asimdhp", "neoverse-n1"),
        ("neoverse-n2", "fp asimd atomics asimddp asimdhp sve asimdfhm bf16 i8mm", "neoverse-v1"),
        # Its features are not told: the code that asks for least.
        ("cortex-a72", "", "armv8-a"),
    ],
)
def test_aot_the_best_for_a_chip_of_arm(
    monkeypatch: pytest.MonkeyPatch, chip: str, flags: str, arch: str
) -> None:
    code = b"\x7fELF\x02\x01" + bytes(12) + (183).to_bytes(2, "little") + bytes(44)
    made = [
        Artifact(
            {
                "target": "cpu",
                "arch": name,
                "name": "f",
                "entry": "e",
                "arguments": [],
                "requires": sorted(ARCHS[name].features),
            },
            {"code.o": code + name.encode()},
        )
        for name in ("neoverse-v1", "armv8-a", "neoverse-n1")
    ]
    a_machine(monkeypatch, flags, "aarch64", chip)
    assert choose_variant(join(made)).manifest["arch"] == arch


@pytest.mark.slow
def test_aot_several_cpu_architectures_run(for_many: Path) -> None:
    x = torch.rand(5, 13)
    np.testing.assert_allclose(
        polyblocks.load(for_many)(x.numpy()), expected(model(), x), rtol=1e-5, atol=1e-6
    )
    # Each that this machine can run computes the same.
    archs = [arch for arch in archs_of(Artifact.read(for_many)) if _runs(arch)]
    assert archs
    for arch in archs:
        made = polyblocks.aot(model(), [x], {"arch": [arch, "a64fx"]})
        assert driver.load(made).manifest["arch"] == arch
        got = polyblocks.load(made)(x.numpy())
        np.testing.assert_allclose(got, expected(model(), x), rtol=1e-5, atol=1e-6)


def _runs(arch: str) -> bool:
    from polyblocks.options import CompileOptions

    target = describe.describe(CompileOptions(arch=arch))
    here = describe.host().arch.family
    needed = describe.required_features(target)
    return ARCHS[arch].family == here and not describe.missing_features(needed)


def test_aot_no_architecture_of_the_file_fits(
    for_many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = polyblocks.aot(model(), [torch.rand(5, 13)], {"arch": "x86-64-v4,neoverse-n1"})
    a_machine(monkeypatch, V3)
    with pytest.raises(
        ArtifactError,
        match=r"code for x86-64-v4, neoverse-n1, and this machine \(x86-64-v3\) runs none of it: "
        r"x86-64-v4 \(this machine lacks avx512bw, .*\); neoverse-n1 \(it is for aarch64, and this "
        r"machine is x86_64\); compile it with an arch that this machine has, or an older one",
    ):
        polyblocks.load(made)


#: Macros that a C compiler defines for what a chip has, where they are not named like LLVM's
#: features.
MACROS = {
    "__SSE4_1__": "sse4.1",
    "__SSE4_2__": "sse4.2",
    "__LAHF_SAHF__": "sahf",
    "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16": "cx16",
    "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC": "fullfp16",
    "__ARM_FEATURE_DOTPROD": "dotprod",
    "__ARM_FEATURE_ATOMICS": "lse",
    "__ARM_FEATURE_FP16_FML": "fp16fml",
    "__ARM_FEATURE_SVE": "sve",
    "__ARM_FEATURE_SVE2": "sve2",
    "__ARM_FEATURE_BF16": "bf16",
    "__ARM_FEATURE_MATMUL_INT8": "i8mm",
}
KNOWN = {*X86_FEATURES.values(), *ARM_FEATURES.values()}
MACROS |= {
    f"__{name.upper().replace('-', '_')}__": name for name in KNOWN if name not in MACROS.values()
}


@pytest.mark.slow  # clang starts once for each of the chips
@pytest.mark.parametrize("arch", sorted(ARCHS))
def test_what_code_for_an_arch_needs_is_what_llvm_may_use(arch: str) -> None:
    """Else code would be loaded where it dies."""
    pytest.importorskip("ziglang")
    from polyblocks.options import CompileOptions

    family, cpu = ARCHS[arch].family, ARCHS[arch].cpu.replace("-", "_")
    command = [sys.executable, "-m", "ziglang", "cc", f"-mcpu={cpu}", "-E", "-dM", "-xc"]
    command += ["-target", f"{family}-linux-gnu", "/dev/null"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    defined = {line.split()[1] for line in text.splitlines() if line.startswith("#define ")}
    known = {"x86_64": X86_FEATURES, "aarch64": ARM_FEATURES}[family].values()
    has = {name for macro, name in MACROS.items() if macro in defined and name in known}
    assert set(describe.required_features(describe.describe(CompileOptions(arch=arch)))) == has


# --- what may be given -------------------------------------------------------------------------


def test_aot_of_a_module_stores_its_parameters() -> None:
    x = torch.rand(5, 13)
    made = Artifact.from_bytes(polyblocks.aot(model(), [x]).to_bytes())
    stored = [row for row in made.manifest["arguments"] if row.get("stored")]
    assert len(stored) == 4
    np.testing.assert_allclose(
        polyblocks.load(made)(x.numpy()), expected(model(), x), rtol=1e-5, atol=1e-6
    )


def test_aot_of_a_decorated_function() -> None:
    from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

    @polyblocks_jit_torch
    def double(x):
        return x * 2

    x = torch.rand(3, 4)
    loaded = polyblocks.load(polyblocks.aot(double, [x]))
    np.testing.assert_array_equal(loaded(x.numpy()), x.numpy() * 2)


@pytest.mark.parametrize("kind", ["meta", "fake"])
def test_aot_of_torch_tensors_without_values(kind: str) -> None:
    if kind == "meta":
        given = [torch.empty(5, 13, device="meta"), torch.empty(13, 5, device="meta").T]
    else:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            given = [torch.empty(5, 13), torch.empty(13, 5).T]
    loaded = polyblocks.load(polyblocks.aot(lambda x, y: (x * y, x - y), given))
    x, y = torch.rand(5, 13), torch.rand(13, 5).T
    for got, wanted in zip(loaded(x, y), (x * y, x - y), strict=True):
        torch.testing.assert_close(got, wanted)
    with pytest.raises(InputError, match=r"strides \[1, 5\] elements, got strides \[13, 1\]"):
        loaded(x, x)


def test_aot_of_an_exported_program() -> None:
    x = torch.rand(5, 13)
    exported = torch.export.export(model(), (x,))
    loaded = polyblocks.load(polyblocks.aot(exported))
    np.testing.assert_allclose(loaded(x.numpy()), expected(model(), x), rtol=1e-5, atol=1e-6)


class Scaled(torch.nn.Module):
    def forward(self, x, *, scale, more):
        return x * scale + more["y"]


@pytest.mark.slow
def test_aot_of_an_exported_program_with_names() -> None:
    x, scale, y = torch.rand(3, 4), torch.rand(4), torch.rand(3, 1)
    exported = torch.export.export(Scaled(), (x,), {"scale": scale, "more": {"y": y}})
    made = polyblocks.aot(exported)
    by_shape = {(3, 4): x, (4,): scale, (3, 1): y}
    rows = [made.manifest["arguments"][k] for k in made.manifest["call"]]
    got = polyblocks.load(made)(*[by_shape[tuple(row["shape"])] for row in rows])
    torch.testing.assert_close(got, x * scale + y)


def test_aot_of_a_module_without_values() -> None:
    with torch.device("meta"):
        module = torch.nn.Linear(3, 4).eval()
    with pytest.raises(
        InputError, match=r"'weight' of Linear has no values .*; load the weights fi"
    ):
        polyblocks.aot(module, [torch.rand(2, 3)])


def test_aot_of_a_symbolic_size() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv())
    symbolic = mode.from_tensor(torch.rand(5, 13), static_shapes=False)
    with pytest.raises(InputError, match="has a symbolic size; a program has one size"):
        polyblocks.aot(model(), [symbolic])


def test_aot_needs_an_example() -> None:
    with pytest.raises(InputError, match="a function that names no inputs of its own needs examp"):
        polyblocks.aot(model())


def test_aot_refuses_what_would_change_the_stored_weights() -> None:
    training = torch.nn.BatchNorm1d(13).train()
    with pytest.raises(InputError, match=r"changes .*, an array that it holds, .*eval\(\)"):
        polyblocks.aot(training, [torch.rand(5, 13)])


@pytest.mark.slow
def test_aot_of_jax_shapes() -> None:
    jax = pytest.importorskip("jax")
    spec = jax.ShapeDtypeStruct((5, 4), np.float32)

    def f(state, key):
        return state["x"] * 2 - state["y"], jax.random.uniform(key, (3,))

    key = jax.random.key(0)
    described = jax.ShapeDtypeStruct((), key.dtype)
    made = polyblocks.aot(f, [{"x": spec, "y": spec}, described], frontend="jax")
    x, y = (np.random.default_rng(k).random((5, 4), np.float32) for k in range(2))
    got = polyblocks.load(made)(x, y, np.asarray(jax.random.key_data(key)))
    for one, other in zip(got, f({"x": x, "y": y}, key), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    sizes = jax.export.symbolic_shape("n, 4")
    with pytest.raises(InputError, match="has a symbolic size; a program has one size: pass a Sha"):
        polyblocks.aot(f, [{"x": jax.ShapeDtypeStruct(sizes, np.float32)}, key], frontend="jax")


@pytest.mark.slow
def test_aot_of_what_jax_exports() -> None:
    jax = pytest.importorskip("jax")

    def f(x, y):
        return jax.numpy.tanh(x) @ y

    x, y = (np.random.default_rng(0).random(shape, np.float32) for shape in ((5, 4), (4, 3)))
    exported = jax.export.export(jax.jit(f))(x, y)
    got = polyblocks.load(polyblocks.aot(exported))(x, y)
    np.testing.assert_allclose(got, f(x, y), rtol=1e-5)


@pytest.mark.slow
def test_aot_of_tensorflow_specs() -> None:
    tf = pytest.importorskip("tensorflow")
    x, y = (np.random.default_rng(k).random((5, 4), np.float32) for k in range(2))

    def f(x, y):
        return tf.nn.relu(x - y), tf.reduce_sum(x * y)

    def agrees(made: Artifact) -> None:
        for got, wanted in zip(polyblocks.load(made)(x, y), f(x, y), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)

    spec = tf.TensorSpec([5, 4], tf.float32)
    agrees(polyblocks.aot(f, [spec, spec], frontend="tf"))
    agrees(polyblocks.aot(tf.function(f, input_signature=[spec, spec]), frontend="tf"))
    with pytest.raises(InputError, match=r"an input of shape \(None, 4\) leaves a size open"):
        polyblocks.aot(f, [tf.TensorSpec([None, 4], tf.float32), spec], frontend="tf")
    with pytest.raises(InputError, match="RaggedTensorSpec describes no tensor; pass a tf.TensorS"):
        polyblocks.aot(f, [tf.RaggedTensorSpec([5, None]), spec], frontend="tf")


def test_aot_of_a_keras_model() -> None:
    tf = pytest.importorskip("tensorflow")
    keras = tf.keras.Sequential([tf.keras.Input((4,), batch_size=5), tf.keras.layers.Dense(3)])
    x = np.random.default_rng(0).random((5, 4), np.float32)
    got = polyblocks.load(polyblocks.aot(keras, frontend="tf"))(x)
    np.testing.assert_allclose(got, keras(x), rtol=1e-5, atol=1e-6)


# --- the command -------------------------------------------------------------------------------


SOURCE = """
import torch
from polyblocks.torch_polyblocks_compiler import polyblocks_jit_torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(13, 33), torch.nn.ReLU(), torch.nn.Linear(33, 7)).eval()

@polyblocks_jit_torch
def double(x):
    return x * 2

def shifted(x, y):
    return x + y[0]

shifted.example_inputs = lambda: [torch.rand(4), [torch.rand(2)[:1]]]
exported = torch.export.export(model, (torch.rand(5, 13),))
number = 3

def unread(x):
    return x

def read():
    raise OSError("there is no data")

unread.example_inputs = read
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(
    "name, inputs",
    [
        ("model", ["float32[5,13]"]),
        ("double", ["float32[5,13]"]),
        ("shifted", []),
        ("exported", []),
    ],
)
def test_compile_command_takes_what_a_file_names(
    source: Path, name: str, inputs: list[str]
) -> None:
    flags = [part for text in inputs for part in ("--input", text)]
    done = CliRunner().invoke(app, ["compile", f"{source}:{name}", *flags])
    assert done.exit_code == 0, done.output
    loaded = polyblocks.load(source.with_suffix(".zip"))
    x = torch.rand(5, 13)
    if name == "shifted":
        x, y = torch.rand(4), torch.rand(1)
        torch.testing.assert_close(loaded(x, y), x + y)
    elif name == "double":
        torch.testing.assert_close(loaded(x), x * 2)
    else:
        got = loaded(x.numpy())
        np.testing.assert_allclose(got, expected(model(), x), rtol=1e-5, atol=1e-6)


READS_ITS_FILE = """
import torch

SCALE = {scale}

class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * SCALE

class Lazy(torch.nn.Module):
    def forward(self, x):
        from beside import SHIFT

        return x + SHIFT

model = torch.nn.Sequential(Scaled(), Lazy()).eval()
model.example_inputs = [torch.rand(3)]
"""


def test_compile_command_of_modules_that_read_their_file(tmp_path: Path) -> None:
    """By the names of modules; two files in one process are two modules."""
    before = list(sys.path), set(sys.modules)
    x = np.random.default_rng(0).random(3, np.float32)
    (tmp_path / "beside.py").write_text("SHIFT = 1.0\n")
    try:
        for scale in (2.0, 4.0):
            path = tmp_path / f"times{scale:.0f}.py"
            path.write_text(READS_ITS_FILE.format(scale=scale))
            artifact = compile_function(path, "model", [], {})
            np.testing.assert_array_equal(polyblocks.load(artifact)(x), x * np.float32(scale) + 1)
    finally:
        sys.modules.pop("beside", None)
    assert sys.path == before[0]
    assert not [n for n in set(sys.modules) - before[1] if n.startswith("polyblocks_file")]


@pytest.mark.parametrize(
    "name, flags, message",
    [
        ("double", [], r"double needs example inputs: name each with --input, .*'example_inputs'"),
        ("absent", [], "has no function 'absent'; it has .*double"),
        ("double", ["--input", "float32"], "'float32' is no input; write dtype"),
        ("unread", [], r"example_inputs of unread raised OSError at .*model.py:\d+: there is no d"),
    ],
)
def test_compile_command_says_what_is_missing(
    source: Path, name: str, flags: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(app, ["compile", f"{source}:{name}", *flags], catch_exceptions=False)

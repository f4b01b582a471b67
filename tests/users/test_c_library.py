"""Programs in C: what is written, built with a C compiler, run without Python, and refused."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.c_libraries import Library, quick_compiler
from tests.support.sweeps import sweep
from typer.testing import CliRunner

import polyblocks
from polyblocks.api import compile_text
from polyblocks.artifact import Artifact
from polyblocks.c_library import c_compiler
from polyblocks.c_library.interface import TYPES, identifier, identifiers
from polyblocks.cache.artifact_variants import join
from polyblocks.cli import app
from polyblocks.errors import InputError, TargetError
from polyblocks.options import CompileOptions
from polyblocks_cpu.host import X86_FEATURES, family, host
from polyblocks_cpu.library import emit, features, openmp_compiler
from polyblocks_cpu.objects.elf import machine_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.cpu

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "c"
OK, NULL_POINTER, WRONG_SIZE, MISALIGNED, OVERLAP, NO_MEMORY, UNSUPPORTED_CPU = range(0, -7, -1)
#: Two generations of this machine's family, the older one first.
ARCHS = {"x86_64": ("x86-64", "x86-64-v4"), "aarch64": ("armv8-a", "a64fx")}[family()]


def build(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(autouse=True)
def compiled_quickly(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any
) -> None:
    """``make test`` optimizes the libraries of fixtures alone, ``make test-all`` every one."""
    if request.config.option.markexpr == "not slow":
        monkeypatch.setenv("CC", quick_compiler(tmp_path_factory.getbasetemp()))


# --- the example -------------------------------------------------------------------------------


def test_c_example_is_built_and_computes_what_pytorch_does(tmp_path: Path) -> None:
    for file in EXAMPLE.iterdir():
        shutil.copy(file, tmp_path)
    command = ["compile", f"{tmp_path}/classifier.py:classifier", "--emit", "library"]
    done = CliRunner().invoke(app, [*command, "--arch", ",".join(ARCHS)])
    assert done.exit_code == 0, done.output
    compiler = shutil.which("gcc")
    assert compiler, "the example is built with gcc"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    link = ["-L.", "-lclassifier", "-Wl,-rpath,$ORIGIN"]
    build([compiler, *flags, "main.c", *link, "-o", "main"], tmp_path)
    # In an environment that knows of no Python.
    run = subprocess.run([tmp_path / "main"], env={}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    spec = importlib.util.spec_from_file_location("classifier", tmp_path / "classifier.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    image = torch.tensor([k * 7919 % 1000 for k in range(3 * 32 * 32)]).reshape(1, 3, 32, 32) / 1000
    with torch.no_grad():
        expected = module.classifier(image)[0].numpy()
    np.testing.assert_allclose(np.array(run.stdout.split(), float), expected, rtol=1e-4, atol=2e-6)
    arch, wrong = run.stderr.splitlines()
    assert arch.removeprefix("code for ") in ARCHS
    assert wrong == (
        "classifier: argument 'input' is float32[1, 3, 32, 32], 3072 elements; got 3071"
    )
    for file in ("main", "libclassifier.so"):
        listed = subprocess.run(["ldd", tmp_path / file], capture_output=True, text=True).stdout
        needed = {line.split()[0].rpartition("/")[2] for line in listed.splitlines()}
        allowed = ("linux-vdso", "libc.", "libgomp.", "libpthread.", "ld-linux", "libclassifier")
        assert all(name.startswith(allowed) for name in needed), listed
        assert "python" not in listed


def test_c_header_is_also_one_of_cpp(plain: Artifact, tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    library = Library(plain, tmp_path)
    assert 'extern "C"' in library.header
    (tmp_path / "use.cpp").write_text(
        """
        #include "program.h"
        static_assert(PROGRAM_ARG0_COUNT == 3 && PROGRAM_WRONG_SIZE == -2, "macros");
        int use(const float *x, float *y) { return program(x, 3, y, 3) + (program_arch() != 0); }
        """
    )
    compiler = [shutil.which("g++")] if shutil.which("g++") else [sys.executable, "-m", "ziglang"]
    command = [*compiler, *(["c++"] if len(compiler) > 1 else [])]
    build([*command, "-std=c++11", "-Wall", "-Werror", "-c", "use.cpp", "-o", "use.o"], tmp_path)


@pytest.mark.parametrize(
    "name",
    sweep(
        ["check", "take", "int32_t", "asm", "main", "checks", "library"],
        *("check", "int32_t", "asm", "main"),
    ),
)
def test_c_function_of_any_name(plain: Artifact, tmp_path: Path, name: str) -> None:
    files = polyblocks.write_library(plain, tmp_path, name)
    assert files[1].name in (f"{name}.h", f"{name}_.h")


@pytest.mark.parametrize("name", ["exp", "read"])
def test_c_function_is_not_called_what_the_system_has(
    plain: Artifact, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match=f"the C library has a function '{name}'; pass another"):
        polyblocks.write_library(plain, tmp_path, name)
    assert not list(tmp_path.iterdir())


def test_c_parameters_of_any_name(tmp_path: Path) -> None:
    def function(status: Any, counts: Any, check: Any, x: Any, x_count: Any) -> Any:
        return status + counts + check + x + x_count

    artifact = polyblocks.aot(function, [torch.ones(3) for _ in range(5)])
    library = Library(artifact, tmp_path)
    result = np.empty(3, np.float32)
    assert library(*[np.ones(3, np.float32)] * 5, result) == OK
    assert result.tolist() == [5, 5, 5]
    assert len(set(identifiers(["x", "x_count", "stream", "int32_t"]))) == 4


def test_c_library_that_is_loaded_stays_as_it_is(plain: Artifact, tmp_path: Path) -> None:
    library = Library(plain, tmp_path)
    before = (tmp_path / "libprogram.so").stat().st_ino
    polyblocks.write_library(plain, tmp_path, "program")
    assert (tmp_path / "libprogram.so").stat().st_ino != before
    result = np.empty(3, np.float32)
    assert library(np.ones(3, np.float32), result) == OK
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *("libprogram.so", "program-config.cmake", "program.h"),
    ]


def test_c_compiler_named_by_a_relative_path(
    plain: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "wrapped"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", "./wrapped")
    assert Library(plain, tmp_path / "library").arch()


def test_c_compiler_without_openmp(
    plain: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As clang often is: the runtime that programs use in Python is linked."""
    compiler = tmp_path / "without"
    compiler.write_text(
        '#!/bin/sh\nfor each in "$@"; do [ "$each" = -fopenmp ] && exit 1; done\n'
        f'exec {shutil.which("gcc")} "$@"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    library = Library(plain, tmp_path / "library")
    result = np.empty(3, np.float32)
    assert library(np.ones(3, np.float32), result) == OK
    assert result.tolist() == [-1, -1, -1]


CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(use C)
find_package(program CONFIG REQUIRED PATHS ${LIBRARY} NO_DEFAULT_PATH)
add_executable(use use.c)
target_link_libraries(use PRIVATE program::program)
"""


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no CMake")
def test_c_library_is_found_by_cmake(plain: Artifact, tmp_path: Path) -> None:
    Library(plain, tmp_path / "library")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "use.c").write_text(
        """
        #include <program.h>
        int main(void) {
          float x[3] = {1, 2, 3}, y[3];
          return program(x, 3, y, 3) != PROGRAM_OK || y[2] != -3;
        }
        """
    )
    build(["cmake", "-S", ".", "-B", "build", f"-DLIBRARY={tmp_path}/library"], tmp_path)
    build(["cmake", "--build", "build"], tmp_path)
    build(["build/use"], tmp_path)


# --- what is called ----------------------------------------------------------------------------

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Every dtype in and out."""

    def f(given):
        return [~x if x.dtype == torch.bool else x + x for x in given]

    given = [torch.ones(5, 3).to(getattr(torch, dtype)) for dtype in (*DTYPES, "complex64")]
    artifact = polyblocks.aot(f, [given], {"arch": ",".join(ARCHS)})
    return Library(artifact, tmp_path_factory.mktemp("several"), "several")


@pytest.mark.slow
def test_c_arrays_of_every_dtype(several: Library) -> None:
    numbers = np.random.default_rng(0)
    given, results, expected = [], [], []
    for dtype in (*DTYPES, "complex64"):
        x = numbers.integers(0, 2 if dtype == "bool" else 50, (5, 3)).astype(dtype)
        given.append(x)
        results.append(np.zeros_like(x))
        expected.append(~x if dtype == "bool" else x + x)
    assert several(*given, *results) == OK, several.error()
    assert several.error() == ""
    for got, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    for dtype in (*DTYPES, "complex64"):
        assert f"const {TYPES[dtype][0]} *given_{[*DTYPES, 'complex64'].index(dtype)}" in (
            several.header
        )


def strided(x, y):
    return (x * 2).T, x.sum() + y


def test_c_strides_and_scalars(tmp_path: Path) -> None:
    x, y = torch.rand(4, 6).T, torch.tensor(3.5)
    library = Library(polyblocks.aot(strided, [x, y]), tmp_path)
    assert "#define PROGRAM_X_SHAPE {6, 4}\n#define PROGRAM_X_STRIDES {1, 6}" in library.header
    assert "#define PROGRAM_Y_RANK 0" in library.header
    one, two = np.zeros((4, 6), np.float32), np.zeros((), np.float32)
    assert library(x.numpy(), y.numpy(), one, two) == OK, library.error()
    np.testing.assert_array_equal(one, x.numpy().T * 2)
    np.testing.assert_allclose(two, x.numpy().sum() + 3.5, rtol=1e-6)


def updating(x, y):
    x.mul_(2)
    return x, y + 1, y[:0]


def test_c_updates_in_place_and_what_is_returned(tmp_path: Path) -> None:
    library = Library(polyblocks.aot(updating, [torch.rand(8), torch.rand(3)]), tmp_path)
    assert "x: float32[8], updated" in library.header
    assert "    float *x,\n    size_t x_count,\n    const float *y," in library.header
    assert "The function returns x, result, an empty float32[0]." in library.header
    x, y, out = np.arange(8, dtype=np.float32), np.ones(3, np.float32), np.zeros(3, np.float32)
    assert library(x, y, out) == OK, library.error()
    np.testing.assert_array_equal(x, 2 * np.arange(8))
    np.testing.assert_array_equal(out, y + 1)


def attention(x, w):
    """Whose intermediate results need a workspace."""
    h = torch.softmax(x @ w, -1)
    return torch.softmax(h @ w.T @ x.T, 0) @ x


@pytest.fixture(scope="module")
def with_workspace(tmp_path_factory: pytest.TempPathFactory) -> tuple[Library, torch.Tensor, Any]:
    x, w = torch.rand(150, 70), torch.rand(70, 90)
    artifact = polyblocks.aot(lambda x: attention(x, w), [x])
    assert artifact.manifest["workspace_bytes"]
    library = Library(artifact, tmp_path_factory.mktemp("workspace"), "attention")
    return library, x, attention(x, w).numpy()


@pytest.mark.slow
def test_c_calls_of_many_threads_at_once(with_workspace: tuple[Library, torch.Tensor, Any]) -> None:
    library, x, expected = with_workspace
    failed: list[Any] = []

    def work(factor: float) -> None:
        own = (x * factor).numpy()
        wanted = np.zeros_like(own)
        assert library(own, wanted) == OK
        for _ in range(20):
            got = np.zeros_like(own)
            if library(own, got) != OK or not np.allclose(got, wanted, rtol=1e-5, atol=1e-6):
                failed.append(factor)
        if library(own, got, counts=[own.size, 7]) != WRONG_SIZE or "got 7" not in library.error():
            failed.append("error")

    threads = [threading.Thread(target=work, args=(1 + k / 8,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    # What one thread does wrong, others do not see.
    assert library.error() == ""
    got = np.zeros((150, 70), np.float32)
    assert library(x.numpy(), got) == OK
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.extended
def test_c_number_of_threads(with_workspace: tuple[Library, torch.Tensor, Any]) -> None:
    library, x, expected = with_workspace
    for number in (1, 2, 1000, 0):
        library.code.attention_set_num_threads(number)
        got = np.zeros((150, 70), np.float32)
        assert library(x.numpy(), got) == OK
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_c_checks_of_the_program(tmp_path: Path) -> None:
    table = torch.rand(7, 3)
    library = Library(
        polyblocks.aot(lambda i: table[i], [torch.zeros(4, dtype=torch.int64)]), tmp_path
    )
    out = np.zeros((4, 3), np.float32)
    indices = np.array([0, 6, 2, 2])
    assert library(indices, out) == OK
    np.testing.assert_array_equal(out, table.numpy()[indices])
    assert library(np.array([0, 7, 2, 2]), out) == 1
    assert "out of" in library.error() or "index" in library.error()
    assert f" *   1: {library.error()}" in library.header


def _attribute(role: str, name: str, shape: tuple[int, int], constant: bool = False) -> str:
    texts = f"array<i64: {shape[0]}, {shape[1]}>", f"array<i64: {shape[1]}, 1>"
    return (
        f'{{role = "{role}", name = "{name}", dtype = "float32", shape = {texts[0]}, strides = '
        f"{texts[1]}, constant = {str(constant).lower()}, updates = -1}}"
    )


PRODUCT = f"""
func.func @main(
    %x: tensor<200x150xf32> {{polyblocks.arg = {_attribute("input", "x", (200, 150))}}},
    %w: tensor<150x170xf32> {{polyblocks.arg = {_attribute("input", "w", (150, 170), True)}}})
    -> (tensor<200x170xf32> {{polyblocks.result = {_attribute("output", "out", (200, 170))}}}) {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<200x170xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<200x170xf32>) -> tensor<200x170xf32>
  %r = linalg.matmul ins(%x, %w : tensor<200x150xf32>, tensor<150x170xf32>)
      outs(%f : tensor<200x170xf32>) -> tensor<200x170xf32>
  return %r : tensor<200x170xf32>
}}
"""


def test_c_what_depends_on_constant_arrays_alone(tmp_path: Path) -> None:
    """Computed once of stored arrays, at each call of those that are passed."""
    artifact = compile_text(PRODUCT, CompileOptions())
    assert "preparation" in artifact.manifest
    x, w = (np.random.default_rng(k).random(s, np.float32) for k, s in enumerate(
        [(200, 150), (150, 170)]
    ))  # fmt: skip
    out = np.zeros((200, 170), np.float32)
    passed = Library(artifact, tmp_path, "passed")
    for factor in (1, 2):
        assert passed(x, w * np.float32(factor), out) == OK, passed.error()
        np.testing.assert_allclose(out, factor * x @ w, rtol=1e-5)
    artifact.manifest["arguments"][1]["stored"] = "w.bin"
    artifact.blobs["w.bin"] = w.tobytes()
    stored = Library(artifact, tmp_path, "stored")
    results = [np.zeros_like(out) for _ in range(6)]
    threads = [threading.Thread(target=stored, args=(x, result)) for result in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_allclose(result, x @ w, rtol=1e-5)


# --- errors of calls ---------------------------------------------------------------------------


def test_c_wrong_calls_give_an_error_code(tmp_path: Path) -> None:
    artifact = polyblocks.aot(lambda x, y: x + y, [torch.rand(8), torch.rand(8)])
    library = Library(artifact, tmp_path)
    x, y, out = (np.full(9, k, np.float32) for k in range(3))
    at = [a.ctypes.data for a in (x, y, out)]
    sizes = [8, 8, 8]
    assert library(*at, counts=sizes) == OK
    np.testing.assert_array_equal(out[:8], 1)
    out[:] = 7
    for arguments, counts, status, text in (
        (at, [8, 9, 8], WRONG_SIZE, r"argument 'y' is float32[8], 8 elements; got 9"),
        (at, [8, 8, 0], WRONG_SIZE, r"argument 'result' is float32[8], 8 elements; got 0"),
        ([0, *at[1:]], sizes, NULL_POINTER, "argument 'x' is NULL"),
        ([at[0] + 2, *at[1:]], sizes, MISALIGNED, "argument 'x' must be aligned to 4 bytes"),
        ([at[0], at[1], at[0] + 4], sizes, OVERLAP, "'result' is written and shares memory with"),
    ):
        assert library(*arguments, counts=counts) == status
        assert text in library.error()
    assert (out == 7).all(), "nothing was run"
    assert library(*at, counts=sizes) == OK
    assert library.error() == ""


class Tied(torch.nn.Module):
    """Three weights, one of them in two places, and one that is updated."""

    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Linear(8, 8)
        self.two = torch.nn.Linear(8, 8, bias=False)
        self.two.weight = self.one.weight
        self.register_buffer("calls", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.two(torch.tanh(self.one(x))) * self.calls[0]


def test_c_weights_are_bound_once(tmp_path: Path) -> None:
    model, x = Tied().eval(), torch.rand(5, 8)
    library = Library(polyblocks.aot(model, [x], weights="arguments"), tmp_path)
    names = library.weight_names(4)
    assert names[3] is None
    assert sorted(map(str, names[:3])) == ["calls", "one.bias", "one.weight"]
    assert f"#define {library.name.upper()}_WEIGHTS 3" in library.header
    weights = {name: held.detach().numpy() for name, held in Tied().state_dict().items()}
    weights["calls"] = np.zeros(4, np.float32)
    given = [weights[str(name)] for name in names[:3]]
    status, bound = library.bind(given)
    assert status == OK
    out = np.zeros((5, 8), np.float32)
    for turn in range(1, 3):
        given[names.index("one.bias")] += 1
        assert library.run(bound, x.numpy(), out) == OK
        assert (weights["calls"] == turn).all()
        inner = np.tanh(x.numpy() @ weights["one.weight"].T + weights["one.bias"])
        expected = inner @ weights["one.weight"].T * turn
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    # What is written is compared with the weights, which were compared with each other.
    place = given[names.index("one.weight")].ctypes.data
    counts = [40, 40]
    assert library.run(bound, x.numpy().ctypes.data, place, counts=counts) == OVERLAP
    assert "'result' is written and shares memory with" in library.error()
    assert (
        library.run(bound, weights["calls"].ctypes.data, out.ctypes.data, counts=counts) == OVERLAP
    )
    assert library.run(None, x.numpy(), out) == NULL_POINTER
    assert "bound is NULL" in library.error()
    assert library.run(bound, x.numpy()[:4], out) == WRONG_SIZE
    assert library.unbind(bound) == library.unbind(None) == OK
    short = [each[:-1] if each.ndim == 1 else each for each in given]
    status, bound = library.bind(short)
    assert (status, bound.value) == (WRONG_SIZE, None)
    assert "elements; got" in library.error()
    counts = [each.size for each in given]
    overlapping = [given[names.index("one.weight")].ctypes.data] * 3
    assert library.bind(overlapping, counts)[0] == OVERLAP


@pytest.mark.extended
def test_c_libraries_without_weights_bind_none(several: Library) -> None:
    assert "_bind(" not in several.header


def test_c_picks_the_code_that_the_machine_runs(tmp_path: Path) -> None:
    """Like ``polyblocks.load`` does; and tells where there is none."""
    given = [torch.rand(33)]
    artifact = polyblocks.aot(lambda x: torch.tanh(x), given, {"arch": list(ARCHS)})
    library = Library(artifact, tmp_path, "both")
    from polyblocks_cpu.load import choose_variant

    assert library.arch() == choose_variant(artifact).manifest["arch"]
    out = np.zeros(33, np.float32)
    assert library(given[0].numpy(), out) == OK
    np.testing.assert_allclose(out, np.tanh(given[0].numpy()), rtol=1e-6)
    # Each of them says to need what is not here.
    known = features._CPUID if family() == "x86_64" else features._HWCAP
    absent = next(name for name in known if f"+{name}" not in host().features)
    for each in artifact.manifest["variants"].values():
        each["requires"] = [*each["requires"], absent]
    none = Library(artifact, tmp_path, "neither")
    assert none.arch() is None
    assert none(given[0].numpy(), out) == UNSUPPORTED_CPU
    assert none.error() == "neither: this machine runs none of the library's code"


def test_c_code_knows_what_the_chip_has(tmp_path: Path) -> None:
    """CPUID and Linux agree on every feature that code may need."""
    known = features._CPUID if family() == "x86_64" else features._HWCAP
    if family() == "x86_64":
        assert set(known) == set(X86_FEATURES.values())
    names = [name for name in known if not name.startswith("amx")]
    prints = "".join(
        f'printf("{name} %d\\n", ({features.condition(family(), [name])}) != 0);\n'
        for name in names
    )
    source = features.definitions(family(), names)
    (tmp_path / "has.c").write_text(
        f"#include <stdint.h>\n#include <stdio.h>\n{source}\nint main(void) {{\n{prints}return 0;}}"
    )
    compiler = openmp_compiler.find(family())
    compiler.run(["-O1", "has.c", "-o", "has"], tmp_path)
    told = subprocess.run([tmp_path / "has"], check=True, capture_output=True, text=True).stdout
    for line in told.splitlines():
        name, has = line.split()
        assert (has == "1") == (f"+{name}" in host().features), name


# --- what is refused, and what is needed to make one ---------------------------------------------


NEGATED = """
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.negf ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""


def negated(**options: Any) -> Artifact:
    return compile_text(NEGATED, CompileOptions(**options))


@pytest.fixture(scope="module")
def plain() -> Artifact:
    return negated()


def test_c_library_of_several_families(tmp_path: Path) -> None:
    artifact = join([negated(arch="x86-64"), negated(arch="armv8-a")])
    with pytest.raises(InputError, match="chips of one family, not of aarch64, x86_64; make one l"):
        polyblocks.write_library(artifact, tmp_path)


def test_c_library_of_a_target_that_makes_none(
    plain: Artifact,
    fake_plugin: Callable[..., str],
    fresh_registry: None,
    tmp_path: Path,
) -> None:
    fake_plugin("toy")
    artifact = Artifact({**plain.manifest, "target": "toy"}, plain.blobs)
    with pytest.raises(TargetError, match="target 'toy' makes no libraries for C; compile for ano"):
        polyblocks.write_library(artifact, tmp_path)


def test_c_library_that_measures(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="a library does not measure its kernels; leave out the op"
    ):
        polyblocks.write_library(negated(profile=True), tmp_path)


def test_c_library_with_too_much_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    artifact = compile_text(PRODUCT, CompileOptions())
    artifact.manifest["arguments"][1]["stored"] = "w.bin"
    artifact.blobs["w.bin"] = bytes(4 * 150 * 170)
    monkeypatch.setattr(emit, "MOST_BYTES", 101999)
    with pytest.raises(InputError, match="stores 102000 bytes, and a library holds at most 101999"):
        polyblocks.write_library(artifact, tmp_path)


def test_c_library_without_a_compiler(
    plain: Artifact, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(c_compiler.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        TargetError, match="linking a library needs a C compiler for .*, and none was found: insta"
    ):
        polyblocks.write_library(plain, tmp_path)


@pytest.fixture
def compiler_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let CC name a script."""

    def make(body: str) -> None:
        path = tmp_path / "my-cc"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o700)
        monkeypatch.setenv("CC", str(path))

    return make


def test_c_library_with_a_compiler_for_other_chips(
    plain: Artifact, compiler_that: Callable[[str], None], tmp_path: Path
) -> None:
    compiler_that("echo riscv64-linux-gnu")
    with pytest.raises(
        TargetError, match=r"CC=.*my-cc makes code for an unknown chip, and the prog"
    ):
        polyblocks.write_library(plain, tmp_path)


def test_c_library_with_a_compiler_that_fails(
    plain: Artifact, compiler_that: Callable[[str], None], tmp_path: Path
) -> None:
    compiler_that(
        f'[ "$1" = -dumpmachine ] && echo {family()}-linux || {{ echo no OpenMP >&2; exit 1; }}'
    )
    with pytest.raises(
        TargetError, match=r"cannot link the library: no OpenMP; the command was: .*my"
    ):
        polyblocks.write_library(plain, tmp_path)


@pytest.mark.slow  # compiles what Zig's linker needs of libc
def test_c_library_made_with_ziglang(
    plain: Artifact, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(c_compiler.shutil, "which", lambda name: None)
    library = Library(plain, tmp_path)
    x, out = np.ones(3, np.float32), np.zeros(3, np.float32)
    assert library(x, out) == OK
    np.testing.assert_array_equal(out, -1)


@pytest.mark.slow  # compiles what Zig's linker needs of libc
def test_c_library_for_other_chips(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Linked here for a family that this machine is not of."""
    pytest.importorskip("ziglang")
    monkeypatch.delenv("CC", raising=False)
    other, archs = {
        "x86_64": ("aarch64", ("armv8-a", "neoverse-v1")),
        "aarch64": ("x86_64", ("x86-64", "x86-64-v4")),
    }[family()]
    artifact = join([negated(arch=arch) for arch in archs])
    library, *_ = polyblocks.write_library(artifact, tmp_path, "negated")
    data = library.read_bytes()
    assert machine_of(data) == other
    assert int.from_bytes(data[0x10:0x12], "little") == 3, "a shared object"
    for symbol in (b"negated", b"negated_arch", b"negated_error", *(a.encode() for a in archs)):
        assert b"\0" + symbol + b"\0" in data


def test_c_names() -> None:
    assert identifier("<lambda>") == "lambda"
    assert identifier("my-model.v2") == "my_model_v2"
    assert identifier("class") == "class_"
    assert identifier("2d") == "_2d"
    assert identifiers(["x", "X", "x", "int"]) == ["x", "X_2", "x_3", "int_"]


def test_compile_command_refuses_other_kinds(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--emit is one of artifact and library, not 'dll'"):
        CliRunner().invoke(app, ["compile", "f.mlir", "--emit", "dll"], catch_exceptions=False)

"""Large constants of CPU programs: data that LLVM does not see."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cpu_kernels import compile_text, load, pack
from llvmlite import binding

from polyblocks_cpu.objects.data_object import LARGE_BYTES, data_object
from polyblocks_cpu.objects.elf import read_symbols

KINDS = {"i1": bool, "i8": np.int8, "i32": np.int32, "f16": np.float16, "f32": np.float32}


def literal(values: np.ndarray) -> str:
    """A dense attribute as MLIR prints large ones."""
    if values.dtype == bool:
        return f"dense<[{', '.join(map(str, values)).lower()}]>"
    return f'dense<"0x{values.tobytes().hex()}">'


def copy_of(constants: dict[str, np.ndarray], kinds: dict[str, str]) -> str:
    """A module that copies constants to its arguments."""
    globals_, arguments, rows, body = [], [], [], []
    for n, (name, values) in enumerate(constants.items()):
        kind, size = f"memref<{values.size}x{kinds[name]}>", values.size
        globals_.append(f'memref.global "private" constant @{name} : {kind} = {literal(values)}')
        rows.append(
            f'%y{n}: {kind} {{polyblocks.arg = {{role = "output", name = "y{n}", '
            f'dtype = "{values.dtype}", shape = array<i64: {size}>, strides = array<i64: 1>, '
            "constant = false, updates = -1 : i64}}"
        )
        arguments.append(f"%c{n} = memref.get_global @{name} : {kind}")
        body.append(
            f"affine.parallel (%i{n}) = (0) to ({size}) {{\n"
            f"%v{n} = affine.load %c{n}[%i{n}] : {kind}\n"
            f"affine.store %v{n}, %y{n}[%i{n}] : {kind}\n}}"
        )
    lines = "\n".join((*arguments, *body))
    return (
        "\n".join(globals_) + f"\nfunc.func public @main({', '.join(rows)}) {{\n{lines}\nreturn\n}}"
    )


def random(kind: str, size: int) -> np.ndarray:
    bits = np.random.default_rng(size).integers(0, 256, size * 8, np.uint8)
    if kind == "i1":
        return bits[:size] > 127
    values = bits.view(KINDS[kind])[:size].copy()
    # NaNs with their bits, too, but quiet ones: what is loaded may pass through a register.
    return np.where(np.isnan(values), KINDS[kind]("nan"), values) if kind[0] == "f" else values


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_constant_is_an_object_of_its_own(kind: str) -> None:
    size = LARGE_BYTES + 1
    values = {"large": random(kind, size), "small": random(kind, 7)}
    artifact = compile_text(copy_of(values, {"large": kind, "small": kind}))
    assert sorted(artifact.blobs) == ["code-1.o", "code.o"]
    symbols = read_symbols(artifact.blobs["code-1.o"])
    assert symbols is not None
    assert (symbols.data, symbols.functions, symbols.undefined) == (("large",), {}, ())
    results = [np.zeros(v.shape, v.dtype) for v in values.values()]
    assert load(artifact).entry(pack(results), 2) == 0
    for expected, result in zip(values.values(), results, strict=True):
        assert result.tobytes() == expected.tobytes()


def test_several_constants_are_one_object() -> None:
    values = {f"c{n}": random("f32", LARGE_BYTES + n) for n in range(3)}
    artifact = compile_text(copy_of(values, dict.fromkeys(values, "f32")))
    assert sorted(artifact.blobs) == ["code-1.o", "code.o"]
    results = [np.zeros(v.shape, v.dtype) for v in values.values()]
    assert load(artifact).entry(pack(results), 1) == 0
    for expected, result in zip(values.values(), results, strict=True):
        np.testing.assert_array_equal(result, expected)


def test_equal_elements_stay_in_the_code() -> None:
    values = {"ones": np.ones(LARGE_BYTES, np.float32)}
    artifact = compile_text(copy_of(values, {"ones": "f32"}))
    assert sorted(artifact.blobs) == ["code.o"]


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_the_object_is_for_the_machine_of_the_code(triple: str) -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(triple).create_target_machine(reloc="pic")
    code = bytes(machine.emit_object(binding.parse_assembly("define void @f() { ret void }")))
    constants = {"a": np.arange(5, dtype=np.int8), "b": np.arange(9, dtype=np.float64)}
    made = data_object(constants, code)
    assert made[:0x14] == code[:0x14]
    file = binding.ObjectFileRef.from_data(made)
    found = {section.name(): section.data() for section in file.sections()}
    assert found[b".rodata"][:5] == constants["a"].tobytes()
    # At the next line of the cache.
    assert found[b".rodata"][64:] == constants["b"].tobytes()


def test_a_linker_takes_it(tmp_path: Path) -> None:
    constants = {"numbers": np.arange(1000, dtype=np.int32)}
    source = "extern const int numbers[1000];\nint at(int i) { return numbers[i]; }\n"
    (tmp_path / "code.c").write_text(source)
    subprocess.run(["gcc", "-c", "-fPIC", "code.c"], cwd=tmp_path, check=True)
    made = data_object(constants, (tmp_path / "code.o").read_bytes())
    (tmp_path / "data.o").write_bytes(made)
    command = ["gcc", "-shared", "-Wl,--fatal-warnings", "-o", "all.so", "code.o", "data.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "all.so"))
    assert [library.at(i) for i in (0, 7, 999)] == [0, 7, 999]
    # It is no business of whoever loads the library.
    assert not hasattr(library, "numbers")

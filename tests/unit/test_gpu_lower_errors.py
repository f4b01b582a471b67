"""What the lowering of kernels refuses, and how it says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from gpu_kernels import amdgpu, lower, nvgpu, program

from polyblocks import mlir
from polyblocks.codegen.gpu import host_program
from polyblocks.codegen.gpu.machine_code import refuse_calls
from polyblocks.codegen.gpu.plan import read_launches
from polyblocks.errors import PassError, TargetError, UnsupportedError
from polyblocks_amdgpu import code_object, linker, msgpack
from polyblocks_nvgpu import ptxas

X = {"x": "memref<128xf32>"}
LOCATED = ' loc("aten.add.Tensor"("model.py":12:0))'


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f'gpu.printf "hello"{LOCATED}',
         r"aten\.add\.Tensor: gpu\.printf in kernel 'kernel' is not supported on this target at "
         r"model\.py:12"),
        (f"%c = arith.constant 0 : index\n%m = memref.alloc() : memref<8xf32>{LOCATED}\n"
         "%v = memref.load %m[%c] : memref<8xf32>\nmemref.store %v, %x[%c] : memref<128xf32>",
         r"memref\.alloc in kernel 'kernel' is not supported .* at model\.py:12"),
        ("%i = gpu.thread_id x\n%f = memref.load %x[%i] : memref<128xf32>\n"
         "%v = gpu.subgroup_reduce add %f : (f32) -> f32\n"
         "memref.store %v, %x[%i] : memref<128xf32>",
         r"gpu\.subgroup_reduce in kernel 'kernel'"),
        ("%v = arith.constant dense<1.0> : vector<4xf32>\nvector.print %v : vector<4xf32>",
         r"vector\.print in kernel 'kernel'"),
    ],
)  # fmt: skip
def test_ops_without_a_lowering(body: str, reason: str) -> None:
    for target in (nvgpu("sm_80"), amdgpu("gfx1100")):
        with pytest.raises(UnsupportedError, match=reason):
            lower(program(body, X), target)


def test_calls_of_functions() -> None:
    body = f"%f = arith.constant 1.0 : f32\n%v = func.call @sinf(%f) : (f32) -> f32{LOCATED}"
    text = program(body, X, before="func.func private @sinf(f32) -> f32")
    with pytest.raises(UnsupportedError, match=r"func\.call in kernel 'kernel' .* at model\.py:12"):
        lower(text, nvgpu("sm_80"))
    with pytest.raises(UnsupportedError, match="the generated kernels call cosf, sinf; every"):
        refuse_calls({"sinf", "cosf"})


def _main(body: str, kernel: str = "", arguments: str = "%x: memref<128xf32>") -> str:
    return f"""
    module attributes {{gpu.container_module}} {{
      memref.global "private" constant @a : memref<128xf32> = dense<1.0>
      memref.global "private" constant @b : memref<128xf32> = dense<2.0>
      gpu.module @kernels {{
        gpu.func @k(%x: memref<128xf32>) kernel {{
          {kernel}
          gpu.return
        }}
        gpu.func @strided(%x: memref<64xf32, strided<[1], offset: ?>>) kernel {{ gpu.return }}
        gpu.func @half(%x: bf16) kernel {{ gpu.return }}
      }}
      func.func @main({arguments}) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c128 = arith.constant 128 : index
        {body}
        return
      }}
    }}"""


LAUNCH = (
    "gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)"
    " args(%x : memref<128xf32>)"
)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"%v = memref.load %x[%c0] : memref<128xf32>{LOCATED}",
         r"memref\.load outside of kernels is not supported on this target at model\.py:12"),
        ("%g = memref.subview %x[%c0] [64] [1] : memref<128xf32> to"
         " memref<64xf32, strided<[1], offset: ?>>",
         "a view of a kernel's argument whose beginning is not a constant"),
        ("%b = arith.constant 1.0 : bf16\ngpu.launch_func @kernels::@half blocks in"
         " (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%b : bf16)",
         "an argument of type bf16 in kernel 'half'"),
        ("gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)"
         " dynamic_shared_memory_size %s args(%x : memref<128xf32>)",
         "a launch with dependences, clusters or dynamic memory in kernel 'k'"),
    ],
)  # fmt: skip
def test_main_does_nothing_but_launch(body: str, reason: str) -> None:
    body = f"%s = arith.constant 64 : i32\n{body}"
    with pytest.raises(UnsupportedError, match=reason):
        lower(_main(body), nvgpu("sm_80"))


def test_loops_of_too_many_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_program, "MOST_LAUNCHES", 10)
    body = f"scf.for %i = %c0 to %c128 step %c1 {{\n{LAUNCH}\n}}"
    with pytest.raises(UnsupportedError, match="a program of more than 10 launches"):
        lower(_main(body), nvgpu("sm_80"))


def test_launches_that_do_not_fit() -> None:
    other = LAUNCH.replace("%c128, %c1", "%c2, %c1")
    with pytest.raises(
        PassError, match=r"kernel 'k' is for blocks of \[128, 1, 1\], and launched with \[2, 1, 1\]"
    ):
        lower(_main(f"{LAUNCH}\n{other}"), nvgpu("sm_80"))
    constants = "\n".join(
        f"%{g} = memref.get_global @{g} : memref<128xf32>\n" + LAUNCH.replace("%x", f"%{g}")
        for g in "ab"
    )
    with pytest.raises(PassError, match="kernel 'k' gets different constants as argument 0"):
        lower(_main(constants), nvgpu("sm_80"))
    sizes = LAUNCH.replace("blocks in (%c1", "blocks in (%c2")
    size = "%n = gpu.grid_dim x\n%v = memref.load %x[%n] : memref<128xf32>"
    with pytest.raises(
        UnsupportedError, match=r"gpu\.grid_dim of a kernel that is launched with several sizes"
    ):
        lower(_main(f"{LAUNCH}\n{sizes}", size), nvgpu("sm_80"))


def test_constants_that_are_no_numbers() -> None:
    body = "%v = arith.constant dense<1.0> : vector<4xf32>"
    with pytest.raises(PassError, match="is no number that a kernel could be given"):
        lower(_main(f"{body}\n{LAUNCH}"), nvgpu("sm_80"))


def test_modules_of_another_form() -> None:
    two = "module {\ngpu.module @a { }\ngpu.module @b { }\nfunc.func @main() { return }\n}"
    with pytest.raises(PassError, match=r"kernels are in one gpu\.module; this module has 2"):
        lower(two, nvgpu("sm_80"))
    with pytest.raises(PassError, match="the module has no function @main"):
        lower("module { }", nvgpu("sm_80"))
    with pytest.raises(ValueError, match="no launch plan; extract-launches makes it"):
        read_launches(mlir.parse("module { }"))


def test_too_much_shared_memory() -> None:
    space = "#gpu.address_space<workgroup>"
    text = program("", X, workgroup=f"%s : memref<100000xf32, {space}>")
    with pytest.raises(
        UnsupportedError,
        match="400000 bytes of shared memory, where a block has at most 166912, in kernel 'kernel'",
    ):
        lower(text, nvgpu("sm_80"))
    with pytest.raises(PassError, match="a shared buffer has a static size, not memref"):
        lower(program("", X, workgroup=f"%s : memref<?xf32, {space}>"), nvgpu("sm_80"))


# --- tools ---------------------------------------------------------------------------------------


@pytest.mark.skipif(ptxas.find() is None, reason="no ptxas")
def test_what_the_assembler_rejects() -> None:
    path = ptxas.find()
    assert path is not None
    text = ".version 7.0\n.target sm_80\n.address_size 64\nnonsense"
    reason = r"rejects the generated code: .*; repeat with: .* -arch=sm_80 "
    with pytest.raises(UnsupportedError, match=reason):
        ptxas.assemble(path, text, "sm_80")


def test_tools_that_do_not_run(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(UnsupportedError, match="the assembler does not run: .*missing"):
        ptxas.assemble(missing, "", "sm_80")
    with pytest.raises(UnsupportedError, match="the linker does not run: .*missing"):
        linker.link([missing], b"")
    reason = "the linker rejects the generated code: .*; repeat with: .*-shared"
    with pytest.raises(UnsupportedError, match=reason):
        linker.link(linker.find(), b"no object file")


def test_the_linker_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(linker, "_candidates", lambda: iter([tmp_path / "ld.lld"]))
    assert linker.find() == [sys.executable, "-m", "ziglang", "ld.lld"]
    (tmp_path / "ld.lld").touch()
    assert linker.find() == [str(tmp_path / "ld.lld")]
    (tmp_path / "ld.lld").unlink()
    monkeypatch.setattr(linker.importlib.util, "find_spec", lambda name: None)
    reason = "needs a linker for code objects and finds none: .*pip install ziglang"
    with pytest.raises(TargetError, match=reason):
        linker.find()


def test_the_assembler_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "cuda"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "ptxas").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(home))
    assert ptxas.find() == str(home / "bin" / "ptxas")


def test_what_the_assembler_says() -> None:
    said = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'softmax' for 'sm_90a'
ptxas info    : Function properties for softmax
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compiling entry function 'copy' for 'sm_90a'
ptxas info    : Function properties for copy
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 376 bytes cmem[0]
"""
    found = ptxas.parse_resources(said)
    softmax, copy = found["softmax"], found["copy"]
    assert (softmax.registers, softmax.stack_bytes, softmax.spill_bytes) == (40, 16, 8)
    assert softmax.shared_bytes == 128
    assert (copy.registers, copy.stack_bytes, copy.spill_bytes, copy.shared_bytes) == (8, 0, 0, 0)


# --- code objects --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x83\xa1a\x01\xa1b\x92\xff\xc3\xa1c\xc0", {"a": 1, "b": [-1, True], "c": None}),
        (b"\xd9\x03abc", "abc"),
        (b"\xdc\x00\x02\xcd\x01\x00\xd1\xff\x00", [256, -256]),
        (b"\xde\x00\x01\xc4\x01x\xcb" + b"\x3f\xf0" + bytes(6), {b"x": 1.0}),
        (b"\xcf" + b"\xff" * 8, 2**64 - 1),
    ],
)
def test_message_pack(data: bytes, value: object) -> None:
    assert msgpack.unpack(data) == value


def test_message_pack_that_is_damaged() -> None:
    with pytest.raises(ValueError, match="MessagePack data that are cut off"):
        msgpack.unpack(b"\x92\x01")
    with pytest.raises(ValueError, match="a value of type 0xc7, which has no meaning"):
        msgpack.unpack(b"\xc7\x01\x00\x00")


def test_code_objects_that_are_none() -> None:
    with pytest.raises(ValueError, match="no ELF file of 64 bits"):
        code_object.metadata(b"MZ" + bytes(100))
    with pytest.raises(ValueError, match="the code object has no metadata note"):
        code_object.metadata(b"\x7fELF\x02" + bytes(100))

"""Linking objects into the process: against a linker of LLVM's, and what is refused."""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from llvmlite import binding

from polyblocks.artifact import Artifact
from polyblocks.errors import ArtifactError
from polyblocks_cpu.host import family
from polyblocks_cpu.load import load_artifact
from polyblocks_cpu.objects import link as link_module
from polyblocks_cpu.objects.elf import ElfObject
from polyblocks_cpu.objects.link import _Plan, link
from polyblocks_cpu.objects.relocations import RELOCATIONS, Relocation

pytestmark = pytest.mark.cpu

#: Two objects that call each other, constants, a table, a variable, and what is outside.
FIRST = """
@table = internal constant [4 x ptr] [ptr @first, ptr @twice, ptr @second, ptr null]
@numbers = internal constant [3 x double] [double 1.5, double 2.5, double 3.5]
@bytes = internal global [5 x i8] zeroinitializer
@wide = internal global <4 x i32> <i32 1, i32 2, i32 3, i32 4>
@count = internal global i32 7
@outside = external global i32
declare i32 @second(i32)
declare i32 @called(i32)
define internal i32 @twice(i32 %x) noinline {
  %y = mul i32 %x, 2
  ret i32 %y
}
define i32 @first(i32 %x) {
  %a = call i32 @twice(i32 %x)
  %b = call i32 @second(i32 %a)
  %c = call i32 @called(i32 %b)
  %old = load i32, ptr @count
  %new = add i32 %old, 1
  store i32 %new, ptr @count
  %far = load i32, ptr @outside
  %d = add i32 %c, %old
  %e = add i32 %d, %far
  ret i32 %e
}
define double @number(i64 %i) {
  %at = getelementptr double, ptr @numbers, i64 %i
  %x = load double, ptr %at
  %y = fmul double %x, 0x3FF123456789ABCD
  ret double %y
}
define i32 @through_table(i64 %i, i32 %x) {
  %at = getelementptr ptr, ptr @table, i64 %i
  %f = load ptr, ptr %at
  %r = tail call i32 %f(i32 %x)
  ret i32 %r
}
define i32 @mixed(i8 %v) {
  %at = getelementptr i8, ptr @bytes, i64 3
  store volatile i8 %v, ptr %at
  %b = load volatile i8, ptr %at
  %w = load volatile <4 x i32>, ptr @wide
  %l = extractelement <4 x i32> %w, i32 3
  %z = zext i8 %b to i32
  %s = add i32 %l, %z
  ret i32 %s
}
"""
SECOND = """
declare i32 @called(i32)
define i32 @second(i32 %x) {
  %a = add i32 %x, 100
  %b = tail call i32 @called(i32 %a)
  ret i32 %b
}
"""


def object_of(text: str, triple: str) -> bytes:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(triple).create_target_machine(
        reloc="pic", codemodel="small", opt=2
    )
    # As generated code is: without tables for unwinding.
    text = re.sub(r"^(define .*\)) ", r"\1 nounwind ", text, flags=re.MULTILINE)
    return bytes(machine.emit_object(binding.parse_assembly(f'target triple = "{triple}"\n{text}')))


TRIPLES = {f"{name}-unknown-linux-gnu": name for name in ("x86_64", "aarch64")}
HERE = f"{family()}-unknown-linux-gnu"


@pytest.fixture
def outside() -> tuple[dict[str, int], list[object]]:
    """Addresses of a function and a variable of this process, and what keeps them alive."""
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(lambda x: x * 10)
    variable = ctypes.c_int32(100_000)
    addresses = {
        "called": ctypes.cast(function, ctypes.c_void_p).value or 0,
        "outside": ctypes.addressof(variable),
    }
    return addresses, [function, variable]


def call(address: int, result: type, *arguments: object) -> object:
    return ctypes.CFUNCTYPE(result, *map(type, arguments))(address)(*arguments)


def test_linked_code_computes(outside: tuple[dict[str, int], list[object]]) -> None:
    objects = [object_of(FIRST, HERE), object_of(SECOND, HERE)]
    linked = link(objects, outside[0])
    # (3*2 + 100) * 10, called again, with a count that goes on and the variable.
    first = linked["first"]
    assert call(first, ctypes.c_int32, ctypes.c_int32(3)) == 10_600 + 7 + 100_000
    assert call(first, ctypes.c_int32, ctypes.c_int32(3)) == 10_600 + 8 + 100_000
    assert (
        call(linked["number"], ctypes.c_double, ctypes.c_int64(2))
        == 3.5 * struct.unpack("<d", (0x3FF123456789ABCD).to_bytes(8, "little"))[0]
    )
    through = linked["through_table"]
    assert call(through, ctypes.c_int32, ctypes.c_int64(1), ctypes.c_int32(21)) == 42
    assert call(through, ctypes.c_int32, ctypes.c_int64(2), ctypes.c_int32(1)) == 1010
    assert call(linked["mixed"], ctypes.c_int32, ctypes.c_int8(5)) == 9
    # A second copy has variables of its own.
    other = link(objects, outside[0])
    assert call(other["first"], ctypes.c_int32, ctypes.c_int32(3)) == 10_600 + 7 + 100_000
    for library in (linked, other):
        library.close()
        library.close()


def test_code_cannot_be_written_and_constants_cannot_be_run(
    outside: tuple[dict[str, int], list[object]],
) -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("needs /proc")
    linked = link([object_of(FIRST, HERE), object_of(SECOND, HERE)], outside[0])
    rights = set()
    for name in ("first", "second", "number"):
        for line in maps.read_text().splitlines():
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if begin <= linked[name] < end:
                rights.add(line.split()[1])
    assert rights == {"r-xp"}
    linked.close()


#: With zeros for what a linker fills in, so that only those bytes are compared that it fills in.
ADDRESSES = {"called": 0x10_4560, "outside": 0x70_0000}


@pytest.mark.parametrize("triple", TRIPLES)
def test_the_bytes_are_those_of_another_linker(triple: str, tmp_path: Path) -> None:
    """LLVM's linker, told where everything is to lie, writes the same instructions."""
    pytest.importorskip("ziglang")
    objects = [object_of(FIRST, triple), object_of(SECOND, triple)]
    base = 0x20_0000
    plan = _Plan(objects, ADDRESSES)
    image = plan.image(base)
    files = []
    for number, data in enumerate(objects):
        files.append(tmp_path / f"{number}.o")
        files[-1].write_bytes(data)
    script = ["SECTIONS {"]
    for (number, index), at in sorted(plan.places.items(), key=lambda each: each[1]):
        name = plan.files[number].sections[index].name
        script.append(f".s{number}_{index} {base + at:#x} : {{ {files[number]}({name}) }}")
    script.append("/DISCARD/ : { *(.note*) *(.comment) *(.eh_frame*) *(.llvm*) } }")
    # What lies outside is near here, so that the other linker needs no code to get there.
    jumps = {n: base + plan.jumps_at + 16 * k for k, n in enumerate(plan.needed)}
    script += [f"called = {jumps['called']:#x};", f"outside = {ADDRESSES['outside']:#x};"]
    (tmp_path / "script").write_text("\n".join(script))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "ziglang", "ld.lld", "-T", str(tmp_path / "script")]
    command += ["--no-relax", "--no-dynamic-linker", "-o", str(out), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = ElfObject(out.read_bytes())
    compared = 0
    kinds = set()
    for number, file in enumerate(plan.files):
        for index, offset, kind, symbol, _ in file.relocations():
            if (number, index) not in plan.places:
                continue
            relocation: Relocation = RELOCATIONS[TRIPLES[triple]][kind]
            if relocation.to == "word":
                continue  # the other linker's table lies elsewhere
            at = plan.places[number, index] + offset
            size = relocation.size
            assert bytes(image.memory[at : at + size]) == _bytes_at(theirs, base + at, size), (
                kind,
                file.symbols[symbol].name,
            )
            compared += 1
            kinds.add(kind)
    assert compared >= 12
    wanted = {"x86_64": {1, 2, 4}, "aarch64": {257, 275, 277, 278, 282, 283, 285, 299}}
    assert kinds >= wanted[TRIPLES[triple]]


def _bytes_at(file: ElfObject, address: int, size: int) -> bytes:
    """Of an executable, through its program headers."""
    (at,) = struct.unpack_from("<Q", file.data, 0x20)
    (count,) = struct.unpack_from("<H", file.data, 0x38)
    for k in range(count):
        kind, _, offset, begin, _, length = struct.unpack_from("<IIQQQQ", file.data, at + 56 * k)
        if kind == 1 and begin <= address < begin + length:
            return file.data[offset + address - begin :][:size]
    raise AssertionError(f"nothing lies at {address:#x}")


def test_words_hold_addresses(outside: tuple[dict[str, int], list[object]]) -> None:
    """What is far is reached through memory, on both families."""
    for triple in TRIPLES:
        plan = _Plan([object_of(FIRST, triple), object_of(SECOND, triple)], outside[0])
        image = plan.image(0x5000)
        words = list(plan.words)
        assert "outside" in words
        at = plan.words_at + 8 * words.index("outside")
        assert int.from_bytes(image.memory[at : at + 8], "little") == outside[0]["outside"]


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], "the objects are no ELF objects of one family of chips"),
        ([b"noise" * 99], "the objects are no ELF objects of one family of chips"),
        ([SECOND, SECOND], "two objects define 'second'"),
        ([FIRST], "it needs 'second', which nothing defines"),
        (["@x = external global i32"], "there is no code in it"),
        (
            ["@t = thread_local global i32 3\ndefine i32 @f() {%x = load i32, ptr @t\nret i32 %x}"],
            "it has variables of threads, which are not linked|it needs '__tls_get_addr'",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_linked(objects: list[str | bytes], message: str) -> None:
    made = [object_of(each, HERE) if isinstance(each, str) else each for each in objects]
    with pytest.raises(ValueError, match=message):
        link(made, {"called": 4096, "outside": 4096})


#: Functions that read variables, one of which holds an address.
READS = """
@v = internal global [3 x i32] [i32 1, i32 2, i32 3]
@w = global i32 4
define i32 @f(i64 %i) {
  %at = getelementptr i32, ptr @v, i64 %i
  %x = load i32, ptr %at
  ret i32 %x
}
@pointer = internal global ptr @w
define ptr @g() {
  %p = load volatile ptr, ptr @pointer
  ret ptr %p
}
"""
_RELA, _PROGBITS = 4, 1


def with_sections_of(data: bytes, before: int, kind: int) -> bytes:
    """The object with another type of the sections that have the type ``before``."""
    made = bytearray(data)
    (at,) = struct.unpack_from("<Q", data, 0x28)
    for section in ElfObject(data).sections:
        if section.kind == before:
            struct.pack_into("<I", made, at + 64 * section.index + 4, kind)
    return bytes(made)


@pytest.mark.parametrize(
    ("before", "kind", "message"),
    [
        (_RELA, 9, r"it has relocations without addends \(SHT_REL\), which are not linked"),
        (_RELA, 0x40000014, r"it has compact relocations \(SHT_CREL\), which are not linked"),
        (_PROGBITS, 14, r"functions to be run when it is loaded \(\.init_array\), which are"),
        (_PROGBITS, 15, r"functions to be run at the end \(\.fini_array\), which are not linked"),
        (_PROGBITS, 16, r"functions to be run when it is loaded \(\.preinit_array\), which are"),
    ],
)
def test_sections_that_are_not_linked(before: int, kind: int, message: str) -> None:
    data = object_of(READS, HERE)
    assert link([data], {}).functions
    with pytest.raises(ValueError, match=message):
        link([with_sections_of(data, before, kind)], {})


LISTED = """
@llvm.global_{name} = appending global [1 x {{ i32, ptr, ptr }}]
  [{{ i32, ptr, ptr }} {{ i32 {priority}, ptr @init, ptr null }}]
define internal void @init() {{ ret void }}
"""


@pytest.mark.parametrize("name", ["ctors", "dtors"])
@pytest.mark.parametrize("priority", [65535, 3])
def test_functions_to_be_run_at_the_beginning_or_end(name: str, priority: int) -> None:
    with pytest.raises(ValueError, match=rf"functions to be run .* \(\.{name}\), which are not"):
        link([object_of(LISTED.format(name=name, priority=priority), HERE)], {})


def test_functions_that_are_chosen_when_loaded() -> None:
    text = """
    @chosen = ifunc i32 (), ptr @choose
    define internal ptr @choose() { ret ptr @one }
    define internal i32 @one() { ret i32 1 }
    """
    with pytest.raises(ValueError, match=r"'chosen' is chosen when it is loaded \(STT_GNU_IFUNC\)"):
        link([object_of(text, HERE)], {})
    with pytest.raises(ArtifactError, match="the code cannot be linked: 'chosen' is chosen when"):
        load_artifact(Artifact({"entry": "f"}, {"code.o": object_of(text, HERE)}))


def patched(format_: str, place: Callable[[ElfObject], int], value: int) -> bytes:
    """``READS``, with a number in a place of the file."""
    made = bytearray(object_of(READS, HERE))
    struct.pack_into(format_, made, place(ElfObject(bytes(made))), value)
    return bytes(made)


def _symbol(name: str, at: int) -> Callable[[ElfObject], int]:
    """Where a field of a symbol's row is."""
    return lambda file: next(s.place for s in file.symbols if s.name == name) + at


def _pointer(at: int) -> Callable[[ElfObject], int]:
    """Where a field of the relocation of ``@pointer`` is, a 64-bit address."""

    def place(file: ElfObject) -> int:
        section = next(s for s in file.sections if s.name.startswith(".rela.data"))
        return section.offset + at

    return place


@pytest.mark.parametrize(
    ("format_", "place", "value", "message"),
    [
        ("<H", _symbol("w", 6), 0xFFF1, "it refers to 'w', which is in no section"),
        ("<H", _symbol("w", 6), 0xFFF2, "it refers to 'w', which is in no section"),
        ("<H", _symbol("w", 6), 1, "'w' is in a section that is not loaded"),
        ("<H", _symbol("w", 6), 999, "'w' is in a section that is not loaded"),
        ("<Q", _symbol("w", 8), 2**64 - 1, "'w' is outside of its section"),
        ("<Q", _symbol("f", 8), 2**40, "'f' is outside of its section"),
        ("<Q", _pointer(0), 2**64 - 1, r"a relocation at offset \d+ is outside of its section"),
        ("<Q", _pointer(0), 17, "a relocation at offset 17 is outside of its section"),
        ("<I", _pointer(12), 999, "it has no symbol 999, which a relocation refers to"),
        ("<I", _pointer(12), 0, "it refers to '', which is in no section"),
    ],
)
def test_references_that_lead_nowhere(
    format_: str, place: Callable[[ElfObject], int], value: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        link([patched(format_, place, value)], {})


def test_a_truncated_object() -> None:
    data = object_of(SECOND, HERE)
    with pytest.raises(ValueError, match="truncated ELF object"):
        link([data[: len(data) // 2]], {"called": 4096})


def test_an_unknown_relocation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RELOCATIONS, family(), {})
    with pytest.raises(ValueError, match=r"a relocation of type \d+, which is not known"):
        link([object_of(SECOND, HERE)], {"called": 4096})


def test_a_reference_that_is_too_far() -> None:
    text = "@near = external hidden global i32\ndefine ptr @f() { ret ptr @near }"
    with pytest.raises(ValueError, match=r"a reference over -?\d+ bytes is too far"):
        link([object_of(text, HERE)], {"near": 4096})


def test_a_system_that_forbids_generated_code(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forbidding:
        def __init__(self, *args: object, **named: object) -> None:
            ctypes.set_errno(13)

        def mprotect(self, *args: object) -> int:
            return -1

    monkeypatch.setattr(link_module.ctypes, "CDLL", Forbidding)
    with pytest.raises(OSError, match="the system forbids that generated code is executed"):
        link([object_of(SECOND, HERE)], {"called": 4096})

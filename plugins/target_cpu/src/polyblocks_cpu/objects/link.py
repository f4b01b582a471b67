"""Links ELF objects into this process: places sections, follows relocations, makes code executable.

Nothing is compiled, and nothing but the system is needed. Other formats need LLVM's linker;
see :mod:`polyblocks_cpu.objects.jit_link`.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polyblocks_cpu.objects.elf import (
    SHF_EXECINSTR,
    SHF_TLS,
    SHF_WRITE,
    ElfObject,
    Section,
    Symbol,
    machine_of,
)
from polyblocks_cpu.objects.relocations import JUMP, JUMPS, RELOCATIONS, WORD

#: Bytes from one jump to the next.
_JUMP_BYTES = 16
_WORD_BYTES = 8

_AT_LOAD, _AT_UNLOAD = "functions to be run when it is loaded", "functions to be run at the end"
#: Value of ``sh_type`` -> what such a section holds that is not linked here.
_REFUSED = {
    9: "relocations without addends (SHT_REL)",
    0x4000_0014: "compact relocations (SHT_CREL)",
    14: f"{_AT_LOAD} (.init_array)",
    15: f"{_AT_UNLOAD} (.fini_array)",
    16: f"{_AT_LOAD} (.preinit_array)",
}
#: The same by name, of sections from before there were types for them.
_REFUSED_NAMES = {".ctors": f"{_AT_LOAD} (.ctors)", ".dtors": f"{_AT_UNLOAD} (.dtors)"}


class Linked:
    """Objects in memory; they stay there as long as this does, or until it is closed.

    Attributes:
        functions: name -> address and bytes, of all functions.

    Args:
        memory: holds the code.
        functions: see above.
    """

    def __init__(self, memory: mmap.mmap, functions: dict[str, tuple[int, int]]) -> None:
        self._memory: mmap.mmap | None = memory
        self.functions = functions

    def __getitem__(self, name: str) -> int:
        """The address of a function."""
        return self.functions[name][0]

    def close(self) -> None:
        """Unmap the code; none of it may run or be called any more."""
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()


@dataclass
class Image:
    """Objects as they are to lie at an address.

    Attributes:
        memory: the bytes.
        segments: first byte, bytes and whether they are ``code``, ``constants`` or ``data``.
        functions: name -> offset and bytes.
    """

    memory: bytearray
    segments: list[tuple[int, int, str]]
    functions: dict[str, tuple[int, int]]


def link(objects: Sequence[bytes], imports: Mapping[str, int]) -> Linked:
    """Link ELF objects of this machine's family.

    Args:
        objects: the files; they may call each other.
        imports: addresses of what else they call or read.

    Raises:
        ValueError: they cannot be linked; says why.
        OSError: the system gives no memory, or forbids that data becomes code.
    """
    plan = _Plan(objects, imports)
    size = plan.size
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    handle = ctypes.c_char.from_buffer(memory)
    base = ctypes.addressof(handle)
    del handle  # as long as it is there, the memory cannot be closed
    try:
        image = plan.image(base)
        memory[:] = bytes(image.memory)
        # Pages become executable after they are written, when the kernel makes sure that what the
        # caches of instructions hold is what they have.
        for begin, length, kind in image.segments:
            if kind != "data":
                execute = mmap.PROT_EXEC if kind == "code" else 0
                _protect(base + begin, length, mmap.PROT_READ | execute)
    except BaseException:
        memory.close()
        raise
    functions = {name: (base + at, size) for name, (at, size) in image.functions.items()}
    return Linked(memory, functions)


def _protect(address: int, size: int, protection: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    arguments = ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_int(protection)
    if library.mprotect(*arguments):
        raise OSError(
            ctypes.get_errno(),
            "the system forbids that generated code is executed (mprotect); see its policies for "
            "executable memory (SELinux: execmem)",
        )


@dataclass
class _Plan:
    """Where everything lies, relative to the beginning."""

    objects: Sequence[bytes]
    imports: Mapping[str, int]
    size: int = 0
    segments: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        families = {machine_of(data) for data in self.objects}
        if len(families) != 1 or None in families:
            raise ValueError("the objects are no ELF objects of one family of chips")
        self.family: str = families.pop()  # type: ignore[assignment]
        self.files = [ElfObject(data) for data in self.objects]
        for file in self.files:
            _refuse_unsupported(file)
        self.places: dict[tuple[int, int], int] = {}
        self.defined = self._definitions()
        self.needed = self._needed()
        self._place()

    def _definitions(self) -> dict[str, tuple[int, Symbol]]:
        found: dict[str, tuple[int, Symbol]] = {}
        for number, file in enumerate(self.files):
            for symbol in file.symbols:
                if symbol.is_in_section and not symbol.is_local:
                    if symbol.name in found:
                        raise ValueError(f"two objects define '{symbol.name}'")
                    found[symbol.name] = number, symbol
        return found

    def _needed(self) -> dict[str, int]:
        """External symbols that are called or read, in order of first use."""
        found: dict[str, int] = {}
        for file in self.files:
            for symbol in file.symbols:
                if symbol.is_undefined and symbol.name not in self.defined:
                    if symbol.name not in self.imports:
                        raise ValueError(f"it needs '{symbol.name}', which nothing defines")
                    found[symbol.name] = self.imports[symbol.name]
        return found

    def _place(self) -> None:
        kinds: dict[str, list[tuple[int, Section]]] = {"code": [], "constants": [], "data": []}
        for number, file in enumerate(self.files):
            for section in file.sections:
                if section.is_loaded:
                    kinds[_kind(section)].append((number, section))
        #: Symbols whose address lies in a word of its own: of other code, and of our own that is
        #: asked for so.
        self.words = dict.fromkeys([*self.needed, *self.defined])
        for kind, sections in kinds.items():
            begin = self.size
            for number, section in sections:
                self.size = _aligned(self.size, section.alignment)
                self.places[number, section.index] = self.size
                self.size += section.size
            if kind == "code":
                self.size = _aligned(self.size, _JUMP_BYTES)
                self.jumps_at = self.size
                self.size += _JUMP_BYTES * len(self.needed)
            elif kind == "constants":
                self.size = _aligned(self.size, _WORD_BYTES)
                self.words_at = self.size
                self.size += _WORD_BYTES * len(self.words)
            if self.size > begin:
                self.size = _aligned(self.size, mmap.PAGESIZE)
                self.segments.append((begin, self.size - begin, kind))
        if not self.size:
            raise ValueError("there is no code in it")

    def image(self, base: int) -> Image:
        """All bytes, for this address.

        Raises:
            ValueError: a relocation cannot be followed.
        """
        memory = bytearray(self.size)
        for (number, index), at in self.places.items():
            section = self.files[number].sections[index]
            memory[at : at + section.size] = self.files[number].contents(section)
        jumps: dict[str, int] = {}
        for k, (name, address) in enumerate(self.needed.items()):
            at = self.jumps_at + _JUMP_BYTES * k
            jumps[name] = base + at
            code = JUMPS[self.family] + address.to_bytes(8, "little")
            memory[at : at + len(code)] = code
        words: dict[str, int] = {}
        for k, name in enumerate(self.words):
            at = self.words_at + _WORD_BYTES * k
            words[name] = base + at
            memory[at : at + 8] = self._global(name, base).to_bytes(8, "little")
        for number in range(len(self.files)):
            self._relocate(memory, number, base, jumps, words)
        functions = {
            symbol.name: (self._place_of(number, symbol), symbol.size)
            for number, file in enumerate(self.files)
            for symbol in file.symbols
            if symbol.is_function and symbol.is_in_section
        }
        return Image(memory, self.segments, functions)

    def _global(self, name: str, base: int) -> int:
        if name in self.defined:
            return base + self._place_of(*self.defined[name])
        if name not in self.needed:
            raise ValueError(f"it refers to '{name}', which is in no section")
        return self.needed[name]

    def _place_of(self, number: int, symbol: Symbol) -> int:
        """Where a symbol lies that an object defines."""
        at = self.places.get((number, symbol.section))
        if at is None:
            raise ValueError(f"'{symbol.name}' is in a section that is not loaded")
        if symbol.value > self.files[number].sections[symbol.section].size:
            raise ValueError(f"'{symbol.name}' is outside of its section")
        return at + symbol.value

    def _relocate(
        self,
        memory: bytearray,
        number: int,
        base: int,
        jumps: Mapping[str, int],
        words: Mapping[str, int],
    ) -> None:
        file = self.files[number]
        known = RELOCATIONS[self.family]
        for index, offset, kind, symbol_index, addend in file.relocations():
            if (number, index) not in self.places:
                continue  # of debugging information, for example
            relocation = known.get(kind)
            if relocation is None:
                raise ValueError(f"it has a relocation of type {kind}, which is not known")
            if symbol_index >= len(file.symbols):
                raise ValueError(f"it has no symbol {symbol_index}, which a relocation refers to")
            if offset + relocation.size > file.sections[index].size:
                raise ValueError(f"a relocation at offset {offset} is outside of its section")
            symbol = file.symbols[symbol_index]
            if relocation.to == WORD:
                if symbol.name not in words:
                    raise ValueError(f"'{symbol.name}' has no word with its address")
                address = words[symbol.name]
            elif symbol.is_in_section:
                address = base + self._place_of(number, symbol)
            elif relocation.to == JUMP and symbol.name in jumps:
                address = jumps[symbol.name]
            else:
                address = self._global(symbol.name, base)
            at = self.places[number, index] + offset
            relocation.patch(memory, at, address + addend, base + at)


def _refuse_unsupported(file: ElfObject) -> None:
    """Refuse what would be left out without a trace, so that the code would compute otherwise."""
    for section in file.sections:
        what = _REFUSED.get(section.kind) or next(
            # Also with a priority behind the name.
            (w for n, w in _REFUSED_NAMES.items() if f"{section.name}.".startswith(f"{n}.")),
            None,
        )
        if what is not None:
            raise ValueError(f"it has {what}, which are not linked")
    for symbol in file.symbols:
        if symbol.is_indirect:
            raise ValueError(f"'{symbol.name}' is chosen when it is loaded (STT_GNU_IFUNC)")


def _kind(section: Section) -> str:
    if section.flags & SHF_TLS:
        raise ValueError("it has variables of threads, which are not linked")
    if section.flags & SHF_EXECINSTR:
        return "code"
    return "data" if section.flags & SHF_WRITE else "constants"


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment

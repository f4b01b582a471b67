"""Reads PTX as LLVM's code generator writes it into MLIR's LLVM dialect.

Registers become values, branches carry those that are written in several places. Lines of the
debug information number the places that the LLVM IR has as metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyblocks_nvgpu.ptx_reader import arithmetic, bulk_copies, conversions, memory, subgroups
from polyblocks_nvgpu.ptx_reader.emitter import SPACES, Emitter, Handler, pointer
from polyblocks_nvgpu.ptx_reader.statements import Array, Block, Entry, Instruction, parse

_HANDLERS: dict[str, Handler] = {
    **arithmetic.HANDLERS, **conversions.HANDLERS, **memory.HANDLERS, **subgroups.HANDLERS,
    **bulk_copies.HANDLERS,
}  # fmt: skip
_ENDS = ("bra", "ret", "exit", "trap")
_SILENT = {"nanosleep", "prefetch", "prefetchu", "griddepcontrol", "setmaxnreg"}


def read_ptx(text: str, places: Sequence[str] = ()) -> Any:
    """The module of the kernels in some PTX.

    Args:
        text: of the module.
        places: of lines 1 and on, as MLIR writes locations.

    Raises:
        UnsupportedError: something that the simulator does not know.
    """
    from polyblocks import mlir

    return mlir.parse(as_mlir(text, places))


def as_mlir(text: str, places: Sequence[str] = ()) -> str:
    """The text of what :func:`read_ptx` returns."""
    arrays, entries = parse(text)
    shared = [a for entry in entries for a in entry.arrays if a.space == "shared"]
    parts = ["gpu.module @kernels {"]
    parts += [_array(array) for array in (*arrays, *shared)]
    for entry in entries:
        symbols = {a.name: SPACES[a.space] for a in (*arrays, *shared, *entry.arrays)}
        parts.append(_kernel(entry, symbols, places))
    return "\n".join([*parts, "}"])


def _array(array: Array) -> str:
    type_, head = f"!llvm.array<{array.size} x i8>", f'llvm.mlir.global internal @"{array.name}"('
    spaced = f") {{addr_space = {SPACES[array.space]} : i32}} : {type_}"
    if array.space == "shared":
        return head + spaced
    data = b"".join(_bytes(value, array.width) for value in array.values).ljust(array.size, b"\0")
    return f'{head}dense<"0x{data.hex().upper()}"> : tensor<{array.size}xi8>{spaced}'


def _bytes(value: str, width: int) -> bytes:
    number = int(value[2:], 16) if value[:2] in ("0f", "0d") else int(value, 0)
    return (number & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def _kernel(entry: Entry, symbols: dict[str, int], places: Sequence[str]) -> str:
    emitter, blocks = Emitter(entry, symbols), [*entry.blocks, Block("end")]
    number = {block.label: at for at, block in enumerate(blocks)}
    for block in blocks:
        emitter.begin_collecting()
        for instruction in block.instructions:
            _emit(emitter, instruction)
    successors = [_successors(blocks, at, number) for at in range(len(blocks))]
    emitter.finish_collecting(successors)
    bodies = [_body(emitter, blocks[at], at, number, places) for at in _in_order(successors)]
    return _function(entry, emitter, bodies)


def _in_order(successors: list[list[int]]) -> list[int]:
    """The blocks that are reached, each after those that all ways to it go through."""
    found: list[int] = []
    seen = {0}
    work = [(0, iter(successors[0]))]
    while work:
        at, rest = work[-1]
        following = next((s for s in rest if s not in seen), None)
        if following is None:
            found.append(at)
            work.pop()
        else:
            seen.add(following)
            work.append((following, iter(successors[following])))
    return found[::-1]


def _body(
    emitter: Emitter, block: Block, at: int, number: dict[str, int], places: Sequence[str]
) -> str:
    """The text of a block."""
    arguments = emitter.begin(at)
    ended = False
    for instruction in block.instructions:
        line = instruction.line
        emitter.place = f" {places[line - 1]}" if 0 < line <= len(places) else ""
        if instruction.name[0] in _ENDS:
            _end(emitter, instruction, number, at)
            ended = True
        else:
            _emit(emitter, instruction)
    emitter.place = ""
    if not ended:
        last = at + 1 == len(number)
        emitter.do("llvm.return" if last else f"llvm.br {emitter.target(at + 1)}")
    return "\n".join([f"^bb{at}{arguments}:", *emitter.lines])


def _function(entry: Entry, emitter: Emitter, bodies: list[str]) -> str:
    given = ", ".join(
        f"%arg_{name}: {pointer(1) if is_pointer else f'i{kind[1:]}'}"
        for name, kind, is_pointer in entry.parameters
    )
    known = f", gpu.known_block_size = array<i32: {', '.join(map(str, entry.block))}>"
    start = emitter.target(0, first=True)
    arrays = []
    for array in entry.arrays:
        if array.space == "local":
            arrays.append(f"%size_{array.name} = llvm.mlir.constant({array.size} : i32) : i32")
            arrays.append(
                f"%array_{array.name} = llvm.alloca %size_{array.name} x i8 : (i32) -> "
                f"{pointer(SPACES['local'])}"
            )
    return "\n".join([
        f'llvm.func @"{entry.name}"({given}) '
        f"attributes {{gpu.kernel{known if entry.block else ''}}} {{",
        *arrays, *emitter.constants, f"llvm.br {start}", *bodies, "}",
    ])  # fmt: skip


def _emit(emitter: Emitter, instruction: Instruction) -> None:
    """The ops of an instruction that stays in its block; of an end what it reads."""
    name = instruction.name[0]
    if name in _ENDS:
        if instruction.guard:
            emitter.read(instruction.guard, "i1")
        return
    if name in _SILENT:
        return
    if instruction.guard:
        raise instruction.error("an instruction under a predicate")
    handler = _HANDLERS.get(name)
    if handler is None:
        raise instruction.error(f"'{name}' is no instruction that it knows")
    try:
        handler(emitter, instruction)
    except (KeyError, ValueError, IndexError) as error:
        raise instruction.error(f"it is not as expected ({error})") from error


def _successors(blocks: list[Block], at: int, number: dict[str, int]) -> list[int]:
    found = []
    for instruction in blocks[at].instructions:
        if instruction.name[0] == "bra":
            if instruction.operands[0] not in number:
                raise instruction.error("there is no such label")
            found.append(number[instruction.operands[0]])
        if instruction.name[0] in _ENDS and not instruction.guard:
            return found
    return [*found, at + 1] if at + 1 < len(blocks) else found


def _end(emitter: Emitter, i: Instruction, number: dict[str, int], at: int) -> None:
    name = i.name[0]
    if name == "trap":
        raise i.error("a trap")
    taken = emitter.target(number[i.operands[0]] if name == "bra" else len(number) - 1)
    if not i.guard:
        emitter.do(f"llvm.br {taken}" if name == "bra" else "llvm.return")
        return
    condition, other = emitter.read(i.guard, "i1"), emitter.target(at + 1)
    targets = f"{other}, {taken}" if i.unless else f"{taken}, {other}"
    emitter.do(f"llvm.cond_br {condition}, {targets}")

"""Vectors, structs, casts of bits, selects and address arithmetic of the llvm dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyblocks.simt.floats import float_name, maximum, maxnum, minimum, minnum
from polyblocks.simt.integers import as_number, bits_of
from polyblocks.simt.rounding import to_bf16
from polyblocks.simt.semantics import Instruction, Operation, Run
from polyblocks.simt.types import (
    Array,
    Int,
    Pointer,
    Sequence,
    Struct,
    Type,
    Value,
    Vector,
    from_words,
    map_value,
    read_type,
    scalar_of,
    signed,
    to_words,
    unsigned,
)

_DYNAMIC = -(2**31)


def lanes_of(*values: Array) -> int:
    """The number of lanes of values; some may be uniform."""
    return max(v.shape[-1] for v in values)


def _extract_element(instruction: Instruction) -> Run:
    def run(m: Any, vector: Array, index: Array) -> Array:
        at = np.clip(index.astype(np.int64), 0, len(vector) - 1)
        if at.size == 1:
            return vector[int(at[0])]
        return (
            np.take_along_axis(vector, at[None], axis=0)[0]
            if vector.shape[1] > 1
            else (vector[:, 0][at])
        )

    return run


def _insert_element(instruction: Instruction) -> Run:
    def run(m: Any, vector: Array, value: Array, index: Array) -> Array:
        at = index.astype(np.int64)
        out = np.repeat(vector, lanes_of(vector, value, at) // vector.shape[1], axis=1)
        if at.size == 1:
            out[int(at[0])] = value
            return out
        return np.where(np.arange(len(vector))[:, None] == at[None], value, out)

    return run


def _shuffle_vector(instruction: Instruction) -> Run:
    mask = np.array(instruction.integers("mask"), np.int64)
    mask = np.where(mask < 0, 0, mask)

    def run(m: Any, a: Array, b: Array) -> Array:
        if mask.max() < len(a):
            return a[mask]
        lanes = lanes_of(a, b)
        parts = [np.broadcast_to(v, (len(v), lanes)) for v in (a, b)]
        return np.concatenate(parts)[mask]

    return run


def _extract_value(instruction: Instruction) -> Run:
    position = instruction.integers("position")

    def run(m: Any, value: Value) -> Value:
        for index in position:
            value = value[index]
        return value

    return run


def _replace(value: Value, position: list[int], new: Value) -> Value:
    if not position:
        return new
    head, rest = position[0], position[1:]
    return (*value[:head], _replace(value[head], rest, new), *value[head + 1 :])


def _insert_value(instruction: Instruction) -> Run:
    position = instruction.integers("position")
    return lambda m, container, new: _replace(container, position, new)


def _select(instruction: Instruction) -> Run:
    def run(m: Any, condition: Array, a: Value, b: Value) -> Value:
        if condition.size == 1:
            return a if condition.reshape(-1)[0] else b
        return map_value(lambda x, y: np.where(condition, x, y), a, b)

    return run


def _same(instruction: Instruction) -> Run:
    return lambda m, value: value


def _bits_to_bytes(value: Array, type_: Type, instruction: Instruction) -> Array:
    """The bytes of a value, shape ``(bytes, lanes)``."""
    if scalar_of(type_) == Int(1):
        flat = value.reshape(-1, value.shape[-1])
        return np.packbits(flat, axis=0, bitorder="little")
    words = to_words(value, type_, instruction.layout)
    words = np.ascontiguousarray(words.reshape(-1, words.shape[-1]).T)
    return words.view(np.uint8).T


def _bytes_to_bits(raw: Array, type_: Type, instruction: Instruction) -> Array:
    count = type_.count if isinstance(type_, Vector) else 1
    if scalar_of(type_) == Int(1):
        value = np.unpackbits(raw, axis=0, count=count, bitorder="little").astype(bool)
    else:
        size = instruction.layout.size(scalar_of(type_))
        # Bits such as 20 fill no word.
        raw = np.pad(raw, ((0, -len(raw) % size), (0, 0)))
        words = np.ascontiguousarray(raw.T).view(f"uint{8 * size}").T
        value = from_words(words, type_)
    return value if isinstance(type_, Vector) else value[0]


def _bitcast(instruction: Instruction) -> Run:
    source, to = instruction.operands[0], instruction.result
    if isinstance(source, Pointer):
        return _same(instruction)
    layout = instruction.layout
    plain = Int(1) not in (scalar_of(source), scalar_of(to))
    alike = isinstance(source, Vector) == isinstance(to, Vector)
    if plain and alike and layout.size(scalar_of(source)) == layout.size(scalar_of(to)):
        return lambda m, a: from_words(to_words(a, source, layout), to)
    return lambda m, a: _bytes_to_bits(_bits_to_bytes(a, source, instruction), to, instruction)


def _pointer_to_int(instruction: Instruction) -> Run:
    to = scalar_of(instruction.result)
    assert isinstance(to, Int)
    bits = to.bits
    return lambda m, a: signed(a, bits)


def _int_to_pointer(instruction: Instruction) -> Run:
    bits = bits_of(instruction)
    return lambda m, a: unsigned(a, bits).astype(np.int64)


def _element_pointer(instruction: Instruction) -> Run:
    """``getelementptr``: base + sum of index times stride, and field offsets."""
    layout = instruction.layout
    current: Type = read_type(instruction.attribute("elem_type").value)
    fixed, strides = 0, []
    for position, index in enumerate(instruction.integers("rawConstantIndices")):
        if position and isinstance(current, Struct):
            fixed += layout.offsets(current)[index]
            current = current.fields[index]
            continue
        if position:
            assert isinstance(current, (Sequence, Vector)), instruction.name
            current = current.element
        stride = layout.stride(current)
        if index == _DYNAMIC:
            strides.append(stride)
        else:
            fixed += index * stride
    if not strides:
        return lambda m, base: base + fixed
    if len(strides) == 1:
        only = strides[0]
        if fixed == 0:
            return lambda m, base, i: base + i.astype(np.int64, copy=False) * only
        return lambda m, base, i: base + (i.astype(np.int64, copy=False) * only + fixed)

    def run(m: Any, base: Array, *indices: Array) -> Array:
        address = base + fixed
        for stride, i in zip(strides, indices, strict=True):
            address = address + i.astype(np.int64, copy=False) * stride
        return address

    return run


def _reduce(kind: str) -> Callable[[Instruction], Run]:
    """``llvm.intr.vector.reduce.*``: in order of the elements."""

    def decode(instruction: Instruction) -> Run:
        if kind in ("fadd", "fmul"):
            function = np.add if kind == "fadd" else np.multiply
            half = float_name(instruction) == "bf16"

            def run(m: Any, start: Array, vector: Array) -> Array:
                total = start
                for element in vector:
                    total = function(total, element)
                    total = to_bf16(total) if half else total
                return total

            return run
        floats = {"fmax": maxnum, "fmin": minnum, "fmaximum": maximum, "fminimum": minimum}
        if kind in floats:
            pick = floats[kind]

            def run_float(m: Any, vector: Array) -> Array:
                best = vector[0]
                for element in vector[1:]:
                    best = pick(best, element)
                return best

            return run_float
        bits = bits_of(instruction)
        ufunc: Any = {
            "add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
            "xor": np.bitwise_xor, "smax": np.maximum, "smin": np.minimum,
            "umax": np.maximum, "umin": np.minimum,
        }[kind]  # fmt: skip
        read = unsigned if kind.startswith("u") else as_number
        return lambda m, vector: signed(ufunc.reduce(read(vector, bits), axis=0), bits)

    return decode


def _part(instruction: Instruction) -> Run:
    start, to = instruction.integer("pos"), instruction.result
    assert isinstance(to, Vector)
    end = start + to.count
    return lambda m, vector: vector[start:end]


def _insert_part(instruction: Instruction) -> Run:
    start, part = instruction.integer("pos"), instruction.operands[1]
    assert isinstance(part, Vector)
    end = start + part.count

    def run(m: Any, into: Array, values: Array) -> Array:
        out = np.repeat(into, lanes_of(into, values) // into.shape[1], axis=1)
        out[start:end] = values
        return out

    return run


def _reduce_count(instruction: Instruction) -> dict[str, int]:
    vector = instruction.operands[-1]
    scalar = scalar_of(vector)
    name = "integer" if isinstance(scalar, Int) else getattr(scalar, "name", "other")
    return {name: vector.count if isinstance(vector, Vector) else 1}


_REDUCTIONS = "add mul and or xor smax smin umax umin fadd fmul fmax fmin fmaximum fminimum".split()
OPERATIONS: dict[str, Operation] = {
    "llvm.extractelement": Operation(_extract_element),
    "llvm.insertelement": Operation(_insert_element),
    "llvm.shufflevector": Operation(_shuffle_vector),
    "llvm.extractvalue": Operation(_extract_value),
    "llvm.insertvalue": Operation(_insert_value),
    "llvm.intr.vector.extract": Operation(_part),
    "llvm.intr.vector.insert": Operation(_insert_part),
    "llvm.select": Operation(_select, "integer"),
    "llvm.freeze": Operation(_same),
    "llvm.intr.expect": Operation(lambda i: lambda m, a, b: a),
    "llvm.intr.launder.invariant.group": Operation(_same),
    "llvm.bitcast": Operation(_bitcast),
    "llvm.addrspacecast": Operation(_same),
    "llvm.ptrtoint": Operation(_pointer_to_int),
    "llvm.inttoptr": Operation(_int_to_pointer),
    "llvm.getelementptr": Operation(_element_pointer, "integer"),
    **{
        f"llvm.intr.vector.reduce.{kind}": Operation(_reduce(kind), _reduce_count)
        for kind in _REDUCTIONS
    },
}

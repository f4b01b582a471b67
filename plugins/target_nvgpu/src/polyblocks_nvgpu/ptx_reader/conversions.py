"""Moves and conversions of PTX."""

from __future__ import annotations

from polyblocks_nvgpu.fragments import TF32_ROUNDING
from polyblocks_nvgpu.ptx_reader.arithmetic import type_of
from polyblocks_nvgpu.ptx_reader.emitter import Emitter, Handler, width_of
from polyblocks_nvgpu.ptx_reader.statements import Instruction

_INTEGER_ROUNDING = {"rni": "roundeven", "rmi": "floor", "rpi": "ceil", "rzi": "trunc"}
_PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}


def _move(e: Emitter, i: Instruction) -> None:
    """``mov``: a copy, a constant, an address, or parts of a word."""
    to, source = i.operands
    if to.startswith("{"):
        _unpack(e, parts_of(to), source, i)
    elif source.startswith("{"):
        _pack(e, to, parts_of(source))
    elif e.is_register(to):
        kind = e.kind(to)
        e.write_plain(to, e.read_plain(source, kind), kind)
    else:
        raise i.error("a move of this kind")


def parts_of(operand: str) -> list[str]:
    """``{%r1, %r2}`` as a list; another operand as a list of one."""
    return [part.strip() for part in operand.strip("{}").split(",")]


def _unpack(e: Emitter, parts: list[str], source: str, i: Instruction) -> None:
    width = int(i.name[-1][1:])
    whole, size = e.read(source, f"i{width}"), width // len(parts)
    for position, part in enumerate(parts):
        if part == "_":
            continue
        value = whole
        if position:
            by = e.constant(position * size, f"i{width}")
            value = e.op(f"llvm.lshr {whole}, {by} : i{width}")
        e.write(part, e.cast(value, f"i{width}", f"i{size}"), f"i{size}")


def _pack(e: Emitter, to: str, parts: list[str]) -> None:
    width = e.width(to)
    type_, size = f"i{width}", width // len(parts)
    whole = ""
    for position, part in enumerate(parts):
        value = e.cast(e.read(part, f"i{size}"), f"i{size}", type_)
        if position:
            value = e.op(f"llvm.shl {value}, {e.constant(position * size, type_)} : {type_}")
        whole = e.op(f"llvm.or {whole}, {value} : {type_}") if whole else value
    e.write(to, whole, type_)


def _convert(e: Emitter, i: Instruction) -> None:
    """``cvt``: the type to get and the one to take are the last parts of the name."""
    if i.name[-2] in _PAIRS:
        _convert_pair(e, i)
        return
    if i.name[1:] == ("rna", "tf32", "f32"):
        to, source = i.operands
        rounded = e.call(TF32_ROUNDING, [e.read(source, "f32")], ["f32"], "i32")
        e.write(to, rounded, "i32")
        return
    wanted, given = i.name[-2], i.name[-1]
    rounding = set(i.name[1:-2])
    if rounding - {"rn", "rz", *_INTEGER_ROUNDING} or len(rounding) > 1:
        raise i.error(f"'{'.'.join(i.name[1:-2])}' is not simulated")
    to, source = i.operands
    result, type_ = _typed(i, wanted), _typed(i, given)
    floats = ("f" in result, "f" in type_)
    value = _low(e, source, type_)
    if floats == (False, False):
        done = _resized(e, value, type_, result, given[0] == "s")
    elif floats == (True, False):
        word = "sitofp" if given[0] == "s" else "uitofp"
        if "rn" not in rounding:
            raise i.error("only rounding to the nearest is simulated")
        done = e.op(f"llvm.{word} {value} : {type_} to {result}")
    elif floats == (False, True):
        if not rounding & set(_INTEGER_ROUNDING):
            raise i.error("a conversion that is not rounded to an integer")
        done = _to_integer(e, value, type_, result, wanted[0] == "s", next(iter(rounding)))
    else:
        done = _between_floats(e, i, value, type_, result, rounding)
    held = e.width(to)
    if width_of(result) < held:
        done = _resized(e, e.cast(done, result, f"i{width_of(result)}"), f"i{width_of(result)}",
                        f"i{held}", wanted[0] == "s")  # fmt: skip
        result = f"i{held}"
    e.write(to, done, result)


def _typed(i: Instruction, suffix: str) -> str:
    return type_of(Instruction((suffix,), (), i.line, "", False, i.text))[1]


def _low(e: Emitter, source: str, type_: str) -> str:
    """The low bits of a register as a type that may be narrower."""
    if not e.is_register(source) or e.width(source) == width_of(type_):
        return e.read(source, type_)
    whole = f"i{e.width(source)}"
    return e.cast(e.read(source, whole), whole, type_)


def _resized(e: Emitter, value: str, type_: str, to: str, with_sign: bool) -> str:
    if type_ == to:
        return value
    if width_of(type_) > width_of(to):
        return e.op(f"llvm.trunc {value} : {type_} to {to}")
    return e.op(f"llvm.{'sext' if with_sign else 'zext'} {value} : {type_} to {to}")


def _to_integer(
    e: Emitter, value: str, type_: str, result: str, with_sign: bool, rounding: str
) -> str:
    """A saturating conversion: out of range gives the nearest bound, NaN zero."""
    if rounding != "rzi":
        name = f"llvm.{_INTEGER_ROUNDING[rounding]}.{type_}"
        value = e.call(name, [value], [type_], type_)
    name = f"llvm.fpto{'s' if with_sign else 'u'}i.sat.{result}.{type_}"
    return e.call(name, [value], [type_], result)


def _between_floats(
    e: Emitter, i: Instruction, value: str, type_: str, result: str, rounding: set[str]
) -> str:
    whole = rounding & set(_INTEGER_ROUNDING)
    if type_ == result:
        if not whole:
            return value
        name = f"llvm.{_INTEGER_ROUNDING[next(iter(whole))]}.{type_}"
        return e.call(name, [value], [type_], type_)
    if whole or "rz" in rounding:
        raise i.error("a conversion of floats that is rounded this way")
    word = "fpext" if width_of(type_) < width_of(result) else "fptrunc"
    return e.op(f"llvm.{word} {value} : {type_} to {result}")


def _convert_pair(e: Emitter, i: Instruction) -> None:
    """``cvt.rn.f16x2.f32 d, a, b``: ``a`` is the upper half."""
    half, type_ = _PAIRS[i.name[-2]], _typed(i, i.name[-1])
    if i.name[1:-2] != ("rn",) or len(i.operands) != 3:
        raise i.error("a pair that is converted this way")
    to, high, low = i.operands
    vector = f"vector<2x{half}>"
    whole = e.once(f"llvm.mlir.undef : {vector}")
    for position, source in enumerate((low, high)):
        value = e.op(f"llvm.fptrunc {e.read(source, type_)} : {type_} to {half}")
        at = e.constant(position, "i32")
        whole = e.op(f"llvm.insertelement {value}, {whole}[{at} : i32] : {vector}")
    e.write(to, whole, vector)


def _address(e: Emitter, i: Instruction) -> None:
    """``cvta``: all memories have addresses of one kind here."""
    to, source = i.operands
    type_ = f"i{e.width(to)}"
    e.write(to, e.read(source, type_), type_)


HANDLERS: dict[str, Handler] = {"mov": _move, "cvt": _convert, "cvta": _address}

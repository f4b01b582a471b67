"""Arithmetic of PTX: integers, floats, comparisons, choices."""

from __future__ import annotations

from polyblocks_nvgpu.ptx_reader.emitter import Emitter, Handler, number_of, width_of
from polyblocks_nvgpu.ptx_reader.statements import Instruction

_TYPES = {
    **{f"{letter}{bits}": f"i{bits}" for letter in "bsu" for bits in (8, 16, 32, 64)},
    "f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64", "pred": "i1",
    "f16x2": "vector<2xf16>", "bf16x2": "vector<2xbf16>",
}  # fmt: skip
_ROUNDED = {"rn"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_BITS = {"and": "and", "or": "or", "xor": "xor"}
_RELATIONS = {
    **{name: f"o{name}" for name in ("eq", "lt", "le", "gt", "ge")},
    "ne": "one", "num": "ord", "nan": "uno", "neu": "une", "equ": "ueq", "ltu": "ult",
    "leu": "ule", "gtu": "ugt", "geu": "uge",
}  # fmt: skip


def type_of(i: Instruction) -> tuple[str, str]:
    """The last part of a name, and its type."""
    suffix = i.name[-1]
    if suffix not in _TYPES:
        raise i.error(f"'{suffix}' is no type that it knows")
    return suffix, _TYPES[suffix]


def only(i: Instruction, *known: str) -> set[str]:
    """The parts of a name between the first and the last one, which must be known."""
    parts = set(i.name[1:-1])
    if parts - set(known):
        raise i.error(f"'{'.'.join(sorted(parts - set(known)))}' is not simulated")
    return parts


def _is_float(type_: str) -> bool:
    return "f" in type_


def _binary(e: Emitter, i: Instruction) -> None:
    """``add``, ``sub``, ``mul``, ``div`` and ``rem``."""
    name, (suffix, type_) = i.name[0], type_of(i)
    parts = only(i, "rn", "lo", "wide", "hi", "full", "approx")
    to, a, b = i.operands
    if name == "mul" and "wide" in parts:
        e.write(to, _wide(e, a, b, suffix), f"i{2 * width_of(type_)}")
        return
    if name == "mul" and "hi" in parts:
        width = width_of(type_)
        e.write(to, _high(e, e.read(a, type_), e.read(b, type_), suffix, width), type_)
        return
    first, second = e.read(a, type_), e.read(b, type_)
    if _is_float(type_):
        op = f"llvm.{_FLOAT[name]}"
    elif name in ("div", "rem"):
        op = f"llvm.{suffix[0]}{name}"
    else:
        op = f"llvm.{name}"
    e.write(to, e.op(f"{op} {first}, {second} : {type_}"), type_)


def _wide(e: Emitter, a: str, b: str, suffix: str) -> str:
    """The whole product of two numbers."""
    type_ = _TYPES[suffix]
    wide, word = f"i{2 * width_of(type_)}", "sext" if suffix[0] == "s" else "zext"
    parts = [e.op(f"llvm.{word} {e.read(x, type_)} : {type_} to {wide}") for x in (a, b)]
    return e.op(f"llvm.mul {parts[0]}, {parts[1]} : {wide}")


def _high(e: Emitter, a: str, b: str, suffix: str, width: int) -> str:
    """The upper half of a product; of 64 bits by parts, since nothing holds 128."""
    with_sign = suffix[0] == "s"
    if width < 64:
        wide, word = f"i{2 * width}", "sext" if with_sign else "zext"
        x, y = (e.op(f"llvm.{word} {v} : i{width} to {wide}") for v in (a, b))
        product = e.op(f"llvm.mul {x}, {y} : {wide}")
        shifted = e.op(f"llvm.lshr {product}, {e.constant(width, wide)} : {wide}")
        return e.op(f"llvm.trunc {shifted} : {wide} to i{width}")
    half, mask = e.constant(32, "i64"), e.constant(0xFFFFFFFF, "i64")

    def op(name: str, x: str, y: str) -> str:
        return e.op(f"llvm.{name} {x}, {y} : i64")

    (a1, a0), (b1, b0) = ((op("lshr", v, half), op("and", v, mask)) for v in (a, b))
    low = op("mul", a0, b0)
    middle = op("add", op("mul", a1, b0), op("lshr", low, half))
    other = op("add", op("mul", a0, b1), op("and", middle, mask))
    high = op("add", op("mul", a1, b1), op("lshr", middle, half))
    high = op("add", high, op("lshr", other, half))
    if with_sign:
        shift = e.constant(63, "i64")
        for x, y in ((a, b), (b, a)):
            high = op("sub", high, op("and", op("ashr", x, shift), y))
    return high


def _fused(e: Emitter, i: Instruction) -> None:
    """``fma`` and ``mad``."""
    suffix, type_ = type_of(i)
    parts = only(i, "rn", "lo", "wide", "relu") - _ROUNDED
    to, a, b, c = i.operands
    if _is_float(type_):
        if parts:
            raise i.error(f"'{'.'.join(sorted(parts))}' is not simulated")
        given = [e.read(x, type_) for x in (a, b, c)]
        e.write(to, e.call(f"llvm.fma.{_suffix(type_)}", given, [type_] * 3, type_), type_)
        return
    if "wide" in parts:
        product, type_ = _wide(e, a, b, suffix), f"i{2 * width_of(type_)}"
    else:
        product = e.op(f"llvm.mul {e.read(a, type_)}, {e.read(b, type_)} : {type_}")
    e.write(to, e.op(f"llvm.add {product}, {e.read(c, type_)} : {type_}"), type_)


def _suffix(type_: str) -> str:
    """How LLVM spells a type in the name of an intrinsic."""
    return f"v2{type_[9:-1]}" if type_.startswith("vector") else type_


def _extreme(e: Emitter, i: Instruction) -> None:
    """``min`` and ``max``; with ``NaN`` one that is not a number stays."""
    suffix, type_ = type_of(i)
    parts = only(i, "NaN")
    name = i.name[0]
    if _is_float(type_):
        whole = {"min": "minimum", "max": "maximum"}[name] if "NaN" in parts else f"{name}num"
    else:
        whole = f"{'s' if suffix[0] == 's' else 'u'}{name}"
    to, a, b = i.operands
    given = [e.read(x, type_) for x in (a, b)]
    intrinsic = f"llvm.{whole}.{_suffix(type_)}"
    e.write(to, e.call(intrinsic, given, [type_] * 2, type_), type_)


def _bitwise(e: Emitter, i: Instruction) -> None:
    _, type_ = type_of(i)
    only(i)
    to, a, b = i.operands
    op = f"llvm.{_BITS[i.name[0]]}"
    e.write(to, e.op(f"{op} {e.read(a, type_)}, {e.read(b, type_)} : {type_}"), type_)


def _unary(e: Emitter, i: Instruction) -> None:
    """``neg``, ``abs``, ``not`` and ``cnot``."""
    _, type_ = type_of(i)
    only(i)
    to, a = i.operands
    value = e.read(a, type_)
    if i.name[0] == "not":
        result = e.op(f"llvm.xor {value}, {e.constant(-1, type_)} : {type_}")
    elif i.name[0] == "neg" and _is_float(type_):
        result = e.op(f"llvm.fneg {value} : {type_}")
    elif i.name[0] == "neg":
        result = e.op(f"llvm.sub {e.constant(0, type_)}, {value} : {type_}")
    elif _is_float(type_):
        result = e.call(f"llvm.fabs.{_suffix(type_)}", [value], [type_], type_)
    else:
        result = e.call(f"llvm.abs.{type_}", [value, e.constant(0, "i1")], [type_, "i1"], type_)
    e.write(to, result, type_)


def _shift(e: Emitter, i: Instruction) -> None:
    """``shl`` and ``shr``; more than the width shifts everything out."""
    suffix, type_ = type_of(i)
    only(i)
    to, a, amount = i.operands
    value, width = e.read(a, type_), width_of(type_)
    keeps_sign = i.name[0] == "shr" and suffix[0] == "s"
    op = "shl" if i.name[0] == "shl" else "ashr" if keeps_sign else "lshr"
    if not e.is_register(amount):
        by = number_of(amount)
        if by >= width and not keeps_sign:
            e.write(to, e.constant(0, type_), type_)
            return
        steps = e.constant(min(by, width - 1), type_)
        e.write(to, e.op(f"llvm.{op} {value}, {steps} : {type_}"), type_)
        return
    wanted = e.read(amount, "i32")
    last = e.constant(width - 1, "i32")
    most = e.call("llvm.umin.i32", [wanted, last], ["i32", "i32"], "i32")
    shifted = e.op(f"llvm.{op} {value}, {e.cast(most, 'i32', type_)} : {type_}")
    if not keeps_sign:
        fits = e.op(f'llvm.icmp "ule" {wanted}, {last} : i32')
        shifted = e.op(f"llvm.select {fits}, {shifted}, {e.constant(0, type_)} : i1, {type_}")
    e.write(to, shifted, type_)


def _funnel(e: Emitter, i: Instruction) -> None:
    """``shf.l.wrap`` and ``shf.r.wrap``: of the word ``b:a``."""
    to, a, b, amount = i.operands
    if i.name[2] != "wrap":
        raise i.error("a shift that does not wrap")
    name = "llvm.fshl.i32" if i.name[1] == "l" else "llvm.fshr.i32"
    given = [e.read(x, "i32") for x in (b, a, amount)]
    e.write(to, e.call(name, given, ["i32"] * 3, "i32"), "i32")


def _field(e: Emitter, i: Instruction) -> None:
    """``bfe`` of constant place and length."""
    suffix, type_ = type_of(i)
    to, a, place, length = i.operands
    if e.is_register(place) or e.is_register(length):
        raise i.error("a field at a place that is not constant")
    width = width_of(type_)
    begin, size = number_of(place) & 0xFF, number_of(length) & 0xFF
    left = width - begin - size
    if left < 0 or size == 0:
        raise i.error("a field that is not inside of its word")
    op = "ashr" if suffix[0] == "s" else "lshr"
    moved = e.op(f"llvm.shl {e.read(a, type_)}, {e.constant(left, type_)} : {type_}")
    field = e.op(f"llvm.{op} {moved}, {e.constant(width - size, type_)} : {type_}")
    e.write(to, field, type_)


def _insert(e: Emitter, i: Instruction) -> None:
    """``bfi`` of constant place and length: the low bits of ``a`` into ``b``."""
    _, type_ = type_of(i)
    to, a, b, place, length = i.operands
    if e.is_register(place) or e.is_register(length):
        raise i.error("a field at a place that is not constant")
    begin, size = number_of(place) & 0xFF, number_of(length) & 0xFF
    mask = ((1 << size) - 1) << begin
    moved = e.op(f"llvm.shl {e.read(a, type_)}, {e.constant(begin, type_)} : {type_}")
    inside = e.op(f"llvm.and {moved}, {e.constant(mask, type_)} : {type_}")
    outside = e.op(f"llvm.and {e.read(b, type_)}, {e.constant(~mask, type_)} : {type_}")
    e.write(to, e.op(f"llvm.or {inside}, {outside} : {type_}"), type_)


def _count(e: Emitter, i: Instruction) -> None:
    """``popc``, ``clz`` and ``brev``."""
    _, type_ = type_of(i)
    to, a = i.operands
    value = e.read(a, type_)
    if i.name[0] == "brev":
        e.write(to, e.call(f"llvm.bitreverse.{type_}", [value], [type_], type_), type_)
        return
    flags = [e.constant(0, "i1")] if i.name[0] == "clz" else []
    name = {"popc": "ctpop", "clz": "ctlz"}[i.name[0]]
    given = e.call(f"llvm.{name}.{type_}", [value, *flags], [type_, *["i1"] * len(flags)], type_)
    e.write(to, e.cast(given, type_, "i32"), "i32")


def _permute(e: Emitter, i: Instruction) -> None:
    """``prmt`` with a constant: each byte is one of the eight of ``b:a``."""
    to, a, b, selector = i.operands
    if e.is_register(selector) or len(i.name) != 2:
        raise i.error("bytes that are not chosen by a constant")
    chosen = number_of(selector)
    low, high = e.read(a, "i32"), e.read(b, "i32")
    total = e.constant(0, "i32")
    for byte in range(4):
        nibble = chosen >> 4 * byte & 15
        source, shift = (high if nibble & 4 else low), 8 * (nibble & 3)
        part = e.op(f"llvm.lshr {source}, {e.constant(shift, 'i32')} : i32")
        if nibble & 8:
            part = e.op(f"llvm.shl {part}, {e.constant(24, 'i32')} : i32")
            part = e.op(f"llvm.ashr {part}, {e.constant(31, 'i32')} : i32")
        part = e.op(f"llvm.and {part}, {e.constant(255, 'i32')} : i32")
        part = e.op(f"llvm.shl {part}, {e.constant(8 * byte, 'i32')} : i32")
        total = e.op(f"llvm.or {total}, {part} : i32")
    e.write(to, total, "i32")


def _logic(e: Emitter, i: Instruction) -> None:
    """``lop3``: any function of three bits, by its table."""
    to, a, b, c, table = i.operands
    values = [e.read(x, "i32") for x in (a, b, c)]
    ones = e.constant(-1, "i32")
    total = e.constant(0, "i32")
    for row in range(8):
        if number_of(table) >> row & 1:
            term = ones
            for position, value in enumerate(values):
                if not row >> (2 - position) & 1:
                    value = e.op(f"llvm.xor {value}, {ones} : i32")
                term = e.op(f"llvm.and {term}, {value} : i32")
            total = e.op(f"llvm.or {total}, {term} : i32")
    e.write(to, total, "i32")


def _compare(e: Emitter, i: Instruction) -> None:
    """``setp``; a second relation may be joined with a predicate."""
    suffix, type_ = type_of(i)
    relation, *joined = i.name[1:-1]
    to, a, b, *other = i.operands
    if "|" in to or len(joined) != len(other) or set(joined) - {"and", "or", "xor"}:
        raise i.error("a comparison of this kind")
    first, second = e.read(a, type_), e.read(b, type_)
    if _is_float(type_):
        result = e.op(f'llvm.fcmp "{_RELATIONS[relation]}" {first}, {second} : {type_}')
    else:
        word = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(relation, relation)
        if word not in ("eq", "ne"):
            word = f"{'s' if suffix[0] == 's' else 'u'}{word}"
        result = e.op(f'llvm.icmp "{word}" {first}, {second} : {type_}')
    for name, predicate in zip(joined, other, strict=True):
        result = e.op(f"llvm.{name} {result}, {e.read(predicate, 'i1')} : i1")
    e.write(to, result, "i1")


def _select(e: Emitter, i: Instruction) -> None:
    suffix, type_ = type_of(i)
    to, a, b, condition = i.operands
    plain = suffix[0] == "b" and suffix != "bf16"
    if plain:
        type_ = e.kind(to)
    read = e.read_plain if plain else e.read
    first, second, predicate = read(a, type_), read(b, type_), e.read(condition, "i1")
    result = e.op(f"llvm.select {predicate}, {first}, {second} : i1, {type_}")
    (e.write_plain if plain else e.write)(to, result, type_)


def _sign(e: Emitter, i: Instruction) -> None:
    """``copysign``: the sign of the first, everything else of the second."""
    _, type_ = type_of(i)
    to, sign, size = i.operands
    given = [e.read(size, type_), e.read(sign, type_)]
    e.write(to, e.call(f"llvm.copysign.{type_}", given, [type_] * 2, type_), type_)


def _function(e: Emitter, i: Instruction) -> None:
    """``rcp``, ``sqrt``, ``rsqrt``, ``ex2``, ``lg2`` …"""
    _, type_ = type_of(i)
    parts = only(i, "rn", "approx", "ftz")
    to, a = i.operands
    value, name = e.read(a, type_), i.name[0]
    # Denormals become zeros; approximations are computed with more accuracy than they have.
    if "ftz" in parts and name not in ("rcp", "ex2", "lg2"):
        raise i.error("'ftz' is not simulated")
    if name in ("rcp", "rsqrt"):
        if name == "rsqrt":
            value = e.call(f"llvm.sqrt.{type_}", [value], [type_], type_)
        one = e.constant({"f32": 0x3F800000, "f64": 0x3FF0000000000000}[type_], type_)
        result = e.op(f"llvm.fdiv {one}, {value} : {type_}")
    else:
        intrinsic = {"sqrt": "sqrt", "ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos",
                     "tanh": "tanh"}[name]  # fmt: skip
        result = e.call(f"llvm.{intrinsic}.{type_}", [value], [type_], type_)
    e.write(to, result, type_)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "rem"), _binary),
    **dict.fromkeys(("fma", "mad"), _fused),
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(_BITS, _bitwise),
    **dict.fromkeys(("neg", "abs", "not"), _unary),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("popc", "clz", "brev"), _count),
    **dict.fromkeys(("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"), _function),
    "shf": _funnel,
    "bfe": _field,
    "bfi": _insert,
    "prmt": _permute,
    "lop3": _logic,
    "setp": _compare,
    "selp": _select,
    "copysign": _sign,
}

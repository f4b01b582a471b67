"""Loads, stores, atomics, fences and asynchronous copies of PTX."""

from __future__ import annotations

from polyblocks_nvgpu.bulk.copies import BULK_COPIES
from polyblocks_nvgpu.ptx_reader.bulk_copies import copy_box
from polyblocks_nvgpu.ptx_reader.conversions import parts_of
from polyblocks_nvgpu.ptx_reader.emitter import SPACES, Emitter, Handler, pointer
from polyblocks_nvgpu.ptx_reader.statements import Instruction

_ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
_SCOPES = {"cta": "block", "gpu": "device", "sys": "", "cluster": "device"}
#: Parts of names that say how a cache treats an access.
_CACHES = {"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1", "no_allocate", "weak"}
_KINDS = {"add": "add", "and": "_and", "or": "_or", "xor": "_xor", "exch": "xchg"}


def _parts(i: Instruction) -> tuple[int, str, int, str]:
    """Memory, type of an element, how many, and order of a load or a store."""
    space, count, order, scope, volatile = 0, 1, "", "", False
    for part in i.name[1:-1]:
        if part in SPACES:
            space = SPACES[part]
        elif part in ("v2", "v4", "v8"):
            count = int(part[1:])
        elif part in _ORDERS:
            order = _ORDERS[part]
        elif part in _SCOPES:
            scope = _SCOPES[part]
        elif part == "volatile":
            volatile = True
        elif part not in _CACHES and not part.startswith(("L2", "evict")):
            raise i.error(f"'{part}' is not simulated")
    bits = int(i.name[-1].lstrip("bsuf"))
    atomic = f' atomic syncscope("{scope}") {order}' if order and scope else ""
    if order and not scope:
        atomic = f" atomic {order}"
    return space, f"i{bits}", count, f"{'volatile ' if volatile else ''}|{atomic}"


def _load(e: Emitter, i: Instruction) -> None:
    if i.name[1] == "param":
        _parameter(e, i)
        return
    space, type_, count, order = _parts(i)
    targets, suffix = parts_of(i.operands[0]), i.name[-1]
    volatile, _, atomic = order.partition("|")
    bits = int(type_[1:])
    # Values narrower than their register are extended.
    exact = all(part == "_" or e.width(part) == bits for part in targets)
    kinds = {e.kind(part) for part in targets if part != "_"}
    element = type_
    if exact and len(kinds) == 1 and not next(iter(kinds)).startswith("vector"):
        element = next(iter(kinds))
    whole = f"vector<{count}x{element}>" if count > 1 else element
    address = e.address(i.operands[1], space, i)
    aligned = f"{{alignment = {bits // 8 * count} : i64}}"
    value = e.op(f"llvm.load {volatile}{address}{atomic} {aligned} : {pointer(space)} -> {whole}")
    for position, part in enumerate(targets):
        if part == "_":
            continue
        one = value
        if count > 1:
            at = e.constant(position, "i32")
            one = e.op(f"llvm.extractelement {value}[{at} : i32] : {whole}")
        width = e.width(part)
        if width > bits:
            word = "sext" if suffix[0] == "s" else "zext"
            one = e.op(f"llvm.{word} {one} : {type_} to i{width}")
            e.write(part, one, f"i{width}")
        elif suffix[0] == "f":
            e.write(part, e.cast(one, element, f"f{bits}"), f"f{bits}")
        else:
            e.write_plain(part, one, element)


def _parameter(e: Emitter, i: Instruction) -> None:
    to, place = i.operands
    name = place.strip("[] ")
    known = {n: (kind, is_pointer) for n, kind, is_pointer in e.entry.parameters}
    if name not in known:
        raise i.error(f"'{name}' is no parameter that it knows")
    width = int(known[name][0][1:])
    type_ = f"i{width}"
    value = f"%arg_{name}"
    if known[name][1]:
        value = e.op(f"llvm.ptrtoint {value} : !llvm.ptr<1> to i64")
    e.write(to, e.cast(value, type_, f"i{e.width(to)}"), f"i{e.width(to)}")


def _store(e: Emitter, i: Instruction) -> None:
    space, type_, count, order = _parts(i)
    sources = parts_of(i.operands[1])
    volatile, _, atomic = order.partition("|")
    bits = int(type_[1:])
    kinds = {e.kind(part) for part in sources if e.is_register(part) and e.width(part) == bits}
    element = next(iter(kinds)) if len(kinds) == 1 else type_
    if element.startswith("vector"):
        element = type_
    values = []
    for part in sources:
        if e.is_register(part) and e.width(part) != bits:
            held = f"i{e.width(part)}"
            values.append(e.cast(e.cast(e.read(part, held), held, type_), type_, element))
        else:
            values.append(e.read_plain(part, element))
    whole, value = element, values[0]
    if count > 1:
        whole = f"vector<{count}x{element}>"
        value = e.once(f"llvm.mlir.undef : {whole}")
        for position, one in enumerate(values):
            at = e.constant(position, "i32")
            value = e.op(f"llvm.insertelement {one}, {value}[{at} : i32] : {whole}")
    address = e.address(i.operands[0], space, i)
    aligned = f"{{alignment = {bits // 8 * count} : i64}}"
    e.do(f"llvm.store {volatile}{value}, {address}{atomic} {aligned} : {whole}, {pointer(space)}")


def _update(e: Emitter, i: Instruction) -> None:
    """``atom`` and ``red``."""
    space, order, scope, kind = 0, "monotonic", "device", ""
    for part in i.name[1:-1]:
        if part in SPACES:
            space = SPACES[part]
        elif part in _ORDERS:
            order = _ORDERS[part]
        elif part in _SCOPES:
            scope = _SCOPES[part]
        elif part in (*_KINDS, "min", "max", "cas"):
            kind = part
        elif part not in ("noftz",):
            raise i.error(f"'{part}' is not simulated")
    suffix = i.name[-1]
    bits = int(suffix.lstrip("bsuf"))
    type_ = f"f{bits}" if suffix[0] == "f" else f"i{bits}"
    to, place, *values = i.operands if i.name[0] == "atom" else ("_", *i.operands)
    address = e.address(place, space, i)
    given = [e.read(value, type_) for value in values]
    scoped = f' syncscope("{scope}")' if scope else ""
    if kind == "cas":
        pair = f"!llvm.struct<({type_}, i1)>"
        failed = "acquire" if order in ("acquire", "acq_rel") else "monotonic"
        both = e.op(
            f"llvm.cmpxchg {address}, {given[0]}, {given[1]}{scoped} {order} {failed} : "
            f"{pointer(space)}, {type_}"
        )
        e.write(to, e.op(f"llvm.extractvalue {both}[0] : {pair}"), type_)
        return
    if suffix[0] == "f":
        name = {"add": "fadd", "min": "fmin", "max": "fmax"}.get(kind, kind)
    elif kind in ("min", "max"):
        name = kind if suffix[0] == "s" else f"u{kind}"
    else:
        name = _KINDS.get(kind, "")
    if not name:
        raise i.error("an update of this kind")
    old = e.op(
        f"llvm.atomicrmw {name} {address}, {given[0]}{scoped} {order} : {pointer(space)}, {type_}"
    )
    e.write(to, old, type_)


def _fence(e: Emitter, i: Instruction) -> None:
    """``fence`` and ``membar``."""
    if i.name[1] in ("proxy", "mbarrier_init"):
        proxy = "llvm.nvvm.fence.proxy.async.shared_cta"
        e.call(proxy if i.name[1] == "proxy" else BULK_COPIES.visible, [], [], "()")
        return
    local = i.name[-1] == "cta"
    e.call(f"llvm.nvvm.membar.{'cta' if local else 'gl'}", [], [], "()")


def _copy(e: Emitter, i: Instruction) -> None:
    """``cp.async``."""
    if i.name[:4] == ("cp", "async", "bulk", "tensor"):
        copy_box(e, i)
    elif i.name[:4] == ("cp", "async", "bulk", "commit_group"):
        e.call(BULK_COPIES.close, [], [], "()")
    elif i.name[:4] == ("cp", "async", "bulk", "wait_group"):
        e.call(BULK_COPIES.stored, [e.constant(int(i.operands[0]), "i32")], ["i32"], "()")
    elif i.name[:3] == ("cp", "async", "commit_group"):
        e.call("llvm.nvvm.cp.async.commit.group", [], [], "()")
    elif i.name[:3] == ("cp", "async", "wait_group"):
        kept = e.constant(int(i.operands[0]), "i32")
        e.call("llvm.nvvm.cp.async.wait.group", [kept], ["i32"], "()")
    elif i.name[:3] == ("cp", "async", "wait_all"):
        e.call("llvm.nvvm.cp.async.wait.all", [], [], "()")
    elif i.name[:2] == ("cp", "async") and i.name[3:5] == ("shared", "global"):
        to, source, size, *rest = i.operands
        given = [e.address(to, SPACES["shared"], i), e.address(source, SPACES["global"], i)]
        types = ["!llvm.ptr<3>", "!llvm.ptr<1>"]
        name = f"llvm.nvvm.cp.async.{i.name[2]}.shared.global.{size}"
        if rest:
            given.append(e.read(rest[0], "i32"))
            types.append("i32")
            name += ".s"
        e.call(name, given, types, "()")
    else:
        raise i.error("a copy of this kind")


HANDLERS: dict[str, Handler] = {
    "ld": _load, "st": _store, "atom": _update, "red": _update, "fence": _fence, "membar": _fence,
    "cp": _copy,
}  # fmt: skip

"""Runs the kernels of a ``gpu.module`` in NumPy, all threads side by side, and finds races.

It takes the form that ``emit-kernels`` leaves: structured control flow, memrefs of static shape.
Threads go through the code together, those that a branch leaves out are masked. Memory remembers
who touched which element since the last barrier, so that a missing barrier is found although
threads that run in step would not notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polyblocks.mlir import ir

_TYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "index": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


class KernelError(AssertionError):
    """A kernel raced, left its memory, read what nobody wrote, or split up at a barrier."""


@dataclass
class Storage:
    """Elements in one row, with who touched them last.

    ``kind`` is ``global``, ``workgroup`` or ``private``.
    """

    data: np.ndarray
    kind: str
    written: np.ndarray
    by: np.ndarray = field(init=False)
    at: np.ndarray = field(init=False)
    read_by: np.ndarray = field(init=False)
    read_at: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.forget()

    @property
    def shared(self) -> bool:
        """Whether several threads see it."""
        return self.kind != "private"

    def forget(self) -> None:
        """Begin a launch: the one before has ended."""
        n = self.data.size
        self.by, self.at = np.full(n, -1), np.full(n, -1)
        # -2: several threads.
        self.read_by, self.read_at = np.full(n, -1), np.full(n, -1)


@dataclass
class Memref:
    """A view of a storage; ``base`` is where each thread's or block's part begins."""

    storage: Storage
    shape: list[int]
    strides: list[int]
    offset: int = 0
    base: Any = 0


def dtype_of(type_: Any) -> Any:
    """The NumPy type of an MLIR type."""
    return _TYPES[str(type_)]


class Machine:
    """One launch: ``blocks`` blocks of ``threads`` threads."""

    def __init__(self, kernels: Any, name: str, blocks: int, threads: int, warp: int = 32) -> None:
        self.kernels = kernels
        self.name = name
        self.threads, self.warp = threads, warp
        self.lanes = np.arange(blocks * threads)
        self.block = self.lanes // threads
        self.epoch = 0
        self.values: dict[Any, Any] = {}
        self.loads = self.stores = self.barriers = 0
        self.bytes = 0
        #: Threads of which no check has failed, and the messages of those that have.
        self.alive = np.ones(self.lanes.size, bool)
        self.failures: list[str] = []
        self.sectors = 0

    def run(self, arguments: list[Any]) -> None:
        """Run the kernel on memrefs and numbers."""
        func = next(
            o.operation
            for o in self.kernels.regions[0].blocks[0].operations
            if o.operation.name == "gpu.func"
            and o.operation.attributes["sym_name"].value == self.name
        )
        block = func.regions[0].blocks[0]
        self.values.update(zip(block.arguments, arguments, strict=False))
        for argument in list(block.arguments)[len(arguments) :]:
            self.values[argument] = self._own(argument.type)
        self.nodes(block, np.ones(self.lanes.size, bool))

    def _own(self, type_: Any) -> Memref:
        """Shared or private memory."""
        shape = list(type_.shape)
        n = int(np.prod(shape))
        shared = "workgroup" in str(type_.memory_space)
        owner = self.block if shared else self.lanes
        count = n * (int(owner.max()) + 1)
        data = np.zeros(count, dtype_of(type_.element_type))
        storage = Storage(data, "workgroup" if shared else "private", np.zeros(count, bool))
        return Memref(storage, shape, row_major(shape), 0, owner * n)

    def fail(self, op: Any, what: str) -> None:
        """Say what went wrong where."""
        raise KernelError(f"{self.name}: {what} in '{str(op).splitlines()[0]}'")

    # Control flow

    def nodes(self, block: Any, mask: np.ndarray) -> list[Any]:
        """Run a block; returns what it yields."""
        for op in block.operations:
            op = op.operation
            if op.name in ("scf.yield", "gpu.return"):
                return [self.values[v] for v in op.operands]
            self.node(op, mask)
        return []

    def node(self, op: Any, mask: np.ndarray) -> None:
        """Run one operation for the threads in ``mask``."""
        values = self.values
        name = op.name
        if name == "scf.if":
            self._if(op, mask)
        elif name == "scf.for":
            self._for(op, mask)
        elif name == "gpu.barrier":
            self.barriers += 1
            whole = mask.reshape(-1, self.threads)
            if not (whole.all(1) | ~whole.any(1)).all():
                self.fail(op, "only a part of a block waits")
            self.epoch += 1
        elif name == "gpu.shuffle":
            self._shuffle(op, mask)
        elif name == "cf.assert":
            held = np.broadcast_to(values[op.operands[0]], mask.shape)
            if (mask & self.alive & ~held).any():
                self.failures.append(op.attributes["msg"].value)
                # What comes behind relies on it.
                self.alive &= held | ~mask
        elif name == "memref.atomic_rmw":
            self._atomic(op, mask)
        elif name in ("memref.load", "vector.load"):
            values[op.results[0]] = self.load(op, mask)
        elif name in ("memref.store", "vector.store"):
            self.store(op, mask)
        elif name == "memref.get_global":
            values[op.results[0]] = self._global(op)
        elif name in ("memref.reinterpret_cast", "memref.subview", "memref.cast", "memref.view",
                      "memref.collapse_shape", "memref.expand_shape"):  # fmt: skip
            values[op.results[0]] = self._view(op)
        elif name in ("gpu.thread_id", "gpu.block_id"):
            dimension = str(op.attributes["dimension"])
            assert dimension == "#gpu<dim x>", dimension
            values[op.results[0]] = (
                self.block if name == "gpu.block_id" else self.lanes % self.threads
            )
        else:
            with np.errstate(all="ignore"):
                values[op.results[0]] = evaluate(op, [values[v] for v in op.operands])

    def _shuffle(self, op: Any, mask: np.ndarray) -> None:
        distance = int(np.unique(self.values[op.operands[1]]).item())
        if not mask.reshape(-1, min(self.warp, self.threads)).all(1).any() and mask.any():
            self.fail(op, "only a part of a warp shuffles")
        value = np.broadcast_to(self.values[op.operands[0]], self.lanes.shape)
        lane = self.lanes % self.warp
        how = str(op.attributes["mode"]).split()[-1].strip(">")
        if how == "xor":
            other = lane ^ distance
        else:
            other = np.where(lane >= distance, lane - distance, lane) if how == "up" else distance
        partner = self.lanes - lane + other
        if (partner // self.threads != self.block).any():
            self.fail(op, "a lane of another block")
        self.values[op.results[0]] = value[partner]

    def _atomic(self, op: Any, mask: np.ndarray) -> None:
        value, memref, *index = (self.values[v] for v in op.operands)
        at = self._place(op, memref, index, mask)[mask]
        if not memref.storage.written[at].all():
            self.fail(op, "an update of what nobody has stored")
        update = _ATOMIC[op.attributes["kind"].value]
        update.at(memref.storage.data, at, np.broadcast_to(value, mask.shape)[mask])

    def _if(self, op: Any, mask: np.ndarray) -> None:
        condition = np.broadcast_to(self.values[op.operands[0]], mask.shape)
        found: list[list[Any]] = []
        for region, part in zip(op.regions, (mask & condition, mask & ~condition), strict=True):
            if len(region.blocks):
                # Without threads its barriers count for nobody.
                found.append(self.nodes(region.blocks[0], part) if part.any() else [])
        for i, result in enumerate(op.results):
            yes = found[0][i] if found[0] else found[1][i]
            no = found[1][i] if found[1] else found[0][i]
            self.values[result] = _choose(condition, yes, no)

    def _for(self, op: Any, mask: np.ndarray) -> None:
        low, high, step = (
            np.broadcast_to(self.values[v], mask.shape) for v in list(op.operands)[:3]
        )
        carried = [self.values[v] for v in list(op.operands)[3:]]
        block = op.regions[0].blocks[0]
        variable = low.copy()
        while (active := mask & (variable < high)).any():
            self.values[block.arguments[0]] = variable
            self.values.update(zip(list(block.arguments)[1:], carried, strict=True))
            new = self.nodes(block, active)
            carried = [_choose(active, a, b) for a, b in zip(new, carried, strict=True)]
            variable = variable + step
        self.values.update(zip(op.results, carried, strict=True))

    # Memory

    def _places(
        self, op: Any, type_: Any, memref: Memref, index: list[Any], mask: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Elements of a vector (or one) by threads: places, and what stands for each of the mask
        and of the threads."""
        count = _width(type_)
        places = [
            self._place(op, memref, [*index[:-1], index[-1] + k] if k else index, mask)
            for k in range(count)
        ]
        shape = (count, *mask.shape)
        return np.stack(places), np.broadcast_to(mask, shape), np.broadcast_to(self.lanes, shape)

    def _place(self, op: Any, memref: Memref, index: list[Any], mask: np.ndarray) -> np.ndarray:
        place = np.zeros(mask.shape, np.int64) + memref.offset + memref.base
        for i, n, stride in zip(index, memref.shape, memref.strides, strict=True):
            i = np.broadcast_to(i, mask.shape)
            if ((i < 0) | (i >= n))[mask].any():
                self.fail(op, f"an index outside of {memref.shape}")
            place = place + i * stride
        return place

    def load(self, op: Any, mask: np.ndarray) -> np.ndarray:
        """The elements that the threads load."""
        memref = self.values[op.operands[0]]
        mask = mask & self.alive
        type_, index = op.results[0].type, [self.values[v] for v in list(op.operands)[1:]]
        where, mask, lanes = self._places(op, type_, memref, index, mask)
        at, storage, lane = where[mask], memref.storage, lanes[mask]
        if not storage.written[at].all():
            self.fail(op, "a load of what nobody has stored")
        self._count(storage, where, mask, lanes)
        self.loads += 1
        if storage.shared:
            other = storage.by[at] != lane
            recent = storage.at[at] == self.epoch
            apart = storage.by[at] // self.threads != lane // self.threads
            if ((storage.by[at] >= 0) & other & (recent | apart)).any():
                self.fail(op, "a load races with a store of another thread")
            seen = (storage.read_at[at] == self.epoch) & (storage.read_by[at] != lane)
            storage.read_by[at] = np.where(seen, -2, lane)
            storage.read_at[at] = self.epoch
            # Several threads at once: the last one in the row stands there.
            storage.read_by[at[storage.read_by[at] != lane]] = -2
        result = np.zeros(mask.shape, storage.data.dtype)
        result[mask] = storage.data[at]
        return result if isinstance(type_, ir.VectorType) else result[0]

    def store(self, op: Any, mask: np.ndarray) -> None:
        """Store what the threads have."""
        mask = mask & self.alive
        if not mask.any():
            return
        memref = self.values[op.operands[1]]
        type_, index = op.operands[0].type, [self.values[v] for v in list(op.operands)[2:]]
        where, mask, lanes = self._places(op, type_, memref, index, mask)
        at, storage, lane = where[mask], memref.storage, lanes[mask]
        self._count(storage, where, mask, lanes)
        self.stores += 1
        if storage.shared:
            if np.unique(at).size != at.size:
                self.fail(op, "two threads store to one element")
            other = (storage.by[at] >= 0) & (storage.by[at] != lane)
            recent = storage.at[at] == self.epoch
            apart = storage.by[at] // self.threads != lane // self.threads
            if (other & (recent | apart)).any():
                self.fail(op, "a store races with a store of another thread")
            read = (storage.read_at[at] == self.epoch) & (storage.read_by[at] != lane)
            if read.any():
                self.fail(op, "a store races with a load of another thread")
            storage.by[at], storage.at[at] = lane, self.epoch
        storage.written[at] = True
        storage.data[at] = np.broadcast_to(self.values[op.operands[0]], mask.shape)[mask]

    def _count(
        self, storage: Storage, where: np.ndarray, mask: np.ndarray, lanes: np.ndarray
    ) -> None:
        """Bytes that threads move from and to memory of the program, and the sectors for them."""
        if storage.kind == "global":
            size = storage.data.dtype.itemsize
            self.bytes += int(mask.sum()) * size
            warps = lanes[mask] // self.warp
            sectors = where[mask] * size // 32
            self.sectors += np.unique(np.stack([warps, sectors]), axis=1).shape[1]

    def _global(self, op: Any) -> Memref:
        symbol = ir.FlatSymbolRefAttr(op.attributes["name"]).value
        for other in self.kernels.regions[0].blocks[0].operations:
            other = other.operation
            if other.name == "memref.global" and other.attributes["sym_name"].value == symbol:
                value = other.attributes["initial_value"]
                kind = op.results[0].type
                shape = list(kind.shape)
                n = int(np.prod(shape))
                if value.is_splat:
                    data = np.full(n, value.get_splat_value().value)
                else:
                    data = np.array([value[i] for i in range(n)])
                return memref_of(data.astype(dtype_of(kind.element_type)).reshape(shape))
        raise KeyError(symbol)

    def _view(self, op: Any) -> Memref:
        source, type_ = self.values[op.operands[0]], op.results[0].type
        strides, offset = type_.get_strides_and_offset()
        shift = 0
        if op.name == "memref.view":
            raise KernelError("a view of bytes in a kernel")
        return Memref(source.storage, list(type_.shape), list(strides), offset + shift, source.base)


def _width(type_: Any) -> int:
    """Elements of a vector; its values have these in front of the threads."""
    return int(type_.shape[0]) if isinstance(type_, ir.VectorType) else 1


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return yes if isinstance(yes, Memref) else np.where(condition, yes, no)


def row_major(shape: list[int]) -> list[int]:
    """Strides of a dense array, in elements."""
    return [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]


def memref_of(array: np.ndarray, written: bool = True) -> Memref:
    """A memref of a dense array, which kernels change."""
    flat = array.reshape(-1)
    storage = Storage(flat, "global", np.full(flat.size, written))
    return Memref(storage, list(array.shape), row_major(list(array.shape)))


def _float(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *a: function(*a)


_BINARY: dict[str, Callable[..., Any]] = {
    "arith.addf": np.add, "arith.addi": np.add, "arith.subf": np.subtract,
    "arith.subi": np.subtract, "arith.mulf": np.multiply, "arith.muli": np.multiply,
    "arith.divf": np.divide, "arith.maximumf": np.maximum, "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum, "arith.minui": np.minimum,
    "arith.maxui": np.maximum, "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor, "arith.divui": lambda a, b: a // np.maximum(b, 1),
    "arith.remui": lambda a, b: a % np.maximum(b, 1),
    "arith.floordivsi": lambda a, b: a // b, "arith.remf": np.fmod,
    "arith.negf": np.negative, "math.exp": np.exp, "math.tanh": np.tanh, "math.sqrt": np.sqrt,
    "math.rsqrt": lambda a: 1 / np.sqrt(a), "math.absf": np.abs, "math.log": np.log,
    "math.fma": lambda a, b, c: a * b + c, "math.absi": np.abs,
    "arith.select": lambda c, a, b: np.where(c, a, b),
}  # fmt: skip
_ATOMIC = {0: np.add, 1: np.add, 4: np.maximum, 7: np.minimum, 11: np.bitwise_or,
           12: np.bitwise_and}  # fmt: skip
_COMPARE_I = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]


def evaluate(op: Any, operands: list[Any]) -> Any:
    """The result of a scalar operation on all threads' operands."""
    name, type_ = op.name, op.results[0].type
    if name == "vector.extract":
        (position,) = op.attributes["static_position"]
        return operands[0][position]
    if name == "vector.from_elements":
        return np.stack(np.broadcast_arrays(*operands))
    if name == "arith.constant" and isinstance(type_, ir.VectorType):
        element = op.attributes["value"].get_splat_value().value
        return np.full((_width(type_), 1), element, dtype_of(type_.element_type))
    if name == "arith.constant":
        return np.asarray(op.attributes["value"].value).astype(dtype_of(type_))
    if name in _BINARY:
        return np.asarray(_BINARY[name](*operands)).astype(dtype_of(type_))
    if name == "arith.cmpi":
        predicate = op.attributes["predicate"].value
        if predicate >= 6:
            operands = [np.asarray(o).astype(f"u{np.asarray(o).dtype.itemsize}") for o in operands]
            predicate -= 4
        return _COMPARE_I[predicate](*operands)
    if name == "arith.cmpf":
        return _compare_floats(op.attributes["predicate"].value, *operands)
    if name == "arith.bitcast":
        kind = np.dtype(dtype_of(type_))
        return np.ascontiguousarray(operands[0]).view(kind)
    if name == "arith.extui":
        source = np.asarray(operands[0])
        kind = f"u{source.dtype.itemsize}" if source.dtype != bool else "u1"
        return source.astype(kind, copy=False).view(kind).astype(dtype_of(type_))
    if name in ("arith.extf", "arith.truncf", "arith.extsi", "arith.trunci", "arith.index_cast",
                "arith.index_castui", "arith.sitofp", "arith.fptosi", "arith.uitofp"):  # fmt: skip
        source = np.asarray(operands[0])
        if name == "arith.extsi" and source.dtype == bool:
            return -(source.astype(dtype_of(type_)))
        if name == "arith.trunci" and str(type_) == "i1":
            return (source & 1).astype(bool)
        return source.astype(dtype_of(type_))
    raise NotImplementedError(name)


def _compare_floats(predicate: int, a: Any, b: Any) -> Any:
    ordered = ~(np.isnan(a) | np.isnan(b))
    plain = {1: a == b, 2: a > b, 3: a >= b, 4: a < b, 5: a <= b, 6: a != b}
    if predicate == 7:
        return ordered
    if predicate == 14:
        return ~ordered
    if predicate < 7:
        return plain[predicate] & ordered
    return plain[predicate - 7] | ~ordered


@dataclass
class Launch:
    """What one launch did."""

    kernel: str
    blocks: int
    threads: int
    machine: Machine


def run_main(module: Any, arrays: list[np.ndarray]) -> list[Launch]:
    """Run ``@main`` on arrays, one per argument, which are changed in place.

    Arguments whose role is ``output`` or ``workspace`` count as never written.
    """
    from polyblocks import signature

    main = signature.main_of(module)
    rows = signature.rows(module)
    kernels = next(o.operation for o in module.body.operations if o.operation.name == "gpu.module")
    block = main.body.blocks[0]
    values: dict[Any, Any] = {}
    for argument, array, row in zip(block.arguments, arrays, rows, strict=True):
        values[argument] = memref_of(array, row["role"] not in ("output", "workspace"))
    launches: list[Launch] = []
    _host(block, values, kernels, launches)
    return launches


def _host(block: Any, values: dict[Any, Any], kernels: Any, launches: list[Launch]) -> None:
    for op in block.operations:
        op = op.operation
        if op.name == "gpu.launch_func":
            _launch(op, values, kernels, launches)
        elif op.name == "memref.view":
            source = values[op.operands[0]]
            type_ = op.results[0].type
            kind = np.dtype(dtype_of(type_.element_type))
            first = int(values[op.operands[1]])
            n = int(np.prod(type_.shape)) * kind.itemsize
            array = source.storage.data.view(np.uint8)[first : first + n].view(kind)
            # Buffers share bytes over time: what was there before counts as never written.
            values[op.results[0]] = memref_of(array.reshape(type_.shape), False)
        elif op.name == "memref.alloc":
            type_ = op.results[0].type
            array = np.zeros(type_.shape, dtype_of(type_.element_type))
            values[op.results[0]] = memref_of(array, False)
        elif op.name == "arith.constant":
            values[op.results[0]] = op.attributes["value"].value
        elif op.name in ("affine.for", "scf.for"):
            _host_loop(op, values, kernels, launches)
        elif op.name in ("func.return", "affine.yield", "scf.yield"):
            return
        else:
            raise NotImplementedError(op.name)


def _host_loop(op: Any, values: dict[Any, Any], kernels: Any, launches: list[Launch]) -> None:
    if op.name == "affine.for":
        low, high, step = 0, int(op.attributes["upperBoundMap"].value.results[0].value), 1
    else:
        low, high, step = (int(values[v]) for v in list(op.operands)[:3])
    body = op.regions[0].blocks[0]
    for i in range(low, high, step):
        values[body.arguments[0]] = i
        _host(body, values, kernels, launches)


def _launch(op: Any, values: dict[Any, Any], kernels: Any, launches: list[Launch]) -> None:
    given = list(op.operands)
    sizes = [int(values[v]) for v in given[:6]]
    name = str(op.attributes["kernel"]).split("@")[-1]
    machine = Machine(kernels, name, sizes[0], sizes[3])
    arguments = [values[v] for v in given[6:]]
    for argument in arguments:
        if isinstance(argument, Memref):
            argument.storage.forget()
    machine.run(arguments)
    launches.append(Launch(name, sizes[0], sizes[3], machine))

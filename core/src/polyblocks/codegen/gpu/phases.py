"""Blocks of a launch that wait until others of it are done.

The launch has phases, and the blocks of each wait for all of the phase before. A block takes its
number when it starts, from a counter in global memory. So all of smaller numbers, which are those
that it may wait for, have started, and these never wait for larger ones: all end in whatever order
a device starts blocks, and whatever else runs on it. Scans in one pass number their blocks so
(Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016).

A launch has one counter for the numbers and one for each phase but the last. The program's first
launch clears those of all others.
"""

from __future__ import annotations

from typing import Any

from polyblocks import mlir
from polyblocks.affine.cost.estimate import without_work
from polyblocks.affine.cost.rates import waiting_seconds
from polyblocks.affine.mlir.json_attributes import to_attribute
from polyblocks.attributes import ESTIMATE_ATTRIBUTE, RESIDENT_ATTRIBUTE, SOURCES_ATTRIBUTE
from polyblocks.codegen.gpu.passes.assign_memory_spaces import WORKGROUP
from polyblocks.target import TargetDescription

#: Threads that clear counters.
_THREADS = 32
#: Unsigned less than, and equality, of arith.cmpi.
_ULT, _EQ = 6, 0


def is_worth_waiting(target: TargetDescription) -> bool:
    """Whether a launch less saves more than two phases cost."""
    seconds = waiting_seconds(target, 2)
    return seconds is not None and seconds < target.shared_level.overhead


def ticket_type() -> Any:
    """Of the shared buffer in which a block keeps its number."""
    return mlir.ir.MemRefType.get([1], _i32(), memory_space=mlir.ir.Attribute.parse(WORKGROUP))


def counters_type(count: int) -> Any:
    """Of that many counters in global memory."""
    return mlir.ir.MemRefType.get([count], _i32())


def take_number(counters: Any, ticket: Any) -> Any:
    """The block's number, at the insertion point."""
    memref = mlir.dialect("memref")
    with mlir.ir.InsertionPoint(_only_first_thread()):
        number = _add(counters, 0, 1)
        memref.StoreOp(number, ticket, [_index(0)])
    _barrier()
    number = memref.LoadOp(ticket, [_index(0)]).result
    return mlir.ir.Operation.create(
        "arith.index_cast", results=[mlir.ir.IndexType.get()], operands=[number]
    ).result


def wait_for(counters: Any, phase: int, blocks: int) -> None:
    """Wait until all ``blocks`` of a phase are done, at the insertion point."""
    ir = mlir.ir
    with ir.InsertionPoint(_only_first_thread()):
        loop = ir.Operation.create("scf.while", regions=2)
        before, after = (region.blocks.append() for region in loop.regions)
        with ir.InsertionPoint(before):
            done = _add(counters, 1 + phase, 0)
            some = _compare(_ULT, done, _constant(blocks))
            ir.Operation.create("scf.condition", operands=[some])
        with ir.InsertionPoint(after):
            ir.Operation.create("scf.yield")
        _fence("acquire")
    _barrier()


def count_done(counters: Any, phase: int) -> None:
    """Say that the block has stored all of its results, at the insertion point."""
    _barrier()
    with mlir.ir.InsertionPoint(_only_first_thread()):
        _fence("release")
        _add(counters, 1 + phase, 1)


def clearing_kernel(name: str, count: int, before: Any, beside: dict[str, Any] | None) -> Any:
    """A kernel of one block that clears counters.

    Args:
        name: of the kernel.
        count: how many counters, whole rounds of its threads.
        before: the ``gpu.func`` that it is written before.
        beside: the estimate of a launch that it is joined with.
    """
    ir = mlir.ir
    type_ = counters_type(count)
    sizes = {
        "known_grid_size": ir.DenseI32ArrayAttr.get([1, 1, 1]),
        "known_block_size": ir.DenseI32ArrayAttr.get([_THREADS, 1, 1]),
    }
    attributes = sizes | {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get([type_], [])),
        "kernel": ir.UnitAttr.get(),
        "arg_attrs": ir.ArrayAttr.get([ir.DictAttr.get({})]),
        RESIDENT_ATTRIBUTE: ir.IntegerAttr.get(_i32(), 1),
        SOURCES_ATTRIBUTE: ir.ArrayAttr.get([]),
    }
    if beside is not None:
        attributes[ESTIMATE_ATTRIBUTE] = to_attribute(without_work(beside))
    with ir.InsertionPoint(before):
        kernel = ir.Operation.create("gpu.func", attributes=attributes, regions=1)
    block = kernel.regions[0].blocks.append(type_, arg_locs=[ir.Location.unknown()])
    with ir.InsertionPoint(block):
        zero, thread = _constant(0), _thread()
        for first in range(0, count, _THREADS):
            place = ir.Operation.create(
                "arith.addi", results=[thread.type], operands=[thread, _index(first)]
            ).result
            mlir.dialect("memref").StoreOp(zero, block.arguments[0], [place])
        ir.Operation.create("gpu.return")
    return kernel


def clearing_row(name: str, workspace: int) -> dict[str, Any]:
    """The launch of :func:`clearing_kernel`."""
    arguments = [{"workspace": workspace}]
    return {"kernel": name, "grid": [1, 1, 1], "block": [_THREADS, 1, 1], "arguments": arguments}


def rounded(counters: int) -> int:
    """As many counters as are cleared together."""
    return -(-counters // _THREADS) * _THREADS


def _only_first_thread() -> Any:
    """The end of what the first thread of a block does."""
    ir = mlir.ir
    condition = _compare(_EQ, _thread(), _index(0))
    branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
    branch.regions[0].blocks.append()
    with ir.InsertionPoint(branch.regions[0].blocks[0]):
        return ir.Operation.create("scf.yield")


def _add(counters: Any, place: int, value: int) -> Any:
    """Add to a counter; returns what it was."""
    memref = mlir.dialect("memref")
    kind = mlir.dialect("arith").AtomicRMWKind.addi
    return memref.AtomicRMWOp(kind, _constant(value), counters, [_index(place)]).result


def _fence(ordering: str) -> None:
    """Of the device: :class:`polyblocks.codegen.gpu.passes.scope_atomics.ScopeAtomicsPass`."""
    number = {"acquire": 4, "release": 5}[ordering]
    i64 = mlir.ir.IntegerType.get_signless(64)
    attributes = {"ordering": mlir.ir.IntegerAttr.get(i64, number)}
    mlir.ir.Operation.create("llvm.fence", attributes=attributes)


def _barrier() -> None:
    mlir.ir.Operation.create("gpu.barrier")


def _thread() -> Any:
    axis = {"dimension": mlir.ir.Attribute.parse("#gpu<dim x>")}
    index = mlir.ir.IndexType.get()
    return mlir.ir.Operation.create("gpu.thread_id", results=[index], attributes=axis).result


def _compare(predicate: int, one: Any, other: Any) -> Any:
    return mlir.dialect("arith").CmpIOp(predicate, one, other).result


def _constant(value: int) -> Any:
    return mlir.dialect("arith").ConstantOp(_i32(), value).result


def _index(value: int) -> Any:
    return mlir.dialect("arith").ConstantOp(mlir.ir.IndexType.get(), value).result


def _i32() -> Any:
    return mlir.ir.IntegerType.get_signless(32)

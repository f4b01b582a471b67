"""time-kernels: every call of a kernel is timed; only with the option ``profile``."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.attributes import NESTS_ATTRIBUTE
from polyblocks.codegen.walk import nested
from polyblocks_cpu.load import CLOCK, PROFILE
from polyblocks_cpu.team.kernels import EACH_CALL, TEAM_CALL, TRIPS

#: Module attribute: ``[[kernel, nest], ...]``, what each row of the times belongs to. Row 0 is the
#: whole program and has empty names.
ROWS = "polyblocks.profile"
#: float64 numbers per row: calls, seconds, smallest seconds.
COLUMNS = 3


@dataclass(frozen=True)
class TimeKernelsPass:
    """Read the clock around every kernel call of ``@main``, and around all of it.

    The times are summed in a global buffer that only this program has; calls from several threads
    at once would mix them up. Where a team runs the program (``share-team``) the first thread
    measures, until all have come to the barrier behind a parallel kernel. Before::

        func.call @k(%x)

    After::

        func.call @clock_gettime(%monotonic, %now)  // and %begin = load %now
        func.call @k(%x)
        func.call @clock_gettime(%monotonic, %now)  // and %end
        // times[row] += (1, %end - %begin), and the smallest
    """

    name: ClassVar[str] = "time-kernels"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite ``@main``, add the buffer and the function that tells its address."""
        from polyblocks import mlir

        del context
        ir = mlir.ir
        func = mlir.dialect("func")
        with module.context, ir.Location.unknown():
            main = signature.main_of(module)
            team = _team(module, main)
            timed = [main] if team is None else [main, team]
            calls = _kernel_calls(module, timed)
            followers: dict[Any, Any] = {}
            for function in timed:
                followers.update(_followers(function.operation))
            table = ir.MemRefType.get([1 + len(calls), COLUMNS], ir.F64Type.get())
            with ir.InsertionPoint.at_block_begin(module.body):
                _global(table)
                func.FuncOp(CLOCK, _clock_type(), visibility="private")
            with ir.InsertionPoint(module.body):
                address = func.FuncOp(PROFILE, ir.FunctionType.get([], [ir.IndexType.get()]))
            with ir.InsertionPoint(address.add_entry_block()):
                memref = mlir.dialect("memref")
                func.ReturnOp([memref.ExtractAlignedPointerAsIndexOp(_times(table)).result])
            # Checks may have split the function into blocks with returns of their own.
            blocks = list(main.body.blocks)
            ends = [block.operations[len(block.operations) - 1].operation for block in blocks]
            timers = [_Timer(table, function) for function in timed]
            for row, (call, _) in enumerate(calls, start=1):
                if team is not None and TEAM_CALL in call.attributes:
                    # All threads come here; a barrier stands behind the call.
                    thread = team.body.blocks[0].arguments[-2]
                    timers[-1].time(row, call, [followers[followers[call]]], thread)
                else:
                    timers[-1].time(row, call, [followers[call]])
            # Last, so that it stands around the others.
            first = blocks[0].operations[1].operation
            timers[0].time(0, first, [op for op in ends if op.name == "func.return"])
            names = [("", ""), *(pair for _, pair in calls)]
            module.operation.attributes[ROWS] = ir.ArrayAttr.get(
                [ir.ArrayAttr.get([ir.StringAttr.get(n) for n in pair]) for pair in names]
            )


def _team(module: Any, main: Any) -> Any:
    """The function that a team's threads run instead of ``@main``, or None."""
    for call in nested(main.operation):
        if EACH_CALL in call.attributes:
            name = call.attributes["callee"].value
            return next(f for f in module.body.operations if _symbol(f.operation) == name)
    return None


def _symbol(op: Any) -> str | None:
    return op.attributes["sym_name"].value if "sym_name" in op.attributes else None


def _kernel_calls(module: Any, functions: list[Any]) -> list[tuple[Any, tuple[str, str]]]:
    """Calls in the order of the program, with the names of kernel and nest."""
    nests: dict[str, list[str]] = {}
    for op in module.body.operations:
        attributes = op.operation.attributes
        if TRIPS in attributes:
            names = (
                [n.value for n in attributes[NESTS_ATTRIBUTE]]
                if NESTS_ATTRIBUTE in attributes
                else []
            )
            nests[attributes["sym_name"].value] = names
    calls = []
    for op in (inner for function in functions for inner in nested(function.operation)):
        if op.name == "func.call" and op.attributes["callee"].value in nests:
            kernel = op.attributes["callee"].value
            # Names are in the order of the calls; one without a name is called like the kernel.
            nest = nests[kernel].pop(0) if nests[kernel] else kernel
            calls.append((op, (kernel, nest)))
    return calls


def _global(table: Any) -> None:
    from polyblocks.mlir import ir

    rows, columns = table.shape
    # No call, no seconds, the smallest so far is infinite.
    values = ", ".join(["[0.0, 0.0, 0x7FF0000000000000]"] * rows)
    ir.Operation.create(
        "memref.global",
        attributes={
            "sym_name": ir.StringAttr.get(f"{PROFILE}_times"),
            "sym_visibility": ir.StringAttr.get("private"),
            "type": ir.TypeAttr.get(table),
            "initial_value": ir.Attribute.parse(
                f"dense<[{values}]> : tensor<{rows}x{columns}xf64>"
            ),
        },
    )


def _times(table: Any) -> Any:
    from polyblocks import mlir

    return mlir.dialect("memref").GetGlobalOp(table, f"{PROFILE}_times").result


def _followers(root: Any) -> dict[Any, Any]:
    """The operation behind each one, in all blocks inside ``root``."""
    found: dict[Any, Any] = {}
    for op in (root, *nested(root)):
        for region in op.regions:
            for block in region.blocks:
                found.update(pairwise(inner.operation for inner in block.operations))
    return found


def _timespec() -> Any:
    """POSIX's ``struct timespec`` on 64 bits: seconds, nanoseconds."""
    from polyblocks.mlir import ir

    return ir.MemRefType.get([2], ir.IntegerType.get_signless(64))


def _clock_type() -> Any:
    from polyblocks.mlir import ir

    i32 = ir.IntegerType.get_signless(32)
    return ir.FunctionType.get([i32, _timespec()], [i32])


class _Timer:
    """Writes the code that reads the clock, in one function.

    Args:
        table: type of the buffer of times.
        function: on its stack the clock writes.
    """

    def __init__(self, table: Any, function: Any) -> None:
        from polyblocks import mlir

        ir = mlir.ir
        self.table = table
        entry = function.body.blocks[0]
        with ir.InsertionPoint.at_block_begin(entry):
            self.now = mlir.dialect("memref").AllocaOp(_timespec(), [], []).result

    def time(self, row: int, first: Any, after: list[Any], thread: Any = None) -> None:
        """Time what runs from ``first`` until before each of ``after``.

        Args:
            row: of the table.
            first: an operation.
            after: operations behind it; exactly one is reached.
            thread: the number of the thread, where several come here.
        """
        from polyblocks import mlir

        ir = mlir.ir
        arith, scf = mlir.dialect("arith"), mlir.dialect("scf")
        with ir.InsertionPoint(first):
            begin = self._nanoseconds()
        for op in after:
            with ir.InsertionPoint(op):
                passed = arith.SubIOp(self._nanoseconds(), begin).result
                if thread is None:
                    self._add(row, passed)
                    continue
                none = arith.ConstantOp(thread.type, 0).result
                branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, thread, none).result)
            with ir.InsertionPoint(branch.then_block):
                self._add(row, passed)
                scf.YieldOp([])

    def _add(self, row: int, passed: Any) -> None:
        """Add nanoseconds to a row of the table."""
        from polyblocks import mlir

        arith, memref = mlir.dialect("arith"), mlir.dialect("memref")
        f64, index = self.table.element_type, mlir.ir.IndexType.get()
        passed = arith.SIToFPOp(f64, passed)
        seconds = arith.MulFOp(passed.result, arith.ConstantOp(f64, 1e-9).result).result
        one = arith.ConstantOp(f64, 1.0).result
        times = _times(self.table)
        at = arith.ConstantOp(index, row).result
        updates = (
            (arith.AddFOp, one),
            (arith.AddFOp, seconds),
            (arith.MinNumFOp, seconds),
        )
        for column, (combine, value) in enumerate(updates):
            place = [at, arith.ConstantOp(index, column).result]
            old = memref.LoadOp(times, place).result
            memref.StoreOp(combine(old, value).result, times, place)

    def _nanoseconds(self) -> Any:
        """The clock's time as i64."""
        from polyblocks import mlir

        ir = mlir.ir
        arith, func, memref = mlir.dialect("arith"), mlir.dialect("func"), mlir.dialect("memref")
        i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (32, 64))
        which = arith.ConstantOp(i32, time.CLOCK_MONOTONIC).result
        func.CallOp([i32], CLOCK, [which, self.now])
        seconds, rest = (
            memref.LoadOp(self.now, [arith.ConstantOp(ir.IndexType.get(), i).result]).result
            for i in (0, 1)
        )
        billion = arith.ConstantOp(i64, 1_000_000_000).result
        return arith.AddIOp(arith.MulIOp(seconds, billion).result, rest).result

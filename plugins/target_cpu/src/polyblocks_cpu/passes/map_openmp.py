"""map-openmp: calls of parallel kernels run on a team of threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks_cpu.passes.memory import constant_index
from polyblocks_cpu.passes.outline_kernels import TEAM_CALL
from polyblocks_cpu.passes.walk import nested

#: Runtime functions that the generated regions call.
THREAD_NUM = "omp_get_thread_num"
NUM_THREADS = "omp_get_num_threads"


@dataclass(frozen=True)
class MapOpenmpPass:
    """Share the iteration range of each ``polyblocks.team`` call among OpenMP threads.

    ``@main`` gets the number of threads as its last argument. Each thread takes one contiguous
    piece; the pieces differ by one iteration at most. With one thread, or one iteration, the
    kernel is called directly and the OpenMP runtime is not entered.

    Before::

        func.call @k(%begin, %end, %x) {polyblocks.team}

    After::

        scf.if %one_thread { func.call @k(%begin, %end, %x) } else {
          omp.parallel num_threads(%num_threads : i32) {
            %t = func.call @omp_get_thread_num() : () -> i32
            %n = func.call @omp_get_num_threads() : () -> i32
            // [begin + t * trips / n, begin + (t + 1) * trips / n)
            func.call @k(%from, %to, %x)
            omp.terminator
          }
        }
    """

    name: ClassVar[str] = "map-openmp"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite ``@main`` in place and declare the runtime functions."""
        from polyblocks import mlir

        del context
        ir = mlir.ir
        with module.context, ir.Location.unknown():
            main = signature.main_of(module)
            num_threads = _add_num_threads(main)
            block = main.body.blocks[0]
            calls = [op for op in nested(main.operation) if TEAM_CALL in op.attributes]
            wide = [call for call in calls if _trips(call) != 1]
            if not wide:
                return
            _declare_runtime(module)
            arith = mlir.dialect("arith")
            with ir.InsertionPoint.at_block_begin(block):
                one = arith.ConstantOp(ir.IntegerType.get_signless(32), 1).result
                alone = arith.CmpIOp(arith.CmpIPredicate.sle, num_threads, one).result
            for call in wide:
                _share(call, num_threads, alone)


def _add_num_threads(main: Any) -> Any:
    from polyblocks.mlir import ir

    i32 = ir.IntegerType.get_signless(32)
    block = main.body.blocks[0]
    value = block.add_argument(i32, ir.Location.unknown())
    main.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([a.type for a in block.arguments], main.type.results)
    )
    if "arg_attrs" in main.attributes:
        old = list(ir.ArrayAttr(main.attributes["arg_attrs"]))
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([*old, ir.DictAttr.get({})])
    return value


def _declare_runtime(module: Any) -> None:
    from polyblocks import mlir

    ir = mlir.ir
    func = mlir.dialect("func")
    i32 = ir.IntegerType.get_signless(32)
    with ir.InsertionPoint.at_block_begin(module.body):
        for name in (THREAD_NUM, NUM_THREADS):
            func.FuncOp(name, ir.FunctionType.get([], [i32]), visibility="private")


def _trips(call: Any) -> int | None:
    begin, end = constant_index(call.operands[0]), constant_index(call.operands[1])
    return None if begin is None or end is None else end - begin


def _share(call: Any, num_threads: Any, alone: Any) -> None:
    from polyblocks import mlir

    ir = mlir.ir
    scf = mlir.dialect("scf")
    with ir.InsertionPoint(call):
        branch = scf.IfOp(alone, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        direct = call.clone()
        scf.YieldOp([])
    del direct.attributes[TEAM_CALL]
    with ir.InsertionPoint(branch.else_block):
        region = ir.Operation.create(
            "omp.parallel",
            operands=[num_threads],
            # allocate, allocators, if, num_threads, private, reduction
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0, 0, 1, 0, 0])},
            regions=1,
        )
        scf.YieldOp([])
    body = region.regions[0].blocks.append()
    with ir.InsertionPoint(body):
        _call_piece(call)
        ir.Operation.create("omp.terminator")
    call.erase()


def _call_piece(call: Any) -> None:
    """The call of one thread: its own part of the iteration range."""
    from polyblocks import mlir

    ir = mlir.ir
    arith, func = mlir.dialect("arith"), mlir.dialect("func")
    index = ir.IndexType.get()
    i32 = ir.IntegerType.get_signless(32)
    thread, threads = (
        arith.IndexCastUIOp(index, func.CallOp([i32], name, []).result).result
        for name in (THREAD_NUM, NUM_THREADS)
    )
    begin, end, *rest = call.operands
    trips = arith.SubIOp(end, begin).result
    one = arith.ConstantOp(index, 1).result

    def bound(position: Any) -> Any:
        share = arith.DivUIOp(arith.MulIOp(position, trips).result, threads).result
        return arith.AddIOp(begin, share).result

    first = bound(thread)
    last = bound(arith.AddIOp(thread, one).result)
    callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    func.CallOp([], callee, [first, last, *rest])

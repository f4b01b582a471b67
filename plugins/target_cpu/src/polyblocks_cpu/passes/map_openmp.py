"""map-openmp: calls of parallel kernels run on a team of threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.codegen.memory import constant_index
from polyblocks.codegen.walk import nested
from polyblocks_cpu.passes.outline_kernels import TEAM_CALL

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

        func.call @k_team(%begin, %end, %x, %num_threads)

        func.func private @k_team(%begin: index, %end: index, %x: ..., %num_threads: i32) {
          scf.if %one_thread { func.call @k(%begin, %end, %x) } else {
            omp.parallel num_threads(%num_threads : i32) {
              %t = func.call @omp_get_thread_num() : () -> i32
              %n = func.call @omp_get_num_threads() : () -> i32
              // [begin + t * trips / n, begin + (t + 1) * trips / n)
              func.call @k(%from, %to, %x)
              omp.terminator
            }
          }
          return
        }

    The region stands in a function of its own, once for all calls of a kernel: regions in a long
    ``@main`` would take LLVM longer than the kernels.
    """

    name: ClassVar[str] = "map-openmp"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite ``@main`` in place and declare the runtime functions."""
        from polyblocks import mlir

        del context
        ir = mlir.ir
        func = mlir.dialect("func")
        with module.context, ir.Location.unknown():
            main = signature.main_of(module)
            num_threads = _add_num_threads(main)
            calls = [op for op in nested(main.operation) if TEAM_CALL in op.attributes]
            wide = [call for call in calls if _trips(call) != 1]
            if not wide:
                return
            _declare_runtime(module)
            teams: dict[str, str] = {}
            taken = {
                op.operation.attributes["sym_name"].value
                for op in module.body.operations
                if "sym_name" in op.operation.attributes
            }
            for call in wide:
                kernel = call.attributes["callee"].value
                if kernel not in teams:
                    teams[kernel] = _team(module, kernel, call, taken)
                with ir.InsertionPoint(call):
                    func.CallOp([], teams[kernel], [*call.operands, num_threads])
                call.erase()


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


def _team(module: Any, kernel: str, call: Any, taken: set[str]) -> str:
    """Make the function that runs a kernel on a team; its name, which is taken from now on."""
    from polyblocks import mlir

    ir = mlir.ir
    arith, func, scf = mlir.dialect("arith"), mlir.dialect("func"), mlir.dialect("scf")
    i32 = ir.IntegerType.get_signless(32)
    types = [*(v.type for v in call.operands), i32]
    name = f"{kernel}_team"
    while name in taken:
        name += "_"
    taken.add(name)
    with ir.InsertionPoint(module.body):
        team = func.FuncOp(name, ir.FunctionType.get(types, []), visibility="private")
    block = team.add_entry_block()
    *arguments, num_threads = block.arguments
    with ir.InsertionPoint(block):
        one = arith.ConstantOp(i32, 1).result
        alone = arith.CmpIOp(arith.CmpIPredicate.sle, num_threads, one).result
        branch = scf.IfOp(alone, has_else=True)
        func.ReturnOp([])
    with ir.InsertionPoint(branch.then_block):
        func.CallOp([], kernel, arguments)
        scf.YieldOp([])
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
        _call_piece(kernel, arguments)
        ir.Operation.create("omp.terminator")
    return name


def _call_piece(kernel: str, arguments: list[Any]) -> None:
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
    begin, end, *rest = arguments
    trips = arith.SubIOp(end, begin).result
    one = arith.ConstantOp(index, 1).result

    def bound(position: Any) -> Any:
        share = arith.DivUIOp(arith.MulIOp(position, trips).result, threads).result
        return arith.AddIOp(begin, share).result

    first = bound(thread)
    last = bound(arith.AddIOp(thread, one).result)
    func.CallOp([], kernel, [first, last, *rest])

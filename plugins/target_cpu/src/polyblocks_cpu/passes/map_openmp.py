"""map-openmp: calls of parallel kernels run on a team of threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.codegen.walk import nested
from polyblocks_cpu.team.kernels import EACH_CALL, Names, is_shared

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
              func.call @k_piece(%begin, %end, %x, %t, %n)
              omp.terminator
            }
          }
          return
        }

        func.func private @k_piece(%begin: index, %end: index, %x: ..., %t: index, %n: index) {
          // [begin + t * trips / n, begin + (t + 1) * trips / n)
          func.call @k(%from, %to, %x)
          return
        }

    The region stands in a function of its own, once for all calls of a kernel: regions in a long
    ``@main`` would take LLVM longer than the kernels.

    In a function that each thread of a team runs (``polyblocks.each``, see ``share-team``) the call
    of a parallel kernel becomes one of its piece, and the region is around the function's call.
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
            found = list(nested(main.operation))
            calls = [op for op in found if is_shared(op)]
            each = [op for op in found if EACH_CALL in op.attributes]
            if not calls and not each:
                return
            _declare_runtime(module)
            names = Names(module)
            pieces = _Pieces(module, names)
            teams: dict[str, str] = {}
            for call in calls:
                kernel = call.attributes["callee"].value
                if kernel not in teams:
                    teams[kernel] = _team(module, kernel, call, pieces, names)
                with ir.InsertionPoint(call):
                    func.CallOp([], teams[kernel], [*call.operands, num_threads])
                call.erase()
            for call in each:
                _share(module, call, pieces)
                with ir.InsertionPoint(call):
                    *arguments, _, _ = call.operands
                    _on_team(call.attributes["callee"].value, arguments, num_threads, None)
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


def _share(module: Any, each: Any, pieces: _Pieces) -> None:
    """In the function that threads run, let each call its pieces of parallel kernels."""
    from polyblocks import mlir

    ir = mlir.ir
    func = mlir.dialect("func")
    name = each.attributes["callee"].value
    function = next(
        op
        for op in module.body.operations
        if "sym_name" in op.operation.attributes
        and op.operation.attributes["sym_name"].value == name
    )
    *_, thread, threads = function.regions[0].blocks[0].arguments
    for call in [op for op in nested(function.operation) if is_shared(op)]:
        with ir.InsertionPoint(call):
            func.CallOp([], pieces.of(call), [*call.operands, thread, threads])
        call.erase()


def _team(module: Any, kernel: str, call: Any, pieces: _Pieces, names: Names) -> str:
    """Make the function that runs a kernel on a team; its name."""
    from polyblocks import mlir

    ir = mlir.ir
    func = mlir.dialect("func")
    types = [*(v.type for v in call.operands), ir.IntegerType.get_signless(32)]
    piece = pieces.of(call)
    name = names.new(f"{kernel}_team")
    with ir.InsertionPoint(module.body):
        team = func.FuncOp(name, ir.FunctionType.get(types, []), visibility="private")
    block = team.add_entry_block()
    *arguments, num_threads = block.arguments
    with ir.InsertionPoint(block):
        _on_team(piece, arguments, num_threads, kernel)
        func.ReturnOp([])
    return name


def _on_team(each: str, arguments: list[Any], num_threads: Any, alone: str | None) -> None:
    """Call a function on every thread of a team, with its number and how many there are.

    Args:
        each: the function's name.
        arguments: what else it takes.
        num_threads: size of the team; one thread needs no team.
        alone: what is then called instead, without the last two arguments.
    """
    from polyblocks import mlir

    ir = mlir.ir
    arith, func, scf = mlir.dialect("arith"), mlir.dialect("func"), mlir.dialect("scf")
    mlir.dialect("omp")  # loads it
    index, i32 = ir.IndexType.get(), ir.IntegerType.get_signless(32)
    one = arith.ConstantOp(i32, 1).result
    is_alone = arith.CmpIOp(arith.CmpIPredicate.sle, num_threads, one).result
    branch = scf.IfOp(is_alone, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        if alone is not None:
            func.CallOp([], alone, arguments)
        else:
            numbers = [arith.ConstantOp(index, number).result for number in (0, 1)]
            func.CallOp([], each, [*arguments, *numbers])
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
    with ir.InsertionPoint(region.regions[0].blocks.append()):
        numbers = [
            arith.IndexCastUIOp(index, func.CallOp([i32], name, []).result).result
            for name in (THREAD_NUM, NUM_THREADS)
        ]
        func.CallOp([], each, [*arguments, *numbers])
        ir.Operation.create("omp.terminator")


class _Pieces:
    """Functions that call a kernel for one thread's part of the iteration range, as needed."""

    def __init__(self, module: Any, taken: Names) -> None:
        self._module = module
        self._taken = taken
        self._names: dict[str, str] = {}

    def of(self, call: Any) -> str:
        """The name of the function for the kernel that is called."""
        kernel = call.attributes["callee"].value
        if kernel not in self._names:
            self._names[kernel] = self._make(kernel, [v.type for v in call.operands])
        return self._names[kernel]

    def _make(self, kernel: str, types: list[Any]) -> str:
        from polyblocks import mlir

        ir = mlir.ir
        arith, func = mlir.dialect("arith"), mlir.dialect("func")
        index = ir.IndexType.get()
        name = self._taken.new(f"{kernel}_piece")
        with ir.InsertionPoint(self._module.body):
            type_ = ir.FunctionType.get([*types, index, index], [])
            piece = func.FuncOp(name, type_, visibility="private")
        block = piece.add_entry_block()
        begin, end, *rest, thread, threads = block.arguments

        def bound(position: Any) -> Any:
            share = arith.DivUIOp(arith.MulIOp(position, trips).result, threads).result
            return arith.AddIOp(begin, share).result

        with ir.InsertionPoint(block):
            trips = arith.SubIOp(end, begin).result
            one = arith.ConstantOp(index, 1).result
            first = bound(thread)
            last = bound(arith.AddIOp(thread, one).result)
            func.CallOp([], kernel, [first, last, *rest])
            func.ReturnOp([])
        return name

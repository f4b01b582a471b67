"""share-team: one team runs all of a program with several parallel kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.affine.mlir.regions import LOOPS
from polyblocks.codegen.walk import nested
from polyblocks_cpu.openmp import BARRIER
from polyblocks_cpu.team.accesses import Accesses
from polyblocks_cpu.team.barriers import Barriers
from polyblocks_cpu.team.kernels import EACH_CALL, TEAM_CALL, Names, is_shared
from polyblocks_cpu.team.replicate import Replicate

#: The function that calls the barrier, if there are others to wait for.
WAIT = "wait_for_team"


@dataclass(frozen=True)
class ShareTeamPass:
    """Make ``@main`` one region of a team, in which threads wait only where data crosses.

    A region for every parallel kernel starts and joins the team again and again. Here all threads
    run the program: each its piece of a parallel kernel, the first one what is not parallel, and
    every one the loops and branches of the program around kernels. A barrier stands before what
    touches memory that another thread may have touched, if one of them writes. Buffers of the
    workspace that share bytes are the same memory. Accesses to memory that only the same thread
    accessed before need no barrier.

    A program that comes to one parallel kernel only is left as it is.

    Before::

        func.func @main(%x, %y, %z) {
          func.call @k(%begin, %end, %x, %y) {polyblocks.team}   // writes %y
          func.call @serial(%y)
          func.call @l(%begin, %end, %y, %z) {polyblocks.team}

    After::

        func.func @main(%x, %y, %z) {
          func.call @main_team(%x, %y, %z, %c0, %c1) {polyblocks.each}

        func.func private @main_team(%x, %y, %z, %thread: index, %threads: index) {
          %first = arith.cmpi eq, %thread, %c0
          func.call @k(%begin, %end, %x, %y) {polyblocks.team}
          func.call @wait_for_team(%threads)
          scf.if %first { func.call @serial(%y) }
          func.call @wait_for_team(%threads)
          func.call @l(%begin, %end, %y, %z) {polyblocks.team}

    Conditions and bounds of the program's loops are computed by all threads; what they load is
    loaded by all, between barriers where it changes. Conditions on floats are computed by the
    first thread alone and handed over: threads may round differently. The stack of ``@main`` is
    memory that the threads share. ``@main`` itself returns the status, when all are through.

    Attributes:
        timed: let all threads wait behind every parallel kernel, so that it can be timed.
    """

    name: ClassVar[str] = "share-team"
    timed: bool = False

    def run(self, module: Any, context: Any) -> None:
        """Rewrite ``@main`` and append the function that threads run."""
        from polyblocks import mlir

        del context
        ir = mlir.ir
        with module.context, ir.Location.unknown():
            main = signature.main_of(module)
            if sum(_kernels_reached(block) for block in main.body.blocks) < 2:
                return
            status = _status(main)
            if status is None:
                return
            team = _Team(module, main, status.value)
            # Values of a branch cannot be what an affine index is made of.
            manager = mlir.passmanager.PassManager.parse("func.func(lower-affine)")
            manager.run(team.function.operation)
            guards = team.replicate()
            for call in nested(team.function.operation):
                if TEAM_CALL in call.attributes and not is_shared(call):
                    del call.attributes[TEAM_CALL]
            kernels = {
                op.operation.attributes["sym_name"].value: op.operation
                for op in module.body.operations
                if op.operation.name == "func.func"
            }
            barriers = Barriers(Accesses(kernels), guards, self.timed)
            barriers.function(team.function.body)
            after = (
                [op for op in nested(team.function.operation) if is_shared(op)]
                if self.timed
                else []
            )
            team.wait(barriers.before, after)


def _kernels_reached(block: Any) -> int:
    """How many parallel kernels a run through a block comes to; of a loop's, 2 for any number."""
    count = 0
    for op in block.operations:
        op = op.operation
        if is_shared(op):
            count += 1
        inside = [_kernels_reached(b) for region in op.regions for b in region.blocks]
        if any(inside):
            count += 2 if op.name in LOOPS else max(inside)
    return count


@dataclass(frozen=True)
class _Status:
    """The status that ``@main`` returns: the one element of a buffer on its stack, if any."""

    value: Any = None


def _status(main: Any) -> _Status | None:
    """None if it returns something else."""
    returned = [
        value for op in nested(main.operation) if op.name == "func.return" for value in op.operands
    ]
    if not returned:
        return _Status()
    if len(returned) > 1 or returned[0].owner.operation.name != "memref.load":
        return None
    load = returned[0].owner.operation
    if load.operands[0].owner.operation.name != "memref.alloca":
        return None
    return _Status(load.operands[0])


class _Team:
    """Moves the body of ``@main`` into a function for threads.

    Attributes:
        function: that function.

    Args:
        status: the buffer with what ``@main`` returns, or None.
    """

    def __init__(self, module: Any, main: Any, status: Any) -> None:
        from polyblocks import mlir

        ir = mlir.ir
        func = mlir.dialect("func")
        self._module = module
        entry = main.body.blocks[0]
        types = [argument.type for argument in entry.arguments]
        name = Names(module).new("main_team")
        with ir.InsertionPoint(module.body):
            function = func.FuncOp(name, ir.FunctionType.get(types, []), visibility="private")
        self.function = function
        for block in list(main.body.blocks):
            block.append_to(function.body)
        self._entry = function.body.blocks[0]
        self._main = main.add_entry_block()
        self._passed = list(self._main.arguments)
        self._call: Any = None
        returned = self._take_stack(status)
        for op in list(nested(function.operation)):
            if op.name == "func.return" and len(op.operands):
                load = op.operands[0].owner.operation
                with ir.InsertionPoint(op):
                    func.ReturnOp([])
                op.erase()
                if not list(load.results[0].uses):
                    load.erase()
        with ir.InsertionPoint(self._main):
            self._end = self._return(returned)
        self._say_type()

    def _say_type(self) -> None:
        """The type of the function is that of its arguments."""
        from polyblocks.mlir import ir

        types = [argument.type for argument in self._entry.arguments]
        self.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))

    def _take_stack(self, status: Any) -> Any:
        """Buffers on the stack, and what is put there at first, go to ``@main``."""
        from polyblocks.mlir import ir

        returned = None
        stack: dict[Any, Any] = {}
        first = True
        for op in [inner.operation for inner in self._entry.operations]:
            if op.name == "memref.alloca":
                with ir.InsertionPoint(self._main):
                    copy = op.clone()
                if status is not None and op.results[0] == status:
                    returned = copy.results[0]
                argument = self._pass(copy.results[0])
                op.results[0].replace_all_uses_with(argument)
                op.erase()
                stack[argument] = copy.results[0]
            elif first and op.name == "memref.store" and op.operands[1] in stack:
                self._initialize(op, stack[op.operands[1]])
            elif op.name != "arith.constant":
                first = False
        return returned

    def _initialize(self, store: Any, place: Any) -> None:
        """A constant that is stored before anything else."""
        from polyblocks.mlir import ir

        with ir.InsertionPoint(self._main):
            value, _, *indices = [
                place if v == store.operands[1] else v.owner.operation.clone().results[0]
                for v in store.operands
            ]
            ir.Operation.create("memref.store", operands=[value, place, *indices])
        store.erase()

    def _pass(self, value: Any) -> Any:
        """Hand a value of ``@main`` over; what it is in the function."""
        from polyblocks.mlir import ir

        self._passed.append(value)
        return self._entry.add_argument(value.type, ir.Location.unknown())

    def _return(self, status: Any) -> Any:
        from polyblocks import mlir

        ir = mlir.ir
        arith, func, memref = (mlir.dialect(n) for n in ("arith", "func", "memref"))
        if status is None:
            return func.ReturnOp([]).operation
        at = arith.ConstantOp(ir.IndexType.get(), 0)
        value = memref.LoadOp(status, [at.result]).result
        func.ReturnOp([value])
        return at.operation

    def replicate(self) -> set[Any]:
        """Guard what one thread does, and call the function from ``@main``; the guards."""
        from polyblocks import mlir

        ir = mlir.ir
        arith, func, memref = (mlir.dialect(n) for n in ("arith", "func", "memref"))
        index = ir.IndexType.get()
        # Last of the arguments in the end; memory that threads share comes before.
        thread = self._entry.add_argument(index, ir.Location.unknown())
        with ir.InsertionPoint.at_block_begin(self._entry):
            none = arith.ConstantOp(index, 0).result
            first = arith.CmpIOp(arith.CmpIPredicate.eq, thread, none).result

        def share(type_: Any) -> Any:
            with ir.InsertionPoint.at_block_begin(self._main):
                place = memref.AllocaOp(ir.MemRefType.get([1], type_), [], []).result
            return self._pass(place)

        work = Replicate(first, share)
        work.function(self.function.body)
        last = self._entry.add_argument(index, ir.Location.unknown())
        thread.replace_all_uses_with(last)
        self._entry.erase_argument(thread.arg_number)
        self._threads = self._entry.add_argument(index, ir.Location.unknown())
        self._say_type()
        with ir.InsertionPoint(self._end):
            alone = [arith.ConstantOp(index, number).result for number in (0, 1)]
            name = self.function.operation.attributes["sym_name"].value
            call = func.CallOp([], name, [*self._passed, *alone])
        call.operation.attributes[EACH_CALL] = ir.UnitAttr.get()
        return work.guards

    def wait(self, before: Any, after: Any) -> None:
        """Let threads wait for each other before some operations, and behind others."""
        from polyblocks import mlir

        ir = mlir.ir
        func = mlir.dialect("func")
        if not before and not after:
            return
        name = _declare_wait(self._module)
        for op in before:
            with ir.InsertionPoint(op):
                func.CallOp([], name, [self._threads])
        for op in after:
            with ir.InsertionPoint.after(op):
                func.CallOp([], name, [self._threads])


def _declare_wait(module: Any) -> str:
    """A function of the number of threads: of one, nothing waits, and there may be no team.

    The barrier of a team that a caller of the program belongs to would wait for that team.
    """
    from polyblocks import mlir

    ir = mlir.ir
    arith, func, scf = mlir.dialect("arith"), mlir.dialect("func"), mlir.dialect("scf")
    index = ir.IndexType.get()
    name = Names(module).new(WAIT)
    with ir.InsertionPoint.at_block_begin(module.body):
        func.FuncOp(BARRIER, ir.FunctionType.get([], []), visibility="private")
    with ir.InsertionPoint(module.body):
        wait = func.FuncOp(name, ir.FunctionType.get([index], []), visibility="private")
    block = wait.add_entry_block()
    with ir.InsertionPoint(block):
        one = arith.ConstantOp(index, 1).result
        several = arith.CmpIOp(arith.CmpIPredicate.ugt, block.arguments[0], one).result
        branch = scf.IfOp(several)
        func.ReturnOp([])
    with ir.InsertionPoint(branch.then_block):
        func.CallOp([], BARRIER, [])
        scf.YieldOp([])
    return name

"""lower-asserts: a failed run-time check becomes the status that the program returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from polyblocks import signature
from polyblocks.attributes import CHECKS_ATTRIBUTE
from polyblocks.codegen.checks import guard_tail, needed
from polyblocks.codegen.walk import nested


@dataclass(frozen=True)
class LowerAssertsPass:
    """Guard what follows a ``cf.assert`` in its block, and report the failure.

    The ops after the assertion rely on it (an index that is in bounds), so they must not run when
    it fails. Values that they give to the block's terminator become zero then. A failure in
    ``@main``'s own block ends the program; there the block is split, since values inside of an
    ``scf.if`` could not bound affine loops any more. The status lives on ``@main``'s stack;
    ``@main`` returns it, and a ``while`` loop with a check ends when it is set. A ``status``
    argument is replaced by it.

    Before::

        cf.assert %ok, "index out of range"
        memref.store %v, %m[%i] : memref<8xf32>

    After::

        scf.if %ok {
          memref.store %v, %m[%i] : memref<8xf32>
        } else {
          memref.store %code, %status[] : memref<i32>
        }
    """

    name: ClassVar[str] = "lower-asserts"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the module in place."""
        from polyblocks import mlir

        ir = mlir.ir
        del context
        with module.context, ir.Location.unknown():
            main = signature.main_of(module)
            given = _status_argument(module)
            checked = _checked(main)
            if given is None and not checked:
                return
            with _held_back(main, checked):
                # Bounds that are known to hold need no check.
                mlir.run_textual(module, "func.func(sccp,cse)", verify=False)
            status = _own_status(main)
            if given is not None:
                _drop_status_argument(module, main, given, status)
            end = _return_status(main, status)
            inside = (op for top in checked for op in nested(top))
            found = [op for op in inside if op.name in ("cf.assert", "scf.while")]
            _end_loops([op for op in found if op.name == "scf.while"], status)
            asserts = needed([op for op in found if op.name == "cf.assert"])
            messages: dict[str, int] = {}
            # Inner and later ones first: each then moves a finished tail.
            for op in reversed(asserts):
                message = ir.StringAttr(op.attributes["msg"]).value
                code = messages.setdefault(message, len(messages) + 1)
                if op.block.owner.operation == main.operation:
                    _leave(op, status, code, end)
                else:
                    guard_tail(op, partial(_store, status, code))
            module.operation.attributes[CHECKS_ATTRIBUTE] = ir.ArrayAttr.get(
                [ir.StringAttr.get(message) for message in messages]
            )


def _asserts(op: Any) -> bool:
    return any(inner.name == "cf.assert" for inner in nested(op))


def _checked(main: Any) -> list[Any]:
    """The operations of ``@main``'s block that are a check or have one inside, in order."""
    found: dict[Any, None] = {}
    for op in nested(main.operation):
        if op.name == "cf.assert":
            while op.parent.operation != main.operation:
                op = op.parent.operation
            found[op] = None
    return list(found)


@contextmanager
def _held_back(main: Any, checked: Sequence[Any]) -> Iterator[None]:
    """Let ``@main`` be without the loops that check nothing: most of a program are these.

    An operation that MLIR does not know stands for each meanwhile, so that no element that is
    loaded before it counts as known behind it.
    """
    from polyblocks.mlir import ir

    holder = ir.Operation.create("builtin.module", regions=1, ip=False)
    block = holder.regions[0].blocks.append()
    held = []
    for op in [op.operation for op in main.body.blocks[0].operations]:
        if len(op.regions) and not len(op.results) and op not in checked:
            held.append((ir.Operation.create("polyblocks.held", ip=ir.InsertionPoint(op)), op))
            block.append(op)
    try:
        yield
    finally:
        for place, op in held:
            op.move_before(place)
            place.erase()


def _end_loops(loops: Sequence[Any], status: Any) -> None:
    """Let loops whose condition may never become false end when a check in them has failed."""
    from polyblocks import mlir

    ir = mlir.ir
    arith, memref = mlir.dialect("arith"), mlir.dialect("memref")
    for op in loops:
        if not _asserts(op):
            continue
        block = op.regions[0].blocks[0]
        condition = block.operations[len(block.operations) - 1].operation
        with ir.InsertionPoint(condition), op.location:
            zero = arith.ConstantOp(ir.IndexType.get(), 0).result
            code = memref.LoadOp(status, [zero]).result
            none = arith.ConstantOp(code.type, 0).result
            fine = arith.CmpIOp(arith.CmpIPredicate.eq, code, none).result
            condition.operands[0] = arith.AndIOp(condition.operands[0], fine).result


def _status_argument(module: Any) -> int | None:
    roles = [row["role"] for row in signature.rows(module)]
    return roles.index("status") if "status" in roles else None


def _own_status(main: Any) -> Any:
    """A zero-initialized ``memref<1xi32>`` on the stack."""
    from polyblocks import mlir

    ir = mlir.ir
    arith, memref = mlir.dialect("arith"), mlir.dialect("memref")
    i32 = ir.IntegerType.get_signless(32)
    with ir.InsertionPoint.at_block_begin(main.body.blocks[0]):
        status = memref.AllocaOp(ir.MemRefType.get([1], i32), [], []).result
        zero = arith.ConstantOp(ir.IndexType.get(), 0).result
        memref.StoreOp(arith.ConstantOp(i32, 0).result, status, [zero])
    return status


def _return_status(main: Any, status: Any) -> Any:
    """A last block that returns the status; ``@main`` ends with a branch to it."""
    from polyblocks import mlir

    ir = mlir.ir
    arith, memref, func = mlir.dialect("arith"), mlir.dialect("memref"), mlir.dialect("func")
    block = main.body.blocks[0]
    end = block.create_after()
    with ir.InsertionPoint(end):
        zero = arith.ConstantOp(ir.IndexType.get(), 0).result
        func.ReturnOp([memref.LoadOp(status, [zero]).result])
    old = block.operations[len(block.operations) - 1]
    with ir.InsertionPoint(old):
        mlir.dialect("cf").BranchOp([], end)
    old.operation.erase()
    i32 = ir.IntegerType.get_signless(32)
    main.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([a.type for a in block.arguments], [i32])
    )
    return end


def _drop_status_argument(module: Any, main: Any, position: int, status: Any) -> None:
    from polyblocks.mlir import ir

    block = main.body.blocks[0]
    block.arguments[position].replace_all_uses_with(status)
    rows = signature.rows(module)
    del rows[position]
    block.erase_argument(position)
    main.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([a.type for a in block.arguments], main.type.results)
    )
    signature.set_rows(module, rows)


def _leave(op: Any, status: Any, code: int, end: Any) -> None:
    """Split ``@main``'s block: go on behind the check, or set the status and end."""
    from polyblocks import mlir

    ir = mlir.ir
    cf = mlir.dialect("cf")
    operations = [other.operation for other in op.block.operations]
    tail = operations[operations.index(op) + 1 :]
    rest, failed = op.block.create_after(), end.create_before()
    for other in tail:
        rest.append(other)
    with op.location:
        with ir.InsertionPoint(failed):
            _store(status, code)
            cf.BranchOp([], end)
        with ir.InsertionPoint(op):
            cf.CondBranchOp(op.operands[0], [], [], rest, failed)
    op.erase()


def _store(status: Any, code: int) -> None:
    from polyblocks import mlir

    ir = mlir.ir
    arith = mlir.dialect("arith")
    zero = arith.ConstantOp(ir.IndexType.get(), 0).result
    value = arith.ConstantOp(ir.IntegerType.get_signless(32), code).result
    mlir.dialect("memref").StoreOp(value, status, [zero])

"""lower-checks: a failed run-time check of a kernel sets a word in global memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from polyblocks import mlir, signature
from polyblocks.affine.mlir.json_attributes import read_json, write_json
from polyblocks.attributes import CHECKS_ATTRIBUTE
from polyblocks.codegen.checks import guard_tail, needed
from polyblocks.codegen.gpu.plan import kernels, name_of, read_launches, write_launches
from polyblocks.codegen.walk import nested
from polyblocks.program import ArraySpec

#: Ops that all threads of a block or a warp have to come to.
COLLECTIVE = frozenset({"gpu.barrier", "gpu.shuffle", "gpu.subgroup_reduce", "gpu.all_reduce"})


@dataclass(frozen=True)
class LowerChecksPass:
    """Guard what follows a ``cf.assert`` in its block, and report the failure.

    The ops after a check rely on it (an index that is in bounds), so they do not run where it
    fails. Barriers and shuffles do, since the other threads wait for them, and stores to the
    memory of a block, which they read; skipped values are zero. A ``while`` loop
    with a check ends when one has failed. Kernels with checks get the status word as one more
    argument. Its final value does not depend on the order in which threads run: it is the
    number of the program's first check that failed.

    Before::

        cf.assert %ok, "index out of range"
        memref.store %v, %m[%i] : memref<8xf32>

    After::

        scf.if %ok {
          memref.store %v, %m[%i] : memref<8xf32>
        } else {
          memref.atomic_rmw maxu %code, %status[%c0] : (i32, memref<1xi32>) -> i32
        }
    """

    name: ClassVar[str] = "lower-checks"

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite kernels and plan in place; returns whether there was a check."""
        ir = mlir.ir
        del context
        checking = [kernel for kernel in kernels(module) if _asserts(kernel)]
        if not checking:
            return False
        # Bounds that are known to hold need no check.
        mlir.run_textual(module, "gpu.module(gpu.func(sccp,cse))")
        with module.context, ir.Location.unknown():
            found = {name_of(k): needed(_asserts(k)) for k in checking}
            launches = read_launches(module)
            messages: list[str] = read_json(module, CHECKS_ATTRIBUTE, [])
            number = _status_row(module)
            order = list(dict.fromkeys(row["kernel"] for row in launches))
            checking.sort(key=lambda kernel: order.index(name_of(kernel)))
            # The word holds the largest number, which is that of the program's first check.
            for kernel in reversed(checking):
                name = name_of(kernel)
                if found[name]:
                    _lower(kernel, found[name], messages)
                    for row in launches:
                        if row["kernel"] == name:
                            row["arguments"].append({"argument": number})
            write_launches(module, launches)
            write_json(module, CHECKS_ATTRIBUTE, messages)
        return True


def _asserts(kernel: Any) -> list[Any]:
    return [op for op in nested(kernel) if op.name == "cf.assert"]


def _status_row(module: Any) -> int:
    """Number of the program's argument that is the status word; it is added if missing."""
    rows = signature.rows(module)
    roles = [row["role"] for row in rows]
    if "status" not in roles:
        rows.append(signature.entry("status", "status", ArraySpec.contiguous((1,), "int32")))
        signature.keep_rows(module, rows)
        return len(roles)
    return roles.index("status")


def _message(op: Any) -> str:
    return str(mlir.ir.StringAttr(op.attributes["msg"]).value)


def _lower(kernel: Any, asserts: list[Any], messages: list[str]) -> None:
    status = _add_status(kernel)
    _end_loops(kernel, status)
    # Inner and later ones first: each then moves a finished tail.
    for op in reversed(asserts):
        if _message(op) not in messages:
            messages.append(_message(op))
        code = messages.index(_message(op)) + 1
        block = [other.operation for other in op.block.operations]
        after = set(block[block.index(op) + 1 :])
        guard_tail(op, partial(_raise_status, status, code), partial(_stays, after))


def _stays(after: set[Any], op: Any) -> bool:
    """Whether threads whose check failed run an op too.

    So do those that store what others of their block read, at a place that is known before the
    check; ``after`` are the ops behind it.
    """
    if op in after and op.name == "memref.store":
        shared = "workgroup" in str(op.operands[1].type.memory_space)
        return shared and not any(index.owner in after for index in list(op.operands)[2:])
    if any(isinstance(result.type, mlir.ir.MemRefType) for result in op.results):
        return True
    return any(inner.name in COLLECTIVE for inner in nested(op))


def _add_status(kernel: Any) -> Any:
    """A last argument of a ``gpu.func``, in front of its buffers."""
    ir = mlir.ir
    block = kernel.regions[0].blocks[0]
    old = kernel.attributes["function_type"].value
    count = len(old.inputs)
    buffers = list(block.arguments)[count:]
    type_ = ir.MemRefType.get([1], ir.IntegerType.get_signless(32))
    status = block.add_argument(type_, kernel.location)
    for buffer in buffers:
        buffer.replace_all_uses_with(block.add_argument(buffer.type, kernel.location))
    for _ in buffers:
        block.erase_argument(count)
    inputs = [*old.inputs, type_]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))
    if "arg_attrs" in kernel.attributes:
        attributes = [*ir.ArrayAttr(kernel.attributes["arg_attrs"]), ir.DictAttr.get({})]
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
    return status


def _raise_status(status: Any, code: int) -> Any:
    """``status = max(status, code)``; returns what it was."""
    ir = mlir.ir
    arith = mlir.dialect("arith")
    i32 = ir.IntegerType.get_signless(32)
    zero = arith.ConstantOp(ir.IndexType.get(), 0).result
    value = arith.ConstantOp(i32, code).result
    kind = mlir.dialect("arith").AtomicRMWKind.maxu
    return mlir.dialect("memref").AtomicRMWOp(kind, value, status, [zero]).result


def _end_loops(kernel: Any, status: Any) -> None:
    """Let loops whose condition may never become false end when a check has failed."""
    ir = mlir.ir
    arith = mlir.dialect("arith")
    for op in list(nested(kernel)):
        if op.name != "scf.while" or not _asserts(op):
            continue
        block = op.regions[0].blocks[0]
        condition = block.operations[len(block.operations) - 1].operation
        with ir.InsertionPoint(condition), op.location:
            code = _raise_status(status, 0)
            none = arith.ConstantOp(code.type, 0).result
            fine = arith.CmpIOp(arith.CmpIPredicate.eq, code, none).result
            condition.operands[0] = arith.AndIOp(condition.operands[0], fine).result

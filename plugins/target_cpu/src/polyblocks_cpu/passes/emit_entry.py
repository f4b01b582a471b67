"""emit-entry: the one exported function, with the C interface that the runtime calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks_cpu.openmp import LIMIT

#: Name of the exported function.
ENTRY = "polyblocks_main"


@dataclass(frozen=True)
class EmitEntryPass:
    """Unpack an array of pointers and call ``@main``.

    Runs on the LLVM dialect. Before::

        llvm.func @main(%x: !llvm.ptr, %y: !llvm.ptr, %num_threads: i32) -> i32

    After, besides it::

        llvm.mlir.global external @polyblocks_thread_limit() : i32
        llvm.func @polyblocks_main(%args: !llvm.ptr, %num_threads: i32) -> i32

    The number of threads is cut to the limit, which the process sets. The result is the status
    that ``@main`` returns, 0 if it returns none.
    """

    name: ClassVar[str] = "emit-entry"

    def run(self, module: Any, context: Any) -> None:
        """Append the function to the module.

        Raises:
            ValueError: ``@main`` is missing, or an argument did not become a pointer.
        """
        from polyblocks import mlir

        del context
        ir = mlir.ir
        with module.context, ir.Location.unknown():
            arguments, returns = _signature(module)
            snippet = mlir.parse(_text(arguments, returns), module.context)
            with ir.InsertionPoint(module.body):
                for op in list(snippet.body.operations)[1:]:
                    op.operation.clone()


def _signature(module: Any) -> tuple[int, bool]:
    """How many pointers ``@main`` takes, and whether it returns a status."""
    from polyblocks import mlir

    for op in module.body.operations:
        attributes = op.operation.attributes
        if op.operation.name != "llvm.func" or attributes["sym_name"].value != "main":
            continue
        block = op.operation.regions[0].blocks[0]
        types = [str(a.type) for a in block.arguments]
        if types[-1:] != ["i32"] or any(t != "!llvm.ptr" for t in types[:-1]):
            raise ValueError(f"@main takes pointers and a number of threads, not {types}")
        type_ = str(mlir.ir.TypeAttr(attributes["function_type"]).value)
        return len(types) - 1, type_.startswith("!llvm.func<i32 ")
    raise ValueError("the module has no llvm.func @main")


def _text(pointers: int, returns: bool) -> str:
    types = ", ".join(["!llvm.ptr"] * pointers + ["i32"])
    result = "i32" if returns else "()"
    loads = []
    for i in range(pointers):
        loads.append(
            f"%p{i} = llvm.getelementptr inbounds %args[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
        )
        loads.append(f"%a{i} = llvm.load %p{i} invariant : !llvm.ptr -> !llvm.ptr")
    loads += [
        f"%limit_address = llvm.mlir.addressof @{LIMIT} : !llvm.ptr",
        "%limit = llvm.load %limit_address : !llvm.ptr -> i32",
        "%threads = llvm.intr.smin(%num_threads, %limit) : (i32, i32) -> i32",
    ]
    values = ", ".join([f"%a{i}" for i in range(pointers)] + ["%threads"])
    call = f"llvm.call @main({values}) : ({types}) -> {result}"
    status = (
        f"%status = {call}" if returns else f"%status = llvm.mlir.constant(0 : i32) : i32\n{call}"
    )
    body = "\n".join([*loads, status, "llvm.return %status : i32"])
    declared = " -> i32" if returns else ""
    return (
        f"llvm.func @main({types}){declared}\n"
        f"llvm.mlir.global external @{LIMIT}() {{addr_space = 0 : i32}} : i32\n"
        f"llvm.func @{ENTRY}(%args: !llvm.ptr {{llvm.readonly}}, %num_threads: i32) -> i32 "
        f"{{\n{body}\n}}\n"
    )

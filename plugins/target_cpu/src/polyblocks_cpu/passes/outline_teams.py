"""outline-teams: OpenMP regions become functions that the OpenMP runtime calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.codegen.walk import nested
from polyblocks_cpu.team.kernels import TRIPS

#: Calls a function once on each thread of a team: ``void (void (*)(void *), void *, unsigned
#: threads, unsigned flags)``. GCC's interface, which LLVM's runtime has as well.
PARALLEL = "GOMP_parallel"


@dataclass(frozen=True)
class OutlineTeamsPass:
    """Let every runtime run the regions: GCC's, which a framework may have loaded, and LLVM's.

    MLIR's own lowering of a region calls LLVM's runtime only, and two runtimes in one process
    take the cores from each other.

    Runs on the LLVM dialect. Before::

        llvm.func @k_team(%begin: i64, %end: i64, %x: !llvm.ptr, %n: i32) {
          ...
          omp.parallel num_threads(%n : i32) { ... %begin ... %x ... omp.terminator }

    After::

        llvm.func @k_team(...) {
          %data = llvm.alloca ... x !llvm.struct<(i64, i64, ptr)>
          ... // %begin, %end, %x are stored to it
          llvm.call @GOMP_parallel(@k_team_region, %data, %n, 0)

        llvm.func @k_team_region(%data: !llvm.ptr) {
          ... // loaded
          ... %begin ... %x ...
          llvm.return
        }
    """

    name: ClassVar[str] = "outline-teams"

    def run(self, module: Any, context: Any) -> None:
        """Rewrite the module in place."""
        from polyblocks.mlir import ir

        del context
        with module.context, ir.Location.unknown():
            teams = [
                (function.operation, op)
                for function in module.body.operations
                # Kernels, which are most of the code, have no teams.
                if TRIPS not in function.operation.attributes
                for op in nested(function.operation)
                if op.name == "omp.parallel"
            ]
            if teams:
                _declare(module)
            taken = {
                op.operation.attributes["sym_name"].value
                for op in module.body.operations
                if "sym_name" in op.operation.attributes
            }
            for function, parallel in teams:
                name = f"{function.attributes['sym_name'].value}_region"
                while name in taken:
                    name += "_"
                taken.add(name)
                captured = _captured(parallel)
                _outline(module, name, parallel, captured)
                _call(function, name, parallel, captured)
                parallel.erase()


def _declare(module: Any) -> None:
    from polyblocks import mlir

    text = f"llvm.func @{PARALLEL}(!llvm.ptr, !llvm.ptr, i32, i32)"
    # An op does not keep its module: without a name that would be freed before it is copied from.
    parsed = mlir.parse(text, module.context)
    with mlir.ir.InsertionPoint.at_block_begin(module.body):
        parsed.body.operations[0].operation.clone()


def _captured(parallel: Any) -> list[Any]:
    """Values from around that a region uses, in the order of their uses."""
    inner = [op for op in nested(parallel) if op != parallel]
    inside = {result for op in inner for result in op.results}
    used = (operand for op in inner for operand in op.operands)
    return list(dict.fromkeys(value for value in used if value not in inside))


def _fields(captured: list[Any]) -> Any:
    from polyblocks.mlir import ir

    return ir.Type.parse(f"!llvm.struct<({', '.join(str(value.type) for value in captured)})>")


def _outline(module: Any, name: str, parallel: Any, captured: list[Any]) -> None:
    """The region as a function of the address of what it uses from around."""
    from polyblocks.mlir import ir

    pointer = ir.Type.parse("!llvm.ptr")
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create(
            "llvm.func",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "function_type": ir.Attribute.parse("!llvm.func<void (ptr)>"),
                "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
                "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
            },
            regions=1,
        )
    block = function.regions[0].blocks.append(pointer)
    # A region of several blocks would be one that branches; ours compute a piece and call.
    (body,) = parallel.regions[0].blocks
    fields = _fields(captured)
    known: dict[Any, Any] = {}
    with ir.InsertionPoint(block):
        for number, value in enumerate(captured):
            address = _field(block.arguments[0], fields, number)
            known[value] = ir.Operation.create("llvm.load", [value.type], [address]).results[0]
        for op in list(body.operations)[:-1]:
            new = op.operation.clone()
            for position, operand in enumerate(op.operation.operands):
                new.operands[position] = known[operand]
            known.update(zip(op.operation.results, new.operation.results, strict=True))
        ir.Operation.create("llvm.return")


def _call(function: Any, name: str, parallel: Any, captured: list[Any]) -> None:
    """The call of the runtime, before the region."""
    from polyblocks.mlir import ir

    pointer = ir.Type.parse("!llvm.ptr")
    fields = _fields(captured)
    # Elsewhere than in the first block it would move the stack pointer at every call.
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        data = ir.Operation.create(
            "llvm.alloca",
            results=[pointer],
            operands=[_constant(1)],
            attributes={"elem_type": ir.TypeAttr.get(fields)},
        ).results[0]
    with ir.InsertionPoint(parallel):
        for number, value in enumerate(captured):
            ir.Operation.create("llvm.store", operands=[value, _field(data, fields, number)])
        region = ir.Operation.create(
            "llvm.mlir.addressof",
            results=[pointer],
            attributes={"global_name": ir.FlatSymbolRefAttr.get(name)},
        ).results[0]
        ir.Operation.create(
            "llvm.call",
            operands=[region, data, parallel.operands[0], _constant(0)],
            attributes={
                "callee": ir.FlatSymbolRefAttr.get(PARALLEL),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([4, 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
        )


def _field(data: Any, fields: Any, number: int) -> Any:
    from polyblocks.mlir import ir

    return ir.Operation.create(
        "llvm.getelementptr",
        results=[data.type],
        operands=[data],
        attributes={
            "elem_type": ir.TypeAttr.get(fields),
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([0, number]),
        },
    ).results[0]


def _constant(number: int) -> Any:
    from polyblocks.mlir import ir

    i32 = ir.IntegerType.get_signless(32)
    return ir.Operation.create(
        "llvm.mlir.constant",
        results=[i32],
        attributes={"value": ir.IntegerAttr.get(i32, number)},
    ).results[0]

"""form-regions: loops and branches of the program are separated from loops of nests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.attributes import REGION_ATTRIBUTE
from polyblocks.mlir import constant_integer
from polyblocks.passes import facts
from polyblocks.passes.tensor.control_flow import (
    CONTROL_FLOW,
    LOOPS,
    attributes_of,
    control_flow_of,
    terminator,
)


@dataclass(frozen=True)
class FormRegionsPass:
    """Mark the program's loops and branches, while there are no others.

    A loop that runs a number of times known now becomes an ``affine.for``, so that its variable
    may occur in the indices of nests. Offsets that are computed from such variables, and stay in
    bounds, are written as affine expressions of them; conditions that are always the same are
    constants. Copies of a buffer to itself are removed.

    Before::

        scf.for %i = %c0 to %c10 step %c1 {
          %k = arith.index_cast %i : index to i32
          %l = arith.maxsi %k, %c0_i32 : i32
          %o = arith.index_cast %l : i32 to index
          %row = memref.subview %x[%o, 0] [1, 64] [1, 1] ... }

    After::

        affine.for %i = 0 to 10 {
          %row = memref.subview %x[%i, 0] [1, 64] [1, 1] ... } {polyblocks.region = "loop1"}
    """

    name: ClassVar[str] = "form-regions"
    needs: ClassVar[frozenset[str]] = frozenset({facts.BUFFERS, facts.PROGRAM_LOOPS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there was control flow."""
        from polyblocks import mlir, signature
        from polyblocks.affine.mlir.regions import nested_regions

        ir = mlir.ir
        found = control_flow_of(module)
        if not found:
            return False
        # So that views of the same place are the same value.
        mlir.run_textual(module, "canonicalize,cse")
        found = control_flow_of(module)
        with module.context, ir.Location.unknown():
            _name(signature.main_of(module).body.blocks[0], "")
            for op in found:
                if op.name in LOOPS:
                    name = op.attributes[REGION_ATTRIBUTE].value
                    trips = _trips(op) if op.name == "scf.for" else None
                    known = {} if trips is None else {"trips": trips}
                    context.decide(self.name, name, "repeats", **known)
            for op in reversed(found):
                if op.name == "scf.for" and _trips(op) is not None:
                    _counted(op)
            copies: list[Any] = []

            def collect(op: Any) -> Any:
                if op.name == "memref.copy" and op.operands[0] == op.operands[1]:
                    copies.append(op)
                return ir.WalkResult.ADVANCE

            module.operation.walk(collect)
            for op in copies:
                op.erase()
            main = signature.main_of(module).body.blocks[0]
            for op in nested_regions(main):
                if op.name == "affine.for":
                    break
            else:
                return True
            _raise(main)
        return True


def _name(block: Any, prefix: str) -> None:
    """Mark the loops and branches in a block; names of what is in them begin with theirs."""
    from polyblocks.mlir import ir

    counts: dict[str, int] = {}
    for op in block.operations:
        op = op.operation
        if op.name not in CONTROL_FLOW:
            continue
        kind = "loop" if op.name in LOOPS else "branch"
        counts[kind] = counts.get(kind, 0) + 1
        name = f"{prefix}{kind}{counts[kind]}"
        op.attributes[REGION_ATTRIBUTE] = ir.StringAttr.get(name)
        for region in op.regions:
            for inner in region.blocks:
                _name(inner, f"{name}_")


def _counted(op: Any) -> None:
    """Write a loop with constant bounds as an ``affine.for`` from 0 in steps of 1."""
    from polyblocks.mlir import dialect, ir

    low, step = constant_integer(op.operands[0]), constant_integer(op.operands[2])
    affine, trips = dialect("affine"), _trips(op)
    assert low is not None
    assert step is not None
    with ir.InsertionPoint(op), op.location:
        loop = affine.AffineForOp(0, trips, 1, list(op.operands)[3:])
        for name, value in attributes_of(op).items():
            loop.operation.attributes[name] = value
    old, new = op.regions[0].blocks[0], loop.body
    with ir.InsertionPoint(new):
        variable = loop.induction_variable
        if (low, step) != (0, 1):
            expr = ir.AffineDimExpr.get(0) * step + low
            variable = _apply(ir.AffineMap.get(1, 0, [expr]), [variable])
        for argument, value in zip(
            old.arguments, [variable, *list(new.arguments)[1:]], strict=True
        ):
            argument.replace_all_uses_with(value)
        for inner in list(old.operations):
            new.append(inner.operation)
        end = terminator(new)
        values = list(end.operands)
        end.erase()
        affine.AffineYieldOp(values)
    for result, value in zip(op.results, loop.results, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def _trips(op: Any) -> int | None:
    """How often an ``scf.for`` runs its body, if that is known."""
    low, high, step = (constant_integer(v) for v in list(op.operands)[:3])
    if low is None or high is None or step is None:
        return None
    return max(0, -((low - high) // step))


def _apply(amap: Any, operands: list[Any]) -> Any:
    from polyblocks.mlir import ir

    op = ir.Operation.create(
        "affine.apply",
        results=[ir.IndexType.get()],
        operands=operands,
        attributes={"map": ir.AffineMapAttr.get(amap)},
    )
    return op.results[0]


def _raise(main: Any) -> None:
    """Write integers that are affine in variables of loops as such where an index is wanted."""
    from polyblocks.affine.analysis.known_values import KnownValues
    from polyblocks.affine.expr import Expr, Var
    from polyblocks.affine.mlir.affine_maps import expr_of
    from polyblocks.affine.mlir.writer import affine_expr
    from polyblocks.affine.model import Op, Value
    from polyblocks.mlir import dialect, ir

    known_values = KnownValues()
    values: dict[Any, Value] = {}

    originals: dict[Value, Any] = {}

    def value_of(value: Any) -> Value:
        if value not in values:
            values[value] = Value(value.type)
            originals[values[value]] = value
        return values[value]

    def visit(block: Any) -> None:
        for op in list(block.operations):
            op = op.operation
            if REGION_ATTRIBUTE in op.attributes:
                if op.name == "affine.for":
                    amap = op.attributes["upperBoundMap"].value
                    variable = op.regions[0].blocks[0].arguments[0]
                    var = Var(int(amap.results[0].value), value=variable)
                    known_values.exprs[value_of(variable)] = Expr.of(var)
                for region in op.regions:
                    for inner in region.blocks:
                        visit(inner)
            elif op.name == "affine.apply":
                known = [known_values.exprs.get(value_of(v)) for v in op.operands]
                dims = [e for e in known if e is not None]
                if len(dims) == len(known):
                    amap = op.attributes["map"].value
                    (expr,) = amap.results
                    expr = expr_of(expr, dims[: amap.n_dims], dims[amap.n_dims :])
                    known_values.exprs[value_of(op.results[0])] = expr
            elif op.name.startswith("arith.") and len(op.results) == 1:
                learn(op)

    def learn(op: Any) -> None:
        operands = [value_of(v) for v in op.operands]
        result = value_of(op.results[0])
        known_values.learn(Op(op.name, operands, attributes_of(op), [result]))
        same = known_values.same.get(result)
        if result in known_values.truths:
            with ir.InsertionPoint(op), op.location:
                truth = ir.IntegerAttr.get(op.results[0].type, int(known_values.truths[result]))
                constant = dialect("arith").ConstantOp(op.results[0].type, truth).result
            known_values.truths[value_of(constant)] = known_values.truths[result]
            op.results[0].replace_all_uses_with(constant)
        elif same is not None:
            op.results[0].replace_all_uses_with(originals[same])
        expr = known_values.exprs.get(result if same is None else same)
        if expr is None or op.name == "arith.constant":
            return
        known_values.exprs[result] = expr
        if not isinstance(op.results[0].type, ir.IndexType) or expr.is_constant:
            return
        order: dict[Var, int] = {}
        for var in expr.variables():
            order.setdefault(var, len(order))
        with ir.InsertionPoint(op), op.location:
            dims = {var: ir.AffineDimExpr.get(i) for var, i in order.items()}
            amap = ir.AffineMap.get(len(order), 0, [affine_expr(expr, dims)])
            new = _apply(amap, [var.value for var in order])
        op.results[0].replace_all_uses_with(new)

    visit(main)

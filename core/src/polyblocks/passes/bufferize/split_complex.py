"""split-complex: a complex number in memory is two real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from polyblocks.mlir import dialect, ir, run_textual
from polyblocks.passes import facts
from polyblocks.signature import main_of

_LOADS = ("affine.load", "memref.load")
_STORES = ("affine.store", "memref.store")
#: Operations whose operands and results only change their types.
_RETYPED = ("memref.alloc", "memref.copy")
_SCALARS = ("complex.re", "complex.im", "complex.create", "complex.constant", "arith.select")

#: Real and imaginary part.
_Pair = tuple[Any, Any]


@dataclass(frozen=True)
class SplitComplexPass:
    """Buffers of complex numbers become buffers of their parts, with a last dimension of 2.

    Loads and stores of parts are vectorized and fused like other code on real numbers. A program
    with complex numbers in other operations than those of nests (a loop of the program that carries
    one, constant arrays of them) is left as it is.

    Before::

        %z = affine.load %a[%i] : memref<8xcomplex<f32>>
        %x = complex.re %z : complex<f32>

    After::

        %x = affine.load %a[%i, 0] : memref<8x2xf32>
    """

    name: ClassVar[str] = "split-complex"
    needs: ClassVar[frozenset[str]] = frozenset({facts.BUFFERS, facts.AFFINE_LOOPS})

    def run(self, module: Any, context: Any) -> bool:
        """Rewrite in place; returns whether there were complex numbers, and all were split."""
        del context
        if not _has_complex(module):
            return False
        touched = _touched(module)
        with module.context, ir.Location.unknown():
            if any(_is_arithmetic(op) for op in touched):
                run_textual(module, "func.func(convert-complex-to-standard)", verify=False)
                touched = _touched(module)
            if not all(_is_known(op) for op in touched):
                return False
            main = main_of(module)
            block = main.regions[0].blocks[0]
            for argument in block.arguments:
                argument.set_type(_split(argument.type))
            kind = ir.FunctionType.get([a.type for a in block.arguments], [])
            main.attributes["function_type"] = ir.TypeAttr.get(kind)
            _rewrite(touched)
        return True


def _has_complex(module: Any) -> bool:
    """Whether any operation makes complex numbers, or a function is given some."""
    found = False

    def visit(op: Any) -> Any:
        nonlocal found
        kinds = [v.type for v in op.results]
        if op.name == "memref.global":
            kinds.append(op.attributes["type"].value)
        elif op.name == "func.func":
            kinds += op.attributes["function_type"].value.inputs
        found = any(map(_is_complex, kinds))
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _touched(module: Any) -> list[Any]:
    """The operations with complex operands or results, in order."""
    found: list[Any] = []
    on = ir.WalkResult.ADVANCE

    def visit(op: Any) -> Any:
        kinds = [v.type for v in op.operands] + [v.type for v in op.results]
        if op.name == "memref.global":
            kinds.append(op.attributes["type"].value)
        if any(_is_complex(kind) for kind in kinds):
            found.append(op)
        return on

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _is_complex(kind: Any) -> bool:
    if isinstance(kind, (ir.MemRefType, ir.RankedTensorType)):
        kind = kind.element_type
    return isinstance(kind, ir.ComplexType)


def _is_arithmetic(op: Any) -> bool:
    return bool(op.name.startswith("complex.")) and op.name not in _SCALARS


def _is_known(op: Any) -> bool:
    if op.name in (*_LOADS, *_STORES, *_SCALARS):
        return True
    kinds = [v.type for v in (*op.operands, *op.results)]
    return op.name in _RETYPED and not any(
        isinstance(kind, ir.MemRefType) and not _has_strides(kind) for kind in kinds
    )


def _has_strides(kind: Any) -> bool:
    """Whether the layout of a buffer is its strides."""
    return isinstance(kind.layout, ir.StridedLayoutAttr) or kind.layout == ir.AffineMapAttr.get(
        ir.AffineMap.get_identity(kind.rank)
    )


def _split(kind: Any) -> Any:
    """The type of a buffer of the parts."""
    if not isinstance(kind, ir.MemRefType) or not _is_complex(kind):
        return kind
    layout = kind.layout
    if isinstance(layout, ir.StridedLayoutAttr):
        layout = ir.StridedLayoutAttr.get(2 * layout.offset, [*(2 * s for s in layout.strides), 1])
    else:
        layout = None
    part = ir.ComplexType(kind.element_type).element_type
    return ir.MemRefType.get([*kind.shape, 2], part, layout, kind.memory_space)


def _rewrite(touched: Sequence[Any]) -> None:
    pairs: dict[Any, _Pair] = {}
    for op in touched:
        with ir.InsertionPoint(op), op.location:
            if op.name in _RETYPED:
                for result in op.results:
                    result.set_type(_split(result.type))
            elif op.name in _LOADS:
                pairs[op.results[0]] = (_access(op, 0), _access(op, 1))
            elif op.name in _STORES:
                for i, part in enumerate(pairs[op.operands[0]]):
                    _access(op, i, part)
            elif op.name in ("complex.re", "complex.im"):
                part = pairs[op.operands[0]][op.name == "complex.im"]
                op.results[0].replace_all_uses_with(part)
            elif op.name == "complex.create":
                pairs[op.results[0]] = tuple(op.operands)
            elif op.name == "complex.constant":
                part = ir.ComplexType(op.results[0].type).element_type
                pairs[op.results[0]] = tuple(
                    dialect("arith").ConstantOp(part, value).result
                    for value in op.attributes["value"]
                )
            else:
                condition, *sides = op.operands
                either = zip(*(pairs[side] for side in sides), strict=True)
                pairs[op.results[0]] = tuple(
                    dialect("arith").SelectOp(condition, *parts).result for parts in either
                )
    for op in reversed(touched):
        if op.name not in _RETYPED:
            op.erase()
    for load in {v for pair in pairs.values() for v in pair}:
        owner = load.owner
        if isinstance(owner, ir.Operation) and owner.name in _LOADS and not list(load.uses):
            owner.erase()


def _access(op: Any, part: int, value: Any = None) -> Any:
    """Load or store one part."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    operands = list(op.operands)
    if value is not None:
        operands[0] = value
    if op.name.startswith("affine."):
        amap = ir.AffineMapAttr(attributes["map"]).value
        exprs = [*amap.results, ir.AffineConstantExpr.get(part)]
        attributes["map"] = ir.AffineMapAttr.get(
            ir.AffineMap.get(amap.n_dims, amap.n_symbols, exprs)
        )
    else:
        index = ir.IndexType.get()
        operands.append(dialect("arith").ConstantOp(index, part).result)
    results = []
    if value is None:
        results = [ir.ComplexType(op.results[0].type).element_type]
    made = ir.Operation.create(op.name, results=results, operands=operands, attributes=attributes)
    return made.results[0] if value is None else None

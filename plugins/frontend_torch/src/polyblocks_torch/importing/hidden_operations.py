"""Operations out of torch-mlir's sight.

Its folders compute with constants by rules of their own, and some on memory that was never written:
``sign(-0.75)`` is 1 now and then. While its pipelines run, a constant is an argument of ``@main``.
Its check of what they leave does not know our own dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from polyblocks import mlir
from polyblocks.attributes import GCD
from polyblocks.signature import main_of
from polyblocks_torch.importing.torch_dialect import find_ops


@contextmanager
def hidden(module: Any, constants: Sequence[Any]) -> Iterator[None]:
    """Hide constants of a module for a while; when it ends they are back where ``@main`` begins.

    Args:
        module: has ``@main``.
        constants: ``arith.constant`` operations anywhere in it; they are erased.
    """
    main = main_of(module)
    block = main.regions[0].blocks[0]
    given = len(block.arguments)
    values = []
    for op in constants:
        with op.operation.location as location:
            argument = block.add_argument(op.results[0].type, location)
        op.results[0].replace_all_uses_with(argument)
        values.append((op.attributes["value"], location))
        op.operation.erase()
    _set_type(main, block)
    yield
    # Passes that convert the signature have made another block.
    main = main_of(module)
    block = main.regions[0].blocks[0]
    with mlir.ir.InsertionPoint.at_block_begin(block):
        for argument, (value, location) in zip(list(block.arguments)[given:], values, strict=True):
            made = mlir.dialect("arith").ConstantOp(argument.type, value, loc=location).result
            argument.replace_all_uses_with(made)
    for _ in values:
        block.erase_argument(given)
    _set_type(main, block)


@contextmanager
def disguised(module: Any) -> Iterator[None]:
    """Let ``arith`` operations stand for those of our own dialect while nothing may be folded.

    Args:
        module: with ``linalg.generic`` operations whose bodies may have some.
    """
    own = [(op.name, op) for op in find_ops(module, frozenset({GCD}))]
    placed = [(name, _replaced(op, "arith.maxui")) for name, op in own]
    yield
    for name, op in placed:
        _replaced(op, name)


def _replaced(op: Any, name: str) -> Any:
    ir = mlir.ir
    with ir.InsertionPoint(op), op.location:
        made = ir.Operation.create(
            name, results=[r.type for r in op.results], operands=list(op.operands)
        )
    op.results[0].replace_all_uses_with(made.results[0])
    op.operation.erase()
    return made


def _set_type(main: Any, block: Any) -> None:
    ir = mlir.ir
    arguments = [argument.type for argument in block.arguments]
    kind = ir.FunctionType.get(arguments, main.type.results, main.context)
    main.attributes["function_type"] = ir.TypeAttr.get(kind)

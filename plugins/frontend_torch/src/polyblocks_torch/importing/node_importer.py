"""torch-mlir's importer of the nodes of a graph, with every number imported once.

Element-wise operations and constants are imported as operations on builtin tensors: torch-mlir
neither types nor folds them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch_mlir.extras import fx_importer

from polyblocks import mlir
from polyblocks_torch.elementwise import (
    ElementwiseImporter,
    fill_of,
    import_fill,
    operation_of,
)
from polyblocks_torch.importing.checks import CHECK
from polyblocks_torch.importing.torch_dialect import from_builtin, to_builtin

#: Literals of these types are what their ``repr`` says.
_PLAIN = (type(None), bool, int, float, str, torch.dtype, torch.device, torch.layout)


class NodeImporter(fx_importer.GraphNodeImporter):
    """Imports the nodes of one graph into one block.

    A node has five numbers and defaults on average. torch-mlir imports an operation for each; here
    equal ones are one operation, at the place of the first, as canonicalization leaves them.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._literals: dict[Any, Any] = {}
        self._elementwise = ElementwiseImporter()
        #: Nodes and the builtin tensors that they have become.
        self._builtin: dict[fx.Node, Any] = {}

    def _import_torch_op_overload(
        self, loc: Any, node: fx.Node, concrete_target: Any = None
    ) -> None:
        if node.target is CHECK:
            holds, message = node.args
            assert isinstance(holds, fx.Node), "a check is of a tensor"
            with loc:
                _import_check(self._as_builtin(holds), str(message))
            return
        made = None
        if concrete_target is None:
            with loc:
                made = self._import_on_builtin(node)
        if made is None:
            super()._import_torch_op_overload(loc, node, concrete_target)
            return
        self._builtin[node] = made
        with loc:
            kind = self._cc.tensor_to_vtensor_type(node.meta["val"])
            self.bind_node_value(node, from_builtin(made, kind))

    def _import_on_builtin(self, node: fx.Node) -> Any | None:
        """The builtin tensor that a node becomes; None if torch-mlir imports it."""
        number = fill_of(node)
        if number is not None:
            return import_fill(node.meta["val"], number)
        operation = operation_of(node)
        if operation is None:
            return None
        return self._elementwise.run(node, operation, self._as_builtin)

    def _as_builtin(self, node: fx.Node) -> Any:
        made = self._builtin.get(node)
        if made is None:
            value = self._import_argument(fx_importer.Location.current, node)
            made = self._builtin[node] = to_builtin(value)
        return made

    def _import_literal(self, py_value: Any, info: Any = None) -> Any:
        if not isinstance(py_value, _PLAIN):
            return super()._import_literal(py_value, info)
        key = type(py_value), repr(py_value)
        found = self._literals.get(key)
        if found is None:
            found = self._literals[key] = super()._import_literal(py_value, info)
        return found

    def _import_default_value(self, loc: Any, arg: Any, expected_jit_type: Any) -> Any:
        if not isinstance(arg, _PLAIN):
            return super()._import_default_value(loc, arg, expected_jit_type)
        with loc:
            return self._import_literal(arg)


def _import_check(holds: Any, message: str) -> None:
    """The check of a builtin tensor of one boolean, at the current insertion point."""
    arith, tensor = mlir.dialect("arith"), mlir.dialect("tensor")
    first = arith.ConstantOp(mlir.ir.IndexType.get(), 0).result
    holds = tensor.ExtractOp(holds, [first] * len(holds.type.shape)).result
    mlir.dialect("cf").AssertOp(holds, message)

"""torch-mlir's importer of the nodes of a graph, with every number imported once."""

from __future__ import annotations

from typing import Any

import torch
from torch_mlir.extras import fx_importer

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

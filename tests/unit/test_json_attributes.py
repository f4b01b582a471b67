"""JSON values as MLIR attributes."""

from __future__ import annotations

import pytest

from polyblocks import mlir
from polyblocks.affine.mlir.json_attributes import (
    from_attribute,
    read_json,
    to_attribute,
    write_json,
)

VALUES = [
    True,
    7,
    -2.5,
    "text",
    [],
    [1, [2.0, "three"]],
    {},
    {"kernel": "softmax", "grid": [4, 1, 1], "arguments": [{"argument": 0}, {"value": False}]},
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_what_is_written_is_read(value):
    module = mlir.parse("module {}")
    write_json(module, "test.value", value)
    read = read_json(mlir.parse(str(module)), "test.value", "absent")
    assert read == value
    assert type(read) is type(value)


def test_an_attribute_that_is_not_there():
    assert read_json(mlir.parse("module {}"), "test.value", "absent") == "absent"


@pytest.mark.parametrize("value", [None, object(), (1, 2)], ids=["None", "object", "tuple"])
def test_what_is_no_json_value(value):
    with mlir.parse("module {}").context:
        kind = type(value).__name__
        with pytest.raises(TypeError, match=f"numbers and booleans, not a {kind}; convert it"):
            to_attribute({"rows": [value]})


def test_attributes_of_a_context_are_read_outside_of_it():
    module = mlir.parse("module attributes {test.row = {bytes = {L1 = 64 : i64}}} {}")
    assert from_attribute(module.operation.attributes["test.row"]) == {"bytes": {"L1": 64}}

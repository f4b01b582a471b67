"""Parsing, locations, refusals."""

from __future__ import annotations

import io

import numpy as np
import pytest
from tests.support.stablehlo_programs import lowered, run

from polyblocks import mlir, stablehlo
from polyblocks.errors import UnsupportedError

ADD = """
func.func @main(%x: tensor<3xui32>) -> tensor<3xui32> {
  %r = stablehlo.add %x, %x : tensor<3xui32>
  return %r : tensor<3xui32>
}
"""


def test_integers_become_signless():
    text = lowered(ADD)
    assert "func.func public @main(%arg0: tensor<3xi32>) -> tensor<3xi32>" in text


def test_text_bytecode_and_portable_artifact():
    module = stablehlo.parse(ADD)
    data = io.BytesIO()
    module.operation.write_bytecode(data)
    version = mlir.stablehlo.get_current_version()
    portable = mlir.stablehlo.serialize_portable_artifact(module, version)
    want = lowered(ADD)
    for form in (ADD.encode(), data.getvalue(), portable):
        assert str(stablehlo.lower(stablehlo.parse(form))) == want


def test_what_is_neither():
    with pytest.raises(ValueError, match="custom op .func. is unknown"):
        stablehlo.parse("func func func")


def test_placement_is_dropped():
    text = """
    module {
      "sdy.mesh"() <{sym_name = "mesh"}> : () -> ()
      func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
        %r = "sdy.sharding_constraint"(%x) : (tensor<3xf32>) -> tensor<3xf32>
        return %r : tensor<3xf32>
      }
    }
    """
    assert "sdy" not in lowered(text)


def test_functions_are_expanded_where_they_are_called():
    text = """
    func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %a = call @twice(%x) : (tensor<3xf32>) -> tensor<3xf32>
      %b = call @twice(%a) : (tensor<3xf32>) -> tensor<3xf32>
      return %b : tensor<3xf32>
    }
    func.func private @twice(%x: tensor<3xf32>) -> tensor<3xf32> {
      %r = stablehlo.add %x, %x : tensor<3xf32>
      return %r : tensor<3xf32>
    }
    """
    code = lowered(text)
    assert "call" not in code
    assert code.count("func.func") == 1
    pytest.importorskip("polyblocks_cpu")
    np.testing.assert_array_equal(run(text, np.ones(3, np.float32)), [4, 4, 4])


def test_locations_name_the_operation_and_the_line():
    text = """
    func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %r = stablehlo.sine %x : tensor<3xf32> loc("jit(f)/sin"(callsite("f"("model.py":12:4 to :9)
          at "g"("main.py":3:0))))
      return %r : tensor<3xf32>
    }
    """
    module = stablehlo.lower(stablehlo.parse(text))
    code = module.operation.get_asm(enable_debug_info=True)
    assert '"model.py":12:4' in code
    assert 'loc("sin"(' in code


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (
            "stablehlo.custom_call @lapack_sgetrf(%x) : (tensor<3xf32>) -> tensor<3xf32>",
            "the custom call lapack_sgetrf is code of a library",
        ),
        (
            '"stablehlo.all_reduce"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({\n'
            "^bb0(%a: tensor<f32>, %b: tensor<f32>):\nstablehlo.return %a : tensor<f32>\n}) : "
            "(tensor<3xf32>) -> tensor<3xf32>",
            "there is no lowering of stablehlo.all_reduce",
        ),
    ],
)
def test_refusals_name_operation_and_line(operation, reason):
    text = (
        "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
        f'%r = {operation} loc("jit(f)/thing"("model.py":12:4))\nreturn %x : tensor<3xf32>\n}}'
    )
    with pytest.raises(UnsupportedError, match=reason) as caught:
        stablehlo.lower(stablehlo.parse(text))
    assert caught.value.op == "thing"
    assert caught.value.location == "model.py:12"


def test_types_that_nobody_computes_with():
    text = "func.func @main(%x: tensor<3xi4>) -> tensor<3xi4> { return %x : tensor<3xi4> }"
    with pytest.raises(UnsupportedError, match="elements of type i4"):
        stablehlo.lower(stablehlo.parse(text))


def test_shapes_that_are_not_known():
    text = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
    with pytest.raises(UnsupportedError, match=r"the shape of tensor<\?xf32> is not static"):
        stablehlo.lower(stablehlo.parse(text))


@pytest.mark.parametrize(("start", "extent", "whole"), [(2, 3, 0), (1, 2, 0), (1, 4, 1)])
def test_slices_of_what_lies_behind_each_other(start, extent, whole):
    """A rotation does not put the array behind itself first; overlapping windows do it once."""
    text = f"""
    func.func @main(%x: tensor<3xf32>) -> tensor<{extent}xf32> {{
      %c = stablehlo.concatenate %x, %x, dim = 0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf32>
      %r = stablehlo.slice %c [{start}:{start + extent}] : (tensor<6xf32>) -> tensor<{extent}xf32>
      return %r : tensor<{extent}xf32>
    }}"""
    lowered = str(stablehlo.lower(stablehlo.parse(text)))
    assert lowered.count("-> tensor<6xf32>") == whole

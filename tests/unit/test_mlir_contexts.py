"""Contexts of MLIR: which dialects are loaded, so that operations of them may be made."""

from __future__ import annotations

import pytest

from polyblocks import mlir
from polyblocks.api import compile_text
from polyblocks.options import CompileOptions
from polyblocks.pipeline import watching
from polyblocks.registry.registry import Registry

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.negf ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
#: One that takes as long to load as all that a program needs.
OTHER = "transform"


def test_a_context_has_every_dialect():
    context = mlir.make_context()
    assert context.is_dialect_loaded("affine")
    assert context.is_dialect_loaded(OTHER)


def test_a_context_without_every_dialect_loads_what_is_read():
    context = mlir.make_context(every_dialect=False)
    assert context.is_dialect_loaded("affine")
    assert not context.is_dialect_loaded("emitc")
    mlir.parse("func.func @main(%x: !emitc.opaque<'int'>) { return }".replace("'", '"'), context)
    assert context.is_dialect_loaded("emitc")


def test_the_module_of_a_dialect_is_asked_for_to_make_its_operations():
    context = mlir.make_context(every_dialect=False)
    mlir.dialect("spirv")
    assert not context.is_dialect_loaded("spirv")
    with context:
        mlir.dialect("spirv")
    assert context.is_dialect_loaded("spirv")


@pytest.mark.parametrize("foreign", [(), (("fake_module", "fake-distribution"),)])
@pytest.mark.usefixtures("compiled_in_this_process")
def test_passes_of_others_may_make_operations_of_any_dialect(foreign, monkeypatch):
    monkeypatch.setattr(Registry, "foreign", lambda self, *plugins: foreign)
    loaded = set()

    def watch(stage, name, module):
        loaded.add(module.context.is_dialect_loaded(OTHER))

    with watching(watch):
        compile_text(TEXT, CompileOptions(target="cpu"), f"foreign{len(foreign)}")
    assert loaded == {bool(foreign)}

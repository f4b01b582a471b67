"""The only file that imports the MLIR binding distribution.

Everything else says ``from polyblocks import mlir`` inside the functions that run on a cache
miss, so that a warm start never loads it.
"""

from __future__ import annotations

import functools
import importlib
import sys
from types import ModuleType
from typing import Any

from polyblocks.errors import PluginError
from polyblocks.isolation.native_symbols import own_symbols_first

try:
    with own_symbols_first():
        from torch_mlir import ir, passmanager, rewrite
        from torch_mlir._mlir_libs import _stablehlo as stablehlo
        from torch_mlir._mlir_libs import _torchMlir
except ModuleNotFoundError as error:
    raise PluginError(
        f"only the runtime is installed ({error}); to compile: pip install "
        "'polyblocks-compiler[compile]'"
    ) from error

__all__ = [
    "dialect",
    "ir",
    "make_context",
    "parse",
    "parse_portable",
    "passmanager",
    "preload",
    "register_stablehlo",
    "register_torch",
    "rewrite",
    "run_textual",
    "stablehlo",
    "translate_to_llvmir",
]

#: Our own dialect, in IRDL: what no upstream operation says. See "Matrix units" and "Copies" in
#: ``docs/s3.md``.
_OWN_DIALECT = """
irdl.dialect @polyblocks {
  irdl.operation @gcd {
    %type = irdl.any
    irdl.operands(x: %type, y: %type)
    irdl.results(divisor: %type)
  }
  irdl.operation @multiply {
    %a = irdl.base "!builtin.memref"
    %b = irdl.base "!builtin.memref"
    %accumulator = irdl.base "!builtin.memref"
    %index = irdl.is index
    irdl.operands(a: %a, b: %b, accumulator: %accumulator, indices: variadic %index)
    %unit = irdl.base "#builtin.string"
    %shape = irdl.any
    %a_map = irdl.base "#builtin.affine_map"
    %b_map = irdl.base "#builtin.affine_map"
    %accumulator_map = irdl.base "#builtin.affine_map"
    irdl.attributes {
      "unit" = %unit, "shape" = %shape,
      "a" = %a_map, "b" = %b_map, "accumulator" = %accumulator_map
    }
  }
  irdl.operation @copy {
    %source = irdl.base "!builtin.memref"
    %destination = irdl.base "!builtin.memref"
    %index = irdl.is index
    irdl.operands(source: %source, destination: %destination, indices: variadic %index)
    %kind = irdl.base "#builtin.string"
    %shape = irdl.any
    %source_map = irdl.base "#builtin.affine_map"
    %destination_map = irdl.base "#builtin.affine_map"
    irdl.attributes {
      "kind" = %kind, "shape" = %shape, "from" = %source_map, "to" = %destination_map
    }
  }
  irdl.operation @commit {
  }
  irdl.operation @wait {
    %pending = irdl.base "#builtin.integer"
    irdl.attributes { "pending" = %pending }
  }
  irdl.operation @barrier {
    %scope = irdl.base "#builtin.string"
    irdl.attributes { "scope" = %scope }
  }
}
"""

_stablehlo_passes = False

#: Dialects whose operations our passes and targets make.
_OURS = (
    "affine arith bufferization builtin cf complex func irdl linalg llvm math memref scf tensor ub "
    "vector"
).split()
#: As well; their operations are written by name, and their Python modules are not imported.
_BY_NAME = ("gpu",)

_DIALECT_MODULES = {"omp": "openmp", "acc": "openacc"}


def dialect(name: str) -> ModuleType:
    """The Python module of one upstream dialect, e.g. ``dialect("affine")``.

    Inside of ``with context:`` the dialect is loaded there.
    """
    module = _imported(name)
    if name not in _OURS and (current := ir.Context.current) is not None:
        current.get_dialect_descriptor(name)
    return module


@functools.cache
def _imported(name: str) -> ModuleType:
    with own_symbols_first():
        return importlib.import_module(f"torch_mlir.dialects.{_DIALECT_MODULES.get(name, name)}")


def preload() -> None:
    """Import the dialects that the passes touch; forked children then need not, one by one."""
    for name in (*_OURS, "omp"):
        dialect(name)
    _no_module_of("polyblocks")


def make_context(*, every_dialect: bool = True) -> Any:
    """A context for any program; single-threaded, since it may live in a forked process.

    Args:
        every_dialect: load all upstream dialects, so that operations of any may be made. Without,
            those that passes of ours use; others are loaded when MLIR reads one of their
            operations, when a pass of upstream depends on them, and by :func:`dialect`. That
            takes a fifth of the time of a small program less.
    """
    context = ir.Context(load_on_create_dialects=None if every_dialect else _OURS)
    context.enable_multithreading(False)
    for name in _BY_NAME:
        context.get_dialect_descriptor(name)
    # Scans, scatters and sorts are a dialect that only its passes can load.
    with context:
        loader = passmanager.PassManager.parse("builtin.module(func.func(tm-tensor-bufferize))")
        loader.run(ir.Module.parse("module {}", context).operation)
        _no_module_of("polyblocks")
        dialect("irdl").load_dialects(ir.Module.parse(_OWN_DIALECT, context))
    return context


def _no_module_of(name: str) -> None:
    """Spare the bindings their search for the Python module of a dialect that has none.

    They look for it at every operation that they show: an empty one saves half of the time of
    walking a module.
    """
    full = f"torch_mlir.dialects.{name}"
    sys.modules.setdefault(full, ModuleType(full))


def parse(text: str | bytes, context: Any = None) -> Any:
    """Parse MLIR text or bytecode into a Module.

    Args:
        text: of the module.
        context: None for a new one, with the dialects that the text and our passes use.

    Raises:
        ValueError: the text is not valid MLIR; the message holds MLIR's diagnostics.
    """
    context = context or make_context(every_dialect=False)
    try:
        return ir.Module.parse(text, context)
    except ir.MLIRError as error:
        raise ValueError(str(error)) from None


def register_stablehlo(context: Any) -> None:
    """Make the dialects ``stablehlo``, ``chlo`` and ``vhlo``, and their passes, known."""
    global _stablehlo_passes
    if not _stablehlo_passes:
        stablehlo.register_stablehlo_passes()
        for name in ("stablehlo", "chlo"):
            _no_module_of(name)
        _stablehlo_passes = True
    stablehlo.register_dialect(context)
    # Nothing else can load CHLO: a pass that depends on it does, by running on nothing.
    with context:
        loader = "builtin.module(func.func(stablehlo-complex-math-expander))"
        passmanager.PassManager.parse(loader).run(ir.Module.parse("module {}").operation)


def register_torch(context: Any) -> None:
    """Make the dialect ``torch`` known."""
    _torchMlir.register_dialect(context)


def parse_portable(data: bytes, context: Any) -> Any:
    """The StableHLO module of a portable artifact.

    Raises:
        ValueError: it is damaged, or of a version that cannot be read.
    """
    try:
        return stablehlo.deserialize_portable_artifact(context, data)
    except ir.MLIRError as error:
        raise ValueError(str(error)) from None


def with_dims(expr: Any, count: int) -> Any:
    """An affine expression whose symbols are dimensions behind ``count`` others, as ordered."""
    if isinstance(expr, ir.AffineSymbolExpr):
        return ir.AffineDimExpr.get(count + expr.position)
    if isinstance(expr, (ir.AffineDimExpr, ir.AffineConstantExpr)):
        return expr
    left, right = with_dims(expr.lhs, count), with_dims(expr.rhs, count)
    for kind, make in (
        (ir.AffineAddExpr, ir.AffineExpr.get_add),
        (ir.AffineMulExpr, ir.AffineExpr.get_mul),
        (ir.AffineModExpr, ir.AffineExpr.get_mod),
        (ir.AffineFloorDivExpr, ir.AffineExpr.get_floor_div),
    ):
        if isinstance(expr, kind):
            return make(left, right)
    return ir.AffineExpr.get_ceil_div(left, right)


def constant_number(value: Any) -> int | float | None:
    """The number that a value is, in all lanes; None if it is no constant, or one of several."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    attribute = owner.operation.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    if isinstance(attribute, ir.FloatAttr):
        return float(attribute.value)
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None


def constant_integer(value: Any) -> int | None:
    """As :func:`constant_number`, of integers."""
    number = constant_number(value)
    return number if isinstance(number, int) else None


def run_textual(module: Any, pipeline: str, *, verify: bool = True) -> None:
    """Run a textual pass pipeline, e.g. ``canonicalize,cse``, on a module in place.

    The module is verified once, at the end, or by the caller: to verify a large one after every
    pass of a pipeline takes as long as the passes do.

    Raises:
        ValueError: a pass failed, or the module is invalid after the last one; the message holds
            MLIR's diagnostics.
    """
    with module.context:
        manager = passmanager.PassManager.parse(f"builtin.module({pipeline})")
        manager.enable_verifier(False)
        try:
            manager.run(module.operation)
            if verify:
                module.operation.verify()
        except ir.MLIRError as error:
            raise ValueError(str(error)) from None


def translate_to_llvmir(module: Any) -> str:
    """Translate a module in the LLVM dialect to LLVM IR; returns its text.

    The module loses our own attributes of arguments: MLIR would warn of each, and print the whole
    function into the warning.
    """
    with module.context:
        for op in module.body.operations:
            _drop_own_attributes_of_arguments(op.operation)
    return str(dialect("llvm").translate_module_to_llvmir(module.operation))


def _drop_own_attributes_of_arguments(function: Any) -> None:
    if "arg_attrs" not in function.attributes:
        return
    every = [
        {a.name: a.attr for a in attributes} for attributes in function.attributes["arg_attrs"]
    ]
    kept = [
        {name: value for name, value in attributes.items() if not name.startswith("polyblocks.")}
        for attributes in every
    ]
    if kept != every:
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in kept])

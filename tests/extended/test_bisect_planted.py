"""`polyblocks bisect` names exactly the pass in which a bug was planted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sweeps import sweep

import polyblocks_cpu.lower
from polyblocks import mlir
from polyblocks.bisect import command
from polyblocks.bisect.search import Result, Settings
from polyblocks.passes import standard
from polyblocks.passes.facts import declared
from polyblocks.passes.rules import RulePass
from polyblocks.pipeline import FunctionPass, Pipeline

#: What is looked for kills its process.
pytestmark = pytest.mark.isolated

#: With a constant, a reduction, a comparison, a division, a function and a boolean result.
PROGRAM = """
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#j = affine_map<(i, j) -> (j)>
func.func @main(%a: tensor<7x13xf32>, %b: tensor<13xf32>)
    -> (tensor<7x13xf32>, tensor<7x13xi1>, tensor<7xf32>) {
  %half = arith.constant 0.625 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x13xf32>
  %t = linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<7x13xf32>, tensor<13xf32>) outs(%e : tensor<7x13xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %0 = math.exp %x : f32
      %1 = arith.mulf %0, %half : f32
      %2 = arith.addf %1, %y : f32
      linalg.yield %2 : f32
  } -> tensor<7x13xf32>
  %e1 = tensor.empty() : tensor<7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e1 : tensor<7xf32>) -> tensor<7xf32>
  %s = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%t : tensor<7x13xf32>) outs(%z : tensor<7xf32>) {
    ^bb0(%x: f32, %o: f32):
      %0 = arith.addf %o, %x : f32
      linalg.yield %0 : f32
  } -> tensor<7xf32>
  %d = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%t, %s : tensor<7x13xf32>, tensor<7xf32>) outs(%e : tensor<7x13xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %0 = arith.divf %x, %y : f32
      linalg.yield %0 : f32
  } -> tensor<7x13xf32>
  %eb = tensor.empty() : tensor<7x13xi1>
  %c = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%d, %a : tensor<7x13xf32>, tensor<7x13xf32>) outs(%eb : tensor<7x13xi1>) {
    ^bb0(%x: f32, %y: f32, %o: i1):
      %0 = arith.cmpf ogt, %x, %y : f32
      linalg.yield %0 : i1
  } -> tensor<7x13xi1>
  %r = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<7x13xf32>) outs(%z : tensor<7xf32>) {
    ^bb0(%x: f32, %o: f32):
      %0 = arith.mulf %x, %x : f32
      %1 = arith.addf %o, %0 : f32
      linalg.yield %1 : f32
  } -> tensor<7xf32>
  return %d, %c, %r : tensor<7x13xf32>, tensor<7x13xi1>, tensor<7xf32>
}
"""

#: Pass -> (what its module says, what the bug makes of it). The first place is changed.
BUGS: dict[str, tuple[str, str]] = {
    "S1:simplify-tensors": ("6.250000e-01", "6.500000e-01"),
    "S1:set-fastmath": ("arith.addf", "arith.subf"),
    "S2:bind-arguments": (r"arith.divf (%\w+), (%\w+)", r"arith.divf \2, \1"),
    "S2:linalg-to-affine": ("affine.for (%.*) = 0 to 13", r"affine.for \1 = 0 to 12"),
    "S2:fold-views": (r"affine.load (%\w+)\[(%\w+), %\w+\]", r"affine.load \1[\2, 0]"),
    "S3:normalize-nests": ("arith.cmpf ogt", "arith.cmpf olt"),
    "S3:form-reductions": ("iter_args\\((%\\w+) = %\\w+\\)", "iter_args(\\1 = %planted)"),
    # A rule of a pass.
    "S3:interchange-loops": ("arith.cmpf ogt", "arith.cmpf olt"),
    "S3:fuse-slices": (r"\n *affine.store [^\n]*", ""),
    "S3:order-loops": (
        r"affine.store (%\w+), (%\w+)\[(%\w+), %\w+\]",
        r"affine.store \1, \2[\3, 0]",
    ),
    "S3:plan-memory": (r"memref.view (%\w+)\[%\w+\]", r"memref.view \1[%planted]"),
    "S4:store-booleans-as-bytes": ("arith.extui", "arith.extsi"),
    "S4:map-openmp": ("call @omp_get_num_threads", "call @omp_get_thread_num"),
    "S4:expand-math": (r"(0\.6|6\.)93\d+", r"\g<1>99"),
    "S4:lower-loops": ("arith.cmpi slt", "arith.cmpi sle"),
    "S4:convert-to-llvm": ("llvm.fmul", "llvm.fadd"),
}
#: In S3 it is a rule of a pass.
ONE_OF_A_STAGE = ("S1:simplify-tensors", "S2:fold-views", "S3:interchange-loops")
ONE_OF_A_STAGE += ("S4:convert-to-llvm",)

#: Defined at the beginning of ``@main``, for the bugs that want a wrong value.
VALUES = {
    "S3:form-reductions": "%planted = arith.constant 1.0 : f32",
    "S3:plan-memory": "%planted = arith.constant 0 : index",
}


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """``plant("S3:fuse-slices")`` makes this pass wrong."""

    def make(label: str) -> None:
        name = label.partition(":")[2]
        pipeline, stage_s4 = standard.standard_pipeline, polyblocks_cpu.lower.stage_s4

        def wrong(right: Any) -> Any:
            def run(module: Any, context: Any) -> None:
                right.run(module, context)
                edit(module, *BUGS[label], VALUES.get(label, ""))

            needs, establishes, breaks = (
                declared(right, what) for what in ("needs", "establishes", "breaks")
            )
            return FunctionPass(name, run, needs, establishes, breaks)

        def wrong_pipeline(*arguments: Any) -> Pipeline:
            stages = pipeline(*arguments).stages
            return Pipeline({name: [planted(p) for p in stages[name]] for name in stages})

        def planted(right: Any) -> Any:
            if right.name == name:
                return wrong(right)
            if isinstance(right, RulePass):
                return replace(right, rules=tuple(planted(rule) for rule in right.rules))
            return right

        def wrong_s4(*arguments: Any) -> list[Any]:
            return [wrong(p) if p.name == name else p for p in stage_s4(*arguments)]

        monkeypatch.setattr(standard, "standard_pipeline", wrong_pipeline)
        monkeypatch.setattr(polyblocks_cpu.lower, "stage_s4", wrong_s4)

    return make


def edit(module: Any, pattern: str, new: str, value: str) -> None:
    """Change the first match of the module's text, in place."""
    text = str(module)
    if value:
        text = re.sub(r"(func.func @main\(.*\{\n)", rf"\1{value}\n", text, count=1)
    changed, count = re.subn(pattern, new, text, count=1)
    assert count, f"no {pattern} in {text}"
    other = mlir.parse(changed, module.context)
    for operation in list(module.body.operations):
        operation.operation.erase()
    for operation in list(other.body.operations):
        module.body.append(operation)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return path


def bisect(file: Path, **settings: Any) -> Result:
    # Every intermediate is a buffer, so that each kind of bug has its place whatever is fused.
    options = {"polyblocks_disable_affine_fusion": True}
    (result,) = command.run(str(file), [], options, Settings(**settings))
    return result


@pytest.mark.parametrize("label", sweep(BUGS, *ONE_OF_A_STAGE))
def test_a_bug_is_found_in_its_pass(label: str, plant: Callable[[str], None], file: Path) -> None:
    plant(label)
    result = bisect(file)
    assert result.suspects == [label], command.verdict(result)


def test_nothing_is_found_where_nothing_is_wrong(file: Path) -> None:
    result = bisect(file, all_passes=True)
    assert result.suspects == [], command.verdict(result)
    assert result.rows[-1].label == "S5"
    assert {row.status for row in result.rows} == {"reference", "ok", "unchanged"}
    assert result.kinds == ["plain", "wide", "special"]

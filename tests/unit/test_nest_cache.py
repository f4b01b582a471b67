"""Passes on nests share one model; the module is written when somebody wants to see it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from polyblocks import events, mlir
from polyblocks.affine.mlir import nest_cache, writer
from polyblocks.affine.model import Op, Sequence, walk
from polyblocks.errors import PassError
from polyblocks.options import CompileOptions
from polyblocks.passes.base import NestPass
from polyblocks.pipeline import FunctionPass, PassContext, run_stage, watching
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription

TARGET = TargetDescription("t", "a", (ParallelLevel("team", 2),), (MemoryLevel("main", 0),))
TEXT = """
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>) {
  %unused = memref.alloc() : memref<8xf32>
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    %y = arith.negf %x : f32
    affine.store %y, %b[%i] : memref<8xf32>
  }
  return
}
"""


class Rename(NestPass):
    """Replaces one operation by another in every nest."""

    def __init__(self, name: str, old: str, new: str) -> None:
        self.name = name
        self.old = old
        self.new = new

    def transform(self, sequence: Sequence, context: Any) -> None:
        for nest in sequence.nests():
            for node in walk(nest.body):
                if isinstance(node, Op) and node.name == self.old:
                    node.name = self.new
                    nest.replace()


class Prepared(Rename):
    """Also looks at the module before it is read."""

    seen = ""

    def prepare(self, module: Any) -> None:
        self.seen = str(module)


def context(**settings: Any) -> PassContext:
    return PassContext(TARGET, CompileOptions(), **settings)


PASSES = [
    Rename("first", "arith.negf", "math.exp"),
    Rename("second", "math.exp", "math.tanh"),
    Rename("third", "math.tanh", "math.absf"),
]


@pytest.mark.parametrize("hold", [True, False])
def test_what_is_written_is_what_the_passes_did(hold: bool) -> None:
    module = mlir.parse(TEXT)
    run_stage("S3", PASSES, module, context(hold=hold))
    assert str(module).count("math.absf") == 1
    assert "alloc" not in str(module)
    assert str(module).count("affine.for") == 1


def test_nests_are_read_once_and_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name, place in (("read", nest_cache.reader), ("write", nest_cache.writer)):
        original = getattr(place, name)

        def counted(*arguments: Any, name: str = name, original: Any = original) -> Any:
            calls.append(name)
            return original(*arguments)

        monkeypatch.setattr(place, name, counted)
    run_stage("S3", PASSES, mlir.parse(TEXT), context())
    assert calls == ["read", "write"]
    calls.clear()
    look = FunctionPass("look", lambda module, _: calls.append(str(module)))
    run_stage("S3", [*PASSES[:2], look, PASSES[2]], mlir.parse(TEXT), context())
    assert [c if len(c) < 9 else "math.tanh" in c for c in calls] == [
        *("read", "write", True),
        *("read", "write"),
    ]


def test_writing_shows_as_a_pass() -> None:
    seen: list[str] = []

    def listen(event: events.Event) -> None:
        if event.kind == "pass-end":
            seen.append(event.data["name"])

    with events.listening(listen):
        run_stage("S3", PASSES, mlir.parse(TEXT), context())
    assert seen == ["first", "second", "third", "write-nests"]


def test_a_watcher_sees_every_step_and_changes_nothing(tmp_path: Path) -> None:
    alone = mlir.parse(TEXT)
    run_stage("S3", PASSES, alone, context())
    steps: list[tuple[str, str]] = []

    def watcher(stage: str, name: str, module: Any) -> None:
        op = next(o for o in ("exp", "tanh", "absf") if f"math.{o}" in str(module))
        steps.append((name, op))

    watched = mlir.parse(TEXT)
    with watching(watcher):
        run_stage("S3", PASSES, watched, context(dump_folder=tmp_path, dump_passes=True))
    assert steps == [("first", "exp"), ("second", "tanh"), ("third", "absf"), ("", "absf")]
    assert "math.tanh" in (tmp_path / "01-S3-second.mlir").read_text()
    assert str(watched) == str(alone)


def test_a_pass_that_prepares_the_module_finds_it_up_to_date() -> None:
    prepared = Prepared("prepared", "math.exp", "math.sqrt")
    module = mlir.parse(TEXT)
    run_stage("S3", [PASSES[0], prepared], module, context())
    assert "math.exp" in prepared.seen
    assert "math.sqrt" in str(module)


def test_what_cannot_be_written_is_the_fault_of_who_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_REPRODUCERS", str(tmp_path))
    # An operation that takes integers.
    bad = Rename("bad", "math.exp", "arith.trunci")
    passes = [PASSES[0], bad, Rename("after", "math.log", "math.sin")]
    with pytest.raises(PassError, match=r"pass 'bad' \(stage S3\) failed: .*trunci"):
        run_stage("S3", passes, mlir.parse(TEXT), context())
    (file,) = tmp_path.iterdir()
    assert "math.exp" in file.read_text()


ALIKE = """
#map = affine_map<(i) -> (i)>
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8xf32>, %m: memref<2xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %s = memref.load %m[%zero] : memref<2xf32>
  %t = memref.load %m[%one] : memref<2xf32>
"""
NEST = """
  affine.for %i = 0 to 8 {{
    %local = memref.alloca() : memref<1xf32>
    %x = affine.load %{0}[%i] : memref<8xf32>
    %y = arith.addf %x, %{1} : f32
    affine.store %y, %local[0] : memref<1xf32>
    %z = affine.load %local[0] : memref<1xf32>
    %w = math.exp %z : f32
    affine.store %w, %{2}[{3}] : memref<8xf32>
  }} {{polyblocks.kernel = "{4}", polyblocks.kind = "map", polyblocks.sources = ["{4}"]}}
"""


def test_nests_that_are_equal_but_for_names_are_written_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nests = [
        ("a", "s", "b", "%i", "first"),
        ("b", "t", "c", "%i", "second"),
        ("c", "t", "a", "%i", "third"),
        # In place, and to another element.
        ("c", "s", "c", "%i", "fourth"),
        ("b", "s", "a", "7 - %i", "fifth"),
    ]
    text = ALIKE + "".join(NEST.format(*names) for names in nests) + "return }"
    original = writer._Writer.nest
    written: list[str] = []

    def nest(self: Any, nest: Any) -> Any:
        written.append(nest.name)
        return original(self, nest)

    monkeypatch.setattr(writer._Writer, "nest", nest)
    change = [Rename("change", "math.exp", "math.tanh")]
    copied = mlir.parse(text)
    run_stage("S3", change, copied, context())
    assert sorted(written) == ["fifth", "fourth", "third"]
    monkeypatch.setattr(writer, "_key", id)
    one_by_one = mlir.parse(text)
    run_stage("S3", change, one_by_one, context())
    assert len(written) == 3 + 5
    assert str(copied) == str(one_by_one)
    for names in nests:
        assert f'polyblocks.kernel = "{names[-1]}"' in str(copied)


def test_nests_of_other_paddings_are_not_equal() -> None:
    text = """
    func.func @main(%a: memref<8xf32>, %b: memref<8xf32>) {
      affine.for %i = 0 to 8 {
        %x = affine.load %a[%i] {polyblocks.padding = array<i64: 1>} : memref<8xf32>
        %y = affine.load %a[7 - %i] : memref<8xf32>
        %s = arith.addf %x, %y : f32
        %z = math.exp %s : f32
        affine.store %z, %b[%i] : memref<8xf32>
      } {polyblocks.kernel = "first", polyblocks.kind = "map", polyblocks.sources = []}
      affine.for %i = 0 to 8 {
        %x = affine.load %a[%i] : memref<8xf32>
        %y = affine.load %a[7 - %i] {polyblocks.padding = array<i64: 1>} : memref<8xf32>
        %s = arith.addf %x, %y : f32
        %z = math.exp %s : f32
        affine.store %z, %b[%i] : memref<8xf32>
      } {polyblocks.kernel = "second", polyblocks.kind = "map", polyblocks.sources = []}
      return
    }
    """
    module = mlir.parse(text)
    run_stage("S3", [Rename("change", "math.exp", "math.tanh")], module, context())
    first, second = str(module).split("affine.for")[1:]
    assert re.findall("affine.load.*", first) != re.findall("affine.load.*", second)

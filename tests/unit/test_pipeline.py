"""The pipeline: edits by name, dumps, resuming, failures that name the pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polyblocks import mlir
from polyblocks.errors import PassError
from polyblocks.options import CompileOptions
from polyblocks.pipeline import (
    FunctionPass,
    PassContext,
    Pipeline,
    UpstreamPass,
    mark,
    run_stage,
)
from polyblocks.target import MemoryLevel, ParallelLevel, TargetDescription

TARGET = TargetDescription("t", "a", (ParallelLevel("team", 2),), (MemoryLevel("main", 0),))
TEXT = "func.func @main() { %0 = arith.constant 1 : i32 \n return }"


def tag(name: str) -> FunctionPass:
    """A pass that leaves its name in the module."""

    def function(module: Any, context: PassContext) -> None:
        del context
        with module.context:
            old = module.operation.attributes
            before = old["t.log"].value if "t.log" in old else ""
            old["t.log"] = mlir.ir.StringAttr.get(f"{before}{name},")

    return FunctionPass(name, function)


def make() -> Pipeline:
    return Pipeline({"S1": [tag("a"), tag("b")], "S2": [tag("c")], "S3": [tag("d")]})


def log_of(module: Any) -> str:
    return str(module.operation.attributes["t.log"].value)


def test_edits_by_name() -> None:
    p = make()
    p.insert_before("a", tag("first"))
    p.insert_after("c", tag("after-c"))
    p.replace("b", tag("new-b"))
    p.remove("d")
    p.append("S3", tag("last"))
    assert p.names() == ["first", "a", "new-b", "c", "after-c", "last"]
    module = mlir.parse(TEXT)
    p.run(module, PassContext(TARGET, CompileOptions()))
    assert log_of(module) == "first,a,new-b,c,after-c,last,"


def test_bad_edits() -> None:
    with pytest.raises(ValueError, match="no pass 'x'; the passes are a, b, c, d"):
        make().remove("x")
    with pytest.raises(ValueError, match=r"there is a pass 'c' already; use replace\(\)"):
        make().insert_after("a", tag("c"))
    with pytest.raises(ValueError, match="no stage 'S9'; the stages are S1, S2, S3"):
        make().append("S9", tag("x"))
    with pytest.raises(ValueError, match="pass names must be unique; twice: a"):
        Pipeline({"S1": [tag("a")], "S2": [tag("a")]})


@pytest.mark.parametrize(("done", "log"), [("S1", "c,d,"), ("S1:a", "b,c,d,"), ("S3", "")])
def test_resume(done: str, log: str) -> None:
    module = mlir.parse(TEXT)
    mark(module, done)
    make().run(module, PassContext(TARGET, CompileOptions()))
    assert ("t.log" in module.operation.attributes and log_of(module) or "") == log


def test_resume_after_an_unknown_pass() -> None:
    module = mlir.parse(TEXT)
    mark(module, "S1:zz")
    with pytest.raises(ValueError, match="no pass 'zz' in stage S1 to resume after"):
        make().run(module, PassContext(TARGET, CompileOptions()))
    mark(module, "S9")
    with pytest.raises(ValueError, match="no stage 'S9' to resume after"):
        make().run(module, PassContext(TARGET, CompileOptions()))


def test_dumps_are_ordered_and_resumable(tmp_path: Path) -> None:
    context = PassContext(TARGET, CompileOptions(), tmp_path, dump_passes=True)
    make().run(mlir.parse(TEXT), context)
    names = sorted(f.name for f in tmp_path.iterdir())
    assert names == [
        "00-S1-a.mlir",
        "01-S1-b.mlir",
        "02-S1-tensor.mlir",
        "03-S2-c.mlir",
        "04-S2-affine.mlir",
        "05-S3-d.mlir",
        "06-S3-midlevel.mlir",
    ]
    module = mlir.parse((tmp_path / "03-S2-c.mlir").read_text())
    make().run(module, PassContext(TARGET, CompileOptions()))
    assert log_of(module) == "a,b,c,d,"


def test_debug_option_and_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = PassContext.create(TARGET, CompileOptions(debug=str(tmp_path / "x")), "f<g>")
    second = PassContext.create(TARGET, CompileOptions(debug=str(tmp_path / "x")), "f<g>")
    assert first.dump_folder == tmp_path / "x" / "f_g_"
    assert second.dump_folder == tmp_path / "x" / "f_g_.1"
    monkeypatch.setenv("POLYBLOCKS_DEBUG", str(tmp_path / "y"))
    monkeypatch.setenv("POLYBLOCKS_DEBUG_PASSES", "1")
    third = PassContext.create(TARGET, CompileOptions(), "f")
    assert third.dump_folder == tmp_path / "y" / "f"
    assert third.dump_passes


def test_a_failure_names_the_pass_and_writes_the_module_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_REPRODUCERS", str(tmp_path))

    def explode(module: Any, context: PassContext) -> None:
        del context
        with module.context:
            module.operation.attributes["t.half"] = mlir.ir.StringAttr.get("done")
        raise RuntimeError("boom")

    passes = [tag("a"), FunctionPass("bad", explode)]
    with pytest.raises(PassError, match=r"pass 'bad' \(stage S2\) failed: RuntimeError: boom; "):
        run_stage("S2", passes, mlir.parse(TEXT), PassContext(TARGET, CompileOptions()))
    (file,) = tmp_path.iterdir()
    text = file.read_text()
    assert 't.log = "a,"' in text
    assert "t.half" not in text


def spoil(module: Any, context: PassContext) -> None:
    """Erase the return."""
    del context
    for op in module.body.operations[0].body.blocks[0].operations:
        if op.operation.name == "func.return":
            op.operation.erase()
            return


def fail(module: Any, context: PassContext) -> None:
    """As a pass may that gets an invalid module."""
    del context
    if "return" not in str(module):
        raise KeyError("return")


@pytest.mark.parametrize(
    "after",
    [
        [],
        [FunctionPass("look", lambda module, context: False)],
        [FunctionPass("fail", fail)],
        [UpstreamPass("simplify", "canonicalize")],
    ],
    ids=["last", "python", "failing", "upstream"],
)
def test_an_invalid_module_is_the_passes_fault(
    after: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_REPRODUCERS", str(tmp_path))
    passes = [FunctionPass("keep", lambda module, context: True), FunctionPass("spoil", spoil)]
    with pytest.raises(PassError, match="pass 'spoil' .*block with no terminator"):
        run_stage("S1", [*passes, *after], mlir.parse(TEXT), PassContext(TARGET, CompileOptions()))


class Counting:
    """A module, and its operation, that counts how often it is verified."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.operation = self
        self.verified = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def verify(self) -> bool:
        """As the operation does."""
        self.verified += 1
        return bool(self._inner.verify())


@pytest.mark.parametrize("before", [[], [FunctionPass("keep", lambda module, context: True)]])
def test_passes_of_upstream_and_those_behind_are_verified_together(
    before: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Counting(mlir.parse(TEXT).operation)
    ran: list[str] = []
    monkeypatch.setattr(mlir, "run_textual", lambda m, text, verify: ran.append(f"{text} {verify}"))
    upstream = [UpstreamPass("simplify", "canonicalize"), UpstreamPass("merge", "cse")]
    passes = [*before, *upstream, FunctionPass("look", lambda module, context: False)]
    run_stage("S4", passes, module, PassContext(TARGET, CompileOptions()))
    assert ran == ["canonicalize False", "cse False"]
    assert module.verified == 1 + len(before)


def test_an_upstream_failure_has_the_diagnostic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBLOCKS_REPRODUCERS", str(tmp_path))
    text = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    with pytest.raises(PassError, match="pass 'to-llvm'"):
        run_stage(
            "S4",
            [UpstreamPass("to-llvm", "convert-func-to-llvm,reconcile-unrealized-casts,no-such")],
            mlir.parse(text),
            PassContext(TARGET, CompileOptions()),
        )


def test_broken_text() -> None:
    with pytest.raises(ValueError, match="expected"):
        mlir.parse("func.func @main(")

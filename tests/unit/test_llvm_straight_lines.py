"""LLVM's search in straight-line code ends where the code is long: its time is not linear."""

from __future__ import annotations

import pytest

from polyblocks.codegen import llvm
from polyblocks.codegen.loop_hints import SCALAR_LOOPS
from polyblocks.codegen.split import split_module

MACHINE = llvm.Machine(triple=llvm.host_triple(), cpu="")


def loop(steps: int) -> str:
    """A loop that stores two sums each, of so many numbers."""
    body = []
    for step in range(steps):
        for lane in (0, 1):
            body += [
                f"  %p{step}.{lane} = getelementptr float, ptr %x, i64 {2 * step + lane}",
                f"  %l{step}.{lane} = load float, ptr %p{step}.{lane}",
                f"  %s{step}.{lane} = fadd float %l{step}.{lane}, 1.0",
                f"  %q{step}.{lane} = getelementptr float, ptr %y, i64 {2 * step + lane}",
                f"  store float %s{step}.{lane}, ptr %q{step}.{lane}",
            ]
    lines = [
        f"define void @f(ptr noalias %x, ptr noalias %y, i64 %n) {SCALAR_LOOPS} {{",
        "  br label %head",
        "head:",
        "  %i = phi i64 [ 0, %0 ], [ %next, %head ]",
        *body,
        "  %next = add i64 %i, 1",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %head, label %end",
        "end:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"


def test_longest_block():
    assert llvm.longest_block(loop(3)) == 3 * 10 + 4
    assert llvm.longest_block("") == 0


@pytest.mark.parametrize(("steps", "vectors"), [(8, True), (200, False)])
def test_straight_lines_become_vectors_where_they_are_short(steps, vectors):
    module, _ = llvm.optimize(loop(steps), MACHINE)
    assert ("x float>" in str(module)) is vectors


def sums(count: int) -> str:
    """A function of so many sums of eight numbers, one loop after the other."""
    body = []
    for k in range(count):
        body += [
            f"head{k}:",
            f"  %i{k} = phi i64 [ 0, %{f'end{k - 1}' if k else '0'} ], [ %n{k}, %head{k} ]",
            f"  %a{k} = phi float [ 0.0, %{f'end{k - 1}' if k else '0'} ], [ %s{k}, %head{k} ]",
            f"  %p{k} = getelementptr float, ptr %x, i64 %i{k}",
            f"  %l{k} = load float, ptr %p{k}",
            f"  %s{k} = fadd reassoc float %a{k}, %l{k}",
            f"  %n{k} = add i64 %i{k}, 1",
            f"  %c{k} = icmp slt i64 %n{k}, 64",
            f"  br i1 %c{k}, label %head{k}, label %end{k}",
            f"end{k}:",
            f"  %q{k} = getelementptr float, ptr %y, i64 {k}",
            f"  store float %s{k}, ptr %q{k}",
            f"  br label %{f'head{k + 1}' if k + 1 < count else 'last'}",
        ]
    head = f"define internal void @f(ptr noalias %x, ptr noalias %y) {SCALAR_LOOPS} {{"
    return "\n".join([head, "  br label %head0", *body, "last:", "  ret void", "}"]) + "\n"


@pytest.mark.parametrize(("count", "long"), [(40, False), (100, True)])
def test_long_functions_of_scalar_loops_are_modules_of_their_own(count, long):
    text = sums(count) + sums(3).replace("@f(", "@g(")
    assert llvm.has_long_loops(text) is long
    modules = split_module(text, {"f", "g"}, 1)
    assert [("void @f(ptr noalias %" in m, "void @g(ptr noalias %" in m) for m in modules] == (
        [(False, True), (True, False)] if long else [(True, True)]
    )


def test_functions_of_vector_loops_are_not_long():
    text = sums(100).replace("last:", "last:\n  %v = load <4 x float>, ptr %x")
    assert not llvm.has_long_loops(text)

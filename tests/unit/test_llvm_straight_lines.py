"""LLVM's search in straight-line code ends where the code is long: its time is not linear."""

from __future__ import annotations

import pytest

from polyblocks.codegen import llvm
from polyblocks.codegen.loop_hints import SCALAR_LOOPS

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

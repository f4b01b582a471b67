"""Which branches get `!llvm.loop`."""

from __future__ import annotations

import re

from polyblocks.codegen.loop_hints import ONLY_SCALAR, SCALAR_LOOPS, mark_loops

TEXT = """define void @vectors(ptr %0) #1 {
  br label %2

2:
  %3 = phi i64 [ 0, %1 ], [ %6, %5 ]
  %4 = icmp slt i64 %3, 8
  br i1 %4, label %5, label %7

5:
  store <4 x float> zeroinitializer, ptr %0, align 4
  %6 = add i64 %3, 1
  br label %2

7:
  ret void
}

define void @scalars(ptr %0) #1 {
  br label %2

2:
  %3 = phi i64 [ 0, %1 ], [ %4, %2 ]
  %4 = add i64 %3, 1
  store float 0.0, ptr %0, align 4
  %5 = icmp slt i64 %4, 8
  br i1 %5, label %2, label %6

6:
  ret void
}
"""


def test_loops_of_functions_with_vectors_are_marked() -> None:
    marked = mark_loops(TEXT)
    lines = [line for line in marked.split("\n") if "!llvm.loop !" in line]
    assert len(lines) == 1
    assert lines[0].startswith("  br label %2, ")
    number = re.search(r"!llvm.loop !(\d+)", lines[0])
    assert number is not None
    assert f"!{number[1]} = distinct !{{!{number[1]}, " in marked
    assert '!"llvm.loop.unroll.disable"' in marked


def test_functions_with_loops_and_no_vectors_are_marked() -> None:
    heads = [line for line in mark_loops(TEXT).split("\n") if line.startswith("define")]
    assert heads[0] == "define void @vectors(ptr %0) #1 {"
    assert heads[1] == f"define void @scalars(ptr %0) #1 {ONLY_SCALAR} {{"


def test_a_text_without_loops_stays_as_it_is() -> None:
    text = "define void @f(ptr %0) {\n  store float 0.0, ptr %0, align 4\n  ret void\n}\n"
    assert mark_loops(text) == text


def test_llvm_accepts_the_marks() -> None:
    from llvmlite import binding

    binding.parse_assembly(mark_loops(TEXT).replace("#1 ", "")).verify()


def test_loops_of_a_program_are_optimized_around_vector_code() -> None:
    text = "\n".join(
        [
            "define void @loop1(ptr %0) {",
            "  br label %1",
            "1:",
            "  %2 = load <8 x float>, ptr %0",
            "  br i1 true, label %1, label %3",
            "3:",
            "  %4 = load float, ptr %0",
            "  br i1 true, label %3, label %5",
            "5:",
            "  ret void",
            "}",
        ]
    )
    lines = mark_loops(text, {"loop1"}).split("\n")
    assert SCALAR_LOOPS in lines[0]
    # Vectors stay as they are; the scalar loop is LLVM's to vectorize.
    assert "!llvm.loop" in lines[4]
    assert "!llvm.loop" not in lines[7]
    assert SCALAR_LOOPS not in mark_loops(text).split("\n")[0]

"""Barriers between the shuffles of transposes."""

from __future__ import annotations

import re

import pytest

from polyblocks.codegen import llvm
from polyblocks_cpu.instructions.shuffle_barriers import MANY, hide_shuffles

MACHINE = llvm.Machine(triple="x86_64-unknown-linux-gnu", cpu="znver4", vector_bits=512)


def transpose(lanes: int, type_: str = "float") -> str:
    """A function that transposes a square of as many rows, by halves, quarters and so on."""
    vector, lines = f"<{lanes} x {type_}>", []
    number = 1
    rows = []
    for row in range(lanes):
        lines.append(f"  %{number + 1} = getelementptr {vector}, ptr %0, i64 {row}")
        lines.append(f"  %{number + 2} = load {vector}, ptr %{number + 1}")
        rows.append(number + 2)
        number += 2
    step = lanes // 2
    while step:
        old = list(rows)
        for row in range(lanes):
            if row & step:
                continue
            pair = old[row], old[row + step]
            for side in (0, step):
                picked = [
                    lane - (lane & step) + side + (lanes if lane & step else 0)
                    for lane in range(lanes)
                ]
                mask = ", ".join(f"i32 {lane}" for lane in picked)
                number += 1
                lines.append(
                    f"  %{number} = shufflevector {vector} %{pair[0]}, {vector} %{pair[1]}, "
                    f"<{lanes} x i32> <{mask}>"
                )
                rows[row + side] = number
        step //= 2
    for row, value in enumerate(rows):
        number += 1
        lines.append(f"  %{number} = getelementptr {vector}, ptr %0, i64 {row}")
        lines.append(f"  store {vector} %{value}, ptr %{number}")
    body = "\n".join(lines)
    return f"define void @f(ptr %0) {{\n{body}\n  ret void\n}}\n"


def test_the_machine_code_has_the_same_shuffles() -> None:
    plain = transpose(16)
    hidden = hide_shuffles(plain)
    assert hidden.count(' asm "", ') == plain.count("shufflevector") >= MANY
    counts = []
    for text in (plain, hidden):
        prepared = llvm.prepare(text, MACHINE, {"f"}, set())
        code = llvm.emit_assembly(*llvm.optimize(prepared, MACHINE))
        counts.append(len(re.findall(r"^\s+v(?:perm|unpck|shuf|insert)", code, re.MULTILINE)))
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("type_", ["half", "i32"])
def test_other_vectors_stay(type_: str) -> None:
    text = transpose(16, type_)
    assert hide_shuffles(text) == text


def test_few_shuffles_stay() -> None:
    text = transpose(8)
    assert text.count("shufflevector") < MANY
    assert hide_shuffles(text) == text


def test_each_function_is_counted_alone() -> None:
    few = transpose(8).replace("@f", "@g")
    text = hide_shuffles(f"{few}\n{transpose(16)}")
    assert text.startswith(few)
    assert ' asm "", ' in text

"""Divergence, loops, switches, calls and the order in which lanes are served."""

from __future__ import annotations

import numpy as np
import pytest
from simt_kernels import kernel_of, launch

from polyblocks import mlir
from polyblocks.errors import UnsupportedError
from polyblocks.simt.control_flow import serving_order

OUT = "%a: !llvm.ptr<1>, %out: !llvm.ptr<1>"
LOAD = """%pa = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
          %x = llvm.load %pa : !llvm.ptr<1> -> i32
          %q = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
          %c0 = llvm.mlir.constant(0 : i32) : i32
          %c1 = llvm.mlir.constant(1 : i32) : i32
          %c3 = llvm.mlir.constant(3 : i32) : i32"""


def results(body: str, a: np.ndarray, functions: str = "", **more) -> np.ndarray:
    module = kernel_of(LOAD + body, OUT, globals_=functions)
    run = launch(module, "nvvm", "k", (1,), (len(a),), a, np.zeros_like(a), **more)
    assert run.kinds == []
    return run.arrays[1]


class TestOrder:
    def test_joins_come_after_both_branches(self):
        assert serving_order([[1, 2], [3], [3], []]) in ([0, 1, 2, 3], [0, 2, 1, 3])

    def test_what_follows_a_loop_comes_after_it(self):
        # 1 is the header, 2 the body, 3 the exit, whichever branch is listed first.
        assert serving_order([[1], [3, 2], [1], []]) == [0, 1, 2, 3]
        assert serving_order([[1], [2, 3], [1], []]) == [0, 1, 2, 3]

    def test_inner_loops_are_contiguous(self):
        # 1 and 2 are headers; 2 <-> 3 is the inner loop, 4 the outer latch, 5 the exit.
        order = serving_order([[1], [5, 2], [4, 3], [2], [1], []])
        assert order == [0, 1, 2, 3, 4, 5]

    def test_branches_inside_a_loop(self):
        order = serving_order([[1], [2, 6], [3, 4], [5], [5], [1], []])
        at = {block: i for i, block in enumerate(order)}
        assert at[5] > max(at[3], at[4])
        assert order[-1] == 6

    def test_unreachable_blocks_are_left_out(self):
        assert serving_order([[1], [], [1]]) == [0, 1]


def test_loops_with_trip_counts_of_their_own():
    body = """
      llvm.br ^outer(%c0, %c0 : i32, i32)
    ^outer(%i: i32, %s: i32):
      %more = llvm.icmp "slt" %i, %x : i32
      llvm.cond_br %more, ^inner(%c0, %s : i32, i32), ^done
    ^inner(%j: i32, %s2: i32):
      %again = llvm.icmp "slt" %j, %i : i32
      llvm.cond_br %again, ^step, ^next
    ^step:
      %s3 = llvm.add %s2, %j : i32
      %j2 = llvm.add %j, %c1 : i32
      llvm.br ^inner(%j2, %s3 : i32, i32)
    ^next:
      %i2 = llvm.add %i, %c1 : i32
      llvm.br ^outer(%i2, %s2 : i32, i32)
    ^done:
      llvm.store %s, %q : i32, !llvm.ptr<1>"""
    a = np.random.default_rng(4).integers(0, 12, 50).astype(np.int32)
    want = [sum(j for i in range(x) for j in range(i)) for x in a.tolist()]
    np.testing.assert_array_equal(results(body, a), want)


def test_a_branch_to_one_block_with_different_arguments():
    body = """
      %odd = llvm.trunc %x : i32 to i1
      llvm.cond_br %odd, ^join(%x : i32), ^join(%c3 : i32)
    ^join(%v: i32):
      llvm.store %v, %q : i32, !llvm.ptr<1>"""
    a = np.arange(40, dtype=np.int32)
    np.testing.assert_array_equal(results(body, a), np.where(a % 2, a, 3))


def test_arguments_that_change_places():
    """Fibonacci: both arguments of the loop are read before either is written."""
    body = """
      llvm.br ^loop(%c0, %c1, %x : i32, i32, i32)
    ^loop(%u: i32, %v: i32, %n: i32):
      %more = llvm.icmp "sgt" %n, %c0 : i32
      %w = llvm.add %u, %v : i32
      %n2 = llvm.sub %n, %c1 : i32
      llvm.cond_br %more, ^loop(%v, %w, %n2 : i32, i32, i32), ^done
    ^done:
      llvm.store %u, %q : i32, !llvm.ptr<1>"""
    a = np.arange(12, dtype=np.int32)
    np.testing.assert_array_equal(results(body, a), [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89])


def test_switch():
    body = """
      llvm.switch %x : i32, ^other [1: ^one, 5: ^five(%x : i32), -2: ^one]
    ^one:
      llvm.store %c1, %q : i32, !llvm.ptr<1>
      llvm.br ^end
    ^five(%v: i32):
      llvm.store %v, %q : i32, !llvm.ptr<1>
      llvm.br ^end
    ^other:
      llvm.store %c3, %q : i32, !llvm.ptr<1>
      llvm.br ^end
    ^end:"""
    a = np.array([1, 5, -2, 0, 7, 5, 1], np.int32)
    np.testing.assert_array_equal(results(body, a), [1, 5, 1, 3, 3, 5, 1])


FUNCTION = """
  llvm.func @triangle(%n: i32) -> i32 {
    %z = llvm.mlir.constant(0 : i32) : i32
    %o = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^loop(%z, %n : i32, i32)
  ^loop(%s: i32, %i: i32):
    %more = llvm.icmp "sgt" %i, %z : i32
    %s2 = llvm.add %s, %i : i32
    %i2 = llvm.sub %i, %o : i32
    llvm.cond_br %more, ^loop(%s2, %i2 : i32, i32), ^end
  ^end:
    llvm.return %s : i32
  }"""


def test_calls_with_loops_twice():
    body = """
      %v = llvm.call @triangle(%x) : (i32) -> i32
      %w = llvm.call @triangle(%v) : (i32) -> i32
      llvm.store %w, %q : i32, !llvm.ptr<1>"""
    a = np.arange(8, dtype=np.int32)
    first = a * (a + 1) // 2
    np.testing.assert_array_equal(results(body, a, FUNCTION), first * (first + 1) // 2)


def test_recursion_is_refused():
    function = """llvm.func @f(%n: i32) -> i32 {
      %v = llvm.call @f(%n) : (i32) -> i32
      llvm.return %v : i32 }"""
    body = "\n%v = llvm.call @f(%x) : (i32) -> i32\nllvm.store %v, %q : i32, !llvm.ptr<1>"
    with pytest.raises(UnsupportedError, match="inlines calls, and @f calls itself"):
        results(body, np.zeros(1, np.int32), function)


def test_values_of_lanes_that_left_a_loop_stay():
    """A value defined in the loop and used behind it is the one of the lane's last trip."""
    body = """
      llvm.br ^loop(%c0 : i32)
    ^loop(%i: i32):
      %square = llvm.mul %i, %i : i32
      %i2 = llvm.add %i, %c1 : i32
      %more = llvm.icmp "sle" %i2, %x : i32
      llvm.cond_br %more, ^loop(%i2 : i32), ^done
    ^done:
      llvm.store %square, %q : i32, !llvm.ptr<1>"""
    a = np.array([3, 0, 9, 4, 1], np.int32)
    np.testing.assert_array_equal(results(body, a), a * a)


def test_blocks_that_wait_for_others_make_progress():
    """Thread 0 of subgroup 0 spins until thread 32, which is behind it, has written a flag."""
    module = kernel_of(
        """%c32 = llvm.mlir.constant(32 : i32) : i32
        %c1 = llvm.mlir.constant(1 : i32) : i32
        %c0 = llvm.mlir.constant(0 : i32) : i32
        %second = llvm.icmp "uge" %t32, %c32 : i32
        llvm.cond_br %second, ^signal, ^spin
      ^spin:
        %v = llvm.atomicrmw add %out, %c0 acq_rel : !llvm.ptr<1>, i32
        %seen = llvm.icmp "ne" %v, %c0 : i32
        llvm.cond_br %seen, ^end, ^spin
      ^signal:
        %old = llvm.atomicrmw xchg %out, %c1 acq_rel : !llvm.ptr<1>, i32
        llvm.br ^end
      ^end:""",
        "%out: !llvm.ptr<1>",
    )
    run = launch(module, "nvvm", "k", (1,), (64,), np.zeros(1, np.int32), max_steps=20_000)
    assert run.kinds == []
    assert run.result.finished


def test_endless_loops_are_stopped():
    module = kernel_of("llvm.br ^b\n^b:\nllvm.br ^b\n^c:", "%a: !llvm.ptr<1>")
    run = launch(module, "nvvm", "k", (4,), (32,), np.zeros(1, np.int32), max_steps=100)
    assert run.kinds == ["step limit"]
    assert "has not ended after 100 basic blocks" in run.result.findings[0].message
    assert not run.result.finished


def test_unknown_ops_are_named_with_their_place():
    module = mlir.parse(
        """gpu.module @kernels { llvm.func @k() attributes {gpu.kernel} {
        nvvm.wgmma.fence.aligned loc("dot"("model.py":7:1))
        llvm.return } }"""
    )
    with pytest.raises(UnsupportedError, match="no meaning of nvvm.wgmma.fence.*model.py:7"):
        launch(module, "nvvm", "k", (1,), (1,))

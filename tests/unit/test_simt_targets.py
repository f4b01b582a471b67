"""What the two targets' own ops mean to the simulator, against the ISA manuals' definitions."""

from __future__ import annotations

import numpy as np
import pytest
from simt_kernels import kernel_of, launch

rng = np.random.default_rng(9)
LANE = np.arange(32)


def lanes(op: str, target: str, a: np.ndarray, type_: str = "i32", n: int = 0, more: str = "",
          clean: bool = True) -> np.ndarray:  # fmt: skip
    """``%r`` of some ops on ``%x``, the thread's element of ``a``, stored by every thread."""
    module = kernel_of(
        f"""%all = llvm.mlir.constant(-1 : i32) : i32
        %zero = llvm.mlir.constant(0 : i32) : i32
        %c31 = llvm.mlir.constant(31 : i32) : i32
        {more}
        %p = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
        %x = llvm.load %p : !llvm.ptr<1> -> i32
        {op}
        %q = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {type_}
        llvm.store %r, %q : {type_}, !llvm.ptr<1>""",
        "%a: !llvm.ptr<1>, %out: !llvm.ptr<1>",
        target,
    )
    out = np.zeros(len(a), {"i32": np.int32, "i1": bool, "i64": np.int64}[type_])
    run = launch(module, target, "k", (1,), (n or len(a),), a, out)
    assert not clean or run.kinds == []
    return run.arrays[1]


def numbers(n: int = 64) -> np.ndarray:
    return rng.integers(-100, 100, n).astype(np.int32)


def ballot_of(flags: np.ndarray) -> np.ndarray:
    return np.repeat((flags.reshape(-1, 32).astype(np.int64) << LANE).sum(1), 32)


class TestNvvm:
    @pytest.mark.parametrize("kind", ["up", "down", "bfly", "idx"])
    @pytest.mark.parametrize("segment", [32, 8])
    def test_shuffles_in_segments(self, kind, segment):
        a, step = numbers(), 3
        # Segment mask in bits 8-12, the clamp below: 0 for up, the last lane else.
        clamp = ((32 - segment) << 8) | (0 if kind == "up" else segment - 1)
        more = (f"%s = llvm.mlir.constant({step} : i32) : i32\n"
                f"%c = llvm.mlir.constant({clamp} : i32) : i32")  # fmt: skip
        got = lanes(f"%r = nvvm.shfl.sync {kind} %all, %x, %s, %c : i32 -> i32", "nvvm", a,
                    more=more)  # fmt: skip
        start = LANE // segment * segment
        source = {"up": LANE - step, "down": LANE + step, "bfly": LANE ^ step,
                  "idx": start + step}[kind]  # fmt: skip
        source = np.where((source >= start) & (source < start + segment), source, LANE)
        np.testing.assert_array_equal(got, a.reshape(2, 32)[:, source].reshape(-1))

    def test_whether_a_shuffle_stayed_inside(self):
        more = "%s = llvm.mlir.constant(4 : i32) : i32"
        op = """%pair = nvvm.shfl.sync down %all, %x, %s, %c31 {return_value_and_is_valid}
          : i32 -> !llvm.struct<(i32, i1)>
        %r = llvm.extractvalue %pair[1] : !llvm.struct<(i32, i1)>"""
        got = lanes(op, "nvvm", numbers(32), "i1", more=more)
        np.testing.assert_array_equal(got, LANE < 28)

    @pytest.mark.parametrize("kind,type_", [("ballot", "i32"), ("any", "i1"), ("all", "i1"),
                                            ("uni", "i1")])  # fmt: skip
    def test_votes(self, kind, type_):
        a = np.concatenate([numbers(32), np.full(32, 5), np.full(32, -5)]).astype(np.int32)
        op = f"""%f = llvm.icmp "sgt" %x, %zero : i32
        %r = nvvm.vote.sync {kind} %all, %f -> {type_}"""
        got = lanes(op, "nvvm", a, type_)
        yes = (a > 0).reshape(-1, 32)
        want = {"ballot": ballot_of(a > 0).astype(np.int64).astype(np.uint32).view(np.int32),
                "any": np.repeat(yes.any(1), 32), "all": np.repeat(yes.all(1), 32),
                "uni": np.repeat(yes.all(1) | ~yes.any(1), 32)}[kind]  # fmt: skip
        np.testing.assert_array_equal(got, want)

    @pytest.mark.parametrize(
        "kind,function",
        [
            ("add", np.add),
            ("min", np.minimum),
            ("umax", np.maximum),
            ("xor", np.bitwise_xor),
        ],
    )
    def test_reductions(self, kind, function):
        a = numbers()
        got = lanes(f"%r = nvvm.redux.sync {kind} %x, %all : i32 -> i32", "nvvm", a)
        read = a.view(np.uint32) if kind == "umax" else a
        want = function.reduce(read.reshape(-1, 32), axis=1).astype(read.dtype)
        np.testing.assert_array_equal(got, np.repeat(want, 32).view(np.int32))

    def test_matches(self):
        a = rng.integers(0, 4, 64).astype(np.int32)
        got = lanes("%r = nvvm.match.sync any %all, %x : i32 -> i32", "nvvm", a)
        same = a.reshape(-1, 32)[:, :, None] == a.reshape(-1, 32)[:, None, :]
        want = (same.astype(np.int64) << LANE).sum(-1).reshape(-1)
        np.testing.assert_array_equal(got.view(np.uint32), want)

    @pytest.mark.parametrize("name,want", [
        ("laneid", np.arange(96) % 32), ("warpid", np.arange(96) // 32),
        ("ntid.x", np.full(96, 96)), ("warpsize", np.full(96, 32)),
        ("lanemask.lt", (1 << (np.arange(96) % 32)) - 1), ("nctaid.y", np.ones(96)),
    ])  # fmt: skip
    def test_special_registers(self, name, want):
        got = lanes(f"%r = nvvm.read.ptx.sreg.{name} : i32", "nvvm", numbers(96))
        np.testing.assert_array_equal(got, want)

    def test_a_warp_of_which_not_all_threads_exist(self):
        a = np.arange(40, dtype=np.int32)
        got = lanes("%r = nvvm.shfl.sync down %all, %x, %one, %c31 : i32 -> i32", "nvvm", a,
                    more="%one = llvm.mlir.constant(1 : i32) : i32", clean=False)  # fmt: skip
        np.testing.assert_array_equal(got[:39] - a[:39], np.r_[np.ones(31), 0, np.ones(7)])

    def test_multiply_add_by_its_intrinsic(self):
        op = """%f = llvm.sitofp %x : i32 to f32
        %g = llvm.call_intrinsic "llvm.nvvm.fma.rn.f"(%f, %f, %f) : (f32, f32, f32) -> f32
        %r = llvm.fptosi %g : f32 to i32"""
        a = numbers()
        np.testing.assert_array_equal(lanes(op, "nvvm", a), a * a + a)

    def test_one_thread_is_elected(self):
        got = lanes("%r = nvvm.elect.sync -> i1", "nvvm", numbers(64), "i1")
        np.testing.assert_array_equal(np.flatnonzero(got), [0, 32])


DPP = {
    0x1B: LANE ^ 3,  # quad_perm [3, 2, 1, 0]
    0x101: LANE + 1,  # row_shl 1
    0x112: LANE - 2,  # row_shr 2
    0x121: (LANE & 16) | ((LANE - 1) & 15),  # row_ror 1
    0x140: LANE ^ 15,  # row_mirror
    0x141: LANE ^ 7,  # row_half_mirror
    0x153: (LANE & 16) | 3,  # row_share 3
    0x165: LANE ^ 5,  # row_xmask 5
}


class TestRocdl:
    @pytest.mark.parametrize("control", DPP, ids=hex)
    def test_data_parallel_primitives(self, control):
        a = numbers()
        op = f"%r = rocdl.update.dpp %all, %x with {control}, 15, 15, false : i32"
        got = lanes(op, "rocdl", a)
        source = DPP[control]
        valid = (source >= 0) & (source // 16 == LANE // 16)
        want = np.where(valid, a.reshape(2, 32)[:, np.clip(source, 0, 31)], -1)
        np.testing.assert_array_equal(got, want.reshape(-1))

    def test_primitives_can_fill_with_zero_and_leave_rows_out(self):
        a = numbers(32)
        op = "%r = rocdl.update.dpp %all, %x with 273, 1, 15, true : i32"
        got = lanes(op, "rocdl", a)
        want = np.where(LANE < 16, np.where(LANE % 16 == 0, 0, np.roll(a, 1)), -1)
        np.testing.assert_array_equal(got, want)

    @pytest.mark.parametrize("offset,source", [
        (0x041F, LANE ^ 1), (0x401F, LANE ^ 16), (0x8000 | 0b00011011, LANE ^ 3),
        (0x0010, LANE & 16), (0x00FF & 0x03E0 | 0x001F, LANE | 7),
    ])  # fmt: skip
    def test_swizzles(self, offset, source):
        a = numbers()
        more = f"%o = llvm.mlir.constant({offset} : i32) : i32"
        got = lanes("%r = rocdl.ds_swizzle %x, %o : (i32, i32) -> i32", "rocdl", a, more=more)
        np.testing.assert_array_equal(got, a.reshape(2, 32)[:, source].reshape(-1))

    def test_permutation_by_address(self):
        a = numbers()
        op = """%c = llvm.mlir.constant(28 : i32) : i32
        %i = llvm.mul %t32, %c : i32
        %r = rocdl.ds_bpermute %i, %x : (i32, i32) -> i32"""
        got = lanes(op, "rocdl", a)
        source = np.arange(64) * 7 % 32
        np.testing.assert_array_equal(got, a[np.arange(64) // 32 * 32 + source])

    def test_permutation_across_rows(self):
        a = numbers()
        more = """%lo = llvm.mlir.constant(1985229328 : i32) : i32
        %hi = llvm.mlir.constant(-19088744 : i32) : i32"""
        op = "%r = rocdl.permlanex16 %x, %x, %lo, %hi, true, false : i32, i32"
        got = lanes(op, "rocdl", a, more=more)
        # 0x76543210 and 0xfedcba98 choose the same place in the other row.
        np.testing.assert_array_equal(got, a.reshape(2, 32)[:, LANE ^ 16].reshape(-1))

    def test_one_lane_for_all(self):
        a = numbers()
        got = lanes("%r = rocdl.readfirstlane %x : i32", "rocdl", a)
        np.testing.assert_array_equal(got, np.repeat(a[::32], 32))
        more = "%l = llvm.mlir.constant(7 : i32) : i32"
        got = lanes("%r = rocdl.readlane %x, %l : (i32, i32) -> i32", "rocdl", a, more=more)
        np.testing.assert_array_equal(got, np.repeat(a[7::32], 32))

    def test_ballots_and_counts_below(self):
        a = numbers()
        op = """%f = llvm.icmp "sgt" %x, %zero : i32
        %b = rocdl.ballot %f : i32
        %r = rocdl.mbcnt.lo %b, %zero : (i32, i32) -> i32"""
        got = lanes(op, "rocdl", a)
        yes = (a > 0).reshape(2, 32)
        np.testing.assert_array_equal(got, (yes.cumsum(1) - yes).reshape(-1))

    def test_indices(self):
        for name, want in [("workitem.id.x", np.arange(64)), ("workgroup.id.x", np.zeros(64)),
                           ("wavefrontsize", np.full(64, 32))]:  # fmt: skip
            got = lanes(f"%r = rocdl.{name} : i32", "rocdl", numbers())
            np.testing.assert_array_equal(got, want)

    def test_a_barrier_in_two_halves(self):
        """Threads write, signal and wait, then read what another one wrote."""
        module = kernel_of(
            """%s = llvm.mlir.addressof @tile : !llvm.ptr<3>
            %c = llvm.mlir.constant(63 : i64) : i64
            %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i32
            llvm.store %t32, %p : i32, !llvm.ptr<3>
            rocdl.s.barrier.signal id = -1
            rocdl.s.barrier.wait id = -1
            %u = llvm.sub %c, %t : i64
            %q = llvm.getelementptr %s[%u] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i32
            %v = llvm.load %q : !llvm.ptr<3> -> i32""",
            "",
            "rocdl",
            "llvm.mlir.global internal @tile() {addr_space = 3 : i32} : !llvm.array<64 x i32>",
        )
        assert launch(module, "rocdl", "k", (2,), (64,)).kinds == []

"""Vectors, structs, bits, constants and addresses in the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from simt_kernels import apply, kernel_of, launch

from polyblocks import mlir
from polyblocks.simt.constants import constant_bytes, constant_value
from polyblocks.simt.types import Layout, read_type

rng = np.random.default_rng(3)
V4 = "vector<4xf32>"


def vectors(n: int = 32) -> np.ndarray:
    return rng.standard_normal((n, 4)).astype(np.float32)


class TestVectors:
    def test_elementwise(self):
        a, b = vectors(), vectors()
        got = apply(f"llvm.fmul %x0, %x1 : {V4}", [(V4, a), (V4, b)], (V4, np.float32), extra=(4,))
        np.testing.assert_array_equal(got, a * b)

    def test_elements_by_a_lane_s_own_index(self):
        a, at = vectors(), rng.integers(0, 4, 32).astype(np.int32)
        ins = [(V4, a), ("i32", at)]
        got = apply(f"llvm.extractelement %x0[%x1 : i32] : {V4}", ins, ("f32", np.float32))
        np.testing.assert_array_equal(got, a[np.arange(32), at])
        new = rng.standard_normal(32).astype(np.float32)
        ins.append(("f32", new))
        op = f"llvm.insertelement %x2, %x0[%x1 : i32] : {V4}"
        got = apply(op, ins, (V4, np.float32), extra=(4,))
        want = a.copy()
        want[np.arange(32), at] = new
        np.testing.assert_array_equal(got, want)

    def test_shuffles(self):
        a, b = vectors(), vectors()
        op = f"llvm.shufflevector %x0, %x1 [3, 4, 0, 7] : {V4}"
        got = apply(op, [(V4, a), (V4, b)], (V4, np.float32), extra=(4,))
        np.testing.assert_array_equal(got, np.concatenate([a, b], 1)[:, [3, 4, 0, 7]])

    def test_splat_and_listed_constants(self):
        for text, want in [("dense<1.5>", [1.5] * 4), ("dense<[1.0, -2.0, 0.25, 8.0]>",
                                                       [1.0, -2.0, 0.25, 8.0])]:  # fmt: skip
            op = f"llvm.mlir.constant({text} : {V4}) : {V4}\n%r = llvm.fadd %x0, %c : {V4}"
            a = vectors()
            got = apply(op, [(V4, a)], (V4, np.float32), first="%c", extra=(4,))
            np.testing.assert_array_equal(got, a + np.float32(want))

    def test_select_by_element(self):
        a, b = vectors(), vectors()
        op = (f'llvm.fcmp "olt" %x0, %x1 : {V4}\n'
              f"%r = llvm.select %c, %x0, %x1 : vector<4xi1>, {V4}")  # fmt: skip
        got = apply(op, [(V4, a), (V4, b)], (V4, np.float32), first="%c", extra=(4,))
        np.testing.assert_array_equal(got, np.minimum(a, b))

    def test_parts(self):
        a = vectors()
        op = f"llvm.intr.vector.extract %x0[2] : vector<2xf32> from {V4}"
        got = apply(op, [(V4, a)], ("vector<2xf32>", np.float32), extra=(2,))
        np.testing.assert_array_equal(got, a[:, 2:])

    @pytest.mark.parametrize("kind,function", [("add", np.add), ("mul", np.multiply),
                                               ("and", np.bitwise_and), ("smax", np.maximum),
                                               ("umin", np.minimum)])  # fmt: skip
    def test_reductions_of_integers(self, kind, function):
        a = rng.integers(-9, 9, (32, 4)).astype(np.int32)
        op = f'"llvm.intr.vector.reduce.{kind}"(%x0) : (vector<4xi32>) -> i32'
        got = apply(op, [("vector<4xi32>", a)], ("i32", np.int32))
        read = a.view(np.uint32) if kind == "umin" else a
        np.testing.assert_array_equal(got, function.reduce(read, axis=1).astype(np.int32))


class TestBits:
    @pytest.mark.parametrize(
        "source,dtype,n,to,out,m",
        [
            ("f32", np.float32, 0, "i32", np.int32, 0),
            ("vector<2xf16>", np.float16, 2, "i32", np.int32, 0),
            ("vector<4xi16>", np.int16, 4, "vector<2xi32>", np.int32, 2),
            ("i64", np.int64, 0, "vector<2xf32>", np.float32, 2),
            ("vector<4xf32>", np.float32, 4, "vector<4xi32>", np.int32, 4),
        ],
    )
    def test_bitcasts_keep_the_bytes(self, source, dtype, n, to, out, m):
        shape = (32, n) if n else (32,)
        a = rng.integers(0, 100, shape).astype(dtype)
        extra = (m,) if m else ()
        got = apply(f"llvm.bitcast %x0 : {source} to {to}", [(source, a)], (to, out), extra=extra)
        assert got.tobytes() == a.tobytes()

    def test_a_mask_of_bools_as_a_number(self):
        a = vectors()
        op = (f'llvm.fcmp "ogt" %x0, %x1 : {V4}\n%i = llvm.bitcast %c : vector<4xi1> to i4\n'
              "%r = llvm.zext %i : i4 to i32")  # fmt: skip
        got = apply(op, [(V4, a), (V4, a * 0)], ("i32", np.int32), first="%c")
        np.testing.assert_array_equal(got, ((a > 0) << np.arange(4)).sum(1))

    def test_a_mask_whose_bits_fill_no_word(self):
        v20 = "vector<20xf32>"
        # In memory such vectors are 128 bytes apart.
        a = rng.integers(-1, 2, (32, 32)).astype(np.float32)
        op = (f'llvm.fcmp "ogt" %x0, %x1 : {v20}\n%i = llvm.bitcast %c : vector<20xi1> to i20\n'
              "%r = llvm.zext %i : i20 to i32")  # fmt: skip
        got = apply(op, [(v20, a), (v20, a * 0)], ("i32", np.int32), first="%c")
        np.testing.assert_array_equal(got, ((a[:, :20] > 0) << np.arange(20)).sum(1))

    def test_pointers_as_numbers(self):
        module = kernel_of(
            """%i = llvm.ptrtoint %a : !llvm.ptr<1> to i64
            %o = llvm.mlir.constant(4 : i64) : i64
            %j = llvm.mul %t, %o : i64
            %k = llvm.add %i, %j : i64
            %p = llvm.inttoptr %k : i64 to !llvm.ptr
            llvm.store %t32, %p : i32, !llvm.ptr""",
            "%a: !llvm.ptr<1>",
        )
        run = launch(module, "nvvm", "k", (1,), (8,), np.zeros(8, np.int32), fresh=(0,))
        assert run.kinds == []
        np.testing.assert_array_equal(run.arrays[0], np.arange(8))


def test_structs_of_structs():
    op = (
        "llvm.mlir.undef : !llvm.struct<(i32, struct<(f32, i8)>)>\n"
        "%s1 = llvm.insertvalue %x0, %s0[1, 0] : !llvm.struct<(i32, struct<(f32, i8)>)>\n"
        "%in = llvm.extractvalue %s1[1] : !llvm.struct<(i32, struct<(f32, i8)>)>\n"
        "%r = llvm.extractvalue %in[0] : !llvm.struct<(f32, i8)>"
    )
    a = rng.standard_normal(32).astype(np.float32)
    got = apply(op, [("f32", a)], ("f32", np.float32), first="%s0")
    np.testing.assert_array_equal(got, a)


def test_structs_in_memory_have_padding():
    record = np.dtype([("a", np.int8), ("b", np.float32)], align=True)
    raw = np.zeros(16, record)
    raw["a"], raw["b"] = np.arange(16), np.arange(16) * 0.5
    type_ = "!llvm.struct<(i8, f32)>"
    op = f"llvm.extractvalue %x0[1] : {type_}"
    # As bytes, since a record with holes has unwritten bytes.
    flat = raw.view(np.uint8).reshape(16, record.itemsize)
    np.testing.assert_array_equal(apply(op, [(type_, flat)], ("f32", np.float32)), raw["b"])


def test_addresses_of_every_form():
    """Struct fields, arrays of arrays, negative and lane-dependent indices."""
    module = kernel_of(
        """%two = llvm.mlir.constant(2 : i32) : i32
        %minus = llvm.mlir.constant(-1 : i32) : i32
        %p = llvm.getelementptr %a[%t, 1, %two, 1] : (!llvm.ptr<1>, i64, i32) -> !llvm.ptr<1>,
          !llvm.struct<(i64, array<3 x struct<packed (i8, i32)>>)>
        %back = llvm.getelementptr %p[%minus] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
        %v = llvm.load %back : !llvm.ptr<1> -> i8
        %q = llvm.getelementptr inbounds %out[0, %t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>,
          !llvm.array<8 x i8>
        llvm.store %v, %q : i8, !llvm.ptr<1>""",
        "%a: !llvm.ptr<1>, %out: !llvm.ptr<1>",
    )
    # 8 + 15 bytes, rounded up to 24; the byte before field 1 of element 2 is its field 0.
    a = rng.integers(0, 100, 8 * 24).astype(np.int8)
    run = launch(module, "nvvm", "k", (1,), (8,), a, np.zeros(8, np.int8))
    np.testing.assert_array_equal(run.arrays[1], a.reshape(8, 24)[:, 8 + 10])


def constant(text: str):
    module = mlir.parse(f"llvm.func @f() {{ %0 = {text}\n llvm.return }}")
    op = module.body.operations[0].regions[0].blocks[0].operations[0].operation
    return op.attributes["value"], read_type(op.results[0].type)


@pytest.mark.parametrize(
    "text,want",
    [
        ("llvm.mlir.constant(-1 : i64) : i64", [-1]),
        ("llvm.mlir.constant(true) : i1", [True]),
        ("llvm.mlir.constant(200 : i8) : i8", [-56]),
        ("llvm.mlir.constant(0x7F800000 : f32) : f32", [np.inf]),
        ("llvm.mlir.constant(1.5 : bf16) : bf16", [1.5]),
        ("llvm.mlir.constant(dense<[1.0, 0xFF80]> : vector<2xbf16>) : vector<2xbf16>",
         [[1.0], [-np.inf]]),
        ("llvm.mlir.constant(dense<[9.994500e-04, 1.0]> : vector<2xbf16>) : vector<2xbf16>",
         [[0.00099945068359375], [1.0]]),
        ("llvm.mlir.constant(dense<[1, -3]> : vector<2xi4>) : vector<2xi4>", [[1], [-3]]),
        ("llvm.mlir.constant(dense<[true, false]> : vector<2xi1>) : vector<2xi1>",
         [[True], [False]]),
        ("llvm.mlir.constant(dense<0.5> : vector<3xf16>) : vector<3xf16>", [[0.5]] * 3),
    ],
)  # fmt: skip
def test_constants(text, want):
    np.testing.assert_array_equal(constant_value(*constant(text)), want)


def test_a_nan_keeps_its_bits():
    value = constant_value(*constant("llvm.mlir.constant(0x7FC00001 : f32) : f32"))
    assert value.view(np.uint32)[0] == 0x7FC00001


def test_tables_of_constants():
    text = (
        "llvm.mlir.constant(dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>) "
        ": !llvm.array<2 x array<2 x f32>>"
    )
    attribute, type_ = constant(text)
    raw = constant_bytes(attribute, type_, Layout())
    np.testing.assert_array_equal(raw.view(np.float32), [1, 2, 3, 4])


def test_sizes_and_alignments():
    layout = Layout({3: 4})

    def sizes(text: str) -> tuple[int, int, int]:
        with mlir.make_context():
            t = read_type(mlir.ir.Type.parse(text))
        return layout.size(t), layout.alignment(t), layout.stride(t)

    assert sizes("vector<3xf32>") == (12, 16, 16)
    assert sizes("!llvm.struct<(i8, i64, i8)>") == (24, 8, 24)
    assert sizes("!llvm.struct<packed (i8, i64, i8)>") == (10, 1, 10)
    assert sizes("!llvm.ptr<3>") == (4, 4, 4)
    assert sizes("!llvm.array<3 x vector<2xf16>>") == (12, 4, 12)
    assert sizes("i1") == (1, 1, 1)

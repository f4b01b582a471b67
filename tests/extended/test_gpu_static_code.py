"""Machine code of both vendors, read from text."""

from __future__ import annotations

import pytest
from bench.gpu_static import amd_assembly, listing, loops, sass
from bench.gpu_static.instructions import Code, Instruction, Kind, Wait
from bench.gpu_static.model import Launch


def line(
    text: str, stall: int = 1, result: int = 7, read: int = 7, mask: int = 0, at: int = 0
) -> str:
    """Two lines as nvdisasm prints them: the second one holds the assembler's decisions."""
    control = stall | 1 << 4 | result << 5 | read << 8 | mask << 11
    return (
        f"        /*{at:04x}*/                   {text} ;   /* 0x0000000000000000 */\n"
        f"                                          /* 0x{control << 41 | 0x1FF:016x} */\n"
    )


SASS = (
    "        .type           product,@function\nproduct:\n.text.product:\n"
    + line("S2R R0, SR_TID.X", result=0)
    + ".L_x_0:\n"
    + line("LDSM.16.M88.4 R8, [R2+0x400]", result=3, read=1)
    + line("@!P0 LDGSTS.E.BYPASS.LTC128B.128 [R3], desc[UR4][R4.64]", 2, read=2)
    + line("@!PT LDS RZ, [RZ]")
    + line("LDGDEPBAR", result=0)
    + line("DEPBAR.LE SB0, 0x1", 4)
    + line("BAR.SYNC.DEFER_BLOCKING 0x0", 5)
    + line("HMMA.16816.F32 R16, R8.reuse, R12, R16", 8, mask=0b1000)
    + line("HMMA.16816.F32 R20, R8, R14, RZ", 8)
    + line("IMMA.16832.S8.S8 R24, R8.ROW, R12.COL, R24", 8)
    + line("@P0 BRA `(.L_x_0)", 5)
    + line("STG.E.128 desc[UR4][R4.64], R16")
    + line("EXIT")
)


def test_instructions_of_nvidia() -> None:
    code = sass.parse(SASS)["product"]
    (_, load, copy, off, close, wait, barrier, first, second, third, branch, store, _) = (
        code.instructions
    )
    assert (load.kind, load.bytes, load.signals, load.frees) == (
        Kind.SHARED,
        512,
        ("SB3",),
        "SB1",
    )
    assert (copy.kind, copy.bytes, copy.stall, copy.active) == (Kind.COPY, 512, 2, True)
    assert not off.active
    assert close.closes
    assert close.signals == ("SB0",)
    assert wait.waits == (Wait("SB0", 1),)
    assert (barrier.kind, barrier.stall) == (Kind.BARRIER, 5)
    assert first.waits == (Wait("SB3"),)
    assert (first.products, first.operands, first.accumulator) == (2048, "float16", "float32")
    assert (first.sums, first.addend, second.sums, second.addend) == ("R16", "R16", "R20", "")
    assert (third.products, third.operands, third.accumulator) == (4096, "int8", "int32")
    assert branch.target == ".L_x_0"
    assert (store.kind, store.bytes) == (Kind.STORE, 512)


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("HMMA.16816.F32.BF16", ("bfloat16", "float32")),
        ("HMMA.16816.F16", ("float16", "float16")),
        ("HMMA.1688.F32.TF32", ("tfloat32", "float32")),
        ("DMMA.884", ("float64", "float64")),
        ("HGMMA.64x128x16.F32.BF16", ("bfloat16", "float32")),
        ("IGMMA.64x256x32.S8.S8", ("int8", "int32")),
    ],
)
def test_types_of_matrix_instructions(name: str, types: tuple[str, str]) -> None:
    found = sass.instruction(name, 0)
    assert (found.operands, found.accumulator) == types


def test_products_of_four_warps_go_on() -> None:
    """A warp has a quarter of the rows, and reads a quarter of the second operand."""
    text = "HGMMA.64x256x16.F32 R24, gdesc[UR8].tnspB, R24, gsb0"
    called, wait = (sass._instruction(line, 0) for line in (text, "WARPGROUP.DEPBAR.LE gsb0, 0x1"))
    assert (called.kind, called.asynchronous) == (Kind.MATRIX, True)
    assert (called.shape, called.products) == ((16, 256, 16), 16 * 256 * 16)
    assert called.bytes == 2 * 16 * (16 + 64)
    assert "gsb0" in called.signals
    assert wait.waits[-1] == Wait("gsb0", 1)


def test_what_the_model_does_not_know_is_an_error() -> None:
    with pytest.raises(ValueError, match="QGMMA runs asynchronously"):
        sass.instruction("QGMMA.64x256x32.F32.E4M3.E4M3", 0)
    with pytest.raises(ValueError, match=r"HMMA\.32: a matrix instruction of an unknown shape"):
        sass.instruction("HMMA.32", 0)
    with pytest.raises(ValueError, match="v_wmma_f32_16x16x16_f4: a matrix instruction of unknown"):
        amd_assembly.parse(AMD.replace("16x16x16_f16", "16x16x16_f4"))


def test_the_main_loop_is_what_multiplies() -> None:
    parts = loops.split(sass.parse(SASS)["product"])
    assert [len(part) for part in (parts.before, parts.loop, parts.after)] == [1, 10, 2]
    assert parts.is_loop
    assert parts.multiplier is Kind.MATRIX


def test_a_kernel_without_a_loop_is_all_loop() -> None:
    parts = loops.split(sass.parse(SASS.replace("BRA", "NOP"))["product"])
    assert not parts.is_loop
    assert len(parts.loop) == 13


def test_inner_loops_that_do_not_multiply_belong_to_the_main_one() -> None:
    multiply = Instruction("FFMA", Kind.FLOAT, products=32)
    other = Instruction("MOV", Kind.INTEGER)

    def back(label: str) -> Instruction:
        return Instruction("BRA", Kind.CONTROL, target=label)

    code = Code(
        "kernel",
        (other, multiply, other, back("inner"), back("outer"), other, back("last")),
        {"outer": 1, "inner": 2, "last": 5},
    )
    parts = loops.split(code)
    assert (len(parts.before), len(parts.loop)) == (1, 4)
    assert loops.loops(code) == [(2, 3), (1, 4), (5, 6)]


def test_most_iterations_go_the_shorter_way() -> None:
    multiply = Instruction("FFMA", Kind.FLOAT, products=32)
    other, load = Instruction("MOV", Kind.INTEGER), Instruction("LDG", Kind.LOAD, bytes=128)

    def jump(label: str) -> Instruction:
        return Instruction("BRA", Kind.CONTROL, target=label)

    masks = (multiply, jump("usual"), other, other, other, jump("both"), other, multiply)
    code = Code("kernel", (*masks, jump("loop")), {"loop": 0, "usual": 6, "both": 7})
    assert len(loops.split(code).loop) == 5
    # What is skipped where nothing is left to copy is no exception.
    copies = (multiply, jump("on"), load, other, multiply)
    code = Code("kernel", (*copies, jump("loop")), {"loop": 0, "on": 4})
    assert len(loops.split(code).loop) == 6


def test_warps_that_copy_have_code_of_their_own() -> None:
    """And what waits for long, behind the end, is no loop."""
    copy = sass.instruction("UTMALDG.2D", 0)
    wait = sass.instruction("SYNCS.PHASECHK.TRANS64.TRYWAIT", 0)
    assert {copy.kind, wait.kind} == {Kind.CONTROL}
    product = sass.instruction("HGMMA.64x256x16.F32", 0)
    end = sass.instruction("EXIT", 0)

    def back(label: str) -> Instruction:
        return sass.instruction("BRA", 0, target=label)

    multiplies = (wait, product, product, back("multiply"), end)
    chosen = sass.instruction("ELECT", 0)
    copies = (chosen, wait, copy, copy, copy, back("copy"), end)
    late = (wait, back("late"), back("multiply"))
    labels = {"multiply": 0, "copy": 6, "late": 12}
    parts = loops.split(Code("k", (*multiplies, *copies, *late), labels))
    assert parts.loop == multiplies[:4]
    assert parts.after == (end,)
    assert parts.boxes == 3
    # A box of rows, and two of the panels of columns.
    assert Launch(1, 384, 168, 0, (16384, 8192)).bulk_bytes(parts.boxes) == 32768
    assert Launch(1, 384, 168, 0, (16384, 8192)).bulk_bytes(2) == 24576
    assert Launch(1, 384, 168, 0, (16384, 8192), cluster=2).arriving_bytes(3, 2) == 49152
    assert Launch(1, 384, 168, 0, (16384, 8192)).arriving_bytes(3, 0) == 32768


def test_branches_to_one_place_are_one_loop() -> None:
    branch = Instruction("s_branch", Kind.CONTROL, target="a")
    assert loops.loops(Code("kernel", (branch, branch), {"a": 0})) == [(0, 1)]


AMD = """
	.type	product,@function
product:
	s_load_b128 s[4:7], s[0:1], 0x0
.LBB0_1:
	global_load_b128 v[129:132], v[89:90], off     ; a comment
	ds_load_b128 v[33:36], v94 offset:1024
	ds_store_2addr_b32 v34, v42, v125 offset1:16
	s_waitcnt vmcnt(2) lgkmcnt(0)
	s_wait_loadcnt_dscnt 0x102
	v_wmma_f32_16x16x16_f16 v[1:8], v[33:40], v[49:56], v[1:8]
	v_wmma_i32_16x16x16_iu8 v[9:16], v[33:36], v[49:52], v[9:16]
	v_add_co_u32 v89, vcc_lo, 0xffffc000, v65
	v_dual_fmac_f32 v1, v2, v3 :: v_dual_fmac_f32 v4, v5, v6
	v_mov_b16_e64 v42.l, v129.l
	s_cmp_lg_u64 s[2:3], 0xff
	s_barrier
	s_cbranch_scc1 .LBB0_1
	global_store_b64 v[1:2], v[3:4], off
	s_endpgm
.Lfunc_end0:
"""


def test_instructions_of_amd() -> None:
    code = amd_assembly.parse(AMD)["product"]
    scalar, load, local, pair, old, new, halves, integers, add, dual, move, compare = (
        code.instructions[:12]
    )
    assert scalar.signals == ("lgkmcnt", "kmcnt")
    assert (load.kind, load.bytes, load.signals) == (Kind.LOAD, 512, ("vmcnt", "loadcnt"))
    assert load.writes == ("v129", "v130", "v131", "v132")
    assert (local.kind, local.bytes, local.signals) == (Kind.SHARED, 512, ("lgkmcnt", "dscnt"))
    assert (pair.bytes, pair.writes) == (256, ())
    assert set(pair.reads) == {"v34", "v42", "v125"}
    assert old.waits == (Wait("vmcnt", 2), Wait("lgkmcnt", 0))
    assert new.waits == (Wait("loadcnt", 1), Wait("dscnt", 2))
    assert (halves.products, halves.operands, halves.accumulator) == (4096, "float16", "float32")
    assert (halves.sums, halves.addend) == ("v1", "v1")
    assert (integers.operands, integers.accumulator) == ("int8", "int32")
    assert (add.kind, add.writes) == (Kind.INTEGER, ("v89",))
    assert (dual.kind, dual.products) == (Kind.FLOAT, 64)
    assert (move.writes, move.reads) == (("v42",), ("v129",))
    assert "scc" in compare.writes
    assert code.instructions[12].kind is Kind.BARRIER
    assert "scc" in code.instructions[13].reads
    assert code.instructions[14].signals == ("vscnt", "storecnt")
    parts = loops.split(code)
    assert [len(part) for part in (parts.before, parts.loop, parts.after)] == [1, 13, 2]


def test_a_listing_holds_what_the_model_needs() -> None:
    parts = loops.split(sass.parse(SASS)["product"])
    again = listing.load(listing.dump(parts))
    assert listing.dump(again) == listing.dump(parts)
    for one, other in zip(parts.loop, again.loop, strict=True):
        assert (one.name, one.kind, one.stall, one.waits, one.signals, one.frees, one.active) == (
            other.name,
            other.kind,
            other.stall,
            other.waits,
            other.signals,
            other.frees,
            other.active,
        )
        assert (one.products, one.sums, one.addend) == (other.products, other.sums, other.addend)


def test_a_line_that_is_no_instruction() -> None:
    with pytest.raises(ValueError, match="line 2, 'later HMMA', is no instruction"):
        listing.load("loop\nlater HMMA\n")


def test_without_a_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sass, "_candidates", lambda: iter(()))
    with pytest.raises(LookupError, match="pip install nvidia-cuda-nvdisasm"):
        sass.disassemble(b"")


def test_what_is_no_machine_code() -> None:
    with pytest.raises(ValueError, match="kernels.cubin fails: "):
        sass.disassemble(b"no ELF file")

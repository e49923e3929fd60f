"""Precisions read from PTX; excerpts, shortened, from Triton 3.6 for sm_80, sm_90 and sm_100."""

import time

import pytest

from kernelsmith.evaluate.guards.opcodes import below_float32, precisions

FLOAT16_DOT = """
	cvt.rn.f16x2.f32 	%r136, %r205, %r204;
	cvt.rn.f16.f32 	%rs1, %r218;
	// begin inline asm
	wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%r140,%r141}, %rd103, %rd104, %p4;
"""
BFLOAT16_DOT = """
	cvt.rn.bf16x2.f32 	%r136, %r205, %r204;
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 { %r1 }, { %r136 }, { %r9 }, { %r1 };
"""
TF32_DOT = """
	mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 { %r317 }, { %r136 }, { %r144 }, { %r317 };
"""
TF32X3_DOT = """
	cvt.rna.tf32.f32 %r248, %r149;
	sub.f32 	%r280, %r149, %r248;
	wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {%r274,%r275}, %rd103, %rd104, %p4;
"""
IEEE_DOT = """
	fma.rn.f32 	%r541, %r407, %r416, %r1635;
"""
BFLOAT16_TWICE = """
	cvt.rn.bf16.f32 	%rs1, %r387;
	cvt.rn.bf16.f32 	%rs2, %r386;
	mov.b32 	%r152, {%rs2, %rs1};
	cvt.f32.bf16 	%r388, %rs1;
	cvt.f32.bf16 	%r389, %rs2;
	sub.f32 	%r390, %r386, %r389;
	sub.f32 	%r391, %r387, %r388;
	cvt.rn.bf16x2.f32 	%r136, %r391, %r390;
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 { %r1 }, { %r136 }, { %r152 }, { %r1 };
"""
BFLOAT16_THRICE = """
	cvt.rn.bf16.f32 	%rs1, %r299;
	cvt.rn.bf16.f32 	%rs2, %r298;
	mov.b32 	%r197, {%rs2, %rs1};
	cvt.f32.bf16 	%r300, %rs1;
	cvt.f32.bf16 	%r301, %rs2;
	sub.f32 	%r302, %r298, %r301;
	sub.f32 	%r303, %r299, %r300;
	cvt.rn.bf16.f32 	%rs3, %r303;
	cvt.rn.bf16.f32 	%rs4, %r302;
	mov.b32 	%r187, {%rs4, %rs3};
	cvt.f32.bf16 	%r346, %rs3;
	cvt.f32.bf16 	%r347, %rs4;
	sub.f32 	%r348, %r302, %r347;
	sub.f32 	%r349, %r303, %r346;
	cvt.rn.bf16x2.f32 	%r175, %r349, %r348;
	wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%r140,%r141}, %rd103, %rd104, %p4;
	add.f32 	%r500, %r140, %r141;
"""
PAIRS_THRICE = """
	mov.b64 	{%r207, %r208}, %rd109;
	cvt.rn.bf16.f32 	%rs1, %r208;
	cvt.rn.bf16.f32 	%rs2, %r207;
	cvt.f32.bf16 	%r209, %rs1;
	cvt.f32.bf16 	%r210, %rs2;
	mov.b64 	%rd110, {%r210, %r209};
	sub.f32x2 	%rd111, %rd109, %rd110;
	mov.b64 	{%r211, %r212}, %rd111;
	cvt.rn.bf16.f32 	%rs3, %r212;
	cvt.rn.bf16.f32 	%rs4, %r211;
	mov.b32 	%r162, {%rs4, %rs3};
	cvt.f32.bf16 	%r213, %rs3;
	cvt.f32.bf16 	%r214, %rs4;
	mov.b64 	%rd112, {%r214, %r213};
	sub.f32x2 	%rd113, %rd111, %rd112;
	mov.b64 	{%r215, %r216}, %rd113;
	cvt.rn.bf16x2.f32 	%r163, %r216, %r215;
	@%p9 tcgen05.mma.cta_group::1.kind::f16 [ %r392 + 0 ], [ %r185 + 0 ], %rd152, %r186, %p8;
"""
HALF_ELEMENTWISE = """
	cvt.rn.f16.f32 	%rs1, %r1;
	fma.rn.f16 	%rs10, %rs1, %rs1, %rs9;
	cvt.f32.f16 	%r9, %rs10;
"""


@pytest.mark.parametrize(
    ("ptx", "found"),
    [
        (FLOAT16_DOT, {"float16", "to float16"}),
        (BFLOAT16_DOT, {"bfloat16", "to bfloat16"}),
        (TF32_DOT, {"tf32"}),
        (TF32X3_DOT, {"tf32", "to tf32", "float32"}),
        (IEEE_DOT, {"float32"}),
        (BFLOAT16_TWICE, {"bfloat16", "to bfloat16", "float32", "bfloat16 in 2 planes"}),
        (BFLOAT16_THRICE, {"bfloat16", "to bfloat16", "float32", "bfloat16 in 3 planes"}),
        (PAIRS_THRICE,
         {"float16 or bfloat16", "to bfloat16", "float32", "bfloat16 in 3 planes"}),
        (HALF_ELEMENTWISE, {"float16 arithmetic", "to float16"}),
    ],
)  # fmt: skip
def test_a_kernel_is_known_by_its_instructions(ptx, found):
    assert precisions(ptx) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%rd1}, {%rd2};", "float64"),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%r1};", "int8"),
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1};", "float16"),
        ("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%r1};", "float8"),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {%r1};", "bfloat16"),
        ("wgmma.mma_async.sync.aligned.m64n64k32.f32.e5m2.e5m2 {%r1};", "float8"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1};", "float16"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32 {%f1};", "bfloat16"),
        ("wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32 {%f1};", "tf32"),
        ("@%p1 tcgen05.mma.cta_group::1.kind::tf32 [%r1];", "tf32"),
        ("@!%p1 tcgen05.mma.cta_group::1.kind::i8 [%r1];", "int8"),
        ("dp4a.s32.s32 %r1, %r2, %r3, %r4;", "int8"),
        ("add.f64 	%rd67, %rd67, %rd22;", "float64"),
        ("fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4;", "float32"),
        ("add.rn.f32.f16 %r1, %r2, %rs1;", "float32"),
        ("max.f32 %f1, %f2, 0f00000000;", "float32"),
        ("{ add.bf16x2 %r1, %r2, %r3; }", "bfloat16 arithmetic"),
        ("ex2.approx.ftz.f16x2 %r1, %r2;", "float16 arithmetic"),
        ("red.global.add.noftz.f16x2 [%rd1], %r2;", "float16 arithmetic"),
        ("atom.global.gpu.add.f32 %f1, [%rd1], %f2;", "float32"),
        ("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f2, %f1;", "to float8"),
        ("cvt.rn.relu.f16x2.f32 %r1, %f2, %f1;", "to float16"),
        ("cvt.rz.bf16.f32 %rs1, %f1;", "to bfloat16"),
        ("cvt.rn.f16.f64 %rs1, %fd1;", "to float16"),
        ("cvt.rn.f16.s32 %rs1, %r1;", "to float16"),
    ],
)
def test_every_form_of_product_arithmetic_and_rounding(line, found):
    assert precisions(line) == {found}


@pytest.mark.parametrize(
    "line",
    [
        "ld.global.v4.b16 {%rs1}, [%rd1];", "cvt.f32.f16 %f1, %rs1;", "cvt.f32.bf16 %f1, %rs1;",
        "cvt.rn.f16x2.e4m3x2 %r1, %rs1;", "cvt.u64.u32 %rd1, %r1;", "add.s32 %r1, %r2, %r3;",
        "// fma.rn.f16 %rs1, %rs2, %rs3;", "/* cvt.rn.f16.f32\n*/", "setp.lt.f32 %p1, %f1, %f2;",
        "wgmma.wait_group.sync.aligned 0;", "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1};",
        "tcgen05.ld.sync.aligned.16x32bx2.x32.b32 {%r1};", ".visible .entry add.f16x(", "",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1};", "atom.global.cas.b16 %rs1, [%rd1];",
    ],
)  # fmt: skip
def test_what_computes_nothing_is_no_evidence(line):
    assert precisions(line) == frozenset()


@pytest.mark.parametrize("ptx", [IEEE_DOT, TF32_DOT, TF32X3_DOT, BFLOAT16_THRICE, PAIRS_THRICE])
def test_a_float32_kernel_has_nothing_below(ptx):
    assert below_float32(precisions(ptx)) == ()


@pytest.mark.parametrize(
    ("ptx", "named"),
    [
        (FLOAT16_DOT, ("float16", "to float16")),
        (BFLOAT16_DOT, ("bfloat16", "to bfloat16")),
        (HALF_ELEMENTWISE, ("float16 arithmetic", "to float16")),
        (BFLOAT16_TWICE, ("bfloat16", "bfloat16 in 2 planes", "to bfloat16")),
    ],
)
def test_half_precision_is_named(ptx, named):
    assert below_float32(precisions(ptx)) == named


def test_a_split_product_does_not_excuse_float16_or_values_that_are_not_split():
    assert below_float32(precisions(BFLOAT16_THRICE + FLOAT16_DOT)) == ("float16", "to float16")
    mixed = precisions(BFLOAT16_THRICE + BFLOAT16_DOT)
    assert below_float32(mixed) == ("bfloat16", "to bfloat16")


def test_a_megabyte_takes_well_under_a_second():
    text = BFLOAT16_THRICE * (1_000_000 // len(BFLOAT16_THRICE))
    begun = time.perf_counter()
    assert "bfloat16 in 3 planes" in precisions(text)
    assert time.perf_counter() - begun < 2


@pytest.mark.parametrize("said", ["", "to ", " ", "to"])
def test_a_kernel_that_computes_in_nothing_is_not_below_anything(said):
    assert below_float32(frozenset(said.split(", "))) == ()

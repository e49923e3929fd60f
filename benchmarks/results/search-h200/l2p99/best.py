# Found by Kernel-Smith for the task '99_Matmul_GELU_Softmax'.
# speed-up:  3.092x [3.083, 3.101] over eager, 48 samples a side
# confirmed: again at the end, on fresh inputs
# device:    NVIDIA H200 (cuda)
# torch:     2.11.0
# triton:    3.6.0
# driver:    580.159.04
# python:    3.12.3
# kernel:    6.18.44-fc-v445-gpu
# judge:     0.1.0/2
# labels:    robust
# run:       a4cd144a, begun 2026-11-15T13:02:26+00:00
# candidate: 9784dfefc8d7, step 7

"""99_Matmul_GELU_Softmax: written by kernelsmith's rules from what torch's compiler does.

The task as written, compiled: as the compiler does by itself; with product_programs persistent.
"""
# kernelsmith rules: compiled form=written option=default math=exact k1_xblock=1 k1_rblock=1 k1_warps=auto k1_stages=auto k2_xblock=1 k2_rblock=1 k2_warps=auto k2_stages=auto product=auto precision=fp16x3 product_tile=auto product_warps=auto product_stages=auto split_k=auto product_group=8 product_epilogue=fused product_loads=descriptors product_programs=persistent
import torch
import torch.nn as nn
import triton
import triton.language as tl

# EVOLVE-BLOCK-START
@triton.jit
def exp(x):
    # x = n ln 2 + r with r small: the device's own exp2 is exact enough there.
    n = tl.floor(x * 1.4426950408889634 + 0.5)
    n = tl.minimum(tl.maximum(n, -126.0), 127.0)
    r = tl.fma(n, -0.693359375, x)
    r = tl.fma(n, 2.12194440e-4, r)
    return tl.exp2(r * 1.4426950408889634) * tl.exp2(n)


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def max_along(x, axis):
    return tl.reduce(x, axis, maximum)


@triton.jit
def softmax_step(top, total, x):
    # The largest so far, and the sum of exponentials relative to it.
    new_top = maximum(top, x)
    empty = new_top == float("-inf")
    kept = tl.where(empty, 1.0, exp(top - new_top))
    added = tl.where(empty, 1.0, exp(x - new_top))
    return new_top, total * kept + added


@triton.jit
def softmax_along(tops, totals, axis):
    top = max_along(tops, axis)
    spread = tl.expand_dims(top, axis)
    below = tl.where(spread == float("-inf"), 0, tops - spread)
    return top, tl.sum(totals * exp(below), axis)


def scratch(size, alignment, stream):
    """Memory for the tensor descriptors that a kernel makes."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


# aten.addmm, aten.gelu, prims.prepare_softmax_online, aten.sub, aten.exp, aten._softmax
@triton.jit
def softmax_addmm_exp_gelu_prepare_softmax(in_out_ptr0, in_ptr0, XBLOCK: tl.constexpr, R0_BLOCK: tl.constexpr):
    xnumel = 1024
    r0_numel = 8192
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_base = tl.arange(0, R0_BLOCK)[None, :]
    x0 = xindex
    _tmp12_max = tl.full([XBLOCK, R0_BLOCK], float('-inf'), tl.float32)
    _tmp12_sum = tl.zeros([XBLOCK, R0_BLOCK], tl.float32)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_mask = r0_index < r0_numel
        r0_1 = r0_index
        tmp0 = tl.load(in_ptr0 + r0_1, r0_mask, eviction_policy='evict_last', other=0.0)
        tmp1 = tl.load(in_out_ptr0 + (r0_1 + 8192 * x0), r0_mask & xmask, eviction_policy='evict_last', other=0.0)
        tmp2 = tmp0 + tmp1
        tmp3 = tl.full([1, 1], 0.5, tl.float32)
        tmp4 = tmp2 * tmp3
        tmp5 = tl.full([1, 1], 0.7071067811865476, tl.float32)
        tmp6 = tmp2 * tmp5
        tmp7 = tl.erf(tmp6)
        tmp8 = tl.full([1, 1], 1.0, tl.float32)
        tmp9 = tmp7 + tmp8
        tmp10 = tmp4 * tmp9
        tmp11 = tl.broadcast_to(tmp10, [XBLOCK, R0_BLOCK])
        _tmp12_max_next, _tmp12_sum_next = softmax_step(_tmp12_max, _tmp12_sum, tmp11)
        _tmp12_max = tl.where(r0_mask & xmask, _tmp12_max_next, _tmp12_max)
        _tmp12_sum = tl.where(r0_mask & xmask, _tmp12_sum_next, _tmp12_sum)
    tmp12, tmp13 = softmax_along(_tmp12_max, _tmp12_sum, 1)
    tmp12 = tmp12[:, None]
    tmp13 = tmp13[:, None]
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_mask = r0_index < r0_numel
        r0_1 = r0_index
        tmp14 = tl.load(in_ptr0 + r0_1, r0_mask, eviction_policy='evict_last', other=0.0)
        tmp15 = tl.load(in_out_ptr0 + (r0_1 + 8192 * x0), r0_mask & xmask, eviction_policy='evict_first', other=0.0)
        tmp16 = tmp14 + tmp15
        tmp17 = tl.full([1, 1], 0.5, tl.float32)
        tmp18 = tmp16 * tmp17
        tmp19 = tl.full([1, 1], 0.7071067811865476, tl.float32)
        tmp20 = tmp16 * tmp19
        tmp21 = tl.erf(tmp20)
        tmp22 = tl.full([1, 1], 1.0, tl.float32)
        tmp23 = tmp21 + tmp22
        tmp24 = tmp18 * tmp23
        tmp25 = tmp24 - tmp12
        tmp26 = exp(tmp25)
        tmp27 = tmp26 / tmp13
        tl.store(in_out_ptr0 + (r0_1 + 8192 * x0), tmp27, r0_mask & xmask)


@triton.jit
def split_0(a_ptr, b_ptr, pa_ptr, pb_ptr, sa_ptr, sb_ptr, fa_ptr, fb_ptr):
    """Rows of x as (high + low) / 2^e; what does not fit is marked for the last kernel."""
    block = tl.program_id(0)
    if block < 2048:
        step = block % 128
        batch = (block // 2048).to(tl.int64)
        row = (block // 128 % 16 * 64 + tl.arange(0, 64)).to(tl.int64)
        k = step * 64 + tl.arange(0, 64)
        at = a_ptr + row[:, None] * 8192 + k.to(tl.int64)[None, :]
        x = tl.load(at)
        top = tl.max(x.to(tl.int32, bitcast=True) & 2147483647, axis=1)
        exponent = top >> 23
        bad = (exponent > 191) | (exponent < 79) & (top > 0)
        tl.store(fa_ptr + block, tl.max(bad.to(tl.int32), axis=0).to(tl.int8))
        at = pa_ptr + (batch * 2048 + row[:, None]) * 8192 + k[None, :]
        up = tl.minimum(tl.maximum(268 - exponent, 77), 189)
        x = x * (up << 23).to(tl.float32, bitcast=True)[:, None]
        high = x.to(tl.float16)
        low = (x - high.to(tl.float32)).to(tl.float16)
        tl.store(at, high)
        tl.store(at + 8388608, low)
        down = (254 - up << 23).to(tl.float32, bitcast=True)
        tl.store(sa_ptr + (batch * 128 + step) * 1024 + row, down)
    else:
        block = block - 2048
        step = block % 128
        batch = (block // 16384).to(tl.int64)
        row = (block // 128 % 128 * 64 + tl.arange(0, 64)).to(tl.int64)
        k = step * 64 + tl.arange(0, 64)
        at = b_ptr + row[:, None] * 8192 + k.to(tl.int64)[None, :]
        x = tl.load(at)
        top = tl.max(x.to(tl.int32, bitcast=True) & 2147483647, axis=1)
        exponent = top >> 23
        bad = (exponent > 191) | (exponent < 79) & (top > 0)
        tl.store(fb_ptr + block, tl.max(bad.to(tl.int32), axis=0).to(tl.int8))
        at = pb_ptr + (batch * 16384 + row[:, None]) * 8192 + k[None, :]
        up = tl.minimum(tl.maximum(268 - exponent, 77), 189)
        x = x * (up << 23).to(tl.float32, bitcast=True)[:, None]
        high = x.to(tl.float16)
        low = (x - high.to(tl.float32)).to(tl.float16)
        tl.store(at, high)
        tl.store(at + 67108864, low)
        down = (254 - up << 23).to(tl.float32, bitcast=True)
        tl.store(sb_ptr + (batch * 128 + step) * 8192 + row, down)


@triton.jit
def product_0(pa_ptr, pb_ptr, sa_ptr, sb_ptr, c_ptr):
    """Small terms first; each step has its own sum, as tensor cores truncate theirs."""
    BM: tl.constexpr = 128
    BN: tl.constexpr = 128
    BK: tl.constexpr = 64
    ROWS_A: tl.constexpr = 1024
    ROWS_B: tl.constexpr = 8192
    WIDTH: tl.constexpr = 8192
    STEPS: tl.constexpr = 128
    batch = tl.program_id(1)
    from_a = tl.make_tensor_descriptor(pa_ptr, [2 * ROWS_A, WIDTH], [WIDTH, 1], [BM, BK])
    from_b = tl.make_tensor_descriptor(pb_ptr, [2 * ROWS_B, WIDTH], [WIDTH, 1], [BN, BK])
    for tile in tl.range(tl.program_id(0), 512, tl.num_programs(0)):
        m0 = tile % 8 * BM
        n0 = tile // 8 * BN
        m = m0 + tl.arange(0, BM)
        n = n0 + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        at_sa = sa_ptr + m
        at_sb = sb_ptr + n
        for step in range(STEPS):
            k0 = step * BK
            a0 = from_a.load([m0, k0])
            a1 = from_a.load([ROWS_A + m0, k0])
            b0 = from_b.load([n0, k0])
            b1 = from_b.load([ROWS_B + n0, k0])
            sa = tl.load(at_sa + step * ROWS_A)
            sb = tl.load(at_sb + step * ROWS_B)
            part = tl.dot(a1, b0.T)
            part = tl.dot(a0, b1.T, part)
            part = tl.dot(a0, b0.T, part)
            total += part * (sa[:, None] * sb[None, :])
        value = total
        rows = m[:, None]
        columns = n[None, :]
        tl.store(c_ptr + rows * 8192 + columns, value)


@triton.jit
def repair_0(a_ptr, b_ptr, fa_ptr, fb_ptr, c_ptr):
    """Tiles that planes cannot give, in plain float32."""
    batch = tl.program_id(1).to(tl.int64)
    tile_m = tl.program_id(0) // 128
    tile_n = tl.program_id(0) % 128
    share = tl.arange(0, 128)
    at = fa_ptr + tile_m * 128 + share
    marks_a = tl.load(at, mask=share < 128, other=0)
    bad_a = tl.max(marks_a.to(tl.int32), axis=0)
    share = tl.arange(0, 128)
    at = fb_ptr + tile_n * 128 + share
    marks_b = tl.load(at, mask=share < 128, other=0)
    bad_b = tl.max(marks_b.to(tl.int32), axis=0)
    if bad_a | bad_b != 0:
        m = tile_m.to(tl.int64) * 64 + tl.arange(0, 64)
        n = tile_n.to(tl.int64) * 64 + tl.arange(0, 64)
        k = tl.arange(0, 32).to(tl.int64)
        at_a = a_ptr + m[:, None] * 8192 + k[None, :]
        at_b = b_ptr + k[:, None] + n[None, :] * 8192
        total = tl.zeros((64, 64), tl.float32)
        for k0 in range(0, 8192, 32):
            a = tl.load(at_a)
            b = tl.load(at_b)
            total += tl.dot(a, b, input_precision='ieee')
            at_a += 32
            at_b += 32
        value = total
        rows = m[:, None]
        columns = n[None, :]
        tl.store(c_ptr + rows * 8192 + columns, value)


def compute(linear_weight, linear_bias, x):
    device = linear_weight.device
    buf0 = torch.empty((1024, 8192), dtype=torch.float32, device=device)
    triton.set_allocator(scratch)
    planes_a_0 = torch.empty((1, 2, 1024, 8192), dtype=torch.float16, device=device)
    scales_a_0 = torch.empty((1, 128, 1024), dtype=torch.float32, device=device)
    planes_b_0 = torch.empty((1, 2, 8192, 8192), dtype=torch.float16, device=device)
    scales_b_0 = torch.empty((1, 128, 8192), dtype=torch.float32, device=device)
    marks_a_0 = torch.empty((2048,), dtype=torch.int8, device=device)
    marks_b_0 = torch.empty((16384,), dtype=torch.int8, device=device)
    split_0[(18432,)](
        x, linear_weight, planes_a_0, planes_b_0, scales_a_0, scales_b_0, marks_a_0, marks_b_0,
        num_warps=4, num_stages=1,
    )
    product_0[(132,)](
        planes_a_0, planes_b_0, scales_a_0, scales_b_0, buf0, num_warps=8, num_stages=3,
    )
    repair_0[(2048,)](x, linear_weight, marks_a_0, marks_b_0, buf0, num_warps=4, num_stages=2)
    softmax_addmm_exp_gelu_prepare_softmax[(triton.cdiv(1024, 1),)](
        buf0, linear_bias, XBLOCK=1, R0_BLOCK=8192, num_warps=16, num_stages=1,
    )
    return buf0
# EVOLVE-BLOCK-END


LAYOUT = (
    ((8192, 8192), (8192, 1), torch.float32),
    ((8192,), (1,), torch.float32),
    ((1024, 8192), (8192, 1), torch.float32),
)


def laid_out(tensors, layout):
    """Whether these are what the kernels were made for, and nobody asks for gradients."""
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return False
    return all(
        each.shape == shape and each.stride() == stride and each.dtype is dtype
        for each, (shape, stride, dtype) in zip(tensors, layout)
    )


class ModelNew(nn.Module):
    """
    The task's description, not kept.
    """

    def __init__(self, in_features, out_features):
        super(ModelNew, self).__init__()
        self.made_with = (in_features, out_features)
        self.linear = nn.Linear(in_features, out_features)

    def plain(self, x):
        x = self.linear(x)
        x = torch.nn.functional.gelu(x)
        x = torch.nn.functional.softmax(x, dim=1)
        return x

    def forward(self, x):
        if self.made_with == (8192, 8192):
            tensors = (self.linear.weight, self.linear.bias, x)
            if laid_out(tensors, LAYOUT):
                return compute(*tensors)
        return self.plain(x)


in_features = 8192


out_features = 8192

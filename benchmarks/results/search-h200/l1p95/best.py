# Found by Kernel-Smith for the task '95_CrossEntropyLoss'.
# speed-up:  3.013x [3.008, 3.020] over eager, 48 samples a side
# confirmed: again at the end, on fresh inputs
# device:    NVIDIA H200 (cuda)
# torch:     2.11.0
# triton:    3.6.0
# driver:    580.159.04
# python:    3.12.3
# kernel:    6.18.44-fc-v445-gpu
# judge:     0.1.0/2
# labels:    robust
# run:       942927a1, begun 2026-11-15T16:06:28+00:00
# candidate: 5eff3c8ae119, step 24

"""95_CrossEntropyLoss: written by kernelsmith's rules from what torch's compiler does.

The task as written, compiled: as the compiler does by itself; with math native, k1_xblock 2, k1_rblock 1/2, k1_stages 2.
"""
# kernelsmith rules: compiled form=written option=default math=native k1_xblock=2 k1_rblock=1/2 k1_warps=auto k1_stages=2 k2_xblock=1 k2_rblock=1 k2_warps=auto k2_stages=auto k3_xblock=1 k3_warps=auto
import torch
import torch.nn as nn
import triton
import triton.language as tl

# EVOLVE-BLOCK-START
@triton.jit
def exp(x):
    return tl.exp(x)


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


# prims.prepare_softmax_online
@triton.jit
def prepare_softmax_online(in_ptr0, out_ptr0, out_ptr1, XBLOCK: tl.constexpr, R0_BLOCK: tl.constexpr):
    r0_numel = 4096
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    r0_base = tl.arange(0, R0_BLOCK)[None, :]
    x0 = xindex
    _tmp2_max = tl.full([XBLOCK, R0_BLOCK], float('-inf'), tl.float32)
    _tmp2_sum = tl.zeros([XBLOCK, R0_BLOCK], tl.float32)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_mask = r0_index < r0_numel
        r0_1 = r0_index
        tmp0 = tl.load(in_ptr0 + (r0_1 + 4096 * x0), r0_mask, eviction_policy='evict_first', other=0.0)
        tmp1 = tl.broadcast_to(tmp0, [XBLOCK, R0_BLOCK])
        _tmp2_max_next, _tmp2_sum_next = softmax_step(_tmp2_max, _tmp2_sum, tmp1)
        _tmp2_max = tl.where(r0_mask, _tmp2_max_next, _tmp2_max)
        _tmp2_sum = tl.where(r0_mask, _tmp2_sum_next, _tmp2_sum)
    tmp2, tmp3 = softmax_along(_tmp2_max, _tmp2_sum, 1)
    tmp2 = tmp2[:, None]
    tmp3 = tmp3[:, None]
    tl.store(out_ptr0 + x0, tmp2, None)
    tl.store(out_ptr1 + x0, tmp3, None)


# aten.nll_loss_forward, aten.sub, aten._log_softmax
@triton.jit
def log_softmax_nll_loss_forward_sub(in_ptr0, in_ptr1, in_ptr2, in_ptr3, out_ptr0, out_ptr1, XBLOCK: tl.constexpr, R0_BLOCK: tl.constexpr):
    xnumel = 4
    r0_numel = 8192
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_base = tl.arange(0, R0_BLOCK)[None, :]
    x0 = xindex
    _tmp19 = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
    _tmp23 = tl.full([XBLOCK, R0_BLOCK], 0, tl.int64)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_mask = r0_index < r0_numel
        r0_1 = r0_index
        tmp0 = tl.load(in_ptr0 + (r0_1 + 8192 * x0), r0_mask & xmask, eviction_policy='evict_first', other=0.0)
        tmp10 = tl.load(in_ptr2 + (r0_1 + 8192 * x0), r0_mask & xmask, eviction_policy='evict_first', other=0.0)
        tmp12 = tl.load(in_ptr3 + (r0_1 + 8192 * x0), r0_mask & xmask, eviction_policy='evict_first', other=0.0)
        tmp1 = tl.full([1, 1], -100, tl.int64)
        tmp2 = tmp0 != tmp1
        tmp3 = tl.full([1, 1], 0, tl.int64)
        tmp4 = tl.where(tmp2, tmp0, tmp3)
        tmp5 = tl.full([1, 1], 4096, tl.int32)
        tmp6 = tmp4 + tmp5
        tmp7 = tmp4 < 0
        tmp8 = tl.where(tmp7, tmp6, tmp4)
        tmp9 = tl.load(in_ptr1 + (tmp8 + 4096 * r0_1 + 33554432 * x0), r0_mask & xmask, eviction_policy='evict_last', other=0.0)
        tmp11 = tmp9 - tmp10
        tmp13 = tl.log(tmp12)
        tmp14 = tmp11 - tmp13
        tmp15 = -tmp14
        tmp16 = tl.full([1, 1], 0.0, tl.float32)
        tmp17 = tl.where(tmp2, tmp15, tmp16)
        tmp18 = tl.broadcast_to(tmp17, [XBLOCK, R0_BLOCK])
        tmp20 = _tmp19 + tmp18
        _tmp19 = tl.where(r0_mask & xmask, tmp20, _tmp19)
        tmp21 = tmp2.to(tl.int64)
        tmp22 = tl.broadcast_to(tmp21, [XBLOCK, R0_BLOCK])
        tmp24 = _tmp23 + tmp22
        _tmp23 = tl.where(r0_mask & xmask, tmp24, _tmp23)
    tmp19 = tl.sum(_tmp19, 1)[:, None]
    tmp23 = tl.sum(_tmp23, 1)[:, None]
    tl.store(out_ptr0 + x0, tmp19, xmask)
    tl.store(out_ptr1 + x0, tmp23, xmask)


# aten.nll_loss_forward, aten.sub, aten._log_softmax
@triton.jit
def log_softmax_nll_loss_forward_sub_kernel(in_out_ptr0, in_ptr0, in_ptr1, XBLOCK: tl.constexpr):
    R0_BLOCK: tl.constexpr = 4
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    r0_0 = r0_index
    tmp0 = tl.load(in_ptr0 + r0_0, None)
    tmp4 = tl.load(in_ptr1 + r0_0, None)
    tmp1 = tl.broadcast_to(tmp0, [XBLOCK, R0_BLOCK])
    tmp3 = tl.sum(tmp1, 1)[:, None].to(tl.float32)
    tmp5 = tl.broadcast_to(tmp4, [XBLOCK, R0_BLOCK])
    tmp7 = tl.sum(tmp5, 1)[:, None].to(tl.int64)
    tmp8 = tmp7.to(tl.float32)
    tmp9 = tmp3 / tmp8
    tl.debug_barrier()
    tl.store(in_out_ptr0 + tl.full([1, 1], 0, tl.int32).broadcast_to(XBLOCK, 1), tmp9, None)


def compute(predictions, targets):
    device = predictions.device
    buf0 = torch.empty_strided((32768, 1), (1, 32768), dtype=torch.float32, device=device)
    buf1 = torch.empty_strided((32768, 1), (1, 32768), dtype=torch.float32, device=device)
    prepare_softmax_online[(triton.cdiv(32768, 2),)](
        predictions, buf0, buf1, XBLOCK=2, R0_BLOCK=1024, num_warps=16, num_stages=2,
    )
    buf3 = torch.empty((4,), dtype=torch.float32, device=device)
    buf6 = torch.empty((4,), dtype=torch.int64, device=device)
    log_softmax_nll_loss_forward_sub[(triton.cdiv(4, 1),)](
        targets, predictions, buf0, buf1, buf3, buf6, XBLOCK=1, R0_BLOCK=2048, num_warps=16,
        num_stages=1,
    )
    del buf0
    del buf1
    buf4 = torch.empty((), dtype=torch.float32, device=device)
    log_softmax_nll_loss_forward_sub_kernel[(triton.cdiv(1, 1),)](
        buf4, buf3, buf6, XBLOCK=1, num_warps=2, num_stages=1,
    )
    return buf4
# EVOLVE-BLOCK-END


LAYOUT = (((32768, 4096), (4096, 1), torch.float32), ((32768,), (1,), torch.int64),)


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

    def __init__(self):
        super(ModelNew, self).__init__()

    def plain(self, predictions, targets):
        return torch.nn.functional.cross_entropy(predictions, targets)

    def forward(self, predictions, targets):
        tensors = (predictions, targets)
        if laid_out(tensors, LAYOUT):
            return compute(*tensors)
        return self.plain(predictions, targets)

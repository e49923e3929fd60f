"""Attention whose heads are too deep for registers, as Triton: scores, weights, values in turn.

A block of queries cannot keep a sum as wide as such a head, so scores are written down, those of
as many heads at a time as memory (or the cache) has room for. Both products go over a head in
steps, each with a sum of its own, as tensor cores truncate theirs.
"""

from kernelsmith.propose.rules.kinds.attention.deep_launch import launch_text
from kernelsmith.propose.rules.kinds.attention.helpers import DEEPEST, helpers
from kernelsmith.propose.rules.space import Parameters

_SPLIT = '''\
@triton.jit
def split(x, planes, scales, marks, rows, depth, x0, x1, x2, xr, xd, n1, n2, padded, wide,
          ALONG: tl.constexpr):
    """x as (high + low) / 2^e in float16, with one e per 64 elements of a row (1) or column (0)."""
    step = tl.program_id(0) % (wide // 64)
    block = tl.program_id(0) // (wide // 64)
    head = tl.program_id(1).to(tl.int64)
    start = x + head // (n1 * n2) * x0 + head // n2 % n1 * x1 + head % n2 * x2
    row = (block * 64 + tl.arange(0, 64)).to(tl.int64)
    d = (step * 64 + tl.arange(0, 64)).to(tl.int64)
    there = (row < rows)[:, None] & (d < depth)[None, :]
    value = tl.load(start + row[:, None] * xr + d[None, :] * xd, mask=there, other=0.0)
    top = tl.max(value.to(tl.int32, bitcast=True) & 0x7FFFFFFF, axis=ALONG)
    exponent = top >> 23
    bad = (exponent > 191) | ((exponent < 79) & (top > 0))
    if tl.max(bad.to(tl.int32), axis=0) > 0:
        tl.store(marks + head, 1)  # what does not fit is done again in plain float32
    up = tl.minimum(tl.maximum(268 - exponent, 77), 189)
    factor = (up << 23).to(tl.float32, bitcast=True)
    if ALONG == 1:
        value = value * factor[:, None]
    else:
        value = value * factor[None, :]
    high = value.to(tl.float16)
    low = (value - high.to(tl.float32)).to(tl.float16)
    at = planes + (head * 2 * padded + row[:, None]) * wide + d[None, :]
    tl.store(at, high)
    tl.store(at + padded.to(tl.int64) * wide, low)
    down = ((254 - up) << 23).to(tl.float32, bitcast=True)
    if ALONG == 1:
        tl.store(scales + (head * (wide // 64) + step) * padded + row, down)
    else:
        tl.store(scales + (head * (padded // 64) + block) * wide + d, down)


'''

_WEIGHED = '''\
@triton.jit
def weighed(scores, tops, totals, weights, queries, keys, padded, rows_q, BR: tl.constexpr,
            BL: tl.constexpr, PLANES: tl.constexpr):
    """The largest score of every row, the sum of its weights, and the weights split in two."""
    head = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    at = scores + (head * queries + row[:, None]) * padded
    top = tl.full([BR], float("-inf"), tl.float32)
    total = tl.zeros([BR], tl.float32)
    for first in range(0, keys, BL):
        column = first + tl.arange(0, BL)
        there = (row < queries)[:, None] & (column < keys)[None, :]
        one = tl.load(at + column[None, :], mask=there, other=float("-inf"))
        both = tl.maximum(top, tl.max(one, axis=1))
        shift = tl.where(both == float("-inf"), 0.0, both)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(one - shift[:, None]), axis=1)
        top = both
    shift = tl.where(top == float("-inf"), 0.0, top)
    tl.store(tops + head * queries + row, shift, mask=row < queries)
    tl.store(totals + head * queries + row, total, mask=row < queries)
    if PLANES:
        to = weights + (head * 2 * rows_q + row[:, None]) * padded
        for first in range(0, padded, BL):
            column = first + tl.arange(0, BL)
            there = (row < queries)[:, None] & (column < keys)[None, :]
            one = tl.load(at + column[None, :], mask=there, other=float("-inf"))
            weight = tl.exp(one - shift[:, None]) * 16384.0
            high = weight.to(tl.float16)
            low = (weight - high.to(tl.float32)).to(tl.float16)
            inside = (row < queries)[:, None] & (column < padded)[None, :]
            tl.store(to + column[None, :], high, mask=inside)
            tl.store(to + rows_q.to(tl.int64) * padded + column[None, :], low, mask=inside)


'''

_BATCH = ("0", "1", "2")


def render_deep(features: frozenset[str], chosen: Parameters) -> str:
    """The kernels and the functions that launch them."""
    text = _SPLIT + _scored(features, planes=True) if chosen["precision"] == "fp16x3" else ""
    text += _scored(features, planes=False)
    text += _WEIGHED if "softmax" in features else ""
    if chosen["precision"] == "fp16x3":
        text += _valued(features, planes=True)
    text += _valued(features, planes=False)
    return text + launch_text(features, chosen) + helpers(features, DEEPEST)


def _start(name: str) -> str:
    return f"head // (n1 * n2) * {name}0 + head // n2 % n1 * {name}1 + head % n2 * {name}2"


def _strides(name: str, *more: str) -> list[str]:
    return [f"{name}{each}" for each in (*_BATCH, *more)]


def _function(name: str, given: list[str], fixed: list[str], lines: list[str]) -> str:
    listed = [*given, *(f"{each}: tl.constexpr" for each in fixed)]
    head, rows = f"def {name}(", [""]
    for each in listed:
        if len(rows[-1]) + len(each) > 90:
            rows.append("")
        rows[-1] += f"{each}, "
    arguments = "\n".join(f"    {each.rstrip()}" for each in rows).rstrip(",")
    body = "\n".join(f"    {each}" for each in lines)
    return f"@triton.jit\n{head}\n{arguments}):\n{body}\n\n\n"


def _indented(lines: list[str]) -> list[str]:
    return [f"    {each}" for each in lines]


def _scored(features: frozenset[str], *, planes: bool) -> str:
    """The kernel of ``q @ k * scale + bias``, masked."""
    given = ["q", "k", *(["scales_q", "scales_k"] if planes else ["marks_q", "marks_k"]), "scores"]
    given += [each for each in ("bias", "mask") if each in features]
    given += ["scale", *(["fill"] if "mask" in features else []), "first", "queries", "keys"]
    given += ["depth", "padded", "n1", "n2", *_strides("x"), *_strides("y")]
    given += (
        ["rows_q", "rows_k"] if planes else [*_strides("q", "q", "d"), *_strides("k", "d", "n")]
    )
    given += _strides("b", "q", "k") if "bias" in features else []
    given += _strides("m", "q", "k") if "mask" in features else []
    fixed = ["BM", "BN", "BK", "STAGES"]
    fixed += [each.upper() for each in ("bias", "mask") if each in features]
    fixed += [] if planes else ["EXACT", "AGAIN"]
    places = [
        "across = tl.program_id(0) % tl.cdiv(keys, BN)",
        "block = tl.program_id(0) // tl.cdiv(keys, BN)",
        "head = (first + tl.program_id(1)).to(tl.int64)",
        f"head_q = {_start('x')}",
        f"head_k = {_start('y')}",
    ]
    work = [
        "row = (block * BM + tl.arange(0, BM)).to(tl.int64)",
        "column = (across * BN + tl.arange(0, BN)).to(tl.int64)",
        "there = (row < queries)[:, None] & (column < keys)[None, :]",
        "total = tl.zeros([BM, BN], tl.float32)",
        "last = tl.cdiv(depth, BK)",
    ]
    if "causal" in features:
        work += ["if across * BN >= (block + 1) * BM:", "    last = 0  # all of it lies ahead"]
    work += _score_planes() if planes else _score_tiles()
    work.append("total = total * scale")
    if "bias" in features:
        work += [
            "if BIAS:",
            f"    at = bias + {_start('b')} + row[:, None] * bq + column[None, :] * bk",
            "    total += tl.load(at, mask=there, other=0.0).to(tl.float32)",
        ]
    if "mask" in features:
        work += [
            "if MASK:",
            f"    at = mask + {_start('m')} + row[:, None] * mq + column[None, :] * mk",
            "    total = tl.where(tl.load(at, mask=there, other=False), fill, total)",
        ]
    if "causal" in features:
        work.append("total = tl.where(column[None, :] <= row[:, None], total, float('-inf'))")
    work += [
        "to = scores + (tl.program_id(1).to(tl.int64) * queries + row[:, None]) * padded",
        "tl.store(to + column[None, :], total, mask=there)",
    ]
    if planes:
        why = "Scores of a tile: two float16 numbers for each of float32, three products."
        return _function("scored", given, fixed, [f'"""{why}"""', *places, *work])
    why = "Scores of a tile as its operands come; AGAIN: where planes could not hold them."
    lines = [f'"""{why}"""', *places, *_again("marks_q + head_q", "marks_k + head_k", work)]
    return _function("scored_plainly", given, fixed, lines)


def _again(one: str, other: str, work: list[str]) -> list[str]:
    asked = [f"    wanted {'+' if at else ''}= tl.load({each})"
             for at, each in enumerate((one, other)) if each]  # fmt: skip
    return ["wanted = 1", "if AGAIN:", *asked, "if wanted > 0:", *_indented(work)]


def _score_planes() -> list[str]:
    return [
        "wide = tl.cdiv(depth, BK) * BK",
        "d = tl.arange(0, BK)",
        "at_q = q + (head_q * 2 * rows_q + row[:, None]) * wide + d[None, :]",
        "at_k = k + (head_k * 2 * rows_k + column[None, :]) * wide + d[:, None]",
        "low_q = at_q + rows_q.to(tl.int64) * wide",
        "low_k = at_k + rows_k.to(tl.int64) * wide",
        "side_q = scales_q + head_q * (wide // BK) * rows_q + row",
        "side_k = scales_k + head_k * (wide // BK) * rows_k + column",
        "for step in tl.range(0, last, num_stages=STAGES):",
        "    q_high = tl.load(at_q + step * BK)",
        "    q_low = tl.load(low_q + step * BK)",
        "    k_high = tl.load(at_k + step * BK)",
        "    k_low = tl.load(low_k + step * BK)",
        "    more = tl.dot(q_low, k_high)",
        "    more = tl.dot(q_high, k_low, more)",
        "    more = tl.dot(q_high, k_high, more)",
        "    of_q = tl.load(side_q + step * rows_q)",
        "    of_k = tl.load(side_k + step * rows_k)",
        "    total += more * (of_q[:, None] * of_k[None, :])",
    ]


def _score_tiles() -> list[str]:
    return [
        f"at_q = q + {_start('q')} + row[:, None] * qq",
        f"at_k = k + {_start('k')} + column[None, :] * kn",
        "for step in tl.range(0, last, num_stages=STAGES):",
        "    d = (step * BK + tl.arange(0, BK)).to(tl.int64)",
        "    a = tl.load(at_q + d[None, :] * qd, mask=(row < queries)[:, None] & "
        "(d < depth)[None, :], other=0.0)",
        "    b = tl.load(at_k + d[:, None] * kd, mask=(d < depth)[:, None] & "
        "(column < keys)[None, :], other=0.0)",
        "    total += tl.dot(a, b, input_precision=EXACT)",
    ]


def _valued(features: frozenset[str], *, planes: bool) -> str:
    """The kernel of ``weights @ v``."""
    softmax = "softmax" in features
    given = ["weights" if planes else "scores", "v", "scales_v" if planes else "marks_v"]
    given += ["tops", "totals"] if softmax else []
    given += ["out", "first", "queries", "keys", "width", "padded", "n1", "n2", *_strides("y")]
    given += ["rows_q", "wide"] if planes else _strides("v", "n", "d")
    given += _strides("o", "q")
    fixed = ["BM", "BN", "BK", "STAGES"] + ([] if planes else ["EXACT", "AGAIN"])
    places = [
        "across = tl.program_id(0) % tl.cdiv(width, BN)",
        "block = tl.program_id(0) // tl.cdiv(width, BN)",
        "here = tl.program_id(1).to(tl.int64)",
        "head = here + first",
        f"head_v = {_start('y')}",
    ]
    work = [
        "row = (block * BM + tl.arange(0, BM)).to(tl.int64)",
        "e = (across * BN + tl.arange(0, BN)).to(tl.int64)",
        "value = tl.zeros([BM, BN], tl.float32)",
    ]
    if planes:
        last = "tl.minimum(keys, (block + 1) * BM)" if "causal" in features else "keys"
        work += _value_planes(last)
    else:
        work += _value_tiles(features)
    if softmax:
        work += [
            "total = tl.load(totals + here * queries + row, mask=row < queries, other=1.0)",
            "value = value / total[:, None]",
        ]
    work += [
        f"to = out + {_start('o')} + row[:, None] * oq + e[None, :]",
        "tl.store(to, value, mask=(row < queries)[:, None] & (e < width)[None, :])",
    ]
    if planes:
        why = "Weights times values, both as two float16 numbers: three products."
        return _function("valued", given, fixed, [f'"""{why}"""', *places, *work])
    # Nothing is skipped here: a hidden key whose value is infinite makes no number, as in torch.
    why = "Weights times values as they come; AGAIN: where planes could not hold the values."
    lines = [f'"""{why}"""', *places, *_again("marks_v + head_v", "", work)]
    return _function("valued_plainly", given, fixed, lines)


def _value_planes(last: str) -> list[str]:
    return [
        "n = tl.arange(0, BK)",
        "at_w = weights + (here * 2 * rows_q + row[:, None]) * padded + n[None, :]",
        "at_v = v + (head_v * 2 * padded + n[:, None]) * wide + e[None, :]",
        "low_w = at_w + rows_q.to(tl.int64) * padded",
        "low_v = at_v + padded.to(tl.int64) * wide",
        "side = scales_v + head_v * (padded // BK) * wide + e",
        f"for step in tl.range(0, tl.cdiv({last}, BK), num_stages=STAGES):",
        "    w_high = tl.load(at_w + step * BK)",
        "    w_low = tl.load(low_w + step * BK)",
        "    v_high = tl.load(at_v)",
        "    v_low = tl.load(low_v)",
        "    more = tl.dot(w_low, v_high)",
        "    more = tl.dot(w_high, v_low, more)",
        "    more = tl.dot(w_high, v_high, more)",
        "    of_v = tl.load(side + step * wide)",
        "    value += more * (of_v * 6.103515625e-05)[None, :]",
        "    at_v += BK * wide",
        "    low_v += BK * wide",
    ]


def _value_tiles(features: frozenset[str]) -> list[str]:
    if "softmax" in features:
        found = ["weight = tl.exp(score - top[:, None])"]
    elif "relu" in features:
        found = ["weight = tl.maximum(score, 0.0, tl.PropagateNan.ALL)"]
    else:
        found = ["weight = 1.0 / (1.0 + tl.exp(-score))"]
    top = "top = tl.load(tops + here * queries + row, mask=row < queries, other=0.0)"
    return [
        *([top] if "softmax" in features else []),
        "at_s = scores + (here * queries + row[:, None]) * padded",
        f"at_v = v + {_start('v')} + e[None, :] * vd",
        "for step in tl.range(0, tl.cdiv(keys, BK), num_stages=STAGES):",
        "    n = (step * BK + tl.arange(0, BK)).to(tl.int64)",
        "    score = tl.load(at_s + n[None, :], mask=(row < queries)[:, None] & "
        "(n < keys)[None, :], other=float('-inf'))",
        *_indented(found),
        "    v_ = tl.load(at_v + n[:, None] * vn, mask=(n < keys)[:, None] & "
        "(e < width)[None, :], other=0.0)",
        "    value += tl.dot(weight.to(v_.dtype), v_, input_precision=EXACT)",
    ]

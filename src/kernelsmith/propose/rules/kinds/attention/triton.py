"""Attention as Triton: a block of queries walks over the keys, the softmax is kept up online."""

from kernelsmith.propose.rules.kinds.attention.helpers import IN_REGISTERS, helpers
from kernelsmith.propose.rules.kinds.attention.launch import called, launch_text
from kernelsmith.propose.rules.space import Parameters

_BATCH = ("0", "1", "2")

_SPANS = '''\
@triton.jit
def spans(mask, found, queries, keys, m0, m1, m2, mq, mk, n1, n2, BM: tl.constexpr,
          BN: tl.constexpr):
    """For each block of queries: the first and the last block of keys that it may look at."""
    block = tl.program_id(0)
    head = tl.program_id(1)
    start = mask + (head // (n1 * n2)).to(tl.int64) * m0 + head // n2 % n1 * m1 + head % n2 * m2
    row = (block * BM + tl.arange(0, BM)).to(tl.int64)
    first = keys
    last = 0
    for key in range(0, keys, BN):
        column = key + tl.arange(0, BN)
        there = (row < queries)[:, None] & (column < keys)[None, :]
        hidden = tl.load(start + row[:, None] * mq + column[None, :] * mk, mask=there, other=True)
        if tl.min(tl.min(hidden.to(tl.int32), axis=1), axis=0) == 0:
            first = tl.minimum(first, key)
            last = key + BN
    at = found + (head * tl.num_programs(0) + block) * 2
    tl.store(at, first)
    tl.store(at + 1, last)


'''

_SPLIT = '''\
@triton.jit
def split(x, planes, scales, marks, rows, depth, x0, x1, x2, xr, xd, n1, n2, padded,
          BN: tl.constexpr, BD: tl.constexpr, ALONG: tl.constexpr):
    """x as (high + low) / 2^e in float16: e per row (ALONG 1), or per column of BN rows (0)."""
    block = tl.program_id(0)
    head = tl.program_id(1)
    start = x + (head // (n1 * n2)).to(tl.int64) * x0 + head // n2 % n1 * x1 + head % n2 * x2
    row = (block * BN + tl.arange(0, BN)).to(tl.int64)
    d = tl.arange(0, BD)
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
    at = planes + (head.to(tl.int64) * 2 * padded + row[:, None]) * BD + d[None, :]
    tl.store(at, high)
    tl.store(at + padded * BD, low)
    down = ((254 - up) << 23).to(tl.float32, bitcast=True)
    if ALONG == 1:
        tl.store(scales + head * padded + row, down)
    else:
        tl.store(scales + (head * (padded // BN) + block) * BD + d, down)


'''

_JOIN = '''\
@triton.jit
def joined(parts, tops, totals, out, queries, width, rows, splits, o0, o1, o2, oq, n1, n2,
           BM: tl.constexpr, BV: tl.constexpr):
    """Shares of the keys put together, in order."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    e = tl.arange(0, BV)
    there = row < rows
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    value = tl.zeros([BM, BV], tl.float32)
    for share in range(splits):
        at = row.to(tl.int64) + share * rows
        one = tl.load(tops + at, mask=there, other=float("-inf"))
        both = tl.maximum(top, one)
        shift = tl.where(both == float("-inf"), 0.0, both)
        old, new = tl.exp(top - shift), tl.exp(one - shift)
        total = total * old + tl.load(totals + at, mask=there, other=0.0) * new
        more = tl.load(parts + at[:, None] * BV + e[None, :], mask=there[:, None], other=0.0)
        value = value * old[:, None] + more * new[:, None]
        top = both
    value = value / total[:, None]
    head, query = row // queries, row % queries
    to = out + (head // (n1 * n2)).to(tl.int64) * o0 + head // n2 % n1 * o1 + head % n2 * o2
    at = (to + query * oq)[:, None] + e[None, :]
    tl.store(at, value, mask=there[:, None] & (e < width)[None, :])


'''


def render_kernels(features: frozenset[str], chosen: Parameters) -> str:
    """The kernels and the functions that launch them."""
    text = _SPANS if "mask" in features else ""
    planes = chosen["precision"] == "fp16x3"
    if planes:
        text += _SPLIT + _kernel("attention", features, chosen, how="planes")
    text += _kernel("tiles", features, chosen, how="either" if planes else "tiles")
    text += _JOIN if "softmax" in features else ""
    return text + launch_text(features, chosen) + helpers(features, IN_REGISTERS)


def _start(name: str) -> str:
    return (
        f"(head // (n1 * n2)).to(tl.int64) * {name}0 + head // n2 % n1 * {name}1 "
        f"+ head % n2 * {name}2"
    )


_MARKS = {
    "planes": ["scales_k", "scales_v", "marks_q"], "either": ["marks_k", "marks_v", "marks_q"],
    "tiles": [],
}  # fmt: skip
_WHY = {
    "planes": "Float32 through tensor cores: two float16 numbers each, three products.",
    "either": "A block of queries against all keys that it may look at; AGAIN: where marked.",
    "tiles": "A block of queries against all keys that it may look at.",
}


def _kernel(name: str, features: frozenset[str], chosen: Parameters, *, how: str) -> str:
    """One kernel: ``planes``, ``tiles``, or tiles that may also repair (``either``)."""
    softmax = "softmax" in features
    given = ["q", "k", "v", "out", *_MARKS[how]]
    given += ["bias"] if "bias" in features else []
    given += ["mask", "found"] if "mask" in features else []
    given += ["parts", "tops", "totals", "splits"] if softmax else []
    given += ["scale"] + (["fill"] if "mask" in features else [])
    given += ["queries", "keys", "depth", "width", "n1", "n2"]
    given += [f"q{each}" for each in (*_BATCH, "q", "d")]
    given += [f"k{each}" for each in (*_BATCH, "d", "n")]
    given += [f"v{each}" for each in (*_BATCH, "n", "d")]
    given += [f"o{each}" for each in (*_BATCH, "q")]
    given += [f"b{each}" for each in (*_BATCH, "q", "k")] if "bias" in features else []
    given += [f"m{each}" for each in (*_BATCH, "q", "k")] if "mask" in features else []
    given += [f"f{each}" for each in _BATCH] if "mask" in features else []
    given += {"planes": ["padded"], "either": ["x0", "x1", "x2", "y0", "y1", "y2"], "tiles": []}[
        how
    ]
    fixed = ["BM", "BN", "BD", "BV"]
    fixed += ["BIAS"] if "bias" in features else []
    fixed += ["MASK", "SPANS"] if "mask" in features else []
    fixed += ["SPLIT"] if softmax else []
    fixed += {"planes": [], "either": ["EXACT", "AGAIN"], "tiles": ["EXACT"]}[how]
    listed = [*given, *(f"{each}: tl.constexpr" for each in fixed)]
    planes = how == "planes"
    turn = "tl.program_id(0)"
    if "causal" in features:
        turn = "tl.cdiv(queries, BM) - 1 - tl.program_id(0)  # the longest first"
    work = [
        *_places(features, planes=planes),
        *_loop(features, planes=planes, softmax=softmax, stages=chosen["stages"]),
    ]
    if how == "either":
        work = [
            "wanted = 1",
            "if AGAIN:",
            f"    wanted = tl.load(marks_k + {_start('x')})",
            f"    wanted += tl.load(marks_v + {_start('y')}) + tl.load(marks_q + head)",
            "if wanted > 0:",
            *_indented(work),
        ]
    lines = [f'"""{_WHY[how]}"""', f"block = {turn}", "head = tl.program_id(1)", *work]
    body = "\n".join(_indented(lines))
    head = "\n".join(called(f"def {name}(", listed))
    return f"@triton.jit\n{head}:\n{body}\n\n\n"


def _indented(lines: list[str]) -> list[str]:
    return [f"    {each}" for each in lines]


def _places(features: frozenset[str], *, planes: bool) -> list[str]:
    lines = [
        "row = (block * BM + tl.arange(0, BM)).to(tl.int64)",
        "d = tl.arange(0, BD)",
        "e = tl.arange(0, BV)",
        "step = tl.arange(0, BN)",
        f"at_q = q + {_start('q')}",
        "query = tl.load(at_q + row[:, None] * qq + d[None, :] * qd, "
        "mask=(row < queries)[:, None] & (d < depth)[None, :], other=0.0)",
    ]
    if planes:
        lines += [
            "high = tl.max(query.to(tl.int32, bitcast=True) & 0x7FFFFFFF, axis=1)",
            "exponent = high >> 23",
            "bad = (exponent > 191) | ((exponent < 79) & (high > 0))",
            "if tl.max(bad.to(tl.int32), axis=0) > 0:",
            "    tl.store(marks_q + head, 1)",
            "up = tl.minimum(tl.maximum(268 - exponent, 77), 189)",
            "query = query * (up << 23).to(tl.float32, bitcast=True)[:, None]",
            "down = ((254 - up) << 23).to(tl.float32, bitcast=True) * scale",
            "q_high = query.to(tl.float16)",
            "q_low = (query - q_high.to(tl.float32)).to(tl.float16)",
            "head_k = (head // (n1 * n2)) * k0 + head // n2 % n1 * k1 + head % n2 * k2",
            "head_v = (head // (n1 * n2)) * v0 + head // n2 % n1 * v1 + head % n2 * v2",
            "at_k = k + head_k.to(tl.int64) * 2 * padded * BD + d[:, None] + step[None, :] * BD",
            "at_v = v + head_v.to(tl.int64) * 2 * padded * BV + e[None, :] + step[:, None] * BV",
        ]
    else:
        lines += [
            f"at_k = k + {_start('k')} + d[:, None] * kd",
            f"at_v = v + {_start('v')} + e[None, :] * vd",
        ]
    if "bias" in features:
        lines.append(f"at_b = bias + {_start('b')} + row[:, None] * bq + step[None, :] * bk")
    if "mask" in features:
        lines.append(f"at_m = mask + {_start('m')} + row[:, None] * mq + step[None, :] * mk")
    return lines


def _loop(features: frozenset[str], *, planes: bool, softmax: bool, stages: str) -> list[str]:
    lines = [
        "top = tl.full([BM], float('-inf'), tl.float32)" if softmax else "",
        "total = tl.zeros([BM], tl.float32)" if softmax else "",
        "value = tl.zeros([BM, BV], tl.float32)",
        "first = 0",
        "last = tl.minimum(keys, (block + 1) * BM)" if "causal" in features else "last = keys",
    ]
    if "mask" in features:
        span = ("found + (((head // (n1 * n2)) * f0 + head // n2 % n1 * f1 + head % n2 * f2) "
                "* tl.num_programs(0) + block) * 2")  # fmt: skip
        lines += [
            "if SPANS:",
            f"    first = tl.load({span})",
            f"    last = tl.minimum(last, tl.load({span} + 1))",
        ]
    if softmax:
        lines += [
            "if SPLIT:",
            "    share = tl.cdiv(tl.cdiv(last - first, BN), splits) * BN",
            "    first = first + tl.program_id(2) * share",
            "    last = tl.minimum(last, first + share)",
        ]
    lines += [f"for key in tl.range(first, last, BN, num_stages={stages}):",
              *_indented(_step(features, planes=planes, softmax=softmax))]  # fmt: skip
    to = f"at = out + {_start('o')} + row[:, None] * oq + e[None, :]"
    store = [
        to,
        "tl.store(at, value, mask=(row < queries)[:, None] & (e < width)[None, :])",
    ]
    if softmax:
        lines += [
            "if SPLIT:",
            "    place = (tl.program_id(2) * tl.num_programs(1) + head).to(tl.int64) * queries",
            "    tl.store(tops + place + row, top, mask=row < queries)",
            "    tl.store(totals + place + row, total, mask=row < queries)",
            "    tl.store(parts + (place + row)[:, None] * BV + e[None, :], value, "
            "mask=(row < queries)[:, None])",
            "else:",
            "    value = value / total[:, None]",
            *_indented(store),
        ]
    else:
        lines += store
    return [each for each in lines if each]


def _step(features: frozenset[str], *, planes: bool, softmax: bool) -> list[str]:
    lines = ["column = key + step"]
    if planes:
        lines += [
            "k_high = tl.load(at_k + key * BD)",
            "k_low = tl.load(at_k + (key + padded) * BD)",
            "scores = tl.dot(q_low, k_high)",
            "scores = tl.dot(q_high, k_low, scores)",
            "scores = tl.dot(q_high, k_high, scores)",
            "side = tl.load(scales_k + head_k * padded + column)",
            "scores = scores * (down[:, None] * side[None, :])",
        ]
    else:
        lines += [
            "there = column < keys",
            "k_ = tl.load(at_k + column.to(tl.int64)[None, :] * kn, mask=(d < depth)[:, None] & "
            "there[None, :], other=0.0)",
            "scores = tl.dot(query, k_, input_precision=EXACT) * scale",
        ]
    if "bias" in features:
        lines += [
            "if BIAS:",
            "    scores += tl.load(at_b + key * bk, mask=(row < queries)[:, None] & "
            "(column < keys)[None, :], other=0.0).to(tl.float32)",
        ]
    if "mask" in features:
        lines += [
            "if MASK:",
            "    hidden = tl.load(at_m + key * mk, mask=(row < queries)[:, None] & "
            "(column < keys)[None, :], other=False)",
            "    scores = tl.where(hidden, fill, scores)",
        ]
    ahead = "(column < keys)[None, :]"
    if "causal" in features:
        ahead = "(column[None, :] <= row[:, None]) & (column < keys)[None, :]"
    lines.append(f"scores = tl.where({ahead}, scores, float('-inf'))")
    if softmax:
        lines += [
            "both = tl.maximum(top, tl.max(scores, axis=1))",
            "shift = tl.where(both == float('-inf'), 0.0, both)",
            "weight = tl.exp(scores - shift[:, None])",
            "old = tl.exp(top - shift)",
            "total = total * old + tl.sum(weight, axis=1)",
            "value = value * old[:, None]",
            "top = both",
        ]
    elif "relu" in features:
        lines.append("weight = tl.maximum(scores, 0.0, tl.PropagateNan.ALL)")
    else:
        lines.append("weight = 1.0 / (1.0 + tl.exp(-scores))")
    if planes:
        return [
            *lines,
            "v_high = tl.load(at_v + key * BV)",
            "v_low = tl.load(at_v + (key + padded) * BV)",
            "weight = weight * 16384.0",
            "w_high = weight.to(tl.float16)",
            "w_low = (weight - w_high.to(tl.float32)).to(tl.float16)",
            "more = tl.dot(w_low, v_high)",
            "more = tl.dot(w_high, v_low, more)",
            "more = tl.dot(w_high, v_high, more)",
            "side = tl.load(scales_v + (head_v * (padded // BN) + key // BN) * BV + e)",
            "value += more * (side * 6.103515625e-05)[None, :]",
        ]
    return [
        *lines,
        "v_ = tl.load(at_v + column.to(tl.int64)[:, None] * vn, mask=(column < keys)[:, None] & "
        "(e < width)[None, :], other=0.0)",
        "value += tl.dot(weight.to(v_.dtype), v_, input_precision=EXACT)",
    ]

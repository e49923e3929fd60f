"""The Python that launches the kernels of an attention with deep heads, some heads at a time."""

from kernelsmith.propose.rules.kinds.attention.launch import called, out_lines
from kernelsmith.propose.rules.space import Parameters

_SIZES = '''\
def counted(x):
    """How heads are counted along three leading dimensions; not along what is repeated."""
    a, b, c = x.shape[:3]
    return [0 if a == 1 else b * c, 0 if b == 1 else c, 0 if c == 1 else 1]


def rounded(size, by):
    """The next multiple."""
    return triton.cdiv(size, by) * by


def side(size, most):
    """Of a tile: a power of two that is no larger than it must be."""
    return min(most, max(16, triton.next_power_of_2(size)))


'''
_SPLIT_UP = """\
        wide, wide_v = rounded(depth, 64), rounded(width, max(BV, 64))
        rows_q, rows_k = rounded(queries, max(BM, 64)), rounded(keys, max(BN, 64))
        many_q, many_k, many_v = (x.shape[0] * x.shape[1] * x.shape[2] for x in (q, k, v))
        marks = torch.zeros(many_q + many_k + many_v, dtype=torch.int32, device=q.device)
        marks_q, marks_k, marks_v = marks.split((many_q, many_k, many_v))
        made = []
        for x, mark, high, broad, along in (
            (q, marks_q, rows_q, wide, 1), (k.transpose(-2, -1), marks_k, rows_k, wide, 1),
            (v, marks_v, padded, wide_v, 0),
        ):
            to = q.new_empty((mark.shape[0], 2, high, broad), dtype=torch.float16)
            scales = q.new_empty((mark.shape[0], high * broad // 64))
            split[(high * broad // 4096, mark.shape[0])](
                x, to, scales, mark, x.shape[-2], x.shape[-1], *steps(x), x.shape[1], x.shape[2],
                high, broad, ALONG=along, num_warps=4)
            made += [to, scales]
        q_, scales_q, k_, scales_k, v_, scales_v = made
        weights = q.new_empty((share, 2, rows_q, padded), dtype=torch.float16)
"""


def launch_text(features: frozenset[str], chosen: Parameters) -> str:
    """The function ``attend`` that a candidate calls."""
    split = chosen["precision"] == "fp16x3"
    softmax = "softmax" in features
    # Plain float32 takes registers instead of tensor cores.
    flat = "True" if chosen["precision"] in ("fp16x3", "ieee") else "False"
    lines = [
        "def attend(q, k, v, scale=1.0, bias=None, mask=None, fill=0.0):",
        '    """The attention, or none where the kernels are not made for what they got."""',
        "    if not fitting(q, k, v, scale, bias, mask, fill):",
        "        return None",
        "    queries, depth, keys, width = q.shape[-2], q.shape[-1], k.shape[-1], v.shape[-1]",
        "    if queries * keys >= 2**31:",
        "        return None",
        "    batch = leading(q, k, v)",
        "    n0, n1, n2 = (*(1,) * (3 - len(batch)), *batch)",
        "    heads = n0 * n1 * n2",
        "    q, k, v = five(q), five(k), five(v)",
        *out_lines(chosen),
        "    padded = rounded(keys, 64)",
        f"    share = min(heads, max(1, {chosen['scores']} * 2**18 // (queries * padded)))",
        "    scores = q.new_empty((share, queries, padded), dtype=torch.float32)",
    ]
    if softmax:
        lines += [
            "    tops, totals = q.new_empty((2, share, queries), dtype=torch.float32)",
            "    BL = min(1024, triton.next_power_of_2(padded))",
        ]
    lines += [f"    {each} = five({each}) if {each} is not None else None"
              for each in ("bias", "mask") if each in features]  # fmt: skip
    lines += [
        # A few queries read the keys once: splitting them would cost more than it saves.
        f"    split_up = q.dtype is torch.float32 and {'queries > 32' if split else 'False'}",
        f"    flat = q.dtype is torch.float32 and {flat}",
        f"    BM = side(queries, 32 if flat and not split_up else {chosen['queries']})",
        f"    BN, BV = (side(each, 64 if flat and not split_up else {chosen['columns']})",
        "              for each in (keys, width))",
        f"    stages = {chosen['stages']}",
        "    while stages > 1 and stages * (BM + max(BN, BV)) * 256 > 220000:",
        "        stages -= 1",
        f"    warps = {chosen['warps']} if BM * BN >= 8192 else 4",
    ]
    if split:
        lines += ["    if split_up:", _SPLIT_UP.rstrip("\n")]
    lines += [
        "    for first in range(0, heads, share):",
        "        some = min(share, heads - first)",
        *_indented(_group(features, chosen, split=split, softmax=softmax), 2),
        "    return out",
    ]
    return _SIZES + "\n".join(lines) + "\n\n\n"


def _group(
    features: frozenset[str], chosen: Parameters, *, split: bool, softmax: bool
) -> list[str]:
    """Lines that do some of the heads."""
    plain = ["BM=BM", "BN=BN", "BK=32 if flat else 64", "STAGES=1 if flat else stages"]
    precision = "ieee" if split else chosen["precision"]
    exact = f'EXACT="{precision}" if q.dtype is torch.float32 else "ieee"'
    asked = [f"{each.upper()}={each} is not None"
             for each in ("bias", "mask") if each in features]  # fmt: skip
    more = [each for name in ("bias", "mask") if name in features
            for each in (f"*(steps({name}) if {name} is not None else (0,) * 5)",)]  # fmt: skip
    masks = [f"{each} if {each} is not None else q" for each in ("bias", "mask")
             if each in features]  # fmt: skip
    middle = [*masks, "scale", *(["fill"] if "mask" in features else []), "first", "queries",
              "keys", "depth", "padded", "n1", "n2", "*counted(q)", "*counted(k)"]  # fmt: skip
    rows = ["tops", "totals"] if softmax else []
    ending = ["o", "first", "queries", "keys", "width", "padded", "n1", "n2", "*counted(v)"]
    small = ["BM=32", "BN=64", "BK=32", "STAGES=1"]

    def scored(marks: list[str], tile: list[str], *, again: bool) -> list[str]:
        given = ["q", "k", *marks, "scores", *middle, "*steps(q)", "*steps(k)", *more, *tile]
        return [*given, *asked, exact, f"AGAIN={again}", f"num_warps={4 if again else 'warps'}"]

    def valued(mark: str, tile: list[str], *, again: bool) -> list[str]:
        given = ["scores", "v", mark, *rows, *ending, "*steps(v)", "*steps(o)[:4]", *tile]
        return [*given, exact, f"AGAIN={again}", f"num_warps={4 if again else 'warps'}"]

    both = "(triton.cdiv(queries, BM) * triton.cdiv({0}, {1}), some)"
    over_k, over_v = both.format("keys", "BN"), both.format("width", "BV")
    all_k, all_v = (each.replace("BM", "32").replace("BN", "64").replace("BV", "64")
                    for each in (over_k, over_v))  # fmt: skip
    as_v = [plain[0], "BN=BV", *plain[2:]]
    first = called(f"scored_plainly[{over_k}](", scored(["q", "k"], plain, again=False))
    last = called(f"valued_plainly[{over_v}](", valued("v", as_v, again=False))
    if split:
        given = ["q_", "k_", "scales_q", "scales_k", "scores", *middle, "rows_q", "rows_k", *more,
                 "BM=BM", "BN=BN", "BK=64", "STAGES=stages", *asked, "num_warps=warps"]  # fmt: skip
        first = [
            "if split_up:",
            *_indented(called(f"scored[{over_k}](", given), 1),
            *_indented(called(f"scored_plainly[{all_k}](",
                              scored(["marks_q", "marks_k"], small, again=True)), 1),
            "else:",
            *_indented(first, 1),
        ]  # fmt: skip
        given = ["weights", "v_", "scales_v", *rows, *ending, "rows_q", "wide_v", "*steps(o)[:4]",
                 "BM=BM", "BN=BV", "BK=64", "STAGES=stages", "num_warps=warps"]  # fmt: skip
        last = [
            "if split_up:",
            *_indented(called(f"valued[{over_v}](", given), 1),
            *_indented(called(f"valued_plainly[{all_v}](",
                              valued("marks_v", small, again=True)), 1),
            "else:",
            *_indented(last, 1),
        ]  # fmt: skip
    if not softmax:
        return [*first, *last]
    kept = "weights if split_up else scores" if split else "scores"
    rows_q = "rows_q if split_up else 0" if split else "0"
    planes = "split_up" if split else "False"
    given = ["scores", "tops", "totals", kept, "queries", "keys", "padded", rows_q,
             "BR=2048 // BL", "BL=BL", f"PLANES={planes}", "num_warps=4"]  # fmt: skip
    weighed = called("weighed[(triton.cdiv(queries, 2048 // BL), some)](", given)
    return [*first, *weighed, *last]


def _indented(lines: list[str], by: int) -> list[str]:
    return [f"{'    ' * by}{each}" for each in lines]

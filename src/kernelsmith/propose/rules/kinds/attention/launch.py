"""The Python that launches the kernels of an attention: sizes, memory, one call after another."""

from kernelsmith.propose.rules.space import Parameters


def launch_text(features: frozenset[str], chosen: Parameters) -> str:
    """The function ``attend`` that a candidate calls."""
    planes = chosen["precision"] == "fp16x3"
    softmax = "softmax" in features
    # Plain float32 takes registers instead of tensor cores.
    most = min(32, int(chosen["queries"])) if chosen["precision"] == "ieee" else chosen["queries"]
    arguments = ["q, k, v", "scale=1.0", "bias=None", "mask=None", "fill=0.0"]
    lines = [
        f"def attend({', '.join(arguments)}):",
        '    """The attention, or none where the kernel is not made for what it got."""',
        "    if not fitting(q, k, v, scale, bias, mask, fill):",
        "        return None",
        "    batch = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])",
        "    queries, depth, keys, width = q.shape[-2], q.shape[-1], k.shape[-1], v.shape[-1]",
        "    n0, n1, n2 = (*(1,) * (3 - len(batch)), *batch)",
        "    heads = n0 * n1 * n2",
        "    q, k, v = five(q), five(k), five(v)",
        *out_lines(chosen),
        "    BD = max(16, triton.next_power_of_2(depth))",
        "    BV = max(16, triton.next_power_of_2(width))",
        f"    BM = min({most}, max(16, triton.next_power_of_2(queries)))",
        f"    BN = min({chosen['keys']}, max(16, triton.next_power_of_2(keys)))",
        "    while BM > 16 and BM * BV > 16384:",
        "        BM //= 2",
        "    while BN > 16 and BN * max(BD, BV) > 8192:",
        "        BN //= 2",
        "    blocks = triton.cdiv(queries, BM)",
        "    grid = (blocks, heads)",
    ]
    if "bias" in features:
        lines.append("    b = five(bias) if bias is not None else q")
    if "mask" in features:
        lines += [
            "    m = five(mask) if mask is not None else q",
            "    shown = mask is not None and fill == float('-inf')  # what is hidden is skipped",
            "    found = q",
            "    if shown:",
            "        found = torch.empty((*m.shape[:3], blocks, 2), dtype=torch.int32, "
            "device=q.device)",
            "        spans[(blocks, m.shape[0] * m.shape[1] * m.shape[2])](",
            "            m, found, queries, keys, *steps(m), m.shape[1], m.shape[2], "
            "BM=BM, BN=BN, num_warps=4)",
        ]
    more: list[str] = []
    if "bias" in features:
        more.append("*steps(b)")
    if "mask" in features:
        more += ["*steps(m)", "*(each // (blocks * 2) for each in steps(found)[:3])"]
    head = (["b"] if "bias" in features else []) + (["m", "found"] if "mask" in features else [])
    if softmax:
        lines += [
            "    splits = 1",
            f"    while blocks * heads * splits < {chosen['programs']} and keys >= 512 * splits:",
            "        splits *= 2",
            "    rows = heads * queries",
            "    parts = q.new_empty((splits * rows, BV), dtype=torch.float32) if splits > 1 "
            "else out",
            "    tops = q.new_empty((2, splits * rows), dtype=torch.float32) if splits > 1 "
            "else (out, out)",
            "    grid = (blocks, heads, splits)",
        ]
        head += ["parts", "tops[0]", "tops[1]", "splits"]
    head += ["scale"] + (["fill"] if "mask" in features else [])
    head += ["queries", "keys", "depth", "width", "n1", "n2"]
    fixed = ["BM=BM", "BN=BN", "BD=BD", "BV=BV"]
    fixed += ["BIAS=bias is not None"] if "bias" in features else []
    fixed += ["MASK=mask is not None", "SPANS=shown"] if "mask" in features else []
    fixed += ["SPLIT=splits > 1"] if softmax else []
    warps = f"num_warps={chosen['warps']} if BM >= 64 else 4"
    tail = ["*steps(q)", "*steps(k)", "*steps(v)", "*steps(o)[:4]", *more]
    if planes:
        lines += _planes(head, more, fixed, warps)
    else:
        exact = f'EXACT="{chosen["precision"]}" if q.dtype is torch.float32 else "ieee"'
        given = ["q", "k", "v", "o", *head, *tail, *fixed, exact, warps]
        lines += called("    tiles[grid](", given)
    if softmax:
        lines += [
            "    if splits > 1:",
            "        joined[(triton.cdiv(rows, 4),)](",
            "            parts, tops[0], tops[1], o, queries, width, rows, splits, *steps(o)[:4],",
            "            n1, n2, BM=4, BV=BV, num_warps=4)",
        ]
    if planes:
        small = ["BM=16", "BN=32", *fixed[2:]]
        small = ["SPANS=False" if each.startswith("SPANS") else each for each in small]
        small = ["SPLIT=False" if each.startswith("SPLIT") else each for each in small]
        lines += [
            "    if split_up:",
            *called("        tiles[(triton.cdiv(queries, 16), heads)](",
                     ["q", "k", "v", "o", "marks_k", "marks_v", "marks_q", *head, *tail, "*at_k",
                      "*at_v", *small, 'EXACT="ieee"', "AGAIN=True", "num_warps=4"]),
        ]  # fmt: skip
    return "\n".join([*lines, "    return out"]) + "\n\n\n"


def called(head: str, arguments: list[str]) -> list[str]:
    """A call over several lines."""
    inner = " " * (len(head) - len(head.lstrip()) + 4)
    lines = [inner]
    for each in arguments:
        if len(lines[-1]) + len(each) > 96:
            lines[-1] = lines[-1].rstrip()
            lines.append(inner)
        lines[-1] += f"{each}, "
    lines[-1] = lines[-1].rstrip(", ") + ")"
    return [head, *lines]


def out_lines(chosen: Parameters) -> list[str]:
    """Lines that make room for what comes out."""
    if chosen.get("layout") == "tokens":
        return [
            "    if len(batch) == 2:  # heads of a token side by side: turned already",
            "        out = q.new_empty((n1, queries, n2, width)).transpose(1, 2)",
            "    else:",
            "        out = q.new_empty((*batch, queries, width))",
            "    o = five(out)",
        ]
    return ["    out = q.new_empty((*batch, queries, width))", "    o = five(out)"]


def _planes(head: list[str], more: list[str], fixed: list[str], warps: str) -> list[str]:
    """Lines that split keys and values, multiply, and do again what did not fit."""
    tail = ["*steps(q)", "*steps(k)", "*steps(v)", "*steps(o)[:4]", *more]
    return [
        "    # A few queries read the keys once: splitting them would cost more than it saves.",
        "    split_up = q.dtype is torch.float32 and queries > 32",
        "    if split_up:",
        "        turned = k.transpose(-2, -1)",
        "        padded = triton.cdiv(keys, BN) * BN",
        "        many_k, many_v = (x.shape[0] * x.shape[1] * x.shape[2] for x in (k, v))",
        "        k_ = q.new_empty((*k.shape[:3], 2, padded, BD), dtype=torch.float16)",
        "        v_ = q.new_empty((*v.shape[:3], 2, padded, BV), dtype=torch.float16)",
        "        scales_k = q.new_empty((many_k, padded))",
        "        scales_v = q.new_empty((many_v, padded // BN, BV))",
        "        marks = torch.zeros(many_k + many_v + heads, dtype=torch.int32, device=q.device)",
        "        marks_k, marks_v, marks_q = marks.split((many_k, many_v, heads))",
        "        for x, to, scales, mark, along, size in (",
        "            (turned, k_, scales_k, marks_k, 1, BD), (v, v_, scales_v, marks_v, 0, BV)",
        "        ):",
        "            split[(padded // BN, mark.shape[0])](",
        "                x, to, scales, mark, keys, x.shape[-1], *steps(x), x.shape[1],",
        "                x.shape[2], padded, BN=BN, BD=size, ALONG=along, num_warps=4)",
        "        at_k = [each // (2 * padded * BD) for each in steps(k_)[:3]]",
        "        at_v = [each // (2 * padded * BV) for each in steps(v_)[:3]]",
        *called("        attention[grid](", [
            "q", "k_", "v_", "o", "scales_k", "scales_v", "marks_q", *head, "*steps(q)",
            "*at_k, 0, 0", "*at_v, 0, 0", "*steps(o)[:4]", *more, "padded", *fixed, warps]),
        "    else:",
        *called("        tiles[grid](", [
            "q", "k", "v", "o", "q", "q", "q", *head, *tail, "0, 0, 0, 0, 0, 0", *fixed,
            'EXACT="ieee"', "AGAIN=False", warps]),
    ]  # fmt: skip

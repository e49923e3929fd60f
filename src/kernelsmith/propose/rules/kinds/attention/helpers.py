"""Python that a candidate brings along: what fits, how tensors lie, and calls written otherwise."""

_FITTING = '''\
def leading(q, k, v):
    """The dimensions before rows and columns; asking torch takes longer than a small product."""
    shapes = {{q.shape[:-2], k.shape[:-2], v.shape[:-2]}}
    return shapes.pop() if len(shapes) == 1 else torch.broadcast_shapes(*shapes)


def fitting(q, k, v, scale, bias, mask, fill):
    """Whether the kernel is made for these."""
    if q.dtype not in {dtypes} or k.dtype is not q.dtype or v.dtype is not q.dtype:
        return False
    if not (2 <= q.dim() <= 5 and 2 <= k.dim() <= 5 and 2 <= v.dim() <= 5):
        return False
    if q.numel() == 0 or k.numel() == 0 or v.numel() == 0 or not isinstance(scale, (int, float)):
        return False
    if q.shape[-1] != k.shape[-2] or k.shape[-1] != v.shape[-2]:
        return False
    if max(q.shape[-1], v.shape[-1]) > {deepest} or not isinstance(fill, (int, float)):
        return False
    batch = leading(q, k, v)
    if len(batch) > 3 or batch.numel() > 65535:
        return False
    scores = (*batch, q.shape[-2], k.shape[-1])
    for x in (bias, mask):
        if x is None:
            continue
        if not isinstance(x, torch.Tensor) or x.dim() > len(scores):
            return False
        if any(a not in (1, b) for a, b in zip(x.shape[::-1], scores[::-1])):
            return False
    if mask is not None and mask.dtype is not torch.bool:
        return False
    return bias is None or bias.dtype in (q.dtype, torch.float32)


def five(x):
    """Three leading dimensions, then rows and columns."""
    return x[(None,) * (5 - x.dim())]


def steps(x):
    """Strides of three leading dimensions, rows and columns; none along what is repeated."""
    found = [0 if size == 1 else step for size, step in zip(x.shape, x.stride())]
    return [0] * (5 - len(found)) + found


'''

_LIBRARY = '''\
def library_attention(q, k, v, attn_mask=None, scale=None, enable_gqa=False):
    """As torch.nn.functional.scaled_dot_product_attention."""
    if q.shape[-1] == 0:
        return None
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    grouped = enable_gqa and q.dim() == 4 and q.shape[1] != k.shape[1]
    if grouped:
        if attn_mask is not None or k.shape[1] == 0 or q.shape[1] % k.shape[1]:
            return None
        if v.shape[1] != k.shape[1]:
            return None
        q, k, v = q.unflatten(1, (k.shape[1], -1)), k.unsqueeze(2), v.unsqueeze(2)
    if attn_mask is None:
        out = attend(q, k.transpose(-2, -1), v, scale=scale)
    elif attn_mask.dtype is torch.bool:
        hidden = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill_(~attn_mask, -torch.inf)
        out = attend(q, k.transpose(-2, -1), v, scale=scale, bias=hidden)
        if out is not None:  # rows without any key are zero here, and only here
            out.masked_fill_(~attn_mask.any(-1, keepdim=True), 0.0)
    else:
        out = attend(q, k.transpose(-2, -1), v, scale=scale, bias=attn_mask)
    return out.flatten(1, 2) if grouped and out is not None else out


'''

_MULTIHEAD = '''\
def multihead(layer, query, key, value):
    """As torch.nn.MultiheadAttention, without its weights."""
    dim, heads = layer.embed_dim, layer.num_heads
    if type(layer) is not torch.nn.MultiheadAttention:
        return None
    if layer._forward_hooks or layer._forward_pre_hooks:  # they may change it, or what it gives
        return None
    if layer.in_proj_weight is None or layer.bias_k is not None or layer.add_zero_attn:
        return None
    if query.dim() != 3 or (layer.training and layer.dropout > 0):
        return None
    bias = layer.in_proj_bias
    parts = layer.in_proj_weight.split(dim)
    more = (None,) * 3 if bias is None else bias.split(dim)
    if query is key and key is value:
        q, k, v = torch.nn.functional.linear(query, layer.in_proj_weight, bias).split(dim, dim=-1)
    else:
        q, k, v = (torch.nn.functional.linear(x, w, b)
                   for x, w, b in zip((query, key, value), parts, more))
    q, k, v = (x.unflatten(-1, (heads, dim // heads)) for x in (q, k, v))
    if layer.batch_first:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    else:
        q, k, v = (x.permute(1, 2, 0, 3) for x in (q, k, v))
    out = attend(q, k.transpose(-2, -1), v, scale=(dim // heads) ** -0.5)
    if out is None:
        return None
    out = out.transpose(1, 2) if layer.batch_first else out.permute(2, 0, 1, 3)
    last = layer.out_proj
    return torch.nn.functional.linear(out.flatten(-2), last.weight, last.bias)


'''

DTYPES = "(torch.float32, torch.bfloat16, torch.float16)"
IN_REGISTERS = 256
"""Elements of a head that a program on a GPU can keep for a block of queries."""
DEEPEST = 16384
ON_PROCESSOR = 1024


def fitting(deepest: int, dtypes: str = DTYPES) -> str:
    """The checks, up to a depth of heads."""
    return _FITTING.format(dtypes=dtypes, deepest=deepest)


def helpers(features: frozenset[str], deepest: int, dtypes: str = DTYPES) -> str:
    """What else is called by ``forward``, and the checks."""
    text = fitting(deepest, dtypes)
    text += _LIBRARY if "library" in features else ""
    return text + (_MULTIHEAD if "multihead" in features else "")

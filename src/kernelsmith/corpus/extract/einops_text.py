"""Our own small ``einops``, written into tasks that use it: patterns to reshape and permute."""

REARRANGE = """\
def _split_pattern(side):
    groups, inside = [], None
    for token in re.findall(r"\\(|\\)|\\.\\.\\.|\\w+", side):
        if token == "(":
            inside = []
        elif token == ")":
            groups.append(inside)
            inside = None
        elif inside is not None:
            inside.append(token)
        else:
            groups.append([token])
    return groups


def _spread(groups, rank):
    extra = [f"..{i}" for i in range(rank)]
    found = []
    for group in groups:
        if group == ["..."]:
            found.extend([name] for name in extra)
        else:
            found.append([n for name in group for n in (extra if name == "..." else [name])])
    return found


def _einops(x, pattern, reduction, sizes):
    if isinstance(x, (list, tuple)):
        x = torch.stack(list(x))
    left, right = (_split_pattern(side) for side in pattern.split("->"))
    dots = x.dim() - sum(group != ["..."] for group in left)
    left, right = _spread(left, dots), _spread(right, dots)
    if len(left) != x.dim():
        raise RuntimeError(f"{pattern!r} expects {len(left)} dimensions, got {x.dim()}")
    sizes, shape, names = dict(sizes), [], []
    for group, size in zip(left, x.shape):
        known, unknown = 1, None
        for name in group:
            if name.isdigit():
                sizes[name] = int(name)
            if name in sizes:
                known *= sizes[name]
            else:
                unknown = name
        if unknown is not None:
            sizes[unknown] = size // known
            known *= sizes[unknown]
        if known != size:
            raise RuntimeError(f"{pattern!r}: a dimension of size {size} is not {known}")
        shape += [sizes[name] for name in group]
        names += group
    x = x.reshape(shape)
    ones = [i for i, name in enumerate(names) if name == "1"]
    x = x.reshape([s for i, s in enumerate(shape) if i not in ones])
    names = [name for name in names if name != "1"]
    wanted = [name for group in right for name in group if name != "1"]
    gone = [i for i, name in enumerate(names) if name not in wanted]
    if gone:
        x = getattr(x, {"max": "amax", "min": "amin"}.get(reduction, reduction))(dim=gone)
        names = [name for name in names if name in wanted]
    x = x.permute([names.index(name) for name in wanted if name in names])
    for i, name in enumerate(wanted):
        if name not in names:
            size = int(name) if name.isdigit() else sizes[name]
            sizes[name] = size
            x = x.unsqueeze(i).expand(*x.shape[:i], size, *x.shape[i:])
    return x.reshape([math.prod(sizes[n] for n in group if n != "1") for group in right])


def rearrange(x, pattern, /, **sizes):
    return _einops(x, pattern, "sum", sizes)
"""
REPEAT = """\
def repeat(x, pattern, /, **sizes):
    return _einops(x, pattern, "sum", sizes)
"""
REDUCE = """\
def reduce(x, pattern, reduction, /, **sizes):
    return _einops(x, pattern, reduction, sizes)
"""
LAYER = """\
class Rearrange(nn.Module):
    def __init__(self, pattern, /, **sizes):
        super().__init__()
        self.pattern, self.sizes = pattern, sizes

    def forward(self, x):
        return rearrange(x, self.pattern, **self.sizes)
"""
REDUCE_LAYER = """\
class Reduce(nn.Module):
    def __init__(self, pattern, reduction, /, **sizes):
        super().__init__()
        self.pattern, self.reduction, self.sizes = pattern, reduction, sizes

    def forward(self, x):
        return reduce(x, self.pattern, self.reduction, **self.sizes)
"""
EINSUM = """\
def einsum(*arguments):
    *tensors, pattern = arguments
    if isinstance(tensors[0], str):
        pattern, *tensors = arguments
    words, letters = re.findall(r"\\w+|\\.\\.\\.|->|,", pattern), {}
    text = ""
    for word in words:
        if word not in ("...", "->", ","):
            word = letters.setdefault(word, "abcdefghijklmnopqrstuvwxyz"[len(letters)])
        text += word
    return torch.einsum(text, *tensors)
"""
PACK = """\
def pack(tensors, pattern):
    before, after = (len(side.split()) for side in pattern.split("*"))
    shapes = [t.shape[before : t.dim() - after] for t in tensors]
    flat = [
        t.reshape(*t.shape[:before], math.prod(shape), *t.shape[t.dim() - after :])
        for t, shape in zip(tensors, shapes)
    ]
    return torch.cat(flat, dim=before), shapes
"""
UNPACK = """\
def unpack(tensor, shapes, pattern):
    dim = len(pattern.split("*")[0].split())
    sizes = [math.prod(shape) for shape in shapes]
    if -1 in sizes:
        sizes[sizes.index(-1)] = tensor.shape[dim] - sum(s for s in sizes if s != -1)
    parts = tensor.split(sizes, dim=dim)
    return [
        part.reshape(*part.shape[:dim], *shape, *part.shape[dim + 1 :])
        for part, shape in zip(parts, shapes)
    ]
"""

"""Small tasks, some for each kind."""

from rule_tasks import a_task

DIM = {"init": "self.dim = dim", "arguments": ", dim"}
MASKED = {
    "names": "x, mask", "inputs": "torch.rand(3, 5003), torch.randint(0, 2, (3, 5003)).bool()",
}  # fmt: skip

SCANS = {
    "cumsum": a_task("return torch.cumsum(x, dim=self.dim)", given="1", **DIM),
    "cumprod": a_task("return torch.tanh(x).cumprod(-1)", inputs="torch.rand(5, 67)"),
    "cumsum_back": a_task(
        "return torch.cumsum(x.flip(self.dim), dim=self.dim).flip(self.dim)",
        given="1", inputs="torch.randn(4, 4999)", **DIM,
    ),
    "masked_cumsum": a_task("return torch.cumsum(x * mask, dim=1)", **MASKED),
    "exclusive_cumsum": a_task("return torch.cumsum(x, dim=-1) - x"),
    "cumsum_down": a_task("return torch.cumsum(x, dim=1)", inputs="torch.randn(3, 41, 37)"),
    "cumsum_up": a_task(
        "out = torch.cumsum(x.flip(0), 0)\nreturn out.flip(0) * 0.5", inputs="torch.randn(19, 83)"
    ),
    "cumprod_down": a_task("return torch.cumprod(out, 0)", names="out", inputs="torch.rand(9, 70)"),
}  # fmt: skip

IMAGE = {"inputs": "torch.randn(2, 19, 3, 23)"}
COLUMNS = {
    "sum_middle": a_task("return torch.sum(x, dim=self.dim, keepdim=True)", given="1",
                         inputs="torch.randn(3, 150, 45)", **DIM),
    "max_first": a_task("return torch.max(x, dim=0)[0]", inputs="torch.randn(70, 33)"),
    "min_middle": a_task("return x.min(dim=1).values * 2", **IMAGE),
    "mean_middle": a_task("return F.relu(x.mean(dim=-2))", **IMAGE),
    "prod_middle": a_task("return torch.prod(x, dim=1)", **IMAGE),
    "softmax_middle": a_task("return torch.softmax(x, dim=1)", **IMAGE),
    "log_softmax_middle": a_task("return F.log_softmax(x * 2, dim=-3)", **IMAGE),
    "logsumexp_first": a_task("return torch.logsumexp(x, 0)", inputs="torch.randn(70, 33)"),
    "rms_middle": a_task(
        "return x / torch.sqrt(torch.mean(x ** 2, dim=1, keepdim=True) + self.eps)",
        init="self.eps = eps", arguments=", eps=1e-5", **IMAGE),
    "l2_middle": a_task("return F.normalize(x, dim=1)", **IMAGE),
    "var_first": a_task("return x.var(dim=0)", inputs="torch.randn(70, 33)"),
    "mean_long": a_task(
        "return torch.mean(x * x, dim=1) * self.scale", init="self.scale = scale",
        arguments=", scale=3.0", inputs="torch.randn(2, 700, 41)"),
    "range_long": a_task(
        "return size.max(dim=0).values - size.min(dim=0).values", names="size",
        inputs="torch.randn(1037, 140)"),
    "scaled": a_task(
        "return x / x.norm(dim=1, keepdim=True) * self.g",
        init="self.g = nn.Parameter(torch.ones(1, 19, 1, 1))", **IMAGE),
}  # fmt: skip

CHANNELS = {"arguments": ", channels", "given": "6"}
WINDOWS = {
    "causal": a_task(
        "return F.silu(self.conv(F.pad(x, (self.width - 1, 0))))",
        init="self.width = 4\nself.conv = nn.Conv1d(channels, channels, 4, groups=channels)",
        inputs="torch.randn(2, 6, 53)", **CHANNELS),
    "depthwise": a_task(
        "return self.conv(x)",
        init="self.conv = nn.Conv2d(channels, channels, (3, 5), padding=(1, 2), "
        "groups=channels, bias=False)", inputs="torch.randn(2, 6, 11, 37)", **CHANNELS),
    "depthwise_far": a_task(
        "return F.relu(self.conv(x))",
        init="self.conv = nn.Conv2d(channels, channels, 3, stride=2, dilation=2, groups=channels)",
        inputs="torch.randn(2, 6, 13, 40)", **CHANNELS),
    "max_pool1d": a_task(
        "return self.pool(x)", init="self.pool = nn.MaxPool1d(8, 1, 4, 3)",
        inputs="torch.randn(2, 3, 90)"),
    "max_pool2d": a_task("return F.max_pool2d(x, 2)", inputs="torch.randn(2, 3, 13, 22)"),
    "max_pool3d": a_task(
        "return self.pool(x)", init="self.pool = nn.MaxPool3d(3, stride=2, padding=1, dilation=3)",
        inputs="torch.randn(1, 2, 9, 8, 11)"),
    "avg_pool1d": a_task("return F.avg_pool1d(x, 4, 2, 1) * 2", inputs="torch.randn(2, 3, 41)"),
    "avg_pool2d": a_task(
        "return self.pool(x)", init="self.pool = nn.AvgPool2d(11)",
        inputs="torch.randn(1, 2, 25, 60)"),
    "avg_pool_uncounted": a_task(
        "return torch.tanh(self.pool(x))",
        init="self.pool = nn.AvgPool2d(3, 2, 1, count_include_pad=False)",
        inputs="torch.randn(2, 2, 9, 20)"),
    "max_pool_beyond": a_task(
        "return self.pool(x)", init="self.pool = nn.MaxPool2d(3, 2, 1, ceil_mode=True)",
        inputs="torch.randn(2, 3, 12, 23)"),
    "avg_pool_beyond": a_task("return F.avg_pool1d(x, 4, 3, ceil_mode=True)",
                              inputs="torch.randn(2, 3, 42)"),
    "avg_pool3d": a_task("return F.avg_pool3d(x, 2)", inputs="torch.randn(1, 2, 5, 6, 9)"),
}  # fmt: skip

LOOKUPS = {
    "embedding": a_task(
        "return self.table(ids) * self.scale", names="ids", inputs="torch.randint(0, 31, (3, 7))",
        init="self.scale = dim ** 0.5\nself.table = nn.Embedding(31, dim)", arguments=", dim",
        given="67"),
    "embedding_tanh": a_task(
        "return torch.tanh(self.table(ids))", names="ids", inputs="torch.randint(0, 9, (11,))",
        init="self.table = nn.Embedding(9, 40, padding_idx=0)"),
}  # fmt: skip
ROUTERS = {
    "router": a_task(
        "weights, experts = torch.topk(torch.softmax(x, dim=-1), 2, dim=-1)\n"
        "return weights / weights.sum(dim=-1, keepdim=True), experts"),
    "softmax_behind": a_task(
        "best = x.topk(self.k, dim=1)\nreturn best.indices, torch.softmax(best.values, dim=-1)",
        init="self.k = k", arguments=", k", given="6"),
    "scaled_topk": a_task(
        "weights, experts = torch.topk(x * 0.5, 3)\nreturn weights * 2.5, experts",
        inputs="torch.randn(2, 9, 20)"),
    "plain_topk": a_task("return torch.topk(x, 4)[0]"),
}  # fmt: skip

SMALL = {"inputs": "torch.randn(5, 29)"}
SORTS = {
    "sort": a_task("return torch.sort(x, dim=-1, descending=True)", **SMALL),
    "sort_values": a_task("return x.sort().values * self.s", init="self.s = s", arguments=", s",
                          given="0.5", **SMALL),
    "argsort": a_task("return torch.argsort(-x, dim=1, stable=True)", **SMALL),
    "sort_both": a_task(
        "return x.argsort(dim=2), torch.tanh(torch.sort(x, 2)[0])", inputs="torch.randn(2, 3, 19)"),
    "sort_flat": a_task("return torch.msort(torch.sigmoid(x))", inputs="torch.randn(29)"),
    "many_best": a_task("return torch.topk(scores, 17)", names="scores", **SMALL),
    "least": a_task("return torch.topk(x, 3, largest=False)[0]", **SMALL),
    "percentile": a_task(
        "limit = torch.kthvalue(x.abs(), (9 * x.shape[-1] + 9) // 10, dim=-1, keepdim=True).values"
        "\nreturn torch.clamp(x / limit, -1.0, 1.0), limit"),
    "nucleus": a_task(
        "least = torch.topk(x, self.k).values[:, -1:]\n"
        "return torch.softmax(x.masked_fill(x < least, float('-inf')) / 0.8, dim=-1)",
        init="self.k = k", arguments=", k", given="20"),
    "median": a_task("return x - x.median(dim=-1).values.unsqueeze(-1)"),
    "deviation": a_task(
        "middle = x.median(-1, keepdim=True).values\nfar = (x - middle).abs()\n"
        "return far / (1.4826 * far.median(-1, keepdim=True).values + y.abs() + 1e-2),",
        names="x, y", inputs="torch.randn(5, 67), torch.randn(5, 67)"),
    "third": a_task("return torch.sigmoid(x).sort(descending=True).values[..., 2]"),
    "between": a_task(
        "y = torch.sigmoid(x * 2)\nleast = y.sort(dim=1)[0][:, -9, None]\n"
        "kept = torch.where(y < least, 0.0, y)\n"
        "return kept / kept.sum(dim=1, keepdim=True), least"),
}  # fmt: skip

PRODUCTS = {
    "bmm": a_task("return torch.bmm(x, y)", names="x, y",
                  inputs="torch.randn(3, 13, 19), torch.randn(3, 19, 21)"),
    "scores": a_task("return torch.tanh(x @ y.transpose(-2, -1) * 0.125)", names="x, y",
                     inputs="torch.randn(3, 13, 19), torch.randn(3, 40, 19)"),
    "linear": a_task("return F.gelu(self.fc(x))", init="self.fc = nn.Linear(dim, 53)",
                     arguments=", dim", given="67"),
    "residual": a_task("return F.relu(torch.matmul(x, y)) + z", names="x, y, z",
                       inputs="torch.randn(5, 7), torch.randn(7, 70), torch.randn(5, 70)"),
    "adapter": a_task(
        "return self.fc(x) + 2.0 * (x @ self.down.T) @ self.up.T",
        init="self.fc = nn.Linear(67, 53, bias=False)\n"
        "self.down = nn.Parameter(torch.randn(5, 67))\n"
        "self.up = nn.Parameter(torch.randn(53, 5))"),
    "turned_adapter": a_task(
        "return F.linear(x, self.w, self.b) + (x @ self.down) @ self.up * self.s",
        init="self.w = nn.Parameter(torch.randn(53, 67))\nself.b = nn.Parameter(torch.randn(53))\n"
        "self.down = nn.Parameter(torch.randn(67, 5))\nself.s = s\n"
        "self.up = nn.Parameter(torch.randn(5, 53))", arguments=", s", given="0.5"),
    "gated": a_task(
        "return self.down(F.silu(self.gate(x)) * self.up(x)) + x",
        init="self.gate = nn.Linear(67, 90)\nself.up = nn.Linear(67, 90, bias=False)\n"
        "self.down = nn.Linear(90, 67)", inputs="torch.randn(3, 7, 67)"),
}  # fmt: skip

PICKS = {
    "argmax_middle": a_task("return torch.argmax(x, dim=self.dim)", given="1",
                            inputs="torch.randn(3, 50, 45)", **DIM),
    "argmin_last": a_task("return x.argmin(-1, keepdim=True)"),
    "max_indices": a_task("return torch.max(x.abs(), dim=0)[1]"),
}  # fmt: skip
CLASSES = {"names": "x, y", "inputs": "torch.randn(9, 67), torch.randint(0, 67, (9,))"}
ENTROPIES = {
    "cross_entropy": a_task("return F.cross_entropy(x, y)", **CLASSES),
    "cross_entropy_each": a_task(
        "return self.loss(x, y)", init="self.loss = nn.CrossEntropyLoss(reduction='none')",
        **CLASSES),
}  # fmt: skip
ENTROPIES |= {
    "smoothed": a_task("return F.cross_entropy(x, y, label_smoothing=0.1)", **CLASSES),
    "smoothed_layer": a_task(
        "return self.loss(x, y)", **CLASSES,
        init="self.loss = nn.CrossEntropyLoss(label_smoothing=0.2, reduction='sum', "
        "ignore_index=3)"),
    "nll": a_task("return F.nll_loss(x, y)", **CLASSES),
    "nll_of_softmax": a_task(
        "return self.loss(F.log_softmax(x, dim=1), y)", init="self.loss = nn.NLLLoss()", **CLASSES),
    "nll_each": a_task("return F.nll_loss(x, y, reduction='none', ignore_index=2)", **CLASSES),
    "smoothed_by_hand": a_task(
        "logs = torch.log_softmax(x, dim=-1)\n"
        "picked = logs.gather(1, y.unsqueeze(1)).squeeze(1)\n"
        "return -(0.9 * picked + 0.1 * logs.mean(dim=-1)).mean()", **CLASSES),
    "nll_by_hand": a_task(
        "logs = F.log_softmax(x, dim=-1)\nreturn -logs.gather(-1, y[:, None]).squeeze(-1) / 2",
        **CLASSES),
}  # fmt: skip
SIX = {"inputs": "torch.randn(2, 6, 5, 37)", **CHANNELS}
GROUPS = {
    "batch_norm": a_task("return F.relu(self.norm(x))", init="self.norm = nn.BatchNorm2d(channels)",
                         **SIX),
    "group_norm": a_task("return self.norm(x)",
                         init="self.norm = nn.GroupNorm(3, channels)", **SIX),
    "instance_norm": a_task("return self.norm(x)",
                            init="self.norm = nn.InstanceNorm2d(channels)", **SIX),
}  # fmt: skip

PICKED = {"names": "x, ids", "inputs": "torch.randn(23, 67), torch.randint(0, 23, (9,))"}
BAGS = {"names": "ids", "inputs": "torch.randint(0, 31, (6, 5))", "arguments": ", dim",
        "given": "67"}  # fmt: skip
GATHERS = {
    "gather": a_task("return torch.gather(x, 1, ids) * 2", names="x, ids",
                     inputs="torch.randn(5, 67), torch.randint(0, 67, (5, 19))"),
    "brackets": a_task("return F.relu(x[ids])", **PICKED),
    "brackets_back": a_task("return x[ids]", names="x, ids",
                            inputs="torch.randn(23, 67), torch.randint(-23, 23, (9,))"),
    "index_select": a_task("return torch.index_select(x, 0, ids)", **PICKED),
    "take_along": a_task("return torch.take_along_dim(x, ids, dim=1)", names="x, ids",
                         inputs="torch.randn(4, 9, 33), torch.randint(0, 9, (4, 3, 1))"),
    "bag_layer": a_task("return self.bag(ids)", init="self.bag = nn.EmbeddingBag(31, dim)", **BAGS),
    "bag_function": a_task(
        "return F.embedding_bag(ids, self.table, mode='sum', per_sample_weights=w)",
        init="self.table = nn.Parameter(torch.randn(31, dim))", arguments=", dim", given="67",
        names="ids, w", inputs="torch.randint(0, 31, (6, 5)), torch.rand(6, 5)"),
    "two_tables": a_task(
        "return self.words(ids) + self.kinds(kinds)", names="ids, kinds",
        inputs="torch.randint(0, 31, (3, 7)), torch.randint(0, 2, (3, 7))", arguments=", dim",
        init="self.words = nn.Embedding(31, dim)\nself.kinds = nn.Embedding(2, dim)", given="67"),
    "pages": a_task(
        "return x[ids].flatten(1, 2).transpose(1, 2).contiguous()", names="x, ids",
        inputs="torch.randn(7, 4, 3, 21), torch.randint(0, 7, (2, 5))"),
}  # fmt: skip
ROWS = {"names": "ids, x", "inputs": "torch.randint(0, 11, (40,)), torch.randn(40, 67)"}
SCATTERS = {
    "index_add": a_task("return x.new_zeros(11, x.shape[1]).index_add(0, ids, x)", **ROWS),
    "index_add_onto": a_task(
        "return torch.tanh(y.index_add(0, ids, x * 0.5))", names="ids, x, y",
        inputs="torch.randint(0, 11, (40,)), torch.randn(40, 67), torch.randn(11, 67)"),
    "messages": a_task(
        "out = torch.zeros(self.nodes, x.size(1), device=x.device, dtype=x.dtype)\n"
        "out.index_add_(0, target, x[source] * weight[:, None])\nreturn out",
        names="source, target, weight, x", init="self.nodes = nodes", arguments=", nodes",
        given="13", inputs="torch.randint(0, 9, (40,)), torch.randint(0, 13, (40,)), "
        "torch.rand(40), torch.randn(9, 37)"),
    "scatter_add": a_task(
        "return torch.zeros_like(y).scatter_add(1, ids, x) / self.count", names="ids, x, y",
        init="self.count = 3.0",
        inputs="torch.randint(0, 13, (5, 40)), torch.randn(5, 40), torch.randn(5, 13)"),
}  # fmt: skip
BROADCASTS = {
    "per_channel": a_task(
        "return F.relu(x * self.scale + self.shift)", **IMAGE,
        init="self.scale = nn.Parameter(torch.ones(19, 1, 1))\n"
        "self.shift = nn.Parameter(torch.zeros(1, 19, 1, 1))"),
    "middle": a_task("return torch.sigmoid(x) * y", names="x, y",
                     inputs="torch.randn(8, 5, 32), torch.randn(8, 1, 32)"),
    "outer": a_task("return torch.tanh(x[:, None, :] + y[:, :, None])", names="x, y",
                    inputs="torch.randn(3, 19), torch.randn(3, 33)"),
    "viewed": a_task("return x + self.bias.view(1, -1, 1, 1)", **IMAGE,
                     init="self.bias = nn.Parameter(torch.zeros(19))"),
}  # fmt: skip
MIXED = {
    "mean_apart": a_task("return x.mean(dim=(0, 2))", inputs="torch.randn(5, 19, 67)"),
    "sum_planes": a_task("return (x * x).sum(dim=(0, 2, 3), keepdim=True)", **IMAGE),
    "max_apart": a_task("return torch.amax(x, dim=(1, 3)) * 2", **IMAGE),
    "mean_leading": a_task("return torch.mean(x, dim=(0, 1))", inputs="torch.randn(9, 11, 67)"),
    "adaptive": a_task("return F.relu(self.pool(x))",
                       init="self.pool = nn.AdaptiveAvgPool2d((4, 3))",
                       inputs="torch.randn(2, 5, 12, 21)"),
    "adaptive_one": a_task("return self.pool(x)", init="self.pool = nn.AdaptiveAvgPool2d(1)",
                           inputs="torch.randn(2, 5, 12, 21)"),
    "adaptive_max": a_task("return F.adaptive_max_pool1d(x, 6)", inputs="torch.randn(2, 5, 42)"),
    "weighted": a_task("return (x * w[:, :, None]).sum(dim=1)", names="x, w",
                       inputs="torch.randn(5, 9, 33), torch.rand(5, 9)"),
}  # fmt: skip

KINDS = {
    "scan": SCANS, "columns": COLUMNS, "window": WINDOWS, "lookup": LOOKUPS, "router": ROUTERS,
    "sort": SORTS,
    "product": PRODUCTS, "pick": PICKS, "entropy": ENTROPIES, "groups": GROUPS,
    "gather": GATHERS, "scatter": SCATTERS, "broadcast": BROADCASTS, "mixed": MIXED,
}  # fmt: skip

UNKNOWN = {
    "rules know one scan at a time": (
        "scan", a_task("return torch.cumsum(x, 1) + torch.cumprod(x, 1)")),
    "a flip before a scan": ("scan", a_task("return torch.cumsum(x.flip(1), 1)")),
    "rules do not know cat here": ("scan", a_task("return torch.cumsum(torch.cat([x, x]), 1)")),
    "rules cannot tell whether dimension 1 is the last": (
        "scan", a_task("return torch.cumsum(x, 1)", inputs="make_input()")),
    "leave the last dimension": ("columns", a_task("return x.sum(dim=1)")),
    "reductions along different dimensions": (
        "columns", a_task("return x.sum(dim=0, keepdim=True) * x.sum(dim=1, keepdim=True)")),
    "convolutions that mix channels": (
        "window", a_task("return self.conv(x)", init="self.conv = nn.Conv2d(6, 6, 3)", **IMAGE)),
    "ceil_mode where a mean counts": ("window", a_task(
        "return self.pool(x)", init="self.pool = nn.AvgPool2d(2, 2, 1, ceil_mode=True)", **IMAGE)),
    "adaptive pools to sizes that stand": ("mixed", a_task(
        "return self.pool(x)", init="self.pool = nn.AdaptiveAvgPool2d((None, 3))", **IMAGE)),
    "asked for output_size": ("neighbours", a_task(
        "return self.conv(x, output_size=[19, 27])",
        init="self.conv = nn.ConvTranspose2d(6, 6, 4, 2, groups=3)", **IMAGE)),
    "rules know padding by zeros": ("window", a_task(
        "return self.conv(x)",
        init="self.conv = nn.Conv1d(6, 6, 3, padding=1, padding_mode='circular', groups=6)",
        inputs="torch.randn(2, 6, 9)")),
    "an embedding with norms": ("lookup", a_task(
        "return self.table(x)", init="self.table = nn.Embedding(9, 8, max_norm=1.0)",
        inputs="torch.randint(0, 9, (5,))")),
    "bags of equal sizes, without norms, offsets": ("gather", a_task(
        "return self.bag(ids, start)", names="ids, start", init="self.bag = nn.EmbeddingBag(9, 8)",
        inputs="torch.randint(0, 9, (20,)), torch.tensor([0, 4, 9])")),
    "without norms, offsets or padding": ("gather", a_task(
        "return self.bag(x)", init="self.bag = nn.EmbeddingBag(9, 8, padding_idx=0)",
        inputs="torch.randint(0, 9, (5, 4))")),
    "integer inputs as indices alone": ("gather", a_task(
        "return x * ids", names="x, ids", inputs="torch.randn(5), torch.randint(0, 9, (5,))")),
    "indices that are inputs": ("gather", a_task("return x[ids * 2]", **PICKED)),
    "look-ups in inputs and parameters": ("gather", a_task("return (x * 2)[ids]", **PICKED)),
    "leave an embedding alone": ("gather", LOOKUPS["embedding"]),
    "index_add with alpha": ("scatter", a_task(
        "return x.new_zeros(11, 67).index_add(0, ids, x, alpha=2)", **ROWS)),
    "one scatter at a time": ("scatter", a_task(
        "y = x.new_zeros(11, 67)\nreturn y.index_add(0, ids, x) + y.index_add(0, ids, x * 2)",
        **ROWS)),
    "what changes `y` in place": ("scatter", a_task(
        "y = x.new_zeros(11, 67)\nz = y\ny.index_add_(0, ids, x)\nreturn y + z", **ROWS)),
    "as many numbers as terms": ("scatter", a_task(
        "return x.new_zeros(40, 67).scatter_add(0, ids[:, None], x)", **ROWS)),
    "what this is added to": ("scatter", a_task(
        "return ids.new_zeros(11, 67).index_add(0, ids, x)", **ROWS)),
    "a reduction that is used again": ("mixed", a_task(
        "return x - x.mean(dim=(0, 2), keepdim=True)", inputs="torch.randn(5, 9, 33)")),
    "over the last dimension to the rows": ("broadcast", a_task(
        "return x * y", names="x, y", inputs="torch.randn(5, 9, 33), torch.randn(33)")),
    "transposed tensors": ("broadcast", a_task(
        "return (x.transpose(1, 2) + y).contiguous()", names="x, y",
        inputs="torch.randn(5, 9, 33), torch.randn(5, 1, 9)")),
    "outputs that lie row by row": ("broadcast", a_task(
        "return x.transpose(1, 2) + y", names="x, y",
        inputs="torch.randn(5, 9, 33), torch.randn(5, 1, 9)")),
    "along one dimension to rows and columns": ("mixed", a_task(
        "return x.sum(dim=1)", inputs="torch.randn(5, 9, 33)")),
    "one reduction over some dimensions": ("mixed", a_task(
        "return x.sum(dim=(0, 2)) + x.mean(dim=(0, 2))", inputs="torch.randn(5, 9, 33)")),
    "round to 1": ("router", a_task("return torch.topk(torch.sigmoid(x), 2)[0]")),
    "the largest of a row": ("router", a_task("return torch.topk(x, 2, largest=False)[0]")),
    "rules find no sort": ("sort", a_task("return x.sum(dim=1)")),
    "rules sort along the last dimension": ("sort", a_task("return x.sort(dim=0)[0]")),
    "rules know one sort at a time": ("sort", a_task(
        "return x.sort(dim=1)[0], x.argsort(dim=1, descending=True)")),
    "largest to the kind `router`": ("sort", a_task("return torch.topk(x, 16)")),
    "unless the task says what its indices point to": (
        "sort", a_task("return torch.sigmoid(x).argsort(dim=1)")),
    "work behind a sort on what was sorted alone": (
        "sort", a_task("return x.sort(dim=1)[0] + x")),
    "how many of a row, or which of them": (
        "sort", a_task("return torch.kthvalue(x, x.argmax(), dim=1)[0]")),
    "the best of a row in order": (
        "sort", a_task("return torch.topk(x, 20, sorted=False).values[:, -1:] + x")),
    "one value of a row that is put in order": (
        "sort", a_task("return x.sort(dim=1).values[:, -2:]")),
    "whether this is the last dimension": (
        "sort", a_task("return x.sort().values[:, 0]", inputs="torch.randn(5, 9, 33)")),
    "one result for each value of a row": ("sort", a_task("return x.sort().values.sum()")),
    "the value of a rank, not where it stood": (
        "sort", a_task("return torch.kthvalue(x, 3, dim=1).indices")),
    "results of the inputs' dtype": (
        "sort", a_task("return x > x.median(dim=1, keepdim=True).values")),
    "rules do not sort beside integer inputs": ("sort", a_task(
        "return x.sort()[0]", inputs="torch.randint(0, 9, (5, 67))")),
    "rules do not know weights in a cross entropy": ("entropy", a_task(
        "return F.cross_entropy(x, y, weight=z)", names="x, y, z",
        inputs="torch.randn(9, 67), torch.randint(0, 67, (9,)), torch.rand(67)")),
    "smoothing between 0 and 1": ("entropy", a_task(
        "return F.cross_entropy(x, y, label_smoothing=1.5)", **CLASSES)),
    "the cross entropy of a matrix": ("entropy", a_task(
        "return F.nll_loss(x, y)", names="x, y",
        inputs="torch.randn(9, 67, 3), torch.randint(0, 67, (9, 3))")),
    "batch norm with running statistics": ("groups", a_task(
        "return self.norm(x)", init="self.norm = nn.BatchNorm2d(6, track_running_stats=False)",
        **IMAGE)),
    "rules know argmax along a dimension": ("pick", a_task("return torch.argmax(x)")),
    "one product of two rows of matrices at a time": ("product", a_task(
        "return x @ y + torch.bmm(x, z)", names="x, y, z",
        inputs="torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.randn(2, 4, 5)")),
    "inputs of one rank": ("product", a_task(
        "return self.fc(x) + self.fc(y)", init="self.fc = nn.Linear(67, 67)", names="x, y",
        inputs="torch.randn(5, 67), torch.randn(2, 5, 67)")),
    "at most 8 products": ("product", a_task(
        "return self.a(self.a(self.a(self.a(self.a(self.a(self.a(self.a(self.a(x)))))))))",
        init="self.a = nn.Linear(67, 67)")),
    "rules find no product": ("product", a_task(
        "return self.a(torch.relu(x))", init="self.a = nn.Linear(67, 67)")),
}  # fmt: skip
"""By what the refusal says: the kind that refuses, and the task."""

LIKE_OTHERS = {"linear", "matmul_residual"}
"""Tasks of the rows template that a kind knows as well."""

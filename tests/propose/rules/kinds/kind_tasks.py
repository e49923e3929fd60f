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

PRODUCTS = {
    "bmm": a_task("return torch.bmm(x, y)", names="x, y",
                  inputs="torch.randn(3, 13, 19), torch.randn(3, 19, 21)"),
    "scores": a_task("return torch.tanh(x @ y.transpose(-2, -1) * 0.125)", names="x, y",
                     inputs="torch.randn(3, 13, 19), torch.randn(3, 40, 19)"),
    "linear": a_task("return F.gelu(self.fc(x))", init="self.fc = nn.Linear(dim, 53)",
                     arguments=", dim", given="67"),
    "residual": a_task("return F.relu(torch.matmul(x, y)) + z", names="x, y, z",
                       inputs="torch.randn(5, 7), torch.randn(7, 70), torch.randn(5, 70)"),
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
SIX = {"inputs": "torch.randn(2, 6, 5, 37)", **CHANNELS}
GROUPS = {
    "batch_norm": a_task("return F.relu(self.norm(x))", init="self.norm = nn.BatchNorm2d(channels)",
                         **SIX),
    "group_norm": a_task("return self.norm(x)",
                         init="self.norm = nn.GroupNorm(3, channels)", **SIX),
    "instance_norm": a_task("return self.norm(x)",
                            init="self.norm = nn.InstanceNorm2d(channels)", **SIX),
}  # fmt: skip

KINDS = {
    "scan": SCANS, "columns": COLUMNS, "window": WINDOWS, "lookup": LOOKUPS, "router": ROUTERS,
    "product": PRODUCTS, "pick": PICKS, "entropy": ENTROPIES, "groups": GROUPS,
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
    "windows with ceil_mode": ("window", a_task(
        "return self.pool(x)", init="self.pool = nn.MaxPool2d(2, ceil_mode=True)", **IMAGE)),
    "rules know padding by zeros": ("window", a_task(
        "return self.conv(x)",
        init="self.conv = nn.Conv1d(6, 6, 3, padding=1, padding_mode='circular', groups=6)",
        inputs="torch.randn(2, 6, 9)")),
    "an embedding with norms": ("lookup", a_task(
        "return self.table(x)", init="self.table = nn.Embedding(9, 8, max_norm=1.0)",
        inputs="torch.randint(0, 9, (5,))")),
    "round to 1": ("router", a_task("return torch.topk(torch.sigmoid(x), 2)[0]")),
    "the largest of a row": ("router", a_task("return torch.topk(x, 2, largest=False)[0]")),
    "weights or smoothing": ("entropy", a_task(
        "return F.cross_entropy(x, y, label_smoothing=0.1)", **CLASSES)),
    "batch norm with running statistics": ("groups", a_task(
        "return self.norm(x)", init="self.norm = nn.BatchNorm2d(6, track_running_stats=False)",
        **IMAGE)),
    "rules know argmax along a dimension": ("pick", a_task("return torch.argmax(x)")),
    "one product at a time": ("product", a_task("return x @ x + self.fc(x)",
                                                init="self.fc = nn.Linear(67, 67)")),
}  # fmt: skip
"""By what the refusal says: the kind that refuses, and the task."""

LIKE_OTHERS = {"linear", "matmul_residual"}
"""Tasks of the rows template that a kind knows as well."""

"""Small tasks, one per thing that the rules should or should not recognise."""

from kernelsmith.domain.task import Task, Workload

HEAD = "import math\n\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"


def a_task(
    forward: str, *, init: str = "", arguments: str = "", inputs: str = "torch.randn(5, 67)",
    names: str = "x", given: str = "", name: str = "small",
) -> Task:  # fmt: skip
    """A task whose forward, constructor and inputs are given as text."""
    lines = [HEAD + "class Model(nn.Module):"]
    if init:
        lines += [f"    def __init__(self{arguments}):", "        super().__init__()"]
        lines += [f"        {line}" for line in init.splitlines()]
    lines.append(f"    def forward(self, {names}):")
    lines += [f"        {line}" for line in forward.splitlines()]
    lines += ["def get_inputs():", f"    return [{inputs}]"]
    lines += ["def get_init_inputs():", f"    return [{given}]"]
    return Task(name=name, source="\n".join(lines) + "\n", workloads=(Workload(),))


PAIR = {"names": "x, y", "inputs": "torch.randn(5, 67), torch.randn(5, 67)"}
WEIGHT = {"arguments": ", dim", "given": "67"}

KNOWN = {
    "chain": a_task("return torch.tanh(F.gelu(x) * 2 + 1) - F.relu(x)"),
    "swiglu": a_task("return F.silu(x) * y", **PAIR),
    "bias": a_task(
        "return F.gelu(x + self.bias)", init="self.bias = nn.Parameter(torch.zeros(dim))", **WEIGHT
    ),
    "softplus": a_task("return F.softplus(x) + F.mish(x) + F.elu(x, alpha=0.7)"),
    "clamped": a_task("return torch.where(x > 0, x.clamp(max=1.5), 0.1 * x) / (1 + x.abs())"),
    "tanh_gelu": a_task("return F.gelu(x, approximate='tanh') + F.hardswish(x)"),
    "number": a_task("return x * self.s", init="self.s = s", arguments=", s", given="0.75"),
    "given_number": a_task(
        "return F.gelu(x * self.y) * y", names="x, y", inputs="torch.randn(5, 67), 2.5",
        init="self.y = nn.Parameter(torch.ones(67))",
    ),
    "constant": a_task("return x * math.sqrt(2.0 / math.pi)"),
    "sum": a_task("return x.sum(dim=1)"),
    "kept_mean": a_task("return x - torch.mean(x, dim=-1, keepdim=True)"),
    "max": a_task("return torch.max(x, dim=-1)[0] - x.amin(dim=-1)"),
    "norm": a_task("return x / x.norm(dim=-1, keepdim=True)"),
    "normalize": a_task("return F.normalize(x, dim=-1)"),
    "logsumexp": a_task("return torch.logsumexp(x, dim=1, keepdim=True)"),
    "softmax": a_task("return torch.softmax(x, dim=-1)"),
    "log_softmax": a_task("return F.log_softmax(x, dim=1)"),
    "gelu_softmax": a_task("return F.softmax(F.gelu(x), dim=-1)"),
    "layer_norm": a_task("return self.norm(x)", init="self.norm = nn.LayerNorm(dim)", **WEIGHT),
    "wide_norm": a_task(
        "return self.norm(x)", init="self.norm = nn.LayerNorm((7, 9))",
        inputs="torch.randn(4, 7, 9)",
    ),
    "rms_norm": a_task("return self.norm(x)", init="self.norm = nn.RMSNorm(dim)", **WEIGHT),
    "swish_sum": a_task("return (x * torch.sigmoid(x)).sum(dim=-1)"),
    "std": a_task("return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-3)"),
    "cosine": a_task("return F.cosine_similarity(x, y, dim=1)", **PAIR),
    "mse": a_task("return F.mse_loss(x, y)", **PAIR),
    "smooth_l1": a_task("return F.smooth_l1_loss(x, y)", **PAIR),
    "kl": a_task(
        "return F.kl_div(x, y, reduction='batchmean', log_target=True)", **PAIR
    ),
    "bce": a_task("return F.binary_cross_entropy(x, y)", names="x, y",
                  inputs="torch.rand(5, 67), torch.rand(5, 67)"),
    "bce_each": a_task(
        "return self.loss(torch.sigmoid(x), y)", init="self.loss = nn.BCELoss(reduction='none')",
        names="x, y", inputs="torch.randn(5, 67), torch.rand(5, 67)"),
    "bce_logits": a_task("return self.loss(x, y)", init="self.loss = nn.BCEWithLogitsLoss()",
                         **PAIR),
    "bce_positive": a_task(
        "return F.binary_cross_entropy_with_logits(x, y, pos_weight=self.more)",
        init="self.more = nn.Parameter(torch.full((dim,), 3.0))", names="x, y",
        inputs="torch.randn(5, 67), torch.rand(5, 67)", **WEIGHT),
    "row_mean": a_task("return torch.logsumexp(x, dim=-1).mean()"),
    "linear": a_task(
        "return F.relu(self.fc(x)) * 2", init="self.fc = nn.Linear(dim, 31)", **WEIGHT
    ),
    "linear_softmax": a_task(
        "return F.softmax(F.gelu(self.fc(x)), dim=1)", init="self.fc = nn.Linear(dim, 31)", **WEIGHT
    ),
    "matmul_residual": a_task(
        "return torch.tanh(x @ y + x)", names="x, y",
        inputs="torch.randn(5, 19), torch.randn(19, 19)",
    ),
}  # fmt: skip

UNKNOWN = {
    "rules do not know torch.nn.Conv2d": a_task(
        "return self.conv(x)", init="self.conv = nn.Conv2d(3, 8, 3)"
    ),
    "rules do not know torch.cumsum": a_task("return torch.cumsum(x, dim=-1)"),
    "rules do not know integer inputs": a_task("return x * 2", inputs="torch.randint(0, 9, (5,))"),
    "not over 1": a_task("return x.sum(dim=1)", inputs="torch.randn(3, 4, 5)"),
    "rules do not know the statement `if": a_task("if x.sum() > 0:\n    return x\nreturn -x"),
    "rules do not know the statement `x[0]": a_task("x[0] = 0\nreturn x"),
    "several values": a_task("return x + 1, x - 1"),
    "changes its input": a_task("x += 1\nreturn x"),
    "the method .add_()": a_task("return x.add_(1)"),
    "nothing behind this one to fuse": a_task("return torch.matmul(x, y)", **PAIR),
    "a product of computed tensors": a_task(
        "return F.relu(self.fc(F.relu(x)))", init="self.fc = nn.Linear(67, 67)"
    ),
    "used again": a_task("return x / x.mean()"),
    "inputs that are no tensors": a_task("return x * 2", names="x, y", inputs="torch.rand(3), 'a'"),
    "a number that is called 'dim'": a_task(
        "return x * dim", names="x, dim", inputs="torch.rand(3), 2.5"
    ),
    "not counts or truth values": a_task("return (x > 0).sum(dim=-1)"),
    "keep the reduced dimension": a_task("return x - x.mean(dim=-1)"),
    "inputs of one size, not 'y'": a_task(
        "return x * y.mean(dim=(2, 3), keepdim=True)",
        names="x, y", inputs="torch.randn(2, 3, 4, 4), torch.randn(2, 3, 6, 6)",
    ),
    "'y' lies over rows of several": a_task(
        "return x.mean(dim=(2, 3), keepdim=True) * x * y",
        names="x, y", inputs="torch.randn(2, 3, 4, 4), torch.randn(2, 3, 4, 1)",
    ),
}  # fmt: skip

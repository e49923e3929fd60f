"""Convolutions with reductions behind them: over channels, over space, over both, and norms."""

from rule_tasks import a_task

_CONV = "self.conv = nn.Conv2d(20, 19, 3, stride=2, padding=1)"
_FEW = "self.conv = nn.Conv3d(3, 16, (2, 3, 3))"


def _two(forward: str, *init: str):
    return a_task(forward, init="\n".join([_CONV, *init]), inputs="torch.randn(2, 20, 9, 13)")


def _three(forward: str, *init: str):
    return a_task(forward, init="\n".join([_FEW, *init]), inputs="3 * torch.randn(2, 3, 4, 7, 9)")


CHANNELS = {
    "least": _two("return torch.tanh(torch.min(self.conv(x), dim=1, keepdim=True)[0])"),
    "most": _two("return torch.max(torch.relu(self.conv(x)), dim=1)[0] * 2"),
    "softmax": _two(
        "return torch.sigmoid((torch.softmax(self.conv(x), dim=1) + self.bias) * self.scale)",
        "self.bias = nn.Parameter(torch.randn(19, 1, 1))", "self.scale = 2.0",
    ),
    "logsumexp": _two("return torch.relu(torch.logsumexp(self.conv(x), dim=1, keepdim=True))"),
    "variance": _two("return self.conv(x).var(dim=1)"),
    "spread": _two(
        "return torch.amin(self.conv(x), dim=1, keepdim=True) + self.bias",
        "self.bias = nn.Parameter(torch.randn(19, 1, 1))",
    ),
    "turned": a_task(
        "return torch.sigmoid(self.softmax(self.conv(x)))",
        init="self.conv = nn.ConvTranspose3d(18, 20, 3, stride=2, padding=1, output_padding=1)\n"
        "self.softmax = nn.Softmax(dim=1)", inputs="torch.randn(1, 18, 2, 3, 3)",
    ),
}  # fmt: skip
SPACE = {
    "pooled": a_task(
        "x = F.adaptive_avg_pool2d(F.gelu(self.conv(x)), 1)\nreturn x.squeeze(-1).squeeze(-1)",
        init="self.conv = nn.Conv2d(8, 33, 3)", inputs="torch.randn(2, 8, 14, 15)"),
    "summed": _two("return torch.sum(torch.sigmoid(self.conv(x)), dim=[1, 2, 3]) + 1"),
    "most": _two("return torch.amax(self.conv(x), dim=(2, 3)).sum(dim=1)"),
    "grouped": a_task(
        "return self.conv(x).mean(dim=(2, 3))", init="self.conv = nn.Conv2d(36, 40, 3, groups=2)",
        inputs="torch.randn(1, 36, 6, 27)"),
    "turned": a_task(
        "return self.pool(self.norm(self.conv(x) * self.scale))",
        init="self.conv = nn.ConvTranspose3d(18, 20, 3, stride=(1, 2, 3))\n"
        "self.norm = nn.BatchNorm3d(20)\nself.pool = nn.AdaptiveAvgPool3d((1, 1, 1))\n"
        "self.scale = 2.0", inputs="torch.randn(2, 18, 2, 4, 3)"),
}  # fmt: skip
AGAIN = {
    "centred": _two(
        "x = self.norm(self.conv(x))\nreturn x - torch.mean(x, dim=(2, 3), keepdim=True)",
        "self.norm = nn.BatchNorm2d(19)",
    ),
    "instance": _two("return self.norm(self.conv(x)) / 2.0", "self.norm = nn.InstanceNorm2d(19)"),
    "group": a_task(
        "return self.norm(F.gelu(self.conv(x)))",
        init="self.conv = nn.ConvTranspose2d(18, 24, 3, stride=2)\nself.norm = nn.GroupNorm(8, 24)",
        inputs="torch.randn(3, 18, 5, 6)"),
    "group_mean": _three(
        "return torch.mean(self.norm(F.hardswish(self.conv(x))), dim=[2, 3, 4])",
        "self.norm = nn.GroupNorm(4, 16)",
    ),
    "layer": _two("return self.norm(self.conv(x)).exp().mean(dim=[1, 2, 3])",
                  "self.norm = nn.GroupNorm(1, 19)"),
    "instance_most": _three(
        "x = self.norm(self.conv(x) * self.by).clamp(-1.0, self.high) * self.by\n"
        "return torch.max(x, dim=1)[0]",
        "self.norm = nn.InstanceNorm3d(16)", "self.by = nn.Parameter(torch.randn(16, 1, 1, 1))",
        "self.high = 1.0",
    ),
    "standard": _two(
        "x = self.conv(x)\nmean = x.mean(dim=(1, 2, 3), keepdim=True)\n"
        "return (x - mean) / (x.std(dim=(1, 2, 3), keepdim=True) + 0.1)"
    ),
    "space_softmax": a_task(
        "return torch.softmax(self.conv(x), dim=2).sum(dim=1)",
        init="self.conv = nn.Conv1d(20, 19, 3)", inputs="torch.randn(2, 20, 301)"),
    "pixels": _two(
        "x = self.conv(x).amax(dim=1, keepdim=True)\n"
        "return x - x.mean(dim=(2, 3), keepdim=True)"),
    "gate": _two(
        "x = self.conv(x)\nweight = torch.sigmoid(x.mean(dim=(2, 3), keepdim=True))\n"
        "return F.silu(x) * weight + x.sum(dim=1, keepdim=True)"),
}  # fmt: skip
_POOL = "self.conv = nn.Conv2d(8, 20, 3)"


def _pool(forward: str, *init: str):
    return a_task(forward, init="\n".join([_POOL, *init]), inputs="torch.randn(2, 8, 11, 14)")


WINDOWS = {
    "mean_sum": _pool("return torch.sum(torch.sigmoid(self.pool(self.conv(x))), dim=[1, 2, 3])",
                      "self.pool = nn.AvgPool2d(4)"),
    "most": _pool("return F.mish(self.pool(F.hardswish(self.conv(x) - 0.5)))",
                  "self.pool = nn.MaxPool2d(2)"),
    "most_logsumexp": a_task(
        "return torch.relu(torch.logsumexp(self.pool(self.conv(x)), dim=1, keepdim=True))",
        init="self.conv = nn.Conv3d(20, 19, 3, padding=1)\n"
        "self.pool = nn.MaxPool3d(kernel_size=2, stride=2)", inputs="torch.randn(2, 20, 3, 4, 5)"),
    "norm_most": _pool(
        "return torch.clamp(self.pool(self.norm(self.conv(x)) * self.by), 0.0, 1.0)",
        "self.norm = nn.GroupNorm(4, 20)", "self.by = nn.Parameter(torch.randn(20, 1, 1))",
        "self.pool = nn.MaxPool2d(kernel_size=4)"),
    "most_norm": a_task(
        "return self.norm(self.pool(torch.tanh(self.before(self.conv(x)))))",
        init="self.conv = nn.ConvTranspose2d(18, 20, 5, padding=1)\n"
        "self.before = nn.BatchNorm2d(20)\nself.pool = nn.MaxPool2d(kernel_size=2, stride=2)\n"
        "self.norm = nn.GroupNorm(5, 20)", inputs="torch.randn(2, 18, 6, 7)"),
    "norm_rows_mean": _pool(
        "return F.max_pool2d(self.norm(self.conv(x)), (1, 4)).relu().mean(dim=(1, 2, 3))",
        "self.norm = nn.InstanceNorm2d(20)"),
}  # fmt: skip
REDUCED = {
    **{f"channels_{name}": task for name, task in CHANNELS.items()},
    **{f"space_{name}": task for name, task in SPACE.items()},
    **{f"again_{name}": task for name, task in AGAIN.items()},
    **{f"windows_{name}": task for name, task in WINDOWS.items()},
}

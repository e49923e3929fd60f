"""Small tasks with parts that are cut out of them: attention, recurrent layers, convolutions."""

from rule_tasks import a_task

HEADS = {"names": "q, k, v", "inputs": ", ".join(["torch.randn(2, 3, 45, 24)"] * 3)}
SELF = (
    "self.heads = 2\nself.into = nn.Linear(32, 96)\nself.back = nn.Linear(32, 32)\n"
    "self.drop = nn.Dropout(0.1)\n"
    "self.register_buffer('past', torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64))"
)
TOKENS = {"init": SELF, "inputs": "torch.randn(2, 37, 32)", "arguments": ""}
SPLIT = (
    "B, T, C = x.size()\nq, k, v = self.into(x).split(C, dim=2)\n"
    "k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)\n"
    "q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)\n"
    "v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)\n"
)
BACK = "y = y.transpose(1, 2).contiguous().view(B, T, C)\nreturn self.back(y)"

ATTENTION = {
    "plain": a_task(
        "return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) @ v",
        **HEADS),
    "causal": a_task(
        "scores = q @ k.transpose(-2, -1) * 0.3\nlength = scores.shape[-1]\n"
        "ahead = torch.ones(length, length, dtype=torch.bool).triu(1)\n"
        "return torch.softmax(scores.masked_fill(ahead, -math.inf), dim=-1) @ v", **HEADS),
    "added_causal": a_task(
        "mask = torch.triu(torch.full((45, 45), float('-inf'), dtype=q.dtype), diagonal=1)\n"
        "return F.softmax(torch.matmul(q, k.mT) * 0.2 + mask, dim=3).matmul(v)", **HEADS),
    "library": a_task("return F.scaled_dot_product_attention(q, k, v)", **HEADS),
    "library_causal": a_task(
        "return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)", **HEADS),
    "grouped": a_task(
        "return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)", names="q, k, v",
        inputs="torch.randn(2, 6, 9, 16), torch.randn(2, 2, 70, 16), torch.randn(2, 2, 70, 16)"),
    "shared": a_task(
        "q = q.unflatten(1, (k.shape[1], -1))\n"
        "return (torch.softmax(q @ k.transpose(-2, -1) * 0.2, dim=-1) @ v).flatten(1, 2)",
        names="q, k, v",
        inputs="torch.randn(2, 8, 20), torch.randn(2, 2, 531, 20), torch.randn(2, 2, 531, 12)"),
    "bias": a_task(
        "return torch.softmax(q @ k.mT * 0.3 + self.bias, dim=-1) @ v",
        init="self.bias = nn.Parameter(torch.randn(3, 45, 45))", **HEADS),
    "masked": a_task(
        "scores = (q @ k.mT).masked_fill(hide[:, None, None], -1e4)\n"
        "return F.softmax(scores, dim=-1) @ v", names="q, k, v, hide",
        inputs=", ".join(["torch.randn(2, 3, 45, 24)"] * 3) + ", torch.rand(2, 45) > 0.6"),
    "gpt": a_task(
        SPLIT + "att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))\n"
        "att = att.masked_fill(self.past[:, :, :T, :T] == 0, float('-inf'))\n"
        "att = F.softmax(att, dim=-1)\natt = self.drop(att)\ny = att @ v\n" + BACK, **TOKENS),
    "relu": a_task(
        SPLIT + "att = q @ k.transpose(-2, -1) * (k.size(-1) ** -0.5)\n"
        "att = att.masked_fill(self.past[:, :, :T, :T] == 0, float('-inf'))\n"
        "y = F.relu(att) @ v\n" + BACK, **TOKENS),
    "multihead": a_task(
        "y, _ = self.attn(x, x, x)\nreturn self.norm(y + x)",
        init="self.attn = nn.MultiheadAttention(24, 3)\nself.norm = nn.LayerNorm(24)",
        inputs="torch.randn(40, 2, 24)"),
}  # fmt: skip

SEQUENCE = {"inputs": "torch.randn(7, 5, 6)"}
RECURRENT = {
    "lstm": a_task("return self.rnn(x)[0]", init="self.rnn = nn.LSTM(6, 19)", **SEQUENCE),
    "deep_lstm": a_task(
        "out, state = self.rnn(x, (h, c))\nreturn self.head(out[:, -1]), state[1]",
        init="self.rnn = nn.LSTM(6, 20, 3, batch_first=True)\nself.head = nn.Linear(20, 3)",
        names="x, h, c",
        inputs="torch.randn(5, 7, 6), torch.randn(3, 5, 20), torch.randn(3, 5, 20)"),
    "gru": a_task(
        "out, last = self.rnn(x, h)\nreturn out, last", init="self.rnn = nn.GRU(6, 18, 2)",
        names="x, h", inputs="torch.randn(7, 5, 6), torch.randn(2, 5, 18)"),
    "both_ways": a_task(
        "return self.rnn(x)", init="self.rnn = nn.GRU(6, 18, 2, bidirectional=True)", **SEQUENCE),
    "written_lstm": a_task(
        "ahead = self.into(x)\nouts = []\nfor t in range(x.shape[0]):\n"
        "    gates = ahead[t] + self.across(h)\n    i, f, g, o = gates.chunk(4, dim=-1)\n"
        "    kept = torch.sigmoid(f) * c\n    c = kept + torch.sigmoid(i) * torch.tanh(g)\n"
        "    h = torch.sigmoid(o) * torch.tanh(c)\n    outs.append(h)\n"
        "return torch.stack(outs), c",
        init="self.into = nn.Linear(6, 76)\nself.across = nn.Linear(19, 76, bias=False)",
        names="x, h, c", inputs="torch.randn(7, 5, 6), torch.randn(5, 19), torch.randn(5, 19)"),
    "written_rnn": a_task(
        "outs = []\nfor t in range(x.size(1)):\n"
        "    h = torch.tanh(self.into(x[:, t]) + self.across(h))\n    outs.append(h)\n"
        "return self.head(torch.stack(outs, dim=1))",
        init="self.into = nn.Linear(6, 19)\nself.across = nn.Linear(19, 19)\n"
        "self.head = nn.Linear(19, 4)",
        names="x, h", inputs="torch.randn(5, 7, 6), torch.randn(5, 19)"),
    "joined_rnn": a_task(
        "outs = []\nfor t in range(x.size(0)):\n    both = torch.cat((x[t], h), dim=1)\n"
        "    h = self.tanh(self.into(both))\n    outs.append(self.head(h))\n"
        "return torch.stack(outs, dim=0), h",
        init="self.into = nn.Linear(25, 19)\nself.tanh = nn.Tanh()\nself.head = nn.Linear(19, 4)",
        names="x, h", inputs="torch.randn(7, 5, 6), torch.randn(5, 19)"),
    "joined_behind": a_task(
        "for t in range(x.shape[1]):\n"
        "    h = torch.tanh(self.into(torch.cat([h, x[:, t]], -1)))\nreturn h",
        init="self.into = nn.Linear(25, 19, bias=False)", names="x, h",
        inputs="torch.randn(5, 7, 6), torch.randn(5, 19)"),
    "written_gru": a_task(
        "ahead = self.into(x)\nouts = []\nfor t in range(x.shape[0]):\n"
        "    a, b, g = ahead[t].chunk(3, dim=-1)\n    u, v, w = self.across(h).chunk(3, dim=-1)\n"
        "    reset = torch.sigmoid(a + u)\n    keep = torch.sigmoid(b + v)\n"
        "    value = torch.tanh(g + reset * w)\n    h = (1 - keep) * value + keep * h\n"
        "    outs.append(h)\nreturn torch.stack(outs), h",
        init="self.into = nn.Linear(6, 57)\nself.across = nn.Linear(19, 57)",
        names="x, h", inputs="torch.randn(7, 5, 6), torch.randn(5, 19)"),
    "gru_cell": a_task(
        "h = x.new_zeros(x.shape[0], 19)\nouts = []\nfor t in range(x.shape[1]):\n"
        "    h = self.cell(x[:, t], h)\n    outs.append(h)\nreturn torch.stack(outs, dim=1)",
        init="self.cell = nn.GRUCell(6, 19)", inputs="torch.randn(5, 7, 6)"),
    "lstm_cell": a_task(
        "for t in range(x.shape[0]):\n    h, c = self.cell(x[t], (h, c))\nreturn h, c",
        init="self.cell = nn.LSTMCell(6, 19, bias=False)", names="x, h, c",
        inputs="torch.randn(7, 5, 6), torch.randn(5, 19), torch.randn(5, 19)"),
    "relu_cell": a_task(
        "for t in range(x.shape[0]):\n    h = self.cell(x[t], h)\nreturn h",
        init="self.cell = nn.RNNCell(6, 19, nonlinearity='relu')", names="x, h",
        inputs="torch.randn(7, 5, 6), torch.randn(5, 19)"),
    "tanh": a_task(
        "return self.rnn(x)", init="self.rnn = nn.RNN(6, 33, 2, bias=False)", **SEQUENCE),
    "relu": a_task(
        "return self.rnn(x)", init="self.rnn = nn.RNN(6, 33, nonlinearity='relu')", **SEQUENCE),
}  # fmt: skip
SIX = {"arguments": ", channels", "given": "6"}
IMAGE = {"inputs": "torch.randn(2, 6, 9, 13)"}
NEIGHBOURS = {
    "depthwise_norm": a_task(
        "return F.relu6(self.norm(self.conv(x)))",
        init="self.conv = nn.Conv2d(channels, channels, 3, padding=1, stride=2, groups=channels, "
        "bias=False)\nself.norm = nn.BatchNorm2d(channels)", **SIX, **IMAGE),
    "residual": a_task(
        "return x + self.scale * F.gelu(self.conv(x))",
        init="self.conv = nn.Conv2d(6, 6, 5, padding=2, groups=6)\n"
        "self.scale = nn.Parameter(torch.randn(6, 1, 1))", **IMAGE),
    "grouped": a_task(
        "return torch.tanh(self.conv(x) * self.s)",
        init="self.s = s\nself.conv = nn.Conv2d(6, 4, (3, 2), dilation=2, groups=2)",
        arguments=", s", given="0.7", **IMAGE),
    "turned_depthwise": a_task(
        "return self.conv(F.leaky_relu(x, 0.1))",
        init="self.conv = nn.ConvTranspose1d(6, 6, 4, stride=2, padding=1, groups=6)",
        inputs="torch.randn(2, 6, 21)"),
    "turned_dilated": a_task(
        "return self.conv(x)",
        init="self.conv = nn.ConvTranspose2d(6, 12, 3, stride=2, padding=2, dilation=3, "
        "output_padding=1, groups=3)", **IMAGE),
    "depthwise3d": a_task(
        "return self.norm(self.conv(x)) - 0.5",
        init="self.conv = nn.Conv3d(4, 8, 3, padding=1, groups=4)\nself.norm = nn.BatchNorm3d(8)",
        inputs="torch.randn(1, 4, 5, 6, 7)"),
}  # fmt: skip
MIXING = {
    "dense": a_task(
        "return torch.relu(self.conv(x)) + self.bias",
        init="self.conv = nn.Conv2d(20, 19, 3, stride=2, padding=1)\n"
        "self.bias = nn.Parameter(torch.randn(19, 1, 1))", inputs="torch.randn(2, 20, 9, 13)"),
    "pointwise": a_task(
        "return F.silu(self.conv(x))", init="self.conv = nn.Conv2d(17, 33, 1, bias=False)",
        inputs="torch.randn(2, 17, 5, 7)"),
    "few": a_task(
        "return F.hardswish(self.conv(F.relu(x)))",
        init="self.conv = nn.Conv1d(3, 20, 5, dilation=2)", inputs="torch.randn(2, 3, 41)"),
    "turned": a_task(
        "return self.norm(self.conv(x))",
        init="self.conv = nn.ConvTranspose2d(18, 20, 4, stride=2, padding=1)\n"
        "self.norm = nn.BatchNorm2d(20)", inputs="torch.randn(2, 18, 6, 5)"),
    "turned3d": a_task(
        "return self.conv(x) * 2",
        init="self.conv = nn.ConvTranspose3d(18, 16, 3, stride=(1, 2, 3), padding=1, "
        "output_padding=(0, 1, 2))", inputs="torch.randn(1, 18, 3, 4, 3)"),
    "wide_groups": a_task(
        "return self.conv(x)", init="self.conv = nn.Conv2d(36, 40, 3, groups=2)",
        inputs="torch.randn(1, 36, 6, 7)"),
}  # fmt: skip
"""Convolutions across channels: left to the library on a processor."""
PARTS = {"attention": ATTENTION, "recurrent": RECURRENT, "neighbours": NEIGHBOURS | MIXING}

"""What a norm over channels or groups of them computes."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Kind, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """``after((x - mean) * rsqrt(var + eps) * weight + bias)``, weights per channel."""

    kind: str
    """``batch`` (running statistics), ``group`` or ``instance``."""
    x: str
    path: str
    affine: bool
    nodes: tuple[Node, ...]
    made: int
    output: int

    @property
    def numbers(self) -> dict[int, str]:
        """Numbers that are known at call time, by node."""
        return {i: n.text for i, n in enumerate(self.nodes) if n.kind is Kind.NUMBER}

    @property
    def tensors(self) -> list[str]:
        """What the last kernel reads besides statistics, by name."""
        return [self.x, *(["weight", "bias"] if self.affine else [])]

    def fits(self, dtypes: str) -> tuple[str, ...]:
        """When the kernel may run."""
        x, path = self.x, self.path
        made = [f"{x}.dtype in {dtypes}", f"{x}.dim() > 2", f"{x}.numel() > 0"]
        if self.kind == "batch":
            made += [f"not {path}.training", f"{path}.running_mean is not None",
                     f"{path}.running_mean.dtype is {x}.dtype",
                     f"{x}.shape[1] == {path}.running_mean.numel()"]  # fmt: skip
        elif self.kind == "group":
            made.append(f"{x}.shape[1] == {path}.num_channels")
        else:
            made.append(f"{x}.shape[1] == {path}.num_features")
            made.append(f"{x}.shape[2:].numel() > 1")
        if self.affine:
            made.append(f"{path}.weight.dtype is {x}.dtype")
        return tuple(made)

    def prepared(self) -> list[str]:
        """Lines of ``forward`` up to the launch."""
        x = self.x
        groups = {"group": f"{self.path}.num_groups"}.get(self.kind, "channels")
        lines = [
            f"{x} = {x}.contiguous()",
            f"batch, channels = {x}.shape[:2]",
            f"groups, inner = {groups}, {x}.shape[2:].numel()",
            "length = channels // groups * inner",
            f"out = torch.empty_like({x})",
        ]
        if self.affine:
            lines.append(f"weight, bias = {self.path}.weight, {self.path}.bias")
        if self.kind == "batch":
            lines.append(f"mean, var = {self.path}.running_mean, {self.path}.running_var")
        return lines

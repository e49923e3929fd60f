"""Whose hardware the installed torch was built for, told from facts; torch is not imported.

A build for AMD calls its devices ``cuda`` and so does one for MetaX: the name of a device does not
say whose it is, the build does.
"""

import ast
import re
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata, util
from pathlib import Path

_METAX = re.compile(r"\+metax([\d.]+)")
_ROCM = re.compile(r"\+rocm([\d.]+)")
_TRITONS = ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-ascend", "flagtree")
"""Distributions that bring a module ``triton``."""


class Maker(StrEnum):
    """Who makes the hardware that a build of torch reaches."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"
    METAX = "MetaX"
    HUAWEI = "Huawei"
    NONE = "none"
    """Processors alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchFacts:
    """What a build says of itself: constants of ``torch.version``, and who extends it."""

    version: str = ""
    """Empty where torch is not installed."""
    cuda: str | None = None
    hip: str | None = None
    maca: str | None = None
    ascend: str | None = None
    """Of CANN, where a build says so itself."""
    torch_npu: str | None = None
    """Version of Huawei's package, which extends a torch that knows nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchBuild:
    """One build of torch, recognised."""

    maker: Maker
    stack: str
    """What stands between torch and the hardware: ``CUDA``, ``ROCm``, ``MACA``, ``Ascend``."""
    version: str
    """Of that."""

    def __str__(self) -> str:
        if self.maker is Maker.NONE:
            return "processors alone"
        return f"{self.maker.value} hardware ({self.stack} {self.version})"


def torch_build(facts: TorchFacts) -> TorchBuild:
    """Recognise a build.

    MetaX's also names a version of CUDA, which it stands in for, so it is asked about first.
    """
    if maca := facts.maca or _tagged(_METAX, facts.version):
        return TorchBuild(maker=Maker.METAX, stack="MACA", version=maca)
    if hip := facts.hip or _tagged(_ROCM, facts.version):
        return TorchBuild(maker=Maker.AMD, stack="ROCm", version=hip)
    if facts.cuda:
        return TorchBuild(maker=Maker.NVIDIA, stack="CUDA", version=facts.cuda)
    if facts.ascend:
        return TorchBuild(maker=Maker.HUAWEI, stack="Ascend", version=facts.ascend)
    if facts.torch_npu:
        return TorchBuild(maker=Maker.HUAWEI, stack="Ascend torch_npu", version=facts.torch_npu)
    return TorchBuild(maker=Maker.NONE, stack="", version="")


def installed_torch() -> TorchFacts:
    """Read the facts from files of the installation."""
    version = _version("torch")
    said = constants_of(_version_file()) if version else {}
    return TorchFacts(
        version=version or "",
        cuda=said.get("cuda"),
        hip=said.get("rocm") or said.get("hip"),
        maca=said.get("maca"),
        ascend=said.get("cann") or said.get("ascend"),
        torch_npu=_version("torch-npu"),
    )


def constants_of(source: str) -> dict[str, str]:
    """The texts that a version file assigns at module level; it is read, not run."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, str] = {}
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        value = getattr(node, "value", None)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found |= {each.id: value.value for each in targets if isinstance(each, ast.Name)}
    return found


def triton_version() -> str:
    """Of whichever distribution brings the module: vendors ship it under names of their own."""
    found = ((name, _version(name)) for name in _TRITONS)
    for name, version in found:
        if version:
            return version if name == "triton" else f"{version} ({name})"
    return "unknown"


def _tagged(pattern: re.Pattern[str], version: str) -> str | None:
    match = pattern.search(version)
    return match[1] if match else None


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _version_file() -> str:
    spec = util.find_spec("torch")  # finds, and does not import
    if spec is None or spec.origin is None:
        return ""
    path = Path(spec.origin).with_name("version.py")
    return path.read_text(errors="replace") if path.exists() else ""

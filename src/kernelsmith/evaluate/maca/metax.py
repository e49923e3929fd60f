"""What there is of MetaX on this machine: torch's build, the tools, the device they name.

Written from public sources; it never ran on MetaX hardware here.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.evaluate.torch_build import Maker, installed_torch, torch_build
from kernelsmith.kernels.toolkit import Maca, find_maca

_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaX:
    """All that was found."""

    sdk: Maca
    torch: str
    """Version of torch's MACA build, such as ``3.5.3.9``; empty where torch is another."""
    torch_version: str
    device: str
    """Name of the first GPU, such as ``MetaX C500``; empty where none answers."""
    devices: tuple[Path, ...]
    """Device files."""

    def missing(self) -> str | None:
        """What is missing to judge candidates here, all of it in one line."""
        found = [said for said in (self.sdk.missing(),) if said]
        if not self.torch:
            found.append(
                f"torch {self.torch_version or '(not installed)'} is not MetaX's build "
                "(torch.version.maca is not set); install it from MetaX's package index"
            )
        if not self.device:
            found.append(f"no MetaX GPU: {_no_device()}")
        return "; ".join(found) or None


def look() -> MetaX:
    """Ask the package, the tools and the file system; torch itself is not imported."""
    facts = installed_torch()
    build = torch_build(facts)
    files = [Path("/dev/mxcd"), *sorted(Path("/dev/dri").glob("renderD*"))]
    return MetaX(
        sdk=find_maca(),
        torch=build.version if build.maker is Maker.METAX else "",
        torch_version=facts.version,
        device=device_name(),
        devices=tuple(path for path in files if path.exists()),
    )


def device_name() -> str:
    """Ask ``mx-smi``, then ``macainfo``; empty where neither names one."""
    listed = _said("mx-smi", "-L")
    if found := re.search(r"(MetaX\s+\w+|MXC\d+|\bC5\d\d\b)", listed):
        return found[1] if found[1].startswith("MetaX") else f"MetaX {found[1].removeprefix('MX')}"
    found = re.search(r"Name:\s*(XCORE\d+)", _said("macainfo"))
    return f"MetaX {found[1]}" if found else ""


def _said(tool: str, *arguments: str) -> str:
    path = shutil.which(tool)
    home = find_maca().home
    if path is None and home is not None and (home / "bin" / tool).exists():
        path = str(home / "bin" / tool)
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _no_device() -> str:
    if shutil.which("mx-smi") is None:
        return "mx-smi is not on this machine"
    return "mx-smi names none"

"""How long it takes to build a CUDA candidate, beside torch's own ``load_inline`` in the same run.

Each source is built cold (nothing of it in a cache), by us and by torch, one after the other, and
by us again (from the cache). Torch's headers, which we precompile once per machine, are a row of
their own. ``python -m benchmarks.gpu_builds [--out FILE] [--budget-s 540]``; needs nvcc, no GPU.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.resumed import RESULTS, Resumed
from kernelsmith.evaluate.builder import BuildFailed
from kernelsmith.evaluate.nvcc.builder import CudaBuilder
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.evaluate.worker.builds import _list, _plain
from kernelsmith.kernels import extension_request
from kernelsmith.kernels.building import BuildRequest
from kernelsmith.kernels.local import device_arch

HONEST = Path(__file__).parents[1] / "tests" / "cheats" / "cuda" / "honest"
TASKS = Path(__file__).parents[1] / "tasks" / "cuda"
EXTENSIONS = ("relu_kernelbench", "relu_load_inline", "relu_load_inline_template")
TORCH = """
import sys, time
import torch, torch.utils.cpp_extension
source = open(sys.argv[1]).read()
begun = time.monotonic()
exec(compile(source, sys.argv[1], "exec"), {"__name__": "candidate"})
print("BUILT", time.monotonic() - begun)
"""


def recorded(path: Path) -> BuildRequest:
    """What a candidate asks ``load_inline`` for."""
    import torch.utils.cpp_extension as extension

    found: list[BuildRequest] = []

    class Anything:
        def __getattr__(self, name: str) -> object:
            return lambda *_: None

    def load_inline(name, cpp_sources, cuda_sources=None, functions=None, extra_cflags=None,
                    extra_cuda_cflags=None, **_):  # fmt: skip
        found.append(
            extension_request(
                name, _list(cpp_sources), functions=functions or {}, flags=_plain(extra_cflags),
                device_sources=_list(cuda_sources or ()), device_flags=_plain(extra_cuda_cflags),
            )
        )  # fmt: skip
        return Anything()

    real, extension.load_inline = extension.load_inline, load_inline
    try:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "candidate"})
    finally:
        extension.load_inline = real
    return found[0]


def native(path: Path, name: str) -> BuildRequest:
    """A source that a candidate gives to ``cuda`` or ``cuda_library``."""
    from kernelsmith.kernels import building

    found: list[BuildRequest] = []

    def build(request: BuildRequest) -> str:
        found.append(request)
        raise StopIteration

    building.compile_with(build)
    source = path.read_text()
    if name == "cuda":
        source = source.partition("CUDA = r'''")[2].rpartition("'''")[0]
    with contextlib.suppress(StopIteration):
        exec(compile(source, str(path), "exec"), {"__name__": "candidate"})
    return found[0]


def torch_seconds(path: Path) -> float | str:
    """Torch's own build of the same candidate, in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "TORCH_EXTENSIONS_DIR": folder,
            "MAX_JOBS": str(os.cpu_count()),
        }
        if "TORCH_CUDA_ARCH_LIST" not in environment:
            arch = device_arch().removeprefix("sm_").removesuffix("a")
            environment["TORCH_CUDA_ARCH_LIST"] = f"{arch[:-1]}.{arch[-1]}"
        done = subprocess.run([sys.executable, "-c", TORCH, str(path)], capture_output=True,
                              text=True, env=environment)  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("BUILT")]
    return float(lines[0].split()[1]) if lines else (done.stderr or done.stdout)[-400:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "builds-h200.json")
    parser.add_argument("--budget-s", type=float, default=540.0)
    args = parser.parse_args()
    kept = Resumed(args.out, budget_s=args.budget_s)
    workers = [f"kernelsmith.evaluate.worker.{name}" for name in ("compiling", "nvrtc")]
    with Zygote(preload=workers) as zygote, tempfile.TemporaryDirectory() as cache:
        builder = CudaBuilder(zygote, cache=Path(cache), arch=device_arch())
        begun = time.monotonic()
        builder._few_or_all((), few=True)
        kept.add("torch's headers, once", ours_s=round(time.monotonic() - begun, 2))
        jobs = [(f"load_inline: {name}", HONEST / f"{name}.py", "inline") for name in EXTENSIONS]
        jobs += [("nvrtc: softmax", HONEST / "softmax_dynamic_shared.py", "cubin")]
        jobs += [("nvrtc: matmul", HONEST / "matmul_tiled.py", "cubin")]
        jobs += [("nvcc library: softmax", TASKS / "softmax.py", "cuda")]
        for key, path, kind in jobs:
            if key in kept.rows or kept.is_over:
                continue
            request = recorded(path) if kind == "inline" else native(path, kind)
            begun = time.monotonic()
            try:
                builder.build(request)
            except BuildFailed as error:
                kept.add(key, failed=str(error)[-600:])
                print(key, "does not build here:", str(error)[-300:], flush=True)
                continue
            ours = time.monotonic() - begun
            begun = time.monotonic()
            builder.build(request)
            again = time.monotonic() - begun
            row = {"ours_s": round(ours, 2), "from_cache_s": round(again, 4)}
            if kind == "inline":
                theirs = torch_seconds(path)
                row["torch_s"] = theirs if isinstance(theirs, str) else round(theirs, 2)
            kept.add(key, **row)
            print(key, row, flush=True)
    for key, row in kept.rows.items():
        print(f"{key:42s}", row)


if __name__ == "__main__":
    main()

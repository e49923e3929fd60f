"""How a torch extension is built: one file with few headers where that does, else as torch does."""

import os
import re
import time
from pathlib import Path

import pytest

from kernelsmith.evaluate.builder import BuildFailed
from kernelsmith.evaluate.nvcc.builder import CudaBuilder
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.kernels import extension_request
from kernelsmith.kernels.toolkit import Toolkit, find_toolkit

TOOLKIT = find_toolkit()
CPP = "torch::Tensor relu(torch::Tensor x);"
CUDA = """
#include <torch/extension.h>
__global__ void relu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
torch::Tensor relu(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda(), "on a GPU, please");
    auto y = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
COMPILER = """#!/bin/sh
case "$1" in --version) echo "g++ (stand-in) 1.0"; exit 0;; -print-*) exit 0;; esac
for word in "$@"; do
    [ "$before" = -include ] && header="$word"
    [ "$before" = -o ] && target="$word"
    case "$word" in *.cpp) source="$word";; esac
    before="$word"
done
if [ -n "$source" ] && grep -q torch::nn "$source" && ! grep -q torch/extension.h "$header"; then
    echo "$source: error: 'nn' is not a member of 'torch'" >&2; exit 1
fi
if [ -n "$source" ] && grep -q mistake "$source"; then
    echo "$source: error: 'mistake' was not declared in this scope" >&2; exit 1
fi
echo "g++ $@" > "$target"
"""
NVCC = """#!/bin/sh
for word in "$@"; do
    [ "$before" = -o ] && target="$word"
    case "$word" in *.o) objects="$objects $word";; esac
    before="$word"
done
case " $* " in *" -shared "*) cat main.o all.o host.o device.o > built 2>/dev/null;; esac
[ "$target" = built ] || echo "nvcc $@" > "$target"
exit 0
"""


@pytest.fixture(scope="module")
def zygote():
    with Zygote(preload=["kernelsmith.evaluate.worker.compiling"]) as made:
        yield made


@pytest.fixture
def builder(zygote, tmp_path, monkeypatch):
    """One whose compilers write down how they were called."""
    tools = tmp_path / "tools" / "bin"
    tools.mkdir(parents=True)
    for name, script in (("g++", COMPILER), ("nvcc", NVCC)):
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    for folder in (tools, *tools.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)  # the sandbox is another user
    monkeypatch.setenv("CXX", str(tools / "g++"))
    toolkit = Toolkit(nvcc=tools / "nvcc", nvrtc=None, includes=())
    return CudaBuilder(zygote, cache=tmp_path / "cache", arch="sm_90a", toolkit=toolkit)


def a_request(cpp=CPP, cuda=CUDA, **more):
    return extension_request("relu", [cpp], functions=["relu"], device_sources=[cuda], **more)


def compiled(made) -> list[list[str]]:
    text = os.pread(made.fd, os.fstat(made.fd).st_size, 0).decode()
    return [line.split() for line in text.splitlines()]


def header_of(words: list[str]) -> Path:
    return Path(words[words.index("-include") + 1])


def test_the_hosts_parts_are_one_file_with_few_headers(builder):
    host, device = compiled(builder.build(a_request()))
    assert [word for word in host if word.endswith(".cpp")] == ["all.cpp"]
    assert host[:3] == ["g++", "-O1", "-std=c++17"]
    header = header_of(host)
    assert "torch/types.h" in header.read_text()
    assert "torch/extension.h" not in header.read_text()
    assert header.with_name("torch_all.h.gch").exists()
    assert device[0] == "nvcc"
    assert not any("torch" in word for word in device), "kernels see nothing of torch"


def test_what_includes_torchs_extension_header_finds_the_few(builder):
    host, _ = compiled(builder.build(a_request()))
    folder = header_of(host).parent
    assert (folder / "torch" / "extension.h").read_text() in header_of(host).read_text()
    places = [word for word in host if word.startswith("-I")]
    assert places[0] == f"-I{folder}", "before torch's own"


def test_whoever_needs_more_gets_all_headers_and_files_of_his_own(builder):
    *hosts, device = compiled(builder.build(a_request(CPP + "using M = torch::nn::Module;")))
    assert sorted(w for host in hosts for w in host if w.endswith(".cpp")) == [
        "host.cpp", "main.cpp"
    ]  # fmt: skip
    assert all("torch/extension.h" in header_of(host).read_text() for host in hosts)
    assert not any("torch" in word for word in device), "it is cut all the same"


def test_how_hard_to_optimise_the_host_is_not_the_candidates_to_say(builder):
    """Each set of flags would need precompiled headers of its own."""
    plain = compiled(builder.build(a_request()))[0]
    asked = compiled(builder.build(a_request(flags=["-O3", "-Wall", "-g", "-DN=4"])))[0]
    usual = compiled(builder.build(a_request(flags=["-O2", "-DN=4"])))[0]
    assert not {"-O3", "-O2", "-Wall", "-g"} & {*asked, *usual}
    assert "-DN=4" in asked
    assert header_of(asked) == header_of(usual) != header_of(plain)


def test_a_mistake_of_its_own_is_told_without_all_headers(builder, tmp_path):
    with pytest.raises(BuildFailed, match=r"'mistake' was not declared"):
        builder.build(a_request(CPP + "int n = mistake;"))
    texts = [path.read_text() for path in (tmp_path / "cache" / "headers").glob("*/torch_all.h")]
    assert texts
    assert not any("torch/extension.h" in text for text in texts)


@pytest.mark.slow
@pytest.mark.skipif(TOOLKIT.nvcc is None, reason="nvcc is not on this machine")
def test_an_extension_is_built_by_the_real_compilers_and_soon_once_headers_are_there(
    zygote, tmp_path
):
    builder = CudaBuilder(zygote, cache=tmp_path, arch="sm_90a")
    begun = time.monotonic()
    made = builder.build(a_request())
    first = time.monotonic() - begun
    content = os.pread(made.fd, os.fstat(made.fd).st_size, 0)
    assert re.search(rb"PyInit_relu\b", content)
    assert [kernel.name for kernel in made.kernels] == ["_Z11relu_kernelPKfPfi"]
    begun = time.monotonic()
    builder.build(a_request(cuda=CUDA.replace("0.0f", "0.5f")))
    again = time.monotonic() - begun
    print(f"first {first:.1f} s, again {again:.1f} s")
    assert again < first / 2, "headers are precompiled, and used"

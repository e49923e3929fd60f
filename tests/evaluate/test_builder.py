"""C++ extensions of torch: few of its headers first, all where they are needed, each kept."""

import os
from pathlib import Path

import pytest

from kernelsmith.evaluate.builder import Builder, BuildFailed, default_cache
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.kernels import extension_request
from kernelsmith.kernels.building import BuildRequest

CPP = "torch::Tensor relu(torch::Tensor x) { return x.clamp_min(0); }"
COMPILER = """#!/bin/sh
case "$1" in --version) echo "g++ (stand-in) 1.0"; exit 0;; -print-*) exit 0;; esac
for word in "$@"; do
    [ "$before" = -include ] && header="$word"
    [ "$before" = -o ] && target="$word"
    before="$word"
done
if [ "$target" = kernel.so ]; then
    grep -q mistake kernel.cpp && { echo "error: 'mistake' was not declared" >&2; exit 1; }
    if grep -q torch::nn kernel.cpp && ! grep -q torch/extension.h "$header"; then
        echo "error: 'nn' is not a member of 'torch'" >&2; exit 1
    fi
fi
echo "$@" > "$target"
"""


@pytest.fixture(scope="module")
def zygote():
    with Zygote(preload=["kernelsmith.evaluate.worker.compiling"]) as made:
        yield made


@pytest.fixture
def builder(zygote, tmp_path, monkeypatch):
    """One whose compiler writes down how it was called."""
    tool = tmp_path / "tools" / "bin" / "g++"
    tool.parent.mkdir(parents=True)
    tool.write_text(COMPILER)
    tool.chmod(0o755)
    for folder in tool.parents:
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)  # the sandbox is another user
    monkeypatch.setenv("CXX", str(tool))
    return Builder(zygote, cache=tmp_path / "cache")


def a_request(source=CPP, **more):
    return extension_request("relu", [source], functions=["relu"], **more)


def built(made) -> list[str]:
    return os.pread(made.fd, os.fstat(made.fd).st_size, 0).decode().split()


def header_of(words: list[str]) -> Path:
    return Path(words[words.index("-include") + 1])


def test_an_extension_gets_few_headers_precompiled_with_its_own_flags(builder):
    words = built(builder.build(a_request(flags=["-DN=4"])))
    header = header_of(words)
    assert "torch/types.h" in header.read_text()
    assert (
        header.with_name("torch_few.h.gch")
        .read_text()
        .startswith("-O3 -march=native -std=c++17 -fopenmp -DN=4 ")
    ), "others would not be taken"
    assert words[words.index("-include") + 2] == f"-I{header.parent}", "before torch's own"
    assert (header.parent / "torch" / "extension.h").read_text() == header.read_text()


def test_whoever_needs_more_gets_all_of_them(builder):
    words = built(builder.build(a_request(CPP + "using M = torch::nn::Module;")))
    header = header_of(words)
    assert header.read_text() == "#include <torch/extension.h>\n"
    assert f"-I{header.parent}" not in words


def test_what_needed_all_headers_is_not_tried_with_few_again(builder, tmp_path):
    request = a_request(CPP + "using M = torch::nn::Module;")
    first = built(builder.build(request))
    for path in (tmp_path / "cache" / "headers").rglob("*"):
        if path.is_file():
            path.unlink()  # nothing could be compiled any more without making them anew
    assert built(builder.build(request)) == first
    assert not list((tmp_path / "cache" / "headers").rglob("*.gch"))


def test_a_mistake_of_its_own_is_told_at_once(builder, tmp_path):
    with pytest.raises(BuildFailed, match="'mistake' was not declared"):
        builder.build(a_request(CPP + "int n = mistake;"))
    assert not list((tmp_path / "cache" / "headers").glob("*/torch_all.h"))


def test_plain_cpp_sees_nothing_of_torch(builder, tmp_path):
    words = built(builder.build(BuildRequest(kind="cpp", source="int f() { return 1; }")))
    assert not any("torch" in word for word in words)
    assert not (tmp_path / "cache" / "headers").exists()


VECTORS = """\
#include <vector>
#if defined(__AVX__)
#include <immintrin.h>
#endif
#define WIDE 8
extern "C" float first(const float* x) { return std::vector<float>(x, x + WIDE)[0]; }
"""


def plainly(source, flags=()):
    return BuildRequest(kind="cpp", source=source, flags=flags)


def test_vectorised_cpp_gets_its_headers_precompiled(builder):
    words = built(builder.build(plainly(VECTORS)))
    header = header_of(words)
    assert "immintrin.h" in header.read_text()
    assert header.with_name("plain.h.gch").is_file()
    assert not any("torch" in word for word in words)


@pytest.mark.parametrize(
    ("source", "flags"),
    [
        ("#define NDEBUG\n" + VECTORS, ()),
        (VECTORS + "#include <cassert>\n", ()),  # behind a definition
        (VECTORS.replace("<immintrin.h>", "<cmath>"), ()),
        ("// #include <immintrin.h>\n#include <vector>\n", ()),
        (VECTORS, ("-ffast-math",)),
    ],
)
def test_headers_that_might_read_otherwise_there_are_not_read_ahead(source, flags, builder):
    assert "-include" not in built(builder.build(plainly(source, flags)))


def test_what_comes_out_is_the_same_byte_for_byte(zygote):
    builder = Builder(zygote, cache=default_cache())
    ahead = builder._run(
        {"files": {"kernel.cpp": VECTORS}, "outputs": ["kernel.so"],
         "command": builder._command(plainly(VECTORS), [])}, [],
    )["kernel.so"]  # fmt: skip
    made = builder.build(plainly(VECTORS))
    assert os.pread(made.fd, os.fstat(made.fd).st_size, 0) == ahead

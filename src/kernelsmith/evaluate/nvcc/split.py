"""A torch extension's CUDA file cut in two: kernels for nvcc, the rest for g++.

nvcc reads torch's headers three times over and cannot keep them; g++ keeps them precompiled. A file
whose kernels are plain functions is cut into both parts; the host's part launches them by the
runtime's own call, which is what ``<<<...>>>`` stands for. Whatever is not certain is not cut: then
nvcc gets the file whole, as torch would give it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LAUNCHER = """\
#include <cuda_runtime.h>
#include <tuple>
#include <utility>
namespace kernelsmith_split {
template <class... P> struct Launcher {
    void (*kernel)(P...); dim3 grid, block; size_t shared; cudaStream_t stream;
    template <size_t... I> void go(std::tuple<P...>& given, std::index_sequence<I...>) const {
        void* places[] = {(void*)&std::get<I>(given)..., nullptr};
        cudaLaunchKernel((const void*)kernel, grid, block, places, shared, stream);
    }
    template <class... A> void operator()(A&&... given) const {
        std::tuple<P...> kept(static_cast<P>(std::forward<A>(given))...);
        go(kept, std::index_sequence_for<P...>{});
    }
};
template <class... P> Launcher<P...> launch(void (*kernel)(P...), dim3 grid, dim3 block,
                                            size_t shared = 0, cudaStream_t stream = 0) {
    return {kernel, grid, block, shared, stream};
}
}
"""
_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_TORCH_HEADER = re.compile(r"#\s*include\s*[<\"](?:torch|ATen|c10|pybind11)/")
_TORCH = re.compile(r"\b(?:torch|at|c10|py|pybind11)\s*::|\b(?:TORCH_|AT_|C10_)\w+|<<<")
_BOTH = re.compile(
    r"\s*(?:struct|class|enum|union|using|typedef|constexpr|static\s+constexpr|const\s|"
    r"static\s+const\s|inline\s|static\s+inline\s|static_assert)"
)
_DEVICE = re.compile(r"\b(?:__global__|__device__|__constant__|__shared__)\b")
_STRIPPED = re.compile(r"\b(?:__global__|static|inline|extern)\b(?!\s*\"C\")")
_BOUNDS = re.compile(r"__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)")
_LAUNCH = re.compile(r"([A-Za-z_]\w*)\s*<<<")


class Unsplittable(ValueError):
    """The file stays whole; the text says why."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The two halves."""

    host: str
    device: str


def split(source: str) -> Parts:
    """Cut a CUDA file.

    Raises:
        Unsplittable: It has what this does not understand for certain.
    """
    bare = _TEXT.sub(_blank, source)
    if "ToSymbol" in bare or "FromSymbol" in bare or "SymbolAddress" in bare:
        raise Unsplittable("host code touches a symbol of the device")
    host, device = [LAUNCHER], []
    kernels = 0
    for begin, end in _items(bare):
        text, plain = source[begin:end], bare[begin:end]
        if plain.lstrip().startswith("#"):
            host.append(text)
            if not _TORCH_HEADER.search(text):
                device.append(text)
        elif "__global__" in plain:
            host.append(_prototype(plain))
            device.append(re.sub(r"\bstatic\b(?=[^{]*\{)", "", text, count=1))
            kernels += 1
        elif re.match(r"\s*(?:namespace|extern\s*\"C\"\s*\{)", plain):
            raise Unsplittable("declarations inside a namespace")
        elif _TORCH.search(plain):
            if _DEVICE.search(plain):
                raise Unsplittable("torch and device code in one declaration")
            host.append(_launched(text, plain))
        elif _DEVICE.search(plain):
            device.append(text)
            if "__host__" in plain:
                raise Unsplittable("a function for both sides")
        elif re.match(r"\s*template\b", plain) or _BOTH.match(plain):
            host.append(text)
            device.append(text)
        else:
            host.append(text)
    if not kernels:
        raise Unsplittable("no kernel")
    return Parts(host="\n".join(host), device="\n".join(device))


def _prototype(plain: str) -> str:
    if re.match(r"\s*template\b", plain):
        raise Unsplittable("a kernel that is a template")
    head = plain.partition("{")[0].rstrip().rstrip(";")
    return f"{_STRIPPED.sub(' ', _BOUNDS.sub(' ', head))};"


def _launched(text: str, plain: str) -> str:
    """Write each ``kernel<<<grid, block>>>(`` as a call."""
    made, at = [], 0
    for match in _LAUNCH.finditer(plain):
        close = plain.find(">>>", match.end())
        if close < 0:
            raise Unsplittable("a launch without an end")
        config = text[match.end() : close]
        made += [text[at : match.start()], f"kernelsmith_split::launch({match[1]}, {config})"]
        at = close + 3
    left = "".join([*made, text[at:]])
    if "<<<" in _TEXT.sub(_blank, left):
        raise Unsplittable("a launch of a template")
    return left


def _items(bare: str) -> Iterator[tuple[int, int]]:
    """Where each declaration and each line of the preprocessor begins and ends."""
    begin = at = depth = 0
    size = len(bare)
    while at < size:
        character = bare[at]
        if depth == 0 and character == "#" and not bare[begin:at].strip():
            end = at
            while (end := bare.find("\n", end)) >= 0 and bare[end - 1] == "\\":
                end += 1
            end = size if end < 0 else end
            yield begin, end
            begin = at = end
            continue
        if character in "{(":
            depth += 1
        elif character in "})":
            depth -= 1
            if depth < 0:
                raise Unsplittable("unbalanced brackets")
            if depth == 0 and character == "}" and _is_function(bare[begin:at]):
                yield begin, at + 1
                begin = at + 1
        elif character == ";" and depth == 0:
            yield begin, at + 1
            begin = at + 1
        at += 1
    if bare[begin:].strip():
        raise Unsplittable("a declaration without an end")


def _is_function(text: str) -> bool:
    """Whether a closing brace ends a declaration: that of a struct or a list needs a semicolon."""
    head = text.partition("{")[0]
    return "(" in head or re.match(r"\s*(?:namespace|extern)\b", head) is not None


def _blank(match: re.Match[str]) -> str:
    text = match.group()
    if text == '"C"':
        return text
    if text.startswith(('"', "'")):
        return text[0] + "".join("\n" if each == "\n" else "_" for each in text[1:-1]) + text[-1]
    return "".join("\n" if each == "\n" else " " for each in text)

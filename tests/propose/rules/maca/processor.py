"""CUDA and MACA candidates on a processor: all in one library, launched as they launch."""

import ctypes
import re
import subprocess
from pathlib import Path

from kernelsmith.kernels.signatures import signatures

HEADER = Path(__file__).parent / "cuda_on_cpu.h"
_LAUNCH = re.compile(r"(\w+)<<<(.*?)>>>\s*\((.*?)\);", re.DOTALL)
_NATIVE = re.compile(r"(?:cuda_library|maca)\(r\"\"\"(.*?)\"\"\"", re.DOTALL)


def native(source: str) -> str:
    """The kernels in a candidate."""
    return _NATIVE.search(source)[1]


def on_processor(text: str, name: str) -> str:
    """One source in a namespace of its own, its ``launch`` called by another name."""
    defined = re.findall(r"#\s*define\s+(\w+)", text)
    text = re.sub(r"^\s*#\s*include.*$", "", text, flags=re.MULTILINE)
    text = _LAUNCH.sub(r"launched(\2, [=] { \1(\3); });", text)
    text = re.sub(r'extern "C" void launch\b', f'extern "C" void launch_{name}', text)
    undone = "\n".join(f"#undef {each}" for each in defined)
    return f"namespace {name}_of {{\n{text}\n}}\n{undone}\n"


class Processor:
    """Stands where ``kernelsmith.kernels`` would, for many candidates at once."""

    def __init__(self, sources: dict[str, str], wave: int, folder: Path) -> None:
        parts = [f"#define WAVE {wave}", f'#include "{HEADER}"']
        parts += [on_processor(native(each), name) for name, each in sources.items()]
        Path(folder, "all.cpp").write_text("\n".join(parts))
        command = ["g++", "-O1", "-std=c++17", "-w", "-fPIC", "-shared", "all.cpp", "-o", "all.so"]
        subprocess.run(command, cwd=folder, check=True)
        self._library = ctypes.CDLL(str(folder / "all.so"))
        self._sources = sources

    def candidate(self, name: str) -> dict[str, object]:
        """The candidate's module, with its launches on the processor."""
        found = signatures(native(self._sources[name]))["launch"]
        function = getattr(self._library, f"launch_{name}")
        function.argtypes, function.restype = found.arguments, found.result

        class Library:
            @staticmethod
            def launch(*arguments):
                given = [a.data_ptr() if hasattr(a, "data_ptr") else a for a in arguments]
                function(*given, None)

        source = re.sub(r"^from kernelsmith.*$", "", self._sources[name], flags=re.MULTILINE)
        space: dict[str, object] = {"cuda_library": lambda _: Library, "maca": lambda _: Library}
        exec(compile(source, name, "exec"), space)
        return space

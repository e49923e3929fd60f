"""What no kernel's C++ needs: other processes, and files of the machine it is built on."""

import re
from collections.abc import Iterator

from kernelsmith.evaluate.guards.rules import INCLUDES, SHELLS_OUT, Rule

_LOOKS_NATIVE = re.compile(
    r"#\s*include\b|\bextern\s+\"C\"|__global__|PYBIND11_MODULE|TORCH_LIBRARY"
)
_COMMENT_OR_STRING = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# A member called system() is somebody's own; std::system and ::system are the real ones.
_CALL = re.compile(
    r"(?<![\w.>:])(?:std\s*::\s*|::\s*)?"
    r"(?P<name>system|popen|fork|vfork|execl|execlp|execle|execv|execvp|execve|execvpe|fexecve|"
    r"posix_spawnp?|socket|ptrace|process_vm_readv|process_vm_writev)\s*\("
)
_INCLUDE = re.compile(r"#\s*(?:include|embed)\s*[<\"]\s*(?P<name>/[^>\"\n]*)")
_INCBIN = re.compile(r"(?P<name>\.incbin)\b")


def inspect_native(text: str) -> Iterator[tuple[Rule, int, str]]:
    """Yield rule, line offset and name for what offends in a text that looks like C++."""
    if not _LOOKS_NATIVE.search(text):
        return
    bare = _COMMENT_OR_STRING.sub(_blank, text)
    plain = _COMMENT.sub(_blank, text)
    for pattern, rule, where in (
        (_CALL, SHELLS_OUT, bare),
        (_INCLUDE, INCLUDES, plain),
        (_INCBIN, INCLUDES, plain),
    ):
        for match in pattern.finditer(where):
            if rule is SHELLS_OUT and _is_declaration(where, match.start()):
                continue
            yield rule, where.count("\n", 0, match.start()), match["name"]


def _is_declaration(text: str, at: int) -> bool:
    """Whether a type stands before the name: ``int system(int)`` is somebody's own function."""
    word = re.search(r"(\w+)\s+$", text[max(0, at - 80) : at])
    return word is not None and word[1] not in ("return", "else", "do", "co_return", "throw")


def _blank(match: re.Match[str]) -> str:
    return "".join("\n" if each == "\n" else " " for each in match.group())

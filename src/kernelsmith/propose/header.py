"""The line by which a candidate of the rules says what wrote it, and with which choices.

It is between us: nobody believes it, it computes nothing, and it changes with every choice. So
models do not see it in programs that they are shown, and do not write it.
"""

import re

_HEADER = re.compile(r"^# kernelsmith rules: (\w+)((?: \w+=\S+)*)$", re.MULTILINE)
_LINE = re.compile(r"^# kernelsmith rules: .*\n", re.MULTILINE)


def written(template: str, choices: dict[str, str]) -> str:
    """The line itself."""
    listed = " ".join(f"{name}={value}" for name, value in choices.items())
    return f"# kernelsmith rules: {template} {listed}".rstrip()


def header_of(source: str) -> tuple[str, dict[str, str]] | None:
    """Family and choices, as a candidate of the rules says them; none of any other text."""
    found = _HEADER.search(source)
    if found is None:
        return None
    return found[1], dict(each.split("=", 1) for each in found[2].split())


def body(source: str) -> str:
    """A candidate without its header: two choices that give the same program are one."""
    return _LINE.sub("", source)

"""Names of ours that the task has given away already: a kernel must not be called like a function.

A task that is the function ``mse_loss`` gets a kernel which torch's compiler calls ``mse_loss``,
too; in one file the second of them would replace the first.
"""

import io
import re
import tokenize
from collections.abc import Collection

_DEFINED = re.compile(r"^def (\w+)\(", re.MULTILINE)


def renamings(block: str, theirs: Collection[str]) -> dict[str, str]:
    """What of the block's functions is called as something of the task's, and what to call it."""
    own = set(_DEFINED.findall(block))
    found: dict[str, str] = {}
    for name in sorted(own & set(theirs)):
        other = f"{name}_kernel"
        while other in own or other in theirs or other in found.values():
            other += "_"
        found[name] = other
    return found


def renamed(block: str, names: dict[str, str]) -> str:
    """The block with other names; attributes and keywords of calls keep theirs."""
    if not names:
        return block
    lines = block.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(block).readline))
    depth, places = 0, []
    for number, token in enumerate(tokens):
        depth += (token.string in "([{") - (token.string in ")]}") if token.string else 0
        if token.type != tokenize.NAME or token.string not in names:
            continue
        attribute = number > 0 and tokens[number - 1].string == "."
        keyword = depth > 0 and tokens[number + 1].string == "="
        if not attribute and not keyword:
            places.append((token.start, names[token.string], len(token.string)))
    for (row, column), other, length in reversed(places):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}{other}{line[column + length :]}"
    return "".join(lines)

"""Lines that run before the rest of a Python file, put where Python lets them stand."""

import ast
import io


def begun_with(head: str, source: str) -> str:
    """The source with lines of ours before its own statements.

    They come behind its docstring and its ``__future__`` imports: nothing but comments may stand
    before these.

    Args:
        head: Whole lines.
        source: Python that parses.
    """
    body = ast.parse(source).body
    first = [node for index, node in enumerate(body) if _comes_first(node, index)]
    if not first or not head:
        return head + source
    row, column = first[-1].end_lineno or 0, 0
    lines = io.StringIO(source, newline="").readlines()
    own = body[len(first) :]
    if own and own[0].lineno == row:  # behind a semicolon
        row, column = row - 1, own[0].col_offset
    bytes_here = lines[row].encode() if row < len(lines) else b""
    before = "".join(lines[:row]) + bytes_here[:column].decode()
    after = bytes_here[column:].decode() + "".join(lines[row + 1 :])
    return f"{before}{'' if before.endswith(chr(10)) else chr(10)}\n{head}{after}"


def _comes_first(node: ast.stmt, index: int) -> bool:
    match node:
        case ast.ImportFrom(module="__future__", level=0):
            return True
        case ast.Expr(value=ast.Constant(value=str())):
            return index == 0
    return False

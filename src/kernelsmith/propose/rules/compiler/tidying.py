"""Generated kernels made plain: public names, constants in place, nothing unread."""

import ast

from kernelsmith.propose.rules.compiler import helpers

_OWN = ("triton_helpers", "libdevice", "tl_math")
_PURE = (
    ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript,
    ast.Slice, ast.Tuple, ast.List, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context,
    ast.keyword,
)  # fmt: skip
_PURE_CALLS = ("tl.full", "tl.arange", "tl.program_id", "tl.num_programs", "tl.zeros")


class Plain(ast.NodeTransformer):
    """Public names for what Inductor calls by its own."""

    def __init__(self, rename: dict[str, str], *, double: bool) -> None:
        self.helpers: set[str] = set()
        self.unknown: set[str] = set()
        self.sums: set[str] = set()
        """Functions that add their arguments."""
        self._rename = rename
        self._double = double

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The name, and everything but decorators."""
        node.name = self._rename.get(node.name, node.name)
        node.body = [self.visit(each) for each in node.body]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """A scan that adds is a cumulative sum."""
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=[target])],
                value=ast.Call(args=[ast.Tuple(elts=[scanned]), axis, ast.Name(id=name)]),
            ) if name in self.sums:
                scan = ast.parse("tl.cumsum", mode="eval").body
                node.targets = [target]
                node.value = ast.Call(func=scan, args=[scanned, axis], keywords=[])
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """The same arguments, but for one that is settled here."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in helpers.SPEED_FLAG:
            node.args.pop()
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Functions that came along have other names now."""
        return ast.Name(id=self._rename.get(node.id, node.id), ctx=node.ctx)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """``[:]`` of a block is the block."""
        self.generic_visit(node)
        match node.slice:
            case ast.Slice(lower=None, upper=None, step=None):
                return node.value
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """``triton_helpers.maximum`` and the like."""
        if not isinstance(node.value, ast.Name) or node.value.id not in _OWN:
            self.generic_visit(node)
            return node
        name = ast.unparse(node)
        if self._double and name.startswith("libdevice."):
            return node  # the helpers are exact to float32
        if name in helpers.NAMES:
            self.helpers.add(helpers.NAMES[name])
            return ast.Name(id=helpers.NAMES[name], ctx=ast.Load())
        if name in helpers.PUBLIC:
            return ast.parse(helpers.PUBLIC[name], mode="eval").body
        if name.startswith("triton_helpers."):
            self.unknown.add(name)
            return node
        return ast.parse(name.replace("tl_math.", "libdevice."), mode="eval").body


def tidy(function: ast.FunctionDef) -> None:
    """Constants where they are used, and nothing that nobody reads."""
    _inline(function)
    while True:
        read = {n.id for n in ast.walk(function)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}  # fmt: skip
        if not _without(function, read):
            return


def _inline(function: ast.FunctionDef) -> None:
    """``x * 0.5`` for a block of one element that holds 0.5; the type stays float32."""
    stores = [n.id for n in ast.walk(function)
              if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]  # fmt: skip
    found = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if stores.count(name) == 1:
                if (number := _single(value)) is not None:
                    found[name] = number
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp):
            left, right = _known(node.left, found), _known(node.right, found)
            if left is not None and right is None:
                node.left = ast.Constant(value=left)
            elif right is not None and left is None:
                node.right = ast.Constant(value=right)
        elif isinstance(node, ast.Compare) and _known(node.left, found) is None:
            right = _known(node.comparators[0], found)
            if right is not None:
                node.comparators = [ast.Constant(value=right)]


def _single(value: ast.expr) -> float | None:
    """The number in ``tl.full([1], 0.5, tl.float32)``."""
    text = ast.unparse(value)
    if not (text.startswith("tl.full([1], ") and text.endswith(", tl.float32)")):
        return None
    try:
        return float(ast.literal_eval(text[len("tl.full([1], ") : -len(", tl.float32)")]))
    except ValueError:
        return None


def _known(node: ast.expr, found: dict[str, float]) -> float | None:
    return found.get(node.id) if isinstance(node, ast.Name) else None


def _without(node: ast.AST, read: set[str]) -> bool:
    changed = False
    body = getattr(node, "body", None)
    if isinstance(body, list):
        kept = [each for each in body if not _unread(each, read)]
        if len(kept) < len(body) and kept:
            body[:] = kept
            changed = True
        for each in kept:
            changed |= _without(each, read)
    return changed


def _unread(node: ast.stmt, read: set[str]) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name not in read and _pure(value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return name not in read and _pure(value)
    return False


def _pure(node: ast.expr) -> bool:
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            if ast.unparse(each.func) not in _PURE_CALLS:
                return False
        elif not isinstance(each, _PURE):
            return False
    return True

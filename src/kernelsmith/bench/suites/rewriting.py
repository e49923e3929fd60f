"""Suites' test and timing scripts, made to run on any device and inside a function."""

import ast

_SEEDING = {"manual_seed", "manual_seed_all", "seed", "synchronize", "empty_cache"}
_SEEDERS = ("torch", "torch.cuda", "random", "np.random", "numpy.random")


class _Anywhere(ast.NodeTransformer):
    """``cuda`` becomes the device that inputs are drawn on; seeding and waiting become nothing.

    A test that seeds draws the same inputs for everyone, and a judge wants fresh ones.
    """

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and node.value.partition(":")[0] == "cuda":
            return ast.copy_location(_call("_here"), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        return node  # `device.type == "cuda"` asks for a name, not for a device

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        owner = ast.unparse(node.func.value)
        if node.func.attr == "cuda" and owner != "torch":
            moved = ast.Attribute(value=node.func.value, attr="to", ctx=ast.Load())
            return ast.copy_location(ast.Call(func=moved, args=[_call("_here")], keywords=[]), node)
        if node.func.attr in _SEEDING and owner in _SEEDERS:
            return ast.copy_location(ast.Constant(value=None), node)
        return node


def _call(name: str) -> ast.Call:
    return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[], keywords=[])


def anywhere(body: list[ast.stmt]) -> list[ast.stmt]:
    """Rewrite statements for the device that inputs are drawn on."""
    module = _Anywhere().visit(ast.Module(body=body, type_ignores=[]))
    return list(ast.fix_missing_locations(module).body)


def without_paths(body: list[ast.stmt], foreign: set[str]) -> list[ast.stmt]:
    """Drop changes of ``sys.path``, imports of the suite's own modules and what runs as a script.

    What follows from them is dropped too: assignments that read ``__file__``.
    """
    return [node for node in body if not _is_dropped(node, foreign)]


def _is_dropped(node: ast.stmt, foreign: set[str]) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] in foreign
    if isinstance(node, ast.Import):
        return all(each.name.partition(".")[0] in foreign for each in node.names)
    if isinstance(node, ast.If) and ast.unparse(node.test).startswith("__name__"):
        return True
    if isinstance(node, ast.Expr | ast.Assign | ast.Try):
        text = ast.unparse(node)
        return "sys.path" in text or "__file__" in text
    return False


def as_function(
    name: str, parameters: list[str], body: list[ast.stmt], *, returns: str = ""
) -> str:
    """Write statements as the body of a function."""
    function = ast.parse(f"def {name}({', '.join(parameters)}):\n    pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = [*body] or [ast.Pass()]
    if returns:
        function.body.append(ast.Return(value=ast.Name(id=returns, ctx=ast.Load())))
    return ast.unparse(ast.fix_missing_locations(function))


def imported_as(body: list[ast.stmt], entry: str) -> str | None:
    """Find the name under which a script imports the entry."""
    for node in ast.walk(ast.Module(body=body, type_ignores=[])):
        if isinstance(node, ast.ImportFrom):
            for each in node.names:
                if each.name == entry:
                    return each.asname or each.name
    return None


def defined(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Name what statements define at module level: functions, classes, plain assignments."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {each.id: node for each in node.targets if isinstance(each, ast.Name)}
    return found


def read_names(body: list[ast.stmt]) -> set[str]:
    """Every name that statements read."""
    tree = ast.Module(body=body, type_ignores=[])
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }

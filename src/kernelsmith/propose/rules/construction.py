"""What a class's constructor does, read over all constructors that it calls by ``super()``.

The result is one function in the terms of the first constructor's arguments, to be read and never
to be run: bases' statements stand where they are called, with their arguments put in. What cannot
be told (a name that is given another value, starred arguments) becomes a name that nobody knows.
"""

import ast
import copy
from collections.abc import Iterator, Mapping

from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.lineage import Order, class_of, inherited_method, lineage, own_method


def constructor_of(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """All that happens when a class of the file is made; none where nothing is known of it."""
    owner = class_of(tree, name)
    if owner is None:
        return None
    own = own_method(owner, "__init__")
    try:
        order = lineage(tree, name)
        first = inherited_method(order, "__init__")
    except NotRecognised:  # bases in no order that can be told: its own constructor is known
        return own
    function = first if isinstance(first, ast.FunctionDef) else None
    constants = list(_class_constants(order, function))
    if len([each for each in order if isinstance(each, ast.ClassDef)]) == 1 and not constants:
        return own
    made = copy.deepcopy(function) if function is not None else _nothing()
    if function is not None:
        made.body = _without_superseded([*_Chain(order, function).statements()])
    made.body = [*constants, *made.body] or [ast.Pass()]
    return ast.fix_missing_locations(made)


def _nothing() -> ast.FunctionDef:
    made = ast.parse("def __init__(self): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    return made


def _class_constants(order: Order, constructor: ast.FunctionDef | None) -> Iterator[ast.stmt]:
    """Values that stand in a class and that forward reads from ``self``, as assignments."""
    classes = []
    for each in order:
        if isinstance(each, str):
            break  # whatever it holds goes before what the others hold
        classes.append(each)
    stored = {
        node.attr
        for each in classes
        for node in _of_self(each)
        if not isinstance(node.ctx, ast.Load)
    }
    found: dict[str, ast.expr] = {}
    for owner in classes:
        for node in owner.body:
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    found.setdefault(name, value)
    read = {
        node.attr
        for owner in classes
        for each in owner.body
        if isinstance(each, ast.FunctionDef) and each.name == "forward"
        for node in _of_self(each)
    }
    hidden = set(found) | {each.arg for each in _parameters(constructor)}
    for name, value in found.items():
        names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        calls = any(isinstance(n, ast.Call) for n in ast.walk(value))
        if name in read - stored and not names & hidden and not calls:
            yield ast.Assign(targets=[_attribute(name)], value=copy.deepcopy(value), lineno=0)


def _of_self(node: ast.AST) -> Iterator[ast.Attribute]:
    for each in ast.walk(node):
        match each:
            case ast.Attribute(value=ast.Name(id="self")):
                yield each


def _attribute(name: str) -> ast.Attribute:
    return ast.Attribute(value=ast.Name("self", ast.Load()), attr=name, ctx=ast.Store())


def _parameters(function: ast.FunctionDef | None) -> list[ast.arg]:
    if function is None:
        return []
    args = function.args
    starred = [each for each in (args.vararg, args.kwarg) if each is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *starred]


class _Chain:
    """Constructors along an order of resolution, written as one."""

    def __init__(self, order: Order, first: ast.FunctionDef) -> None:
        self._order = order
        self._first = first
        self._outer = {each.arg for each in _parameters(first)}

    def statements(self) -> Iterator[tuple[int, ast.stmt]]:
        """All statements in the order in which they run, each with how deep it was found."""
        given: dict[str, ast.expr] = {name: ast.Name(name, ast.Load()) for name in self._outer}
        yield from self._of(self._next(0), given, 0)

    def _next(self, start: int) -> int | None:
        """The first class from there on that has a constructor in the file."""
        for at in range(start, len(self._order)):
            owner = self._order[at]
            if isinstance(owner, str):
                return None
            if own_method(owner, "__init__") is not None:
                return at
        return None

    def _of(
        self, at: int | None, given: Mapping[str, ast.expr], depth: int
    ) -> Iterator[tuple[int, ast.stmt]]:
        owner = self._order[at] if at is not None else ""
        if at is None or isinstance(owner, str):
            return
        function = own_method(owner, "__init__")
        assert function is not None
        put = _Put(function, owner.name, given)
        for statement in function.body:
            made = put.into(statement)
            called = self._called(statement, made, at)
            if called is None:
                yield depth, made
                continue
            inner, call = called
            base = self._order[inner] if inner is not None else ""
            if inner is not None and isinstance(base, ast.ClassDef):
                target = own_method(base, "__init__")
                assert target is not None
                yield from self._of(inner, _bound_to(target, call, self._outer), depth + 1)

    def _called(
        self, statement: ast.stmt, made: ast.stmt, at: int
    ) -> tuple[int | None, ast.Call] | None:
        """Which constructor a statement calls, and with what; none for all other statements."""
        match statement, made:
            case (
                ast.Expr(value=ast.Call(func=ast.Attribute(value=of, attr="__init__"))),
                ast.Expr(value=ast.Call() as call),
            ):
                pass
            case _:
                return None
        match of:
            case ast.Call(func=ast.Name(id="super"), args=[]):
                return self._next(at + 1), call
            case ast.Call(func=ast.Name(id="super"), args=[ast.Name(id=name), *_]):
                where = self._place(name)
                return None if where is None else (self._next(where + 1), call)
            case ast.Name(id=name):
                where = self._place(name)
                inner = ast.Call(func=call.func, args=call.args[1:], keywords=call.keywords)
                return None if where is None else (self._next(where), inner)
        return None

    def _place(self, name: str) -> int | None:
        for at, each in enumerate(self._order):
            if isinstance(each, ast.ClassDef) and each.name == name:
                return at
        return None


class _Put(ast.NodeTransformer):
    """Puts arguments in the place of a constructor's parameters, and renames what is local."""

    def __init__(
        self, function: ast.FunctionDef, owner: str, given: Mapping[str, ast.expr]
    ) -> None:
        self._owner = owner
        receiver = function.args.args[0].arg if function.args.args else "self"
        stored = {
            n.id
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
        }
        stored |= {
            n.arg for each in function.body for n in ast.walk(each) if isinstance(n, ast.arg)
        }
        if function.args.kwarg and not _only_handed_on(function, function.args.kwarg.arg):
            stored.add(function.args.kwarg.arg)
        names = {each.arg for each in _parameters(function)}
        self._given: dict[str, ast.expr] = {
            name: given[name] if name in given and name not in stored else _unknown(name, owner)
            for name in names | stored
        }
        self._given[receiver] = ast.Name("self", ast.Load())

    def into(self, statement: ast.stmt) -> ast.stmt:
        made = self.visit(copy.deepcopy(statement))
        assert isinstance(made, ast.stmt)
        return made

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Swap a name for what it stands for."""
        if node.id not in self._given:
            return node
        if isinstance(node.ctx, ast.Load):
            return copy.deepcopy(self._given[node.id])
        return ast.Name(f"{node.id}_in_{self._owner}", node.ctx)


def _only_handed_on(function: ast.FunctionDef, name: str) -> bool:
    """Whether all that happens to ``kwargs`` is ``**kwargs``: nothing is taken out of it."""
    walked = list(ast.walk(function))
    uses = [n for n in walked if isinstance(n, ast.Name) and n.id == name]
    handed = [n.value for n in walked if isinstance(n, ast.keyword) and n.arg is None]
    return all(any(each is value for value in handed) for each in uses)


def _unknown(name: str, owner: str) -> ast.Name:
    return ast.Name(f"{name}_in_{owner}", ast.Load())


def _bound_to(function: ast.FunctionDef, call: ast.Call, outer: set[str]) -> dict[str, ast.expr]:
    """What each parameter of a constructor is in one call; without those that cannot be told."""
    args = function.args
    names = [each.arg for each in (*args.posonlyargs, *args.args)][1:]
    if any(isinstance(each, ast.Starred) for each in call.args):
        return {}
    keywords: dict[str, ast.expr] = {}
    open_ended = False
    for each in call.keywords:
        match each:
            case ast.keyword(arg=str() as name, value=value):
                keywords[name] = value
            case ast.keyword(value=ast.Dict(keys=keys, values=values)) if all(
                isinstance(key, ast.Constant) for key in keys
            ):
                for key, value in zip(keys, values, strict=True):
                    assert isinstance(key, ast.Constant)
                    keywords[str(key.value)] = value
            case _:
                open_ended = True
    known = dict(zip(names, call.args, strict=False))
    every = [*names, *[each.arg for each in args.kwonlyargs]]
    known |= {name: value for name, value in keywords.items() if name in every}
    if open_ended:
        return known
    rest = {name: value for name, value in keywords.items() if name not in every}
    if args.kwarg is not None:
        known[args.kwarg.arg] = ast.Dict(
            keys=[ast.Constant(name) for name in rest], values=[*rest.values()]
        )
    for name, value in _defaults(args).items():
        inside = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        if name not in known and not inside & outer:
            known[name] = value
    return known


def _defaults(args: ast.arguments) -> dict[str, ast.expr]:
    plain = [each.arg for each in (*args.posonlyargs, *args.args)]
    found = dict(zip(plain[::-1], args.defaults[::-1], strict=False))
    named = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return found | {each.arg: value for each, value in named if value is not None}


def _without_superseded(found: list[tuple[int, ast.stmt]]) -> list[ast.stmt]:
    """Without what a base sets and a class built on it sets again."""
    kept = []
    for number, (depth, statement) in enumerate(found):
        name = _set_by(statement)
        again = name and any(
            later < depth and _set_by(other) == name for later, other in found[number + 1 :]
        )
        if not again:
            kept.append(statement)
    return kept


def _set_by(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
            return name
    return ""

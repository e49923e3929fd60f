"""Config objects as plain values: what a config class would hold, read from its defaults."""

import ast
import re
from collections.abc import Iterable

from kernelsmith.corpus.extract.forest import Forest, Inside, Missing
from kernelsmith.corpus.extract.lineage import Lineage, class_node

_PARAMETER = re.compile(r"^(config|cfg|configs|args|opt|hparams|params|model_args|conf|hp)$")
_CLASS = re.compile(r"(Config|Cfg|Args|Arguments|Params|HParams|Configuration)$")


def config_arguments(annotations: dict[str, str]) -> list[str]:
    """The constructor's arguments that hold a config."""
    return [
        name for name, annotation in annotations.items()
        if _PARAMETER.match(name) or any(_CLASS.search(w) for w in re.findall(r"\w+", annotation))
    ]  # fmt: skip


def config_values(
    forest: Forest, lineage: Lineage, module: str, annotation: str, mentioned: Iterable[str]
) -> tuple[str, dict[str, str]]:
    """The config class that fits and its values, as expressions; empty where there is none."""
    wanted = set(mentioned)
    words = [w for w in re.findall(r"\w+", annotation) if _CLASS.search(w)]
    parsed = forest.parse(module)
    if not words and parsed is not None:
        words = [name for name in parsed.bindings if _CLASS.search(name)][:12]
    best: tuple[int, str, dict[str, str]] = (0, "", {})
    for word in words:
        target = forest.resolve(module, word)
        if isinstance(target, Missing) or not isinstance(target, Inside):
            continue
        values = defaults(forest, lineage, target)
        kept = {name: text for name, text in values.items() if name in wanted}
        best = max(best, (len(kept), word, kept), key=lambda each: each[0])
    return best[1], best[2]


def defaults(forest: Forest, lineage: Lineage, target: Inside) -> dict[str, str]:
    """Literal defaults of a config class: fields and constructor arguments, bases first."""
    found: dict[str, str] = {}
    for each in reversed(lineage.ancestors(target)):
        node = class_node(forest, each)
        if node is None:
            continue
        found |= _fields(node)
    aliases = found.pop("attribute_map", "")
    if aliases:
        for alias, name in ast.literal_eval(aliases).items():
            if name in found:
                found.setdefault(alias, found[name])
    return found


def _fields(node: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            first = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if isinstance(first, ast.Name):
                _note(found, first.id, statement.value)
        elif isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            arguments = [*statement.args.posonlyargs, *statement.args.args]
            given = statement.args.defaults
            for argument, value in zip(
                arguments[len(arguments) - len(given) :], given, strict=True
            ):
                _note(found, argument.arg, value)
            for argument, option in zip(
                statement.args.kwonlyargs, statement.args.kw_defaults, strict=True
            ):
                if option is not None:
                    _note(found, argument.arg, option)
    return found


def _note(found: dict[str, str], name: str, value: ast.expr) -> None:
    if isinstance(value, ast.Call):
        # field(default=...), field(default_factory=lambda: [...])
        given = {k.arg: k.value for k in value.keywords}
        if "default" in given:
            value = given["default"]
        elif isinstance(factory := given.get("default_factory"), ast.Lambda):
            value = factory.body
    try:
        plain = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return
    if name == "attribute_map" and not isinstance(plain, dict):
        return
    found[name] = repr(plain)

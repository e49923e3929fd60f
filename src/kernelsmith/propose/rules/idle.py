"""Python that computes nothing: sequences of layers, dropout in evaluation, numbers as tensors."""

import ast
from collections.abc import Iterator

from kernelsmith.propose.rules.attributes import attributes
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.source import Module

DROPOUTS = {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout",
            "FeatureAlphaDropout"}  # fmt: skip
"""Layers that draw at random in training."""
_FUNCTIONS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
              "feature_alpha_dropout"}  # fmt: skip
HAND_ON = {*DROPOUTS, "Identity", "Flatten", "Unflatten"}
"""Layers that give what they got, or a view of it."""
_SEQUENCE = "torch.nn.Sequential"


def is_sequence(kind: str) -> bool:
    """Whether this class calls its layers one after another."""
    return kind == _SEQUENCE


def is_idle(module: Module, kind: str) -> bool:
    """Whether a layer of this class gives what it got.

    Raises:
        NotRecognised: It is dropout, and the task is judged in training.
    """
    name = kind.removeprefix("torch.nn.")
    if name in DROPOUTS and module.task.training:
        raise NotRecognised("rules do not know dropout that does something")
    return name == "Identity" or name in DROPOUTS


def layers_of(module: Module, path: str, made: ast.Call) -> list[tuple[str, str, ast.Call]]:
    """Path, class and making of every layer of a sequence; inner sequences are taken apart.

    Raises:
        NotRecognised: The constructor makes or changes them in a way that cannot be told.
    """
    name = path.removeprefix("self.")
    named = [
        each for each in ast.walk(module.constructor or made)
        if isinstance(each, ast.Attribute) and each.attr == name
    ]  # fmt: skip
    if len(named) != 1:
        raise NotRecognised(f"rules cannot tell what {path} holds")
    found: list[tuple[str, str, ast.Call]] = []
    fresh = False
    for place, kind, each in _flat(module, path, made):
        found.append((place, kind, _in_place(each) if fresh else each))
        # What was computed in here is nobody else's, so that the next layer may change it.
        fresh = fresh or kind.removeprefix("torch.nn.") not in HAND_ON
    return found


def _flat(module: Module, path: str, made: ast.Call) -> Iterator[tuple[str, str, ast.Call]]:
    if made.keywords or not made.args:
        raise NotRecognised(f"rules cannot tell what {path} holds")
    for number, each in enumerate(made.args):
        kind = module.dotted(each.func) if isinstance(each, ast.Call) else None
        if not isinstance(each, ast.Call) or kind is None or not kind.startswith("torch.nn."):
            raise NotRecognised(f"rules cannot tell what {path} holds")
        if kind == _SEQUENCE:
            yield from _flat(module, f"{path}[{number}]", each)
        else:
            yield f"{path}[{number}]", kind, each


def _in_place(made: ast.Call) -> ast.Call:
    """The same layer, as if it did not change what it is given."""
    kept = [each for each in made.keywords if each.arg != "inplace"]
    return ast.Call(func=made.func, args=made.args, keywords=kept)


def undropped(module: Module, node: ast.Call) -> ast.expr | None:
    """What ``F.dropout`` leaves as it is; none of other calls.

    Raises:
        NotRecognised: It drops something.
    """
    dotted = module.dotted(node.func) or ""
    if dotted.removeprefix("torch.nn.functional.") not in _FUNCTIONS:
        return None
    given = dict(zip(("input", "p", "training", "inplace"), node.args, strict=False))
    given |= {each.arg: each.value for each in node.keywords if each.arg}
    how = ast.unparse(given["training"]) if "training" in given else "True"
    idle = how == "False" or (how == "self.training" and not module.task.training)
    if not idle or "input" not in given:
        raise NotRecognised("rules do not know dropout that does something")
    return given["input"]


def number_in(module: Module, node: ast.expr) -> ast.expr | None:
    """The number in ``torch.tensor(0.5, device=x.device)``; none of all else.

    A tensor without dimensions does not change the type of what it meets, as a number does not.
    """
    if not isinstance(node, ast.Call) or module.dotted(node.func) != "torch.tensor":
        return None
    keywords = {each.arg: each.value for each in node.keywords}
    dtype = ast.unparse(keywords.pop("dtype")) if "dtype" in keywords else "torch.float32"
    plain = dtype == "torch.float32" or dtype.endswith(".dtype")
    if len(node.args) != 1 or not plain or set(keywords) - {"device"}:
        return None
    match node.args[0]:
        case ast.List() | ast.Tuple() | ast.Constant(value=bool() | str() | None):
            return None
    return node.args[0]


def check_number(value: object, known: object) -> None:
    """Insist on one number in ``torch.tensor(...)``: of a list it makes a tensor of several.

    Raises:
        NotRecognised: It is something else, or cannot be told.
    """
    for each in (value, known):
        if isinstance(each, int | float) and not isinstance(each, bool):
            return
    raise NotRecognised("rules know torch.tensor of one number")


def evaluated(module: Module) -> tuple[str, ...]:
    """Python whose ``training`` must be off for the above to hold."""
    used = {
        each.attr for each in ast.walk(module.forward)
        if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self"
    }  # fmt: skip
    found = ["self"] if "training" in used else []
    for name, made in attributes(module.constructor).items():
        if name not in used or not isinstance(made, ast.Call):
            continue
        kind = module.dotted(made.func) or ""
        if kind == _SEQUENCE:
            found += [path for path, inner, _ in _listed(module, f"self.{name}", made)
                      if inner.removeprefix("torch.nn.") in DROPOUTS]  # fmt: skip
        elif kind.removeprefix("torch.nn.") in DROPOUTS:
            found.append(f"self.{name}")
    return tuple(found)


def _listed(module: Module, path: str, made: ast.Call) -> list[tuple[str, str, ast.Call]]:
    try:
        return layers_of(module, path, made)
    except NotRecognised:  # nobody reads it, then
        return []

"""The finished task file: the extracted source, a plain constructor, recipes for inputs."""

import ast
import re
from dataclasses import dataclass, field

from kernelsmith.corpus.inputs.repair import BOOL, INDEX, Many, Other, State, Tensor, Value

_DRAWS = {"randn": "torch.randn({})", "rand": "torch.rand({})"}


@dataclass(slots=True)
class Recipe:
    """How a module is constructed and called."""

    root: str
    init: dict[str, str] = field(default_factory=dict)
    """Constructor arguments by name, as expressions."""
    extra: list[str] = field(default_factory=list)
    """Expressions for a constructor's ``*args``."""
    config: str = ""
    """The argument that takes a config; empty where none does."""
    values: dict[str, str] = field(default_factory=dict)
    """What the config holds, as expressions."""
    as_dict: bool = False
    inputs: State = ()
    named: bool = False
    """Whether inputs are handed over by name."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Free sizes by name; in shapes they stand as negative numbers, the first as -1."""
    workloads: list[dict[str, int]] = field(default_factory=list)
    draw: str = "randn"
    unpack: bool = False
    """Whether outputs are objects whose tensors have to be taken out."""


def is_plain(text: str) -> bool:
    """Whether an expression is a value that any process can be handed."""
    try:
        return _plain(ast.literal_eval(text))
    except (ValueError, TypeError, SyntaxError):
        return False


def _plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(_plain(each) for each in value)
    if isinstance(value, dict):
        return all(isinstance(k, str) and _plain(v) for k, v in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def write(source: str, recipe: Recipe, about: str) -> str:
    """Put a task file together."""
    imports: list[str] = []
    model = _model(recipe, imports, about)
    needs = [*imports, "import torch"]
    parts = (source.rstrip(), model.rstrip(), _init_inputs(recipe), _inputs(recipe))
    body = "\n\n\n".join(parts) + "\n"
    if re.search(r"\bnn\.", model):
        needs.append("from torch import nn")
    missing = [line for line in dict.fromkeys(needs) if not _has(body, line)]
    text = "".join(f"{line}\n" for line in missing) + body
    if recipe.draw == "rand":
        text += "\n\nSTRUCTURE = ['in [0, 1)']\n"
    if recipe.workloads:
        text += f"\n\n{_workloads(recipe)}\n"
    return text


def _has(text: str, line: str) -> bool:
    return re.search(rf"^{re.escape(line)}$", text, re.MULTILINE) is not None


def _arguments(recipe: Recipe) -> list[tuple[str, str]]:
    """Plain constructor arguments of ``Model``, in order: config values first."""
    found = [(name, text) for name, text in recipe.values.items() if is_plain(text)]
    taken = {name for name, _ in found}
    found += [(name, text) for name, text in recipe.init.items()
              if is_plain(text) and name not in taken]  # fmt: skip
    return [(name, text) for name, text in found if name.isidentifier()]


def _model(recipe: Recipe, imports: list[str], about: str) -> str:
    head = f'class Model({recipe.root}):\n    """{about}"""\n'
    arguments = _arguments(recipe)
    plain = not recipe.config and not recipe.extra and all(map(is_plain, recipe.init.values()))
    if plain and not recipe.init:
        return head + _forward(recipe)
    names = {name for name, _ in arguments}
    given = []
    if recipe.config:
        inner = ", ".join(
            f"{_key(recipe, name)}{name if name in names else text}"
            for name, text in recipe.values.items()
        )
        if recipe.as_dict:
            given.append(f"{recipe.config}={{{inner}}}")
        else:
            imports.append("from types import SimpleNamespace")
            given.append(f"{recipe.config}=SimpleNamespace({inner})")
    given += [f"{name}={name if name in names and name not in recipe.values else text}"
              for name, text in recipe.init.items()]  # fmt: skip
    parameters = ", ".join(["self", *(f"{name}={text}" for name, text in arguments)])
    call = ", ".join([*recipe.extra, *given])
    return (
        f"{head}\n    def __init__({parameters}):\n        super().__init__({call})\n"
        + _forward(recipe)
    )


def _key(recipe: Recipe, name: str) -> str:
    return f"{name!r}: " if recipe.as_dict else f"{name}="


def _forward(recipe: Recipe) -> str:
    if not recipe.unpack:
        return ""
    return (
        "\n    def forward(self, *args, **kwargs):\n"
        "        found = super().forward(*args, **kwargs)\n"
        "        values = found.values() if isinstance(found, dict) else vars(found).values()\n"
        "        return tuple(value for value in values if isinstance(value, torch.Tensor))\n"
    )


def _init_inputs(recipe: Recipe) -> str:
    values = ", ".join(text for _, text in _arguments(recipe))
    return f"def get_init_inputs():\n    return [{values}]"


def _inputs(recipe: Recipe) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in recipe.sizes.items())
    names = list(recipe.sizes)
    texts = [(name, expression(value, names, recipe.draw)) for name, value in recipe.inputs]
    if recipe.named:
        body = "{" + ", ".join(f"{name!r}: {text}" for name, text in texts) + "}"
    else:
        body = "[" + ", ".join(text for _, text in texts) + "]"
    return f"def get_inputs({sizes}):\n    return {body}"


def expression(value: Value, names: list[str], draw: str) -> str:
    """One input as an expression; negative sizes are free ones, by number."""
    if isinstance(value, Other):
        return value.text
    if isinstance(value, Many):
        inner = ", ".join(expression(each, names, draw) for each in value.tensors)
        if value.is_tuple:
            return f"({inner},)"
        return f"[{inner}]"
    shape = ", ".join(names[-size - 1] if size < 0 else str(size) for size in value.shape)
    if value.dtype == INDEX:
        comma = "," if len(value.shape) == 1 else ""
        return f"torch.randint(0, {value.high}, ({shape}{comma}))"
    if value.dtype == BOOL:
        comma = "," if len(value.shape) == 1 else ""
        return f"torch.ones(({shape}{comma}), dtype=torch.bool)"
    return _DRAWS[draw].format(shape or "()")


def _workloads(recipe: Recipe) -> str:
    listed: list[dict[str, object]] = [{"name": "default"}]
    listed += [
        {"name": " ".join(f"{k}={v}" for k, v in each.items()), "inputs": each}
        for each in recipe.workloads
    ]
    lines = ",\n        ".join(repr(each) for each in listed)
    return f"def get_workloads():\n    return [\n        {lines},\n    ]"


def free(value: Value, numbers: dict[int, int]) -> Value:
    """Put free sizes in: ``numbers`` maps a size to its number, 1 and up."""
    if isinstance(value, Tensor):
        shape = tuple(-numbers[s] if s in numbers else s for s in value.shape)
        return Tensor(shape, value.dtype, value.high)
    if isinstance(value, Many):
        tensors = tuple(free(each, numbers) for each in value.tensors)
        return Many(tensors, value.is_tuple)  # type: ignore[arg-type]
    return value

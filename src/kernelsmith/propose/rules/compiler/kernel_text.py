"""One of Inductor's Triton kernels: its text made stand-alone, and what its launch needs."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kernelsmith.propose.rules.compiler import helpers
from kernelsmith.propose.rules.compiler.call import Kernel, Schedule
from kernelsmith.propose.rules.compiler.schedules import Hints, chosen
from kernelsmith.propose.rules.compiler.steps import Unreadable
from kernelsmith.propose.rules.compiler.tidying import Plain, tidy

_SCHEDULES: dict[str, Schedule] = {
    "pointwise": "pointwise", "reduction": "reduction", "persistent_reduction": "persistent",
    "template": "template", "foreach": "other",
}  # fmt: skip
GRIDS = ("Grid1D", "Grid2D", "Grid3D", "Grid2DWithYZOverflow", "FixedGrid")
_PREFIX = re.compile(r"^triton_(?:poi|red|per|tem|spl|mm|for)_fused_")
_LAUNCH = ("num_warps", "num_stages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A kernel and the functions of its own that it calls."""

    kernel: Kernel
    helpers: tuple[str, ...]
    """Names from ``helpers``."""
    functions: tuple[str, ...]
    """Texts of functions that came with it, for scans."""


def readable(name: str, taken: Iterable[str]) -> str:
    """``triton_poi_fused_addmm_gelu_0`` as ``addmm_gelu``."""
    short = re.sub(r"_\d+$", "", _PREFIX.sub("", name))
    parts = [part for part in short.split("_") if part]
    while len("_".join(parts)) > 40 and len(parts) > 1:
        parts.pop()
    short = "_".join(parts) or "kernel"
    reserved = {*taken, *helpers.NAMES.values(), "torch", "triton", "tl", "exp", "plain"}
    if short in reserved or not short.isidentifier() or short[0].isdigit():
        short = f"{short}_kernel" if short.isidentifier() else f"kernel_{short}"
    number, found = 2, short
    while found in reserved:
        found, number = f"{short}_{number}", number + 1
    return found


def read_kernel(
    text: str, name: str, operators: tuple[str, ...], tuned: dict[str, int]
) -> Generated:
    """Turn the text that Inductor hands to its own machinery into plain Triton.

    Args:
        text: The module in which it would compile the kernel.
        name: What the kernel is to be called.
        operators: What was fused, from the comment above it.
        tuned: What the compiler found fastest, where it measured.

    Raises:
        Unreadable: The kernel needs more than a launch.
    """
    tree = ast.parse(text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    found = [node for node in functions if _heuristic(node) is not None]
    if len(found) != 1:
        raise Unreadable(f"the text of {name} holds {len(found)} kernels")
    main = found[0]
    heuristic = _heuristic(main)
    assert heuristic is not None
    kind = ast.unparse(heuristic.func).rpartition(".")[2]
    if kind not in _SCHEDULES:
        raise Unreadable(f"{name} is scheduled by {kind}, which needs the compiler's machinery")
    meta = _keywords(heuristic)
    types = _signature(meta)
    sizes = _sizes(main, types)
    rename = {each.name: f"{name}_{_role(each.name)}" for each in functions if each is not main}
    change = Plain(rename | {main.name: name}, double="fp64" in str(types))
    sums = {each.name for each in functions if _adds(each)}
    functions = [each for each in functions if each.name not in sums]
    change.sums = sums
    texts = []
    for each in functions:
        made = change.visit(each)
        made.decorator_list = [ast.parse("triton.jit", mode="eval").body]
        if each is main:
            tidy(made)
        texts.append(ast.unparse(ast.fix_missing_locations(made)))
    if change.unknown:
        raise Unreadable(f"{name} calls the compiler's own {sorted(change.unknown)[0]}")
    inductor = meta.get("inductor_meta", {})
    grid = str(inductor.get("grid_type", ""))
    if grid not in GRIDS:
        raise Unreadable(f"{name} is launched on the grid {grid or 'of an older torch'}")
    body = texts[functions.index(main)]
    schedule = _SCHEDULES[kind]
    if "associative_scan" in body or "tl.cumsum" in body:
        schedule = "scan"
    blocks = tuple(a.arg for a in main.args.args if types.get(a.arg) == "constexpr"
                   and a.arg.endswith("BLOCK"))  # fmt: skip
    kernel = Kernel(
        name=name, text=body, schedule=schedule, sizes=tuple(sizes.items()), blocks=blocks,
        grid=grid, operators=operators, fixed=_fixed(meta, main),
        defaults=_defaults(kind, sizes, blocks, meta, tuned),
        types=tuple((a.arg, types.get(a.arg, "constexpr")) for a in main.args.args),
    )  # fmt: skip
    return Generated(
        kernel=kernel, helpers=tuple(sorted(change.helpers)),
        functions=tuple(t for t, node in zip(texts, functions, strict=True) if node is not main),
    )  # fmt: skip


def _heuristic(node: ast.FunctionDef) -> ast.Call | None:
    for each in node.decorator_list:
        if isinstance(each, ast.Call) and "triton_heuristics" in ast.unparse(each.func):
            return each
    return None


def _adds(node: ast.FunctionDef) -> bool:
    """Whether a function for scans is plain addition."""
    arguments = [each.arg for each in node.args.args]
    match node.body:
        case [
            ast.Assign(value=ast.BinOp(left=ast.Name(id=a), op=ast.Add(), right=ast.Name(id=b))),
            ast.Return(),
        ]:
            return [a, b] == arguments
    return False


def _role(name: str) -> str:
    """``_triton_helper_fn_add0`` as ``add``."""
    return re.sub(r"\d+$", "", name.removeprefix("_triton_helper_fn_")).strip("_") or "combine"


def _keywords(call: ast.Call) -> dict[str, Any]:
    return {each.arg: _value(each.value) for each in call.keywords if each.arg is not None}


def _value(node: ast.expr) -> Any:
    """Literals as they are, names of enumerations by their last part, all else as nothing."""
    match node:
        case ast.Dict(keys=keys, values=values):
            return {_value(k): _value(v) for k, v in zip(keys, values, strict=True) if k}
        case ast.List(elts=elements):
            return [_value(each) for each in elements]
        case ast.Tuple(elts=elements):
            return tuple(_value(each) for each in elements)
        case ast.Attribute(attr=name):
            return name
        case ast.Constant(value=value):
            return value
    return None


def _signature(meta: dict[str, Any]) -> dict[str, str]:
    found = meta.get("triton_meta", {}).get("signature", {})
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise Unreadable("the compiler's text names no types")
    return {name: str(kind) for name, kind in found.items()}


def _sizes(node: ast.FunctionDef, types: dict[str, str]) -> dict[str, int]:
    """Extents that the body sets: ``xnumel = 196608``; outermost last, what is reduced after."""
    found = {}
    for each in node.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int() as size)):
                if name.endswith("numel") and name in types:
                    found[name.removesuffix("numel")] = size
    return dict(sorted(found.items(), key=lambda item: (item[0][0] == "r", item[0])))


def _fixed(meta: dict[str, Any], node: ast.FunctionDef) -> tuple[tuple[str, str], ...]:
    """What a template's text settles: its tiles, and how it wants to be launched."""
    found: dict[str, str] = {key: str(meta[key]) for key in _LAUNCH if key in meta}
    for each in node.body:
        match each:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value)):
                if name.startswith(("BLOCK_", "GROUP_")):
                    found[name] = str(value)
    return tuple(found.items())


def _defaults(
    kind: str, sizes: dict[str, int], blocks: tuple[str, ...], meta: dict[str, Any],
    tuned: dict[str, int],
) -> tuple[tuple[str, int], ...]:  # fmt: skip
    inductor = meta.get("inductor_meta", {})
    if kind == "template":
        launch: dict[str, int] = {key: int(meta[key]) for key in _LAUNCH if key in meta}
    else:
        launch = chosen(
            Hints(
                schedule=_SCHEDULES[kind], sizes=sizes, loads=int(inductor.get("num_load") or 0),
                reduction=str(meta.get("reduction_hint") or "DEFAULT"),
                square=meta.get("tile_hint") == "SQUARE",
                reductions=int(inductor.get("num_reduction") or 0),
                whole=bool(inductor.get("add_persistent_rblock")),
            )
        )  # fmt: skip
    known: dict[str, int] = {**launch, **tuned}
    return tuple((key, known.get(key, 1)) for key in (*blocks, *_LAUNCH))

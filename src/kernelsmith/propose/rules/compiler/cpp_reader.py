"""The compiler's C++ for a module, read into a ``Call``; never run."""

import ast
from collections.abc import Mapping
from dataclasses import replace

from kernelsmith.propose.rules.compiler.call import Alias, Call, Kernel, Named, Viewed
from kernelsmith.propose.rules.compiler.capture import Captured
from kernelsmith.propose.rules.compiler.steps import Unreadable, read_wrapper
from kernelsmith.propose.rules.graph import NotRecognised


def cpp_call(captured: Captured) -> Call:
    """Read one generated module.

    Raises:
        NotRecognised: It does something that a stand-alone candidate cannot.
    """
    try:
        return _read(captured)
    except Unreadable as error:
        raise NotRecognised(str(error)) from error


def _read(captured: Captured) -> Call:
    tree = ast.parse(captured.code)
    kernels = _kernels(tree)
    wrapper = read_wrapper(
        tree, [each.name for each in kernels], [each.name for each in captured.constants]
    )
    if len(wrapper.names) != len(captured.arguments):
        raise NotRecognised(
            f"the compiler takes {len(wrapper.names)} arguments where the module has "
            f"{len(captured.arguments)}"
        )
    if len(wrapper.results) < captured.outputs:
        raise NotRecognised("the compiler returns fewer results than the module")
    pairs = zip(wrapper.names, captured.arguments, strict=True)
    training = captured.training
    mode = () if training is None else (("self.training", str(training)),)
    return Call(
        arguments=tuple(replace(each, name=name) for name, each in pairs),
        kernels=tuple(kernels), steps=tuple(wrapper.steps),
        results=tuple(wrapper.results[: captured.outputs]), tree=captured.tree,
        conditions=(*captured.numbers, *mode), made_with=captured.made_with,
        constants=captured.constants, assigned=captured.assigned,
    )  # fmt: skip


def _kernels(tree: ast.Module) -> list[Kernel]:
    found = []
    for node in tree.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id="async_compile"), attr=how),
                    args=[*_, ast.Constant(value=str() as text)],
                ),
            ):
                if how != "cpp_pybinding":
                    raise NotRecognised(f"the compiler builds {name} in a way not known ({how})")
                reduces = "tmp_acc" in text
                found.append(
                    Kernel(name=name, text=text, schedule="reduction" if reduces else "pointwise")
                )
    return found


def roots(call: Call) -> Mapping[str, Named | Viewed]:
    """What each name stands for, once names of names are followed."""
    found: dict[str, Named | Viewed] = {}
    for step in call.steps:
        if not isinstance(step, Alias):
            continue
        base = found.get(step.of.name)
        if base is None:
            found[step.name] = step.of
        elif isinstance(step.of, Named):
            found[step.name] = base
        else:
            before = base.offset if isinstance(base, Viewed) else 0
            found[step.name] = replace(step.of, name=base.name, offset=before + step.of.offset)
    return found

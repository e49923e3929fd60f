"""The compiler's text for a module, read into a ``Call``."""

import ast
import re
from dataclasses import replace

from kernelsmith.propose.rules.compiler import helpers
from kernelsmith.propose.rules.compiler.call import Argument, Call, Launch, Step
from kernelsmith.propose.rules.compiler.capture import Captured, Skipped
from kernelsmith.propose.rules.compiler.kernel_text import Generated, read_kernel, readable
from kernelsmith.propose.rules.compiler.steps import Unreadable, Wrapper, read_wrapper

_OPERATORS = re.compile(r"Original ATen: \[([^\]]*)\]")


def read_call(captured: Captured) -> Call | Skipped:
    """Read Inductor's Triton text; what cannot stand alone is skipped with the reason."""
    try:
        return _read(captured)
    except Unreadable as error:
        return Skipped(reason=str(error))


def _read(captured: Captured) -> Call:
    tree = ast.parse(captured.code)
    found = _kernels(captured, tree)
    wrapper = read_wrapper(tree, found, [each.name for each in captured.constants])
    arguments = _arguments(captured, wrapper)
    if len(wrapper.results) < captured.outputs:
        count = len(wrapper.results)
        raise Unreadable(f"the compiler returns {count} of {captured.outputs} results")
    used = {step.kernel for step in wrapper.steps if isinstance(step, Launch)}
    made = [each for name, each in found.items() if name in used]
    names = {name: each.kernel.name for name, each in found.items()}
    prelude = helpers.written({name for each in made for name in each.helpers})
    functions = [text for each in made for text in each.functions]
    training = captured.training
    mode = () if training is None else (("self.training", str(training)),)
    return Call(
        arguments=arguments,
        kernels=tuple(each.kernel for each in made),
        steps=tuple(_renamed(step, names) for step in wrapper.steps),
        results=tuple(wrapper.results[: captured.outputs]),
        tree=captured.tree,
        prelude="\n\n\n".join([*prelude, *functions]),
        conditions=(*captured.numbers, *mode),
        made_with=captured.made_with,
        constants=captured.constants,
        assigned=captured.assigned,
    )


def _kernels(captured: Captured, tree: ast.Module) -> dict[str, Generated]:
    """Every kernel by the compiler's name for it."""
    lines = captured.code.splitlines()
    tuned = {name: dict(values) for name, values in captured.tuned}
    found: dict[str, Generated] = {}
    for node in tree.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(attr="triton"), args=[_, ast.Constant(value=str() as text)]
                ),
            ):
                taken = {each.kernel.name for each in found.values()}
                found[name] = read_kernel(
                    text, readable(name, taken), _operators(lines, node.lineno),
                    tuned.get(name, {}),
                )  # fmt: skip
    return found


def _operators(lines: list[str], at: int) -> tuple[str, ...]:
    """The operators named in the comment above a kernel."""
    for line in reversed(lines[: at - 1]):
        if not line.startswith("#"):
            break
        if found := _OPERATORS.search(line):
            return tuple(each.strip() for each in found[1].split(",") if each.strip())
    return ()


def _arguments(captured: Captured, wrapper: Wrapper) -> tuple[Argument, ...]:
    """What the capture knows, under the names that the text uses."""
    if len(wrapper.names) != len(captured.arguments):
        raise Unreadable(
            f"the compiler takes {len(wrapper.names)} arguments where the module has "
            f"{len(captured.arguments)}"
        )
    found = []
    for name, each in zip(wrapper.names, captured.arguments, strict=True):
        asserted = wrapper.layouts.get(name)
        if asserted is not None and asserted[0] != each.shape:
            raise Unreadable(f"the compiler takes {name} as {asserted[0]}, not {each.shape}")
        found.append(replace(each, name=name))
    return tuple(found)


def _renamed(step: Step, names: dict[str, str]) -> Step:
    return replace(step, kernel=names[step.kernel]) if isinstance(step, Launch) else step

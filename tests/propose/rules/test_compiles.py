"""The Triton kernels compiled for an H200, which needs no GPU: the interpreter checks no types."""

import importlib.util
import re

import pytest
from rule_tasks import KNOWN

from kernelsmith.propose.rules.templates import template_for

CONSTANTS = {"ROWS": 2, "BLOCK": 1024}


def signature(names, *, one_row):
    types, constants = {}, {}
    for name in names:
        if name in CONSTANTS or (one_row and name in ("rows", "count")):
            types[name], constants[name] = "constexpr", CONSTANTS.get(name, 1)
        elif name in ("rows", "dim", "count"):
            types[name] = "i32"
        else:
            types[name] = "fp32" if re.fullmatch(r"s\d+", name) else "*fp32"
    return types, {(names.index(name),): value for name, value in constants.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_every_kernel_compiles_for_hopper(name, tmp_path):
    triton = pytest.importorskip("triton")
    compiler = pytest.importorskip("triton.backends.compiler")
    template = template_for(KNOWN[name], "triton")
    for number, one_row in ((0, False), (4, True), (5, False)):
        path = tmp_path / f"candidate_{number}.py"
        path.write_text(template.source(template.space.seed(number, 1)))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for kernel in ("flat", "whole", "looped", "finish"):
            if function := getattr(module, kernel, None):
                types, constants = signature(function.arg_names, one_row=one_row)
                made = triton.compiler.ASTSource(fn=function, signature=types, constexprs=constants)
                triton.compile(made, target=compiler.GPUTarget("cuda", 90, 32))

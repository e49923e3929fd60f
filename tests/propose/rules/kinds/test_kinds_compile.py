"""The Triton kernels compiled for an H200, which needs no GPU: the interpreter checks no types."""

import importlib.util

import pytest
from kind_tasks import KINDS

from kernelsmith.propose.rules.kinds import kinds_for

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

TYPES = {
    "float32": "*fp32",
    "bfloat16": "*bf16",
    "float16": "*fp16",
    "int64": "*i64",
    "bool": "*i1",
}
TASKS = [
    (kind, name) for kind, tasks in KINDS.items() if kind != "product" for name in tasks
]  # fmt: skip


def compiled(function, arguments, constants, warps):
    """Compile one launch for Hopper, typed as Triton's launcher would."""
    from triton.backends.compiler import GPUTarget

    types, fixed, aligned = {}, {}, {}
    for i, name in enumerate(function.arg_names):
        value = constants[name] if name in constants else arguments[i]
        if isinstance(value, torch.Tensor):
            types[name] = TYPES[str(value.dtype).removeprefix("torch.")]
            aligned[(i,)] = [["tt.divisibility", 16]]
        elif name in constants or (isinstance(value, int) and value == 1):
            types[name], fixed[(i,)] = "constexpr", value
        else:
            types[name] = "fp32" if isinstance(value, float) else "i32"
    made = triton.compiler.ASTSource(fn=function, signature=types, constexprs=fixed, attrs=aligned)
    return triton.compile(made, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})


def launches(source, task, tmp_path, monkeypatch, dtype):
    """What a candidate launches, without launching it."""
    found = []

    def run(self, *arguments, grid, warmup, num_warps, **constants):
        found.append((self, arguments, constants, num_warps))

    monkeypatch.setattr(triton.runtime.jit.JITFunction, "run", run)
    path = tmp_path / "candidate.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = {}
    exec(task.source, names)
    inputs = [
        each.to(dtype) if each.is_floating_point() else each for each in names["get_inputs"]()
    ]
    module.ModelNew(*names["get_init_inputs"]()).to(dtype).eval()(*inputs)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 2, 5])
@pytest.mark.parametrize(("kind", "name"), TASKS)
def test_every_kernel_compiles_for_hopper(kind, name, number, tmp_path, monkeypatch):
    task = KINDS[kind][name]
    (family,) = [each for each in kinds_for(task, "triton") if each.space.template == kind]
    source = family.source(family.space.seed(number, 1))
    dtype = torch.bfloat16 if number == 2 else torch.float32
    found = launches(source, task, tmp_path, monkeypatch, dtype)
    assert found
    for each in found:
        compiled(*each)

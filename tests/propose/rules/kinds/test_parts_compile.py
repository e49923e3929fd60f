"""The Triton kernels of attention, recurrent layers and convolutions, compiled for an H200."""

import importlib.util

import pytest
from part_tasks import MIXING, PARTS
from reduced_tasks import REDUCED

from kernelsmith.propose.rules.kinds import kinds_for

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

TYPES = {"float32": "*fp32", "bfloat16": "*bf16", "float16": "*fp16", "int64": "*i64",
         "bool": "*i1", "int32": "*i32"}  # fmt: skip
OPTIONS = {"num_warps", "num_stages", "launch_cooperative_grid"}
SHARED = 227 * 1024
"""Bytes of shared memory that a program may have there."""
KNOWN = PARTS | {"packed": MIXING | REDUCED}
TASKS = [(kind, name) for kind, tasks in KNOWN.items() for name in tasks]


def compiled(function, arguments, given):
    """Compile one launch for Hopper, typed as Triton's launcher would."""
    from triton.backends.compiler import GPUTarget

    types, fixed, aligned = {}, {}, {}
    for i, name in enumerate(function.arg_names):
        value = given[name] if name in given else arguments[i]
        if isinstance(value, torch.Tensor):
            types[name] = TYPES[str(value.dtype).removeprefix("torch.")]
            aligned[(i,)] = [["tt.divisibility", 16]]
        elif name in given or (isinstance(value, int) and value == 1):
            types[name], fixed[(i,)] = "constexpr", value
        else:
            types[name] = "fp32" if isinstance(value, float) else "i32"
    made = triton.compiler.ASTSource(fn=function, signature=types, constexprs=fixed, attrs=aligned)
    options = {key: value for key, value in given.items() if key in OPTIONS}
    return triton.compile(made, target=GPUTarget("cuda", 90, 32), options=options)


def launches(source, task, tmp_path, monkeypatch, dtype):
    """What a candidate launches, without launching it."""
    found = []

    def run(self, *arguments, grid, warmup, **given):
        found.append((self, arguments, given))

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
    with torch.no_grad():
        module.ModelNew(*names["get_init_inputs"]()).to(dtype).eval()(*inputs)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize(("kind", "name"), TASKS)
def test_every_kernel_compiles_for_hopper(kind, name, number, tmp_path, monkeypatch):
    task = KNOWN[kind][name]
    (family,) = [each for each in kinds_for(task, "triton") if each.space.template == kind]
    source = family.source(family.space.seed(number, 1))
    # One launch for all steps needs a device; here the text is made to choose it.
    source = source.replace("if held.is_cuda and ", "if True or ")
    dtype = torch.bfloat16 if number == 2 else torch.float32
    found = launches(source, task, tmp_path, monkeypatch, dtype)
    assert found
    for each in {str((f.__name__, g)): (f, a, g) for f, a, g in found}.values():
        assert compiled(*each).metadata.shared <= SHARED

"""The kernels compiled for an H200, which needs no GPU: types, registers and shared memory."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from rule_tasks import a_task

from kernelsmith.domain.device import Device
from kernelsmith.propose.rules.chip import H200, chip_of
from kernelsmith.propose.rules.compiler.call import Named
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.plan import Operands, shared_bytes, write
from kernelsmith.propose.rules.products.product import Product, Schedule
from kernelsmith.propose.rules.products.replace import (
    product_parameters,
    product_seeds,
    replaced,
)
from kernelsmith.propose.rules.products.written import written_products

TYPES = {"fa_ptr": "*i8", "fb_ptr": "*i8"}
PLANES = {"fp16x3": "*fp16", "bf16x6": "*bf16"}
SCHEDULES = [
    Schedule(precision="fp16x3", planes="once", bk=64, descriptors=True),
    Schedule(precision="fp16x3", planes="once", bk=64),
    Schedule(precision="fp16x3", planes="once", bk=64, descriptors=True, persistent=True),
    Schedule(precision="fp16x3", planes="once", bm=64, bn=64, bk=64, warps=4, split_k=2),
    Schedule(precision="bf16x6", planes="once", bk=32, stages=4, descriptors=True),
    Schedule(precision="bf16x6", planes="once", bm=64, bn=64, bk=32, warps=4, stages=4),
    Schedule(precision="fp16x3", planes="one", bk=64, stages=2),
    Schedule(precision="bf16x6", planes="one", bk=32),
    Schedule(precision="bf16x6"),
    Schedule(precision="bf16x6", bm=64, bn=64, warps=4),
    Schedule(precision="tf32x3"),
]

ONE_STEP = Schedule(
    precision="fp16x3", planes="once", bk=64, stages=2, descriptors=True, persistent=True
)


def usage(compiled, triton, path):
    """Registers and stack that a kernel takes, as the toolkit says."""
    path.write_bytes(compiled.asm["cubin"])
    tool = Path(triton.__path__[0], "backends", "nvidia", "bin", "cuobjdump")
    if not tool.exists():
        pytest.skip("this Triton has no cuobjdump")
    said = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True)
    return re.search(r"REG:(\d+) STACK:(\d+)", said.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "k"), [*((each, 4096) for each in SCHEDULES), (ONE_STEP, 64)], ids=str
)
def test_kernels_fit_an_h200_without_spilling(schedule, k, tmp_path):
    triton = pytest.importorskip("triton")
    compiler = pytest.importorskip("triton.backends.compiler")
    product = Product(m=4096, n=4096, k=k, a=(0, k, 1), b=(0, 4096, 1), c=(0, 4096, 1))
    operands = Operands(a=Named(name="a"), b=Named(name="b"), outputs=(Named(name="c"),))
    for kernel in write(0, product, schedule, operands).kernels:
        function = loaded(tmp_path / f"{kernel.name}.py", kernel.text)
        types = {
            name: PLANES[schedule.precision] if name in ("pa_ptr", "pb_ptr")
            else TYPES.get(name, "*fp32")
            for name in function.arg_names
        }  # fmt: skip
        attributes = {(n,): [["tt.divisibility", 16]] for n in range(len(types))}
        source = triton.compiler.ASTSource(function, types, constexprs={}, attrs=attributes)
        target = compiler.GPUTarget("cuda", 90, 32)
        built = triton.compile(source, target=target, options=dict(kernel.defaults))
        assert built.metadata.shared <= H200.shared_bytes
        found = usage(built, triton, tmp_path / "kernel.cubin")
        assert int(found[2]) == 0
        if kernel.name.startswith("product") and schedule.split_k == 1:
            assert "wgmma.mma_async" in built.asm["ptx"]
            assert abs(built.metadata.shared - shared_bytes(product, schedule)) <= 64


CHIPS = {"NVIDIA H200": 90, "NVIDIA A100-SXM4-80GB": 80}
TASKS = {
    "lower": a_task("return torch.tril(x @ y)", names="x, y",
                    inputs="torch.randn(2048, 2048), torch.randn(2048, 2048)"),
    "normed": a_task("return F.mish(self.norm(self.fc(x))) * self.by",
                     init="self.fc = nn.Linear(1000, 2000)\nself.norm = nn.BatchNorm1d(2000)\n"
                     "self.by = 1.5", inputs="torch.randn(500, 1000)"),
    "small": a_task("return F.gelu(x @ y)", names="x, y",
                    inputs="torch.randn(512, 24, 70), torch.randn(512, 70, 20)"),
    "pointed": a_task("return F.relu(self.conv(x))", init="self.conv = nn.Conv2d(64, 128, 1)",
                      inputs="torch.randn(8, 64, 100, 99)"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("device", CHIPS)
def test_products_that_are_read_from_the_source_fit_their_device(device, name, tmp_path):
    triton = pytest.importorskip("triton")
    compiler = pytest.importorskip("triton.backends.compiler")
    chip = chip_of(Device(kind="cuda", name=device))
    (one,) = written_products(TASKS[name])
    for seed in product_seeds(one.call, chip):
        chosen = {each.name: each.default for each in product_parameters(one.call, chip)}
        try:
            call = replaced(one.call, chosen | dict(seed), chip)
        except NotRecognised:
            continue
        precision = "bf16x6" if ("precision", "bf16x6") in seed else "fp16x3"
        for kernel in call.kernels:
            function = loaded(tmp_path / f"{kernel.name}.py", f"{call.prelude}\n\n\n{kernel.text}")
            types, constants = {}, {}
            for at, argument in enumerate(function.arg_names):
                types[argument] = TYPES.get(argument, "*fp32")
                if argument in ("pa_ptr", "pb_ptr"):
                    types[argument] = PLANES[precision]
                if argument in ("xnumel", "XBLOCK"):
                    types[argument], constants[at,] = "constexpr", 1024
            attributes = {
                (n,): [["tt.divisibility", 16]] for n, kind in enumerate(types.values())
                if kind != "constexpr"
            }  # fmt: skip
            source = triton.compiler.ASTSource(
                function, types, constexprs=constants, attrs=attributes
            )
            options = {key: each for key, each in kernel.defaults if key.startswith("num_")}
            target = compiler.GPUTarget("cuda", CHIPS[device], 32)
            built = triton.compile(source, target=target, options=options)
            assert built.metadata.shared <= chip.shared_bytes


def loaded(path, text):
    """The one kernel of a text, as a function."""
    path.write_text(f"import torch\nimport triton\nimport triton.language as tl\n\n\n{text}\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, path.stem)

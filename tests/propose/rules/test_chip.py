"""What the rules take from the device at hand, and what they take for granted without one."""

import asyncio
from dataclasses import replace

import pytest
from rule_briefs import a_brief
from rule_tasks import a_task

from kernelsmith.domain.device import Device
from kernelsmith.propose.rules.chip import H200, Chip, chip_of
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.products.choose import best_way, scheduled
from kernelsmith.propose.rules.products.plan import check
from kernelsmith.propose.rules.products.product import Product, Schedule
from kernelsmith.propose.rules.products.standalone import product_family
from kernelsmith.propose.rules.proposer import RulesProposer
from kernelsmith.propose.rules.rewrite.cost import Peaks, peaks_of

LINEAR = a_task(
    "return F.gelu(self.fc(x))", init="self.fc = nn.Linear(4096, 4096)",
    inputs="torch.randn(4096, 4096)",
)  # fmt: skip


def a_gpu(name):
    return Device(kind="cuda", name=name)


A100 = a_gpu("NVIDIA A100-SXM4-80GB")


def square(size):
    return Product(m=size, n=size, k=size, a=(0, size, 1), b=(0, size, 1), c=(0, size, 1))


def test_without_a_device_it_is_an_h200():
    assert chip_of(None) == chip_of(Device(kind="cpu", name="interpreter")) == H200
    assert chip_of(a_gpu("NVIDIA H200")) == H200


@pytest.mark.parametrize(("name", "processors", "shared_kb", "descriptors"), [
    ("NVIDIA H100 80GB HBM3", 132, 227, True), ("NVIDIA H100 PCIe", 114, 227, True),
    ("NVIDIA H20", 78, 227, True), ("NVIDIA B200", 148, 227, True),
    ("NVIDIA A100-SXM4-80GB", 108, 163, False), ("NVIDIA L40S", 142, 99, False),
    ("NVIDIA GeForce RTX 3090", 82, 99, False), ("Tesla V100-SXM2-16GB", 80, 96, False),
    ("Tesla T4", 40, 64, False),
])  # fmt: skip
def test_the_data_sheet_says_how_much_there_is(name, processors, shared_kb, descriptors):
    chip = chip_of(a_gpu(name))
    assert chip.processors == processors
    assert chip.shared_bytes == shared_kb << 10
    assert chip.descriptors is descriptors


def test_speeds_are_relative_to_an_h200():
    chip = chip_of(A100)
    assert chip.memory == pytest.approx(2.0 / 4.8)
    assert chip.plain == pytest.approx(19.5 / 67)
    assert chip.tensor == pytest.approx(312 / 989)
    assert chip_of(a_gpu("NVIDIA GeForce RTX 4090")).plain == pytest.approx(128 / 132)
    assert peaks_of(H200) == Peaks(own=H200)
    assert peaks_of(chip).products_per_s == pytest.approx(51e12 * 19.5 / 67)


def test_a_gpu_that_nobody_has_heard_of_is_not_trusted_with_descriptors():
    chip = chip_of(a_gpu("Unheard Of"))
    assert not chip.descriptors
    assert (chip.processors, chip.memory) == (H200.processors, 1.0)


@pytest.mark.parametrize("device", [A100, a_gpu("Tesla T4"), a_gpu("Unheard Of")])
def test_tiles_are_copied_by_descriptor_only_where_the_device_can(device):
    family = product_family(LINEAR, chip_of(device))
    assert family.space.named("product_loads").choices == ("pointers",)
    written = 0
    for chosen in family.space.starts:
        try:
            source = family.source(chosen)
        except NotRecognised:
            continue
        written += 1
        assert "make_tensor_descriptor" not in source
    assert written >= 3
    on_h200 = product_family(LINEAR)
    assert "make_tensor_descriptor" in on_h200.source(on_h200.space.defaults)


def test_programs_that_stay_are_as_many_as_there_are_multiprocessors():
    stay = {"product": "planes", "product_programs": "persistent", "product_loads": "pointers"}
    for chip, grid in ((H200, "[(132,)]"), (Chip(processors=108), "[(108,)]")):
        family = product_family(LINEAR, chip)
        assert f"product_0{grid}" in family.source(family.space.defaults | stay)


def test_shared_memory_is_the_devices():
    large = Schedule(precision="fp16x3", planes="once", bk=64, stages=3)
    check(square(4096), large)
    with pytest.raises(NotRecognised, match="shared memory"):
        check(square(4096), large, chip_of(a_gpu("NVIDIA L40S")))
    with pytest.raises(NotRecognised, match="by descriptor"):
        check(square(4096), Schedule(precision="fp16x3", planes="once", bk=64, stages=2,
                                     descriptors=True), chip_of(A100))  # fmt: skip


def test_k_is_shared_until_every_multiprocessor_has_something():
    few = Product(m=256, n=256, k=65536, a=(0, 65536, 1), b=(0, 256, 1), c=(0, 256, 1))
    family = product_family(LINEAR)
    chosen = family.space.defaults | {"product": "tiles", "precision": "bf16x6"}
    shares = [
        scheduled(few, chosen, leading=True, fused=False, chip=Chip(processors=each)).split_k
        for each in (16, 132)
    ]
    assert shares == [2, 16]


def test_the_speed_of_memory_decides_whether_splitting_before_pays():
    assert best_way(square(2048), fused=False) == "planes"
    assert best_way(square(2048), fused=False, chip=Chip(memory=0.01)) == "tiles"


def test_the_device_of_the_brief_is_what_is_written_for():
    def source(device):
        brief = replace(a_brief(LINEAR, 0, backend="triton"), device=device)
        proposal = asyncio.run(RulesProposer("triton", hurried=True).propose(brief))
        assert proposal.source is not None, proposal.rejection
        return proposal.source

    assert source(A100) == source(A100)
    assert "make_tensor_descriptor" not in source(A100)
    assert source(None) == source(a_gpu("NVIDIA H200"))
    assert "make_tensor_descriptor" in source(None)

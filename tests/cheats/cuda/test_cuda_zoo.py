"""The zoo in CUDA C++: no cheat passes, with the static guard or without it; honest ones do."""

from device_zoo import TASKS, DeviceZoo

from kernelsmith.evaluate.guards.static import FindingKind, inspect_source
from kernelsmith.evaluate.tasks import load_candidate, load_task


class TestCudaZoo(DeviceZoo):
    folder = backend = "cuda"
    timeout_s = 120.0

    @classmethod
    def open(cls):
        from kernelsmith.evaluate.nvcc.backend import CudaCppBackend

        return CudaCppBackend()

    def look_closer(self, found):
        assert any(kernel.own and kernel.registers for kernel in found.kernels)

    def inspected(self, animal):
        task = load_task(TASKS / f"{animal.task}.py")
        return inspect_source(load_candidate(animal.path, self.backend), task)

    def test_the_static_guard_lets_honest_ones_pass(self, fair):
        assert self.inspected(fair) is None

    def test_the_static_guard_stops_those_that_it_can(self, stopped):
        found = self.inspected(stopped)
        assert found is not None
        assert found.kind is FindingKind.REFUSED

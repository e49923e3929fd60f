"""The zoo on a GPU: no cheat passes, with the static guard or without it; every honest one does."""

from device_zoo import DeviceZoo, honest, offenders


class TestGpuZoo(DeviceZoo):
    folder, backend = "gpu", "triton"

    @classmethod
    def open(cls):
        from kernelsmith.evaluate.cuda.backend import CudaBackend

        return CudaBackend()

    def test_it_is_large_enough_to_mean_something(self):
        assert len(offenders(self.folder)) >= 30
        assert len(honest(self.folder)) >= 20

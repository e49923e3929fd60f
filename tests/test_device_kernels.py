"""What a candidate imports for a device: launches are checked before any driver is asked."""

import ctypes
from pathlib import Path

import pytest

from kernelsmith.evaluate.worker.builds import _plain
from kernelsmith.kernels import BuildError, BuildRequest, Module, signatures
from kernelsmith.kernels.local import arch_of
from kernelsmith.kernels.toolkit import find_maca, find_toolkit

SOURCE = """
extern "C" __global__ void __launch_bounds__(256)
scale(const float* x, float* y, int64_t n, float by) {}
extern "C" __global__ void odd(float3 v) {}
extern "C" void launch(const float* x, float* y, cudaStream_t stream) {}
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "kernels.cubin"
    path.write_bytes(b"not loaded in these tests")
    return Module(str(path), signatures(SOURCE))


def test_kernels_are_read_with_their_bounds_and_types():
    found = signatures(SOURCE)["scale"]
    pointer = ctypes.c_void_p
    assert found.arguments == (pointer, pointer, ctypes.c_int64, ctypes.c_float)


def test_a_last_stream_may_be_left_out():
    assert signatures(SOURCE)["launch"].takes_stream
    assert not signatures(SOURCE)["scale"].takes_stream
    assert signatures('extern "C" void f(mcStream_t s) {}')["f"].takes_stream
    assert not signatures('extern "C" void f(cudaStream_t* s) {}')["f"].takes_stream


def test_an_unknown_kernel_is_said_with_those_there_are(module):
    with pytest.raises(AttributeError, match="the source defines scale, odd, launch"):
        _ = module.scaled


def test_a_kernel_that_takes_a_struct_cannot_be_launched_from_python(module):
    with pytest.raises(TypeError, match="no C type known for 'float3 v'"):
        _ = module.odd


def test_a_launch_needs_a_grid_and_a_block(module):
    with pytest.raises(TypeError, match=r"scale\[grid, block\]"):
        module.scale(1, 2, 3, 4.0)


@pytest.fixture
def driver(monkeypatch):
    """The C library in place of the driver: nothing in these tests gets as far as a launch."""
    from kernelsmith.kernels import launching

    class Never:
        def cuLaunchKernel(self, *arguments):
            raise AssertionError("launched")

    monkeypatch.setattr(launching, "_driver", lambda: Never())


@pytest.mark.parametrize("key", [(1,), (1, 2, 3, 4), ("a", 256), ((1, 1, 1, 1), 32)])
def test_a_launch_of_another_form_is_refused(module, driver, key):
    with pytest.raises(TypeError):
        module.scale[key]


@pytest.mark.parametrize("key", [(-1, 256), (1, 0), (1, (16, 0))])
def test_sizes_below_nothing_are_refused(module, driver, key):
    with pytest.raises(ValueError, match="not negative"):
        module.scale[key]


def test_an_empty_grid_launches_nothing(module, driver):
    assert module.scale[0, 256](None, None, 0, 1.0) is None


def test_the_number_of_arguments_is_checked(module, driver):
    with pytest.raises(TypeError, match="scale takes 4 arguments; got 1"):
        module.scale[1, 256](None)


def test_flags_for_other_devices_are_left_to_the_judge():
    given = ["-O3", "-gencode", "arch=compute_80,code=sm_80", "--use_fast_math", "-arch=sm_90", "",
             "-Xptxas", "-v", "-DN=4"]  # fmt: skip
    assert _plain(given) == ("-O3", "--use_fast_math", "-DN=4")
    assert _plain(None) == ()


@pytest.mark.parametrize(("capability", "arch"), [((8, 0), "sm_80"), ((9, 0), "sm_90a")])
def test_from_hopper_on_an_architecture_has_instructions_of_its_own(capability, arch):
    assert arch_of(*capability) == arch


def test_a_toolkit_is_found_where_cuda_home_says(monkeypatch, tmp_path):
    for place in ("bin/nvcc", "lib64/libnvrtc.so.12", "include/cuda_fp16.h"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    found = find_toolkit()
    assert found.nvcc == tmp_path / "bin/nvcc"
    assert found.nvrtc == tmp_path / "lib64/libnvrtc.so.12"
    assert found.includes == (tmp_path / "include",)


def test_metax_tools_are_found_on_the_path(monkeypatch, tmp_path):
    tool = tmp_path / "mxcc"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.delenv("MACA_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_maca().mxcc == Path(tool)
    assert find_maca().missing() is None


@pytest.mark.parametrize(
    "body", [{}, {"kind": "ptx"}, {"kind": "cubin", "source": 3, "flags": [], "name": "k"},
             {"kind": "cuda", "source": "", "flags": "-O3", "name": "k"},
             {"kind": "cuda", "source": "", "flags": [], "name": "k", "device_flags": 7}],
)  # fmt: skip
def test_a_request_of_another_form_is_refused(body):
    with pytest.raises(BuildError, match="not a build request"):
        BuildRequest.from_json(body)

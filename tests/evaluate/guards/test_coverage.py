"""Addresses are counted by what is mapped there."""

import os

import pytest

from kernelsmith.evaluate.guards.coverage import (
    Mapping,
    Side,
    coverage,
    library_us,
    parse_maps,
    side_of,
    system_prefixes,
)

OWN = (os.makedev(0, 1), 1024)
PREFIXES = ("/usr/", "/opt/python/")


def a_mapping(**changes: object) -> Mapping:
    """The judge's own library; tests name only what they are about."""
    usual: dict[str, object] = {
        "start": 0x1000, "end": 0x2000, "permissions": "r-xp", "device": OWN[0], "inode": OWN[1],
        "path": "/memfd:kernel (deleted)",
    }  # fmt: skip
    return Mapping(**{**usual, **changes})  # type: ignore[arg-type]


def test_smaps_are_read_with_device_inode_and_alteration():
    lines = """\
55c1a4239000-55c1a423a000 r-xp 00001000 fe:00 26723                      /opt/python/bin/python3.11
Rss:                   4 kB
Anonymous:             0 kB
7f0000000000-7f0000001000 rw-p 00000000 00:00 0                          [heap]
Anonymous:             4 kB
7f91f06c5000-7f91f0942000 r-xp 00000000 00:01 1024                       /memfd:a b (deleted)
Anonymous:             8 kB
VmFlags: rd ex mr mw me""".splitlines()
    python, kernel = parse_maps(lines)
    assert (python.device, python.inode) == (os.makedev(0xFE, 0), 26723)
    assert not python.altered
    assert kernel == a_mapping(
        start=0x7F91F06C5000, end=0x7F91F0942000, path="/memfd:a b (deleted)", altered=True
    )


FILE = {"device": os.makedev(0xFE, 0), "inode": 7}


@pytest.mark.parametrize(
    ("mapping", "side"),
    [
        (a_mapping(), Side.OWN),
        (a_mapping(inode=1025), Side.LIBRARY),
        (a_mapping(altered=True), Side.LIBRARY),
        (a_mapping(permissions="rwxp"), Side.LIBRARY),
        (a_mapping(device=0, inode=0, path=""), Side.LIBRARY),
        (a_mapping(device=0, inode=0, path="[vdso]"), Side.NEUTRAL),
        (a_mapping(**FILE, path="/usr/lib/libm.so.6"), Side.NEUTRAL),
        (a_mapping(**FILE, path="/usr/lib/libc-2.31.so"), Side.NEUTRAL),
        (a_mapping(**FILE, path="/usr/lib/libgomp-24e2ab19.so.1.0.0"), Side.NEUTRAL),
        (a_mapping(**FILE, path="/usr/lib/libm.so.6", altered=True), Side.LIBRARY),
        (a_mapping(**FILE, path="/tmp/libm.so.6"), Side.LIBRARY),
        (a_mapping(**FILE, path="/usr/lib/libmkl_core.so.2"), Side.LIBRARY),
        (a_mapping(**FILE, path="/opt/python/lib/libpython3.11.so.1.0"), Side.NEUTRAL),
        (a_mapping(**FILE, path="/opt/python/torch/lib/libc10.so"), Side.NEUTRAL),
        (a_mapping(**FILE, path="/opt/python/torch/lib/libtorch_cpu.so"), Side.LIBRARY),
        (a_mapping(**FILE, path="/opt/python/numpy/_multiarray_umath.so"), Side.LIBRARY),
        (a_mapping(**FILE, path="/opt/python/lib-dynload/_ctypes.cpython-311.so"), Side.NEUTRAL),
    ],
)
def test_memory_is_counted_to_whoever_put_it_there(mapping: Mapping, side: Side):
    assert side_of(mapping, {OWN}, PREFIXES) is side


def test_shares_are_of_own_and_library_samples_only():
    maps = [
        a_mapping(),
        a_mapping(start=0x3000, end=0x4000, **FILE, path="/usr/lib/libblas.so"),
        a_mapping(start=0x5000, end=0x6000, **FILE, path="/usr/lib/libc.so.6"),
    ]
    found = coverage([0x1000] * 30 + [0x3FFF] * 10 + [0x5000] * 500, maps, {OWN}, prefixes=PREFIXES)
    assert found is not None
    assert (found.own, found.library, found.samples) == (0.75, 0.25, 40)


@pytest.mark.parametrize("address", [0, 0xFFF, 0x2000, 1 << 60])
def test_an_address_outside_every_mapping_is_library(address: int):
    found = coverage([address] * 50, [a_mapping()], {OWN}, prefixes=PREFIXES)
    assert found is not None
    assert found.own == 0


def test_too_few_samples_say_nothing():
    assert coverage([0x1000] * 19, [a_mapping()], {OWN}, prefixes=PREFIXES) is None


def test_library_time_per_launch_follows_from_the_sampling_rate():
    found = coverage([0x9000] * 500, [a_mapping()], {OWN}, prefixes=PREFIXES)
    assert found is not None
    assert library_us(found, frequency=5000, launches=1000) == pytest.approx(100.0)


def test_the_interpreter_lies_under_a_system_prefix():
    assert os.path.realpath(os.__file__).startswith(system_prefixes())

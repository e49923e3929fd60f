"""What programs of recurrent layers begin with, keep, and wait for."""

import importlib.util

import pytest
from part_runner import arrived, runner
from part_tasks import RECURRENT

from kernelsmith.propose.rules.kinds import kinds_for
from kernelsmith.propose.rules.kinds.recurrent import kept
from kernelsmith.propose.rules.kinds.recurrent.triton import WAIT, render_kernels

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
CHOSEN = {
    "launch": "grid", "precision": "fp16x3", "units": "16", "rows": "16", "block": "64",
    "warps": "8",
}  # fmt: skip


def fits(mode, *, rows, units=16, size, dtype=torch.float32, layers=False) -> bool:
    """What a launch finds."""
    names = {
        "torch": torch, "held": torch.empty(0, dtype=dtype), "layers": layers, "UB": units,
        "BB": rows, "KEPT": size,
    }  # fmt: skip
    exec("\n".join(kept.fits(mode)), names)
    return names["fits"]


def shared(mode, tmp_path, *, rows, units=16, size, layers=False) -> int:
    """Bytes of shared memory that a program takes on an H200."""
    from triton.backends.compiler import GPUTarget

    path = tmp_path / "made.py"
    path.write_text(HEAD + render_kernels(mode, CHOSEN))
    found = importlib.util.spec_from_file_location("made", path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    fixed = {
        "BB": rows, "UB": units, "BK": size, "LAYERS": layers, "SPLIT": True, "GRID": True,
        "RELU": False,
    }  # fmt: skip
    numbers = {"times", "batch", "size", "plane", "begin", "end"}
    types, constants, aligned = {}, {}, {}
    for i, name in enumerate(module.keeping.arg_names):
        types[name] = "i32" if name in numbers else "*i32" if name == "counter" else "*fp32"
        if name in fixed:
            types[name], constants[(i,)] = "constexpr", fixed[name]
        elif name in {"size", "plane"} or name not in numbers:
            aligned[(i,)] = [["tt.divisibility", 16]]
    made = triton.compiler.ASTSource(
        fn=module.keeping, signature=types, constexprs=constants, attrs=aligned
    )
    target = GPUTarget("cuda", 90, 32)
    return triton.compile(made, target=target, options={"num_warps": 8}).metadata.shared


@pytest.mark.parametrize(
    ("mode", "most", "there"),
    [
        ("LSTM", 64, {"size": 256, "layers": True}),
        ("LSTM", 32, {"size": 512}),
        ("GRU", 32, {"size": 512}),
        ("GRU", 64, {"size": 512, "dtype": torch.float16, "layers": True}),
        ("LSTM", 32, {"size": 1024, "dtype": torch.bfloat16}),
        ("RNN", 16, {"size": 1024, "layers": True}),
        ("RNN", 0, {"size": 2048}),
    ],
)
def test_weights_are_kept_where_there_is_room_for_states_beside_them(mode, most, there):
    assert [each for each in (16, 32, 64) if fits(mode, rows=each, **there)] == [
        each for each in (16, 32, 64) if each <= most
    ]


def test_more_weights_than_fit_are_not_kept_however_few_the_states():
    assert not fits("LSTM", rows=16, size=512, layers=True)
    assert not fits("LSTM", rows=16, units=32, size=256, layers=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "there"),
    [
        ("LSTM", {"rows": 64, "size": 256, "layers": True}),
        ("GRU", {"rows": 32, "size": 512}),
        ("RNN", {"rows": 16, "size": 1024, "layers": True}),
        ("LSTM", {"rows": 64, "units": 64, "size": 128}),
        ("GRU", {"rows": 64, "size": 512}),
        ("RNN", {"rows": 16, "size": 2048}),
    ],
)
def test_what_fits_is_what_a_program_may_have_on_an_h200(mode, there, tmp_path):
    assert fits(mode, **there) is (shared(mode, tmp_path, **there) <= 227 * 1024)


def test_the_fastest_of_what_reads_its_weights_anew_comes_second_and_fewer_warps_last():
    (family,) = [
        each for each in kinds_for(RECURRENT["gru"], "triton") if each.space.template == "recurrent"
    ]
    first, second, *_, last = family.space.seeds
    assert first == ()
    assert dict(second) == {"precision": "tf32x3", "units": "32", "rows": "64"}
    assert dict(last) == {"warps": "4"}
    assert {"units": "32"} not in [dict(each) for each in family.space.seeds]


@pytest.fixture(scope="module")
def pool():
    with runner() as found:
        yield found


def test_nobody_writes_when_all_have_come_and_who_gives_up_does(pool):
    # A counter below zero shows it: the larger of that and of nothing is zero.
    assert pool.submit(arrived, WAIT, 1, -99, start=-100).result() == -99
    impatient = WAIT.replace("4000000", "3")
    assert pool.submit(arrived, impatient, 1, -98, start=-100).result() == 1 << 30

"""Long searches for a place are cut in parts; what the compiler wrote is real, so are its answers.

Thresholds are lowered, since Triton's interpreter takes its time.
"""

import ast

import pytest
from rule_tasks import a_task
from split_runner import SPECIAL, agree
from triton_interpreter import runner

from kernelsmith.domain.device import Device
from kernelsmith.propose.rules.compiler import splitting
from kernelsmith.propose.rules.compiler.call import Allocate, Call, Launch
from kernelsmith.propose.rules.compiler.capture import DEFAULT, Captured, Request, capture_all
from kernelsmith.propose.rules.compiler.facts import facts_of
from kernelsmith.propose.rules.compiler.reader import read_call
from kernelsmith.propose.rules.compiler.triton_writer import Shaped, triton_candidate

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="there is a GPU here, so none is imagined"
)
TASKS = {
    "all": a_task("return torch.argmax(x)", inputs="torch.randn(1 << 16)"),
    "thirds": a_task("return torch.argmax(x)", inputs="torch.randn(3 << 15)"),
    "rows": a_task("return torch.argmax(torch.relu(x) * 2, -1)", inputs="torch.randn(3, 9001)"),
    "columns": a_task("return torch.min(x, 0)", inputs="torch.randn(3001, 20)"),
}
MANY = a_task("return torch.argmax(x, -1)", inputs="torch.randn(4096, 2048)")
STORES = a_task(
    "z = y + 1\nreturn z, torch.argmax(x * z[:, None], 1)", names="x, y",
    inputs="torch.randn(5, 3001), torch.randn(5)",
)  # fmt: skip
VALUES = a_task("return torch.amax(x, -1)", inputs="torch.randn(3, 9001)")


@pytest.fixture(scope="module")
def asked():
    """Every call as the compiler writes it for an H200."""
    gpu = facts_of(Device(kind="cuda", name="NVIDIA H200"))
    found = {}
    for name, task in {**TASKS, "many": MANY, "values": VALUES, "stores": STORES}.items():
        request = Request(source=task.source, workload=task.workloads[0], options=DEFAULT)
        (captured,) = capture_all(task, [request], device="cuda", gpu=gpu)
        assert isinstance(captured, Captured), captured
        found[name] = read_call(captured)
        assert isinstance(found[name], Call), found[name]
    return found


@pytest.fixture
def eager_to_cut(monkeypatch):
    monkeypatch.setattr(splitting, "_LEAST", 1000)
    monkeypatch.setattr(splitting, "_SHORTEST", 256)
    monkeypatch.setattr(splitting, "_PROGRAMS", 16)


@pytest.fixture(scope="module")
def pool():
    with runner() as found:
        yield found


def written(task, call):
    return triton_candidate(
        task, [Shaped(call=call, label="first")], header="# a test", words="A test.", launches={}
    )


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("name", TASKS)
def test_what_parts_find_is_joined_exactly(pool, asked, eager_to_cut, name, special):
    call = splitting.split(asked[name])
    source = written(TASKS[name], call)
    assert "_part[" in source
    assert "_join[" in source
    reference = TASKS[name].source
    assert pool.submit(agree, source, reference, special).result(), source


@pytest.mark.parametrize("name", TASKS)
def test_a_search_is_two_launches_with_memory_between_them(asked, eager_to_cut, name):
    call = splitting.split(asked[name])
    launched = [step.kernel for step in call.steps if isinstance(step, Launch)]
    assert sum("_part" in each for each in launched) == 1
    assert sum("_join" in each for each in launched) == 1
    assert {each.name for each in call.kernels} == set(launched)
    between = [step for step in call.steps if isinstance(step, Allocate)]
    assert {each.dtype for each in between if each.name.startswith("found")} == {
        "float32", "int32",
    }  # fmt: skip
    for each in call.kernels:
        ast.parse(each.text)
        assert set(dict(each.defaults)) == {*each.blocks, "num_warps", "num_stages"}


def test_short_searches_and_many_rows_stay_as_they_are(asked):
    assert splitting.split(asked["rows"]) is asked["rows"], "9,001 elements a program"
    assert splitting.split(asked["many"]) is asked["many"], "4,096 rows keep a device busy"


def test_what_stores_something_else_before_it_searches_stays_whole(asked, eager_to_cut):
    assert "tl.store" in asked["stores"].kernels[0].text.partition("for ")[0]
    assert splitting.split(asked["stores"]) is asked["stores"]


def test_values_alone_are_the_compiler_s_to_cut(asked, eager_to_cut):
    assert splitting.split(asked["values"]) is asked["values"]

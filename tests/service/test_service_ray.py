"""Workers as Ray actors: a cluster of several nodes on this machine loses one in mid-run."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from service_parts import TASK, a_fleet, a_request

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import UsageError
from kernelsmith.testing import QUICK

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'kernelsmith[cluster]'")

pytestmark = pytest.mark.slow
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
from ray.cluster_utils import Cluster as Nodes  # noqa: E402

from kernelsmith.service.cluster import Cluster  # noqa: E402
from kernelsmith.service.crew import Crew  # noqa: E402


@pytest.fixture
def nodes():
    found = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "resources": {"head": 1}})
    workers = [found.add_node(num_cpus=1), found.add_node(num_cpus=1)]
    found.wait_for_nodes()
    yield found, workers
    ray.shutdown()
    found.shutdown()


def test_a_run_ends_complete_though_a_node_is_lost_in_the_middle(nodes):
    found, workers = nodes
    cluster = Cluster(found.address)
    crew = Crew(cluster.posts("null"), cluster.worker)

    async def go():
        evaluator = crew.evaluator(QUICK)
        done = []

        async def one(number):
            source = f"x {'+-'[number % 2]} y # {number}"
            judged = await evaluator.evaluate(TASK, Candidate(backend="null", source=source))
            done.append(number)
            return judged

        work = [asyncio.create_task(one(number)) for number in range(300)]
        while len(done) < 40:
            await asyncio.sleep(0.05)
        before = len(done)
        await asyncio.to_thread(found.remove_node, workers[0], False)
        verdicts = [each.verdict for each in await asyncio.gather(*work)]
        await crew.close()
        return before, verdicts

    before, verdicts = asyncio.run(go())
    assert before < 300, "the node was lost in the middle"
    assert verdicts == [Verdict.PASSED, Verdict.WRONG] * 150
    deadline = time.monotonic() + 60  # Ray takes its time to believe it
    while len([each for each in ray.nodes() if each["Alive"]]) != 2:
        assert time.monotonic() < deadline, "the node is gone"
        time.sleep(0.5)


def test_a_server_on_a_cluster_answers_every_request_once_though_a_node_is_lost(nodes, tmp_path):
    found, workers = nodes
    cluster = Cluster(found.address)

    async def go():
        async with a_fleet(tmp_path, hire=cluster.worker, posts=3) as (queue, fleet, metrics):
            requests = [a_request(f"x {'+-'[n % 2]} y # {n}") for n in range(200)]
            tickets = await queue.submit("me", requests, {})
            deadline = time.monotonic() + 120
            while metrics.value("finished_total", state="done") < 30:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            await asyncio.to_thread(found.remove_node, workers[1], False)
            over = [await queue.wait("me", each.id, 120.0) for each in tickets]
            return [each.evaluation.verdict for each in over], fleet.statuses()

    verdicts, statuses = asyncio.run(go())
    assert verdicts == [Verdict.PASSED, Verdict.WRONG] * 100
    assert sum(each.judged for each in statuses) == 200


FROM_OUTSIDE = """
import asyncio, sys
from kernelsmith.service.cluster import Cluster
from kernelsmith.service.crew import Crew
from service_parts import TASK
from kernelsmith.domain.candidate import Candidate
from kernelsmith.testing import QUICK

cluster = Cluster(sys.argv[1])
crew = Crew(cluster.posts("null"), cluster.worker)

async def go():
    found = await crew.evaluator(QUICK).evaluate(TASK, Candidate(backend="null", source="y + x"))
    await crew.close()
    return found.verdict.value

print(asyncio.run(go()))
"""


def test_a_cluster_can_be_used_from_a_machine_outside_of_it():
    pytest.importorskip("grpc", reason="ray:// needs grpcio: pip install 'kernelsmith[cluster]'")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    args = {"num_cpus": 1, "ray_client_server_port": port}
    found = Nodes(initialize_head=True, head_node_args=args)
    try:
        done = subprocess.run(
            [sys.executable, "-c", FROM_OUTSIDE, f"ray://127.0.0.1:{port}"],
            capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        )  # fmt: skip
        assert done.stdout.strip() == "passed", done.stderr[-2000:]
    finally:
        found.shutdown()


def test_a_cluster_without_the_gpu_says_so(nodes):
    cluster = Cluster(nodes[0].address)
    assert cluster.backend() == "cpu"
    with pytest.raises(UsageError, match="no GPU of type H200"):
        cluster.posts("triton", gpu_type="H200")
    assert len(cluster.posts("triton", count=4, gpu_type="H200")) == 4


def test_a_bench_is_judged_on_a_cluster(nodes, tmp_path, monkeypatch):
    from bench_parts import NullSuite, a_config, a_plan, a_recording, quiet

    from kernelsmith.bench.protocol import carried_out
    from kernelsmith.cli.bench_elsewhere import staff_for

    monkeypatch.setenv("RAY_ADDRESS", nodes[0].address)
    config = a_config(effort="quick", confirm_effort="quick")
    recording = a_recording(tmp_path / "one.jsonl")
    plan = a_plan(recording, config=config, effort="quick", evaluators=("ray",), tests=12)
    ended = carried_out(plan, tmp_path / "out", quiet, suite=NullSuite(), staff=staff_for(plan))
    assert [each.verdict for each in ended.results.records] == [Verdict.PASSED] * 3
    assert {each.beside[0].tests for each in ended.results.records} == {12}

"""The evaluator over HTTP: the local one's contract, safe retries, clear errors."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from service_parts import TASK, TOKEN, served

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.errors import EvaluationLost, UsageError
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.service.remote import Patience, RemoteEvaluator, backends_of
from kernelsmith.testing import QUICK, EvaluatorContract

IMPATIENT = Patience(contact_s=3.0, first_s=0.5, connect_s=1.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("served"), tokens=f"ann:{TOKEN}\n") as found:
        yield found


def remote(url, **changes):
    usual = dict(backend="null", settings=QUICK, token=TOKEN, patience=IMPATIENT)
    return RemoteEvaluator(url, **{**usual, **changes})


class TestRemoteEvaluator(EvaluatorContract):
    task = TASK
    good = Candidate(backend="null", source="y + x")
    wrong = Candidate(backend="null", source="x - y")

    @pytest.fixture
    def evaluator(self, server):
        return remote(server.url)


def judged(evaluator, *sources, task=TASK):
    async def go():
        async with evaluator:
            work = [
                evaluator.evaluate(task, Candidate(backend="null", source=source))
                for source in sources
            ]
            return await asyncio.gather(*work)

    return asyncio.run(go())


def test_many_at_a_time_each_get_their_own_answer(server):
    sources = [f"x {'+-'[n % 2]} y # {n}" for n in range(30)]
    found = judged(remote(server.url), *sources)
    assert [each.candidate for each in found] == [
        Candidate(backend="null", source=source).id for source in sources
    ]
    assert [each.verdict for each in found] == [Verdict.PASSED, Verdict.WRONG] * 15


def test_a_task_that_cannot_be_judged_is_the_callers_mistake(server):
    bad = Task(name="bad", source="x +", entry="expression")
    with pytest.raises(UsageError, match="no null expression"):
        judged(remote(server.url), "x", task=bad)


def test_a_wrong_token_is_said_with_what_to_do(server):
    with pytest.raises(UsageError, match="KERNELSMITH_TOKEN"):
        judged(remote(server.url, token="wrong-token-entirely"), "x + y")


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"device": "NVIDIA H200"}, "no device 'NVIDIA H200'"), ({"backend": "triton"}, "no backend")],
)
def test_a_server_without_the_device_is_refused_before_anything_is_sent(server, changes, said):
    with pytest.raises(UsageError, match=said):
        judged(remote(server.url, **changes), "x + y")


def test_a_server_says_what_it_judges_for(server):
    assert asyncio.run(backends_of(server.url, token=TOKEN)) == ["null"]


def test_nobody_there_is_noticed_soon_and_is_not_the_kernels_fault():
    with pytest.raises(EvaluationLost, match=r"no answer from http://127\.0\.0\.1:9"):
        judged(remote("http://127.0.0.1:9"), "x + y")


@pytest.mark.parametrize(
    ("url", "said"),
    [("ftp://a", "no address of a server"), ("http://", "no address"),
     ("http://ann:secret@host", "holds no password")],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_without_quoting_secrets(url, said):
    with pytest.raises(UsageError, match=said) as caught:
        RemoteEvaluator(url, backend="null")
    assert "secret" not in str(caught.value)


def test_giving_up_cancels_the_requests(server):
    async def go():
        async with remote(server.url) as evaluator:
            await evaluator.connect()
            sources = [f"y + x # to be cancelled {n}" for n in range(24)]
            work = [
                asyncio.create_task(evaluator.evaluate(TASK, Candidate(backend="null", source=s)))
                for s in sources
            ]
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            for each in work:
                each.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    with server.client(TOKEN) as client:
        before = _counted(client, "cancelled")
        asyncio.run(go())
        assert _counted(client, "cancelled") - before >= 10


def _counted(client, state):
    line = f'kernelsmith_finished_total{{state="{state}"}} '
    text = client.get("/metrics").text
    return next(
        (float(each[len(line) :]) for each in text.splitlines() if each.startswith(line)), 0
    )


class Fickle(BaseHTTPRequestHandler):
    """Passes requests on to a server, and fails in some way each time before it does."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies.append(json.loads(body))
        self._answer(body)

    def do_GET(self):
        self._answer(None)

    def _answer(self, body):
        way = self.server.ways.pop(0) if self.server.ways and body is not None else "pass"
        if way == "drop":
            self.close_connection = True
            return
        if way == "busy":
            self.send_response(429)
            self.send_header("retry-after", "0")
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            return
        heads = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        found = httpx.request(
            self.command, f"{self.server.far}{self.path}", content=body, headers=heads, timeout=60,
        )  # fmt: skip
        if way == "swallow":  # it was taken in, and nobody hears of it
            self.close_connection = True
            return
        text = found.content
        if way == "judge":
            text = text.replace(JUDGE.encode(), b"9.9.9/9")
        self.send_response(found.status_code)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def fickle(server):
    found = ThreadingHTTPServer(("127.0.0.1", 0), Fickle)
    found.far, found.ways, found.bodies = server.url, [], []
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()


def test_a_request_that_was_swallowed_is_sent_again_and_judged_once(server, fickle):
    fickle.ways = ["swallow", "drop", "busy", "swallow"]
    with server.client(TOKEN) as client:
        before = _counted(client, "done")
        url = f"http://127.0.0.1:{fickle.server_port}"
        (found,) = judged(remote(url, cache=False), "y + x # once")
        after = _counted(client, "done")
    assert found.verdict is Verdict.PASSED
    keys = [body["requests"][0]["key"] for body in fickle.bodies]
    assert len(keys) == 5
    assert len(set(keys)) == 1, "the same request, five times"
    assert after - before == 1


def test_a_server_with_another_judge_is_refused(server):
    class Old(Fickle):
        def do_GET(self):
            self.server.ways.append("judge")
            self._answer(b"")

    found = ThreadingHTTPServer(("127.0.0.1", 0), Old)
    found.far, found.ways, found.bodies = server.url, [], []
    threading.Thread(target=found.serve_forever, daemon=True).start()
    try:
        with pytest.raises(UsageError, match="install the same version"):
            judged(remote(f"http://127.0.0.1:{found.server_port}"), "x + y")
    finally:
        found.shutdown()
        found.server_close()

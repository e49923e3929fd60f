"""The service over HTTP: what is answered, to whom, and what is refused without a trace."""

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

import pytest
from service_parts import (
    POISON,
    TASK,
    TOKEN,
    a_body,
    a_mortal_request,
    a_request,
    mortal,
    served,
)

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import encode
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.testing import QUICK

OTHER_TOKEN = "another-clients-token"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    tokens = f"ann:{TOKEN}\nbob:{OTHER_TOKEN}\n"
    with served(folder, "--max-body-mb", "0.2", "--attempts", "2", tokens=tokens) as found:
        found.folder = folder
        with found.client(TOKEN) as client:
            found.up(client)
        yield found


@pytest.fixture
def ann(server):
    with server.client(TOKEN) as client:
        yield client


@pytest.fixture
def bob(server):
    with server.client(OTHER_TOKEN) as client:
        yield client


def submitted(client, *requests, wait=20):
    return client.post(f"/v1/requests?wait={wait}", json=a_body(*requests)).json()["requests"]


def in_store(client):
    """How many requests were ever taken in."""
    text = client.get("/metrics").text
    return next(
        line for line in text.splitlines() if line.startswith("kernelsmith_submitted_total")
    )


def test_one_request_is_answered_with_its_evaluation(ann):
    reply = ann.post("/v1/requests?wait=20", json=a_body(a_request("y + x")))
    (ticket,) = reply.json()["requests"]
    assert reply.status_code == 200
    assert ticket["state"] == "done"
    assert ticket["evaluation"]["verdict"] == "passed"
    assert ticket["evaluation"]["schema"] == "evaluation/1"
    assert ticket["evaluation"]["judge"] == JUDGE
    assert ann.get(f"/v1/requests/{ticket['id']}").json() == ticket


def test_many_requests_are_acknowledged_at_once_and_streamed_as_they_are_over(ann):
    requests = [a_request(f"x {'+-'[n % 2]} y # stream {n}") for n in range(20)]
    reply = ann.post("/v1/requests", json=a_body(*requests))
    assert reply.status_code == 202
    ids = [each["id"] for each in reply.json()["requests"]]
    found = {}
    with ann.stream("POST", "/v1/stream", json={"ids": [*ids, "0" * 32]}) as stream:
        for line in stream.iter_lines():
            if line:
                ticket = json.loads(line)
                assert ticket["id"] not in found
                found[ticket["id"]] = ticket["evaluation"]["verdict"]
    assert [found[id] for id in ids] == ["passed", "wrong"] * 10


def test_a_key_makes_a_request_one_however_often_it_is_sent(ann):
    first, again = (submitted(ann, a_request("y + x + 0", key="k1"))[0] for _ in range(2))
    assert again["id"] == first["id"]
    clash = ann.post("/v1/requests", json=a_body(a_request("x", key="k1")))
    assert (clash.status_code, clash.json()["error"]["code"]) == (409, "key_taken")


def test_a_batch_is_taken_in_whole_or_not_at_all(ann):
    before = in_store(ann)
    bad = a_request("x", candidate=Candidate(backend="triton", source="x"))
    reply = ann.post("/v1/requests", json=a_body(a_request("x + y # whole"), bad))
    assert reply.status_code == 422
    assert "requests[1]: no backend 'triton' here" in reply.json()["error"]["message"]
    assert in_store(ann) == before


def test_a_request_that_waits_can_be_cancelled_by_id_and_by_key(ann):
    requests = [a_request(f"x + y # slow {n}", key=f"slow {n}") for n in range(30)]
    tickets = submitted(ann, *requests, wait=0)
    gone = ann.delete(f"/v1/requests/{tickets[-1]['id']}").json()
    too = ann.delete("/v1/requests", params={"key": "slow 28"}).json()
    assert [gone["state"], too["state"]] == ["cancelled", "cancelled"]
    assert ann.get(f"/v1/requests/{tickets[0]['id']}?wait=20").json()["state"] == "done"
    assert ann.delete(f"/v1/requests/{tickets[0]['id']}").json()["state"] == "done"


def test_a_client_sees_nothing_of_another(ann, bob):
    (ticket,) = submitted(ann, a_request("y + x + 0 + 0"))
    for method in ("GET", "DELETE"):
        reply = bob.request(method, f"/v1/requests/{ticket['id']}")
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")
    with bob.stream("POST", "/v1/stream", json={"ids": [ticket["id"]]}) as stream:
        assert stream.read() == b""


def test_it_says_what_it_has_and_how_it_is(ann):
    info = ann.get("/v1/server").json()
    assert (info["judge"], info["api"]) == (JUDGE, 1)
    (device,) = ann.get("/v1/devices").json()["devices"]
    assert (device["backend"], device["state"]) == ("null", "up")
    (backend,) = ann.get("/v1/backends").json()["backends"]
    assert backend == {"name": "null", "devices": ["simulated clock"], "posts": 1, "up": 1}
    assert ann.get("/v1/health").json()["devices"] == {"up": 1}


def test_metrics_are_in_prometheus_form(ann):
    submitted(ann, a_request("y + x + 0 + 0 + 0"))
    reply = ann.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in reply.text.splitlines():
        name = line.split()[2 if line.startswith("#") else 0]
        assert name.startswith("kernelsmith_")
        assert line.startswith("#") or float(line.rsplit(" ", 1)[1]) >= 0
    assert 'kernelsmith_verdicts_total{verdict="passed"}' in reply.text
    assert 'kernelsmith_posts{backend="null",number="0",state="up"} 1' in reply.text


def test_everything_it_answers_is_in_its_description(ann):
    found = ann.get("/openapi.json").json()
    assert {"/v1/requests", "/v1/requests/{id}", "/v1/stream", "/metrics"} <= set(found["paths"])
    assert found["components"]["schemas"]["Task"]["additionalProperties"] is False
    shown = ann.get("/docs")
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    for path in found["paths"]:
        assert f"<code>{path}</code>" in shown.text
    assert "//" not in shown.text.replace("</", ""), "it loads nothing from anywhere"


@pytest.mark.parametrize(
    "heads",
    [{}, {"authorization": ""}, {"authorization": "Bearer"}, {"authorization": "Bearer wrong"},
     {"authorization": f"Basic {TOKEN}"}, {"authorization": TOKEN},
     {"authorization": f"Bearer {TOKEN[:-1]}"}],
)  # fmt: skip
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/requests"), ("GET", "/v1/server"), ("GET", "/v1/requests/" + "0" * 32),
     ("DELETE", "/v1/requests/" + "0" * 32), ("POST", "/v1/stream"), ("GET", "/metrics"),
     ("GET", "/v1/quarantine"), ("DELETE", "/v1/quarantine/" + "0" * 12)],
)  # fmt: skip
def test_without_a_token_nothing_is_answered(server, ann, method, path, heads):
    before = in_store(ann)
    with server.client() as nobody:
        reply = nobody.request(method, path, headers=heads, json=a_body())
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "token")
    assert in_store(ann) == before


def test_health_needs_no_token_and_says_nothing(server):
    with server.client() as nobody:
        assert nobody.get("/healthz").json() == {"status": "ok"}
        assert nobody.get("/readyz").json() == {"status": "ok"}


def test_a_body_that_is_too_large_is_refused_by_what_it_says_and_by_what_it_is(server, ann):
    before = in_store(ann)
    large = json.dumps(a_body(a_request("x + y #" + "x" * 300_000)))
    heads = {"content-type": "application/json"}
    assert ann.post("/v1/requests", content=large, headers=heads).status_code == 413

    def chunks():
        yield from (large[at : at + 50_000].encode() for at in range(0, len(large), 50_000))

    assert ann.post("/v1/requests", content=chunks(), headers=heads).status_code == 413
    assert in_store(ann) == before


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b'{"requests": [NaN]}', b"[" * 50_000,
     b'{"requests": [{"task": 1, "candidate": 2}]}', b'{"requests": {"0": 1}}',
     b'{"requests": [' + b"9" * 5000 + b"]}"],
)  # fmt: skip
def test_a_malformed_body_is_one_clear_refusal(ann, body):
    before = in_store(ann)
    reply = ann.post("/v1/requests", content=body, headers={"content-type": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid")
    assert in_store(ann) == before


def test_a_body_of_another_type_is_refused(ann):
    """A page in a browser may send text anywhere without being asked; JSON it may not."""
    reply = ann.post("/v1/requests", content=b"{}", headers={"content-type": "text/plain"})
    assert reply.status_code == 415


@pytest.mark.parametrize(
    "path",
    ["/v1/requests/../../etc/passwd", "/v1/requests/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
     "/v1/requests/..%00", "/v1/quarantine/..%2f..%2f", "/docs/../../etc/passwd",
     "/v1/requests/" + "a" * 5000],
)  # fmt: skip
def test_no_path_leads_out(ann, path):
    reply = ann.get(path)
    assert reply.status_code in (404, 405, 422)
    assert "root:" not in reply.text


def test_a_task_with_a_path_for_a_name_writes_nothing(server, ann):
    target = server.folder / "escaped"
    name = f"../../..{target}"
    task = Task(name=name, source="x + y", entry="expression")
    (ticket,) = submitted(ann, a_request("y + x", task=task))
    assert ticket["evaluation"]["task"] == name
    assert not target.exists()
    kept = {path.name for path in (server.folder / "store").iterdir()}
    assert kept <= {"lock", "queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm"}


def test_the_store_is_for_its_owner_only(server):
    assert (server.folder / "store").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "source", ["__import__('os').system('touch /tmp/x')", "().__class__", "x if x else y", "x; y"]
)
def test_a_hostile_expression_does_not_build(ann, source):
    (ticket,) = submitted(ann, a_request(source))
    assert ticket["evaluation"]["verdict"] == "build_failed"


def test_a_poison_candidate_ends_in_quarantine_and_the_service_goes_on(tmp_path):
    options = ("--attempts", "2")
    with (
        served(tmp_path, *options, backend="mortal", env=mortal(tmp_path)) as server,
        server.client() as client,
    ):
        server.up(client)
        poison = a_mortal_request(POISON)
        (ticket,) = submitted(client, poison)
        assert (ticket["state"], ticket["attempts"]) == ("quarantined", 2)
        assert ticket["evaluation"] is None
        (listed,) = client.get("/v1/quarantine").json()["candidates"]
        assert listed["candidate"] == poison.candidate.id
        (good,) = submitted(client, a_mortal_request("y + x"))
        assert good["state"] == "done"
        assert client.delete(f"/v1/quarantine/{listed['candidate']}").json() == {"released": 1}


def test_no_answer_names_a_folder_or_a_secret_of_the_server(server, ann):
    (refused,) = submitted(ann, a_request(task=Task(name="t", source="import os", entry="e")))
    said = [json.dumps(refused), ann.get("/openapi.json").text, ann.get("/metrics").text]
    said += [ann.get(path).text for path in ("/v1/server", "/v1/devices", "/v1/quarantine")]
    said += [ann.get("/nowhere").text, ann.post("/v1/requests", content=b"{").text]
    ours = [TOKEN, OTHER_TOKEN, str(server.folder), sys.prefix, str(Path(__file__).parents[2])]
    for text in said:
        for each in [*ours, os.path.expanduser("~/")]:
            assert each not in text


def test_a_client_that_does_not_read_or_does_not_go_on_holds_nobody_up(server, ann):
    host, port = server.url.removeprefix("http://").split(":")
    idle = []
    for _ in range(30):
        sock = socket.create_connection((host, int(port)))
        head = f"POST /v1/requests HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n{"
        sock.sendall(head.encode())
        idle.append(sock)
    begun = time.monotonic()
    (ticket,) = submitted(ann, a_request("y + x # beside slow ones"))
    assert ticket["state"] == "done"
    assert time.monotonic() - begun < 5
    for sock in idle:
        sock.close()


def test_the_same_key_from_many_threads_is_one_request(server):
    body = a_body(a_request("y + x # raced", key="raced"))
    ids = set()

    def send():
        with server.client(TOKEN) as client:
            ids.add(client.post("/v1/requests", json=body).json()["requests"][0]["id"])

    threads = [threading.Thread(target=send) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(ids) == 1


def test_without_tokens_there_are_bounds_too(tmp_path):
    """One server for both: a name that is not this machine's, and too many requests."""
    with served(tmp_path, "--rate", "1") as server, server.client() as client:
        reply = client.get("/v1/server", headers={"host": "attacker.example"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "host")
        replies = [client.get("/v1/server") for _ in range(60)]
        refused = [each for each in replies if each.status_code == 429]
        assert replies[0].status_code == 200
        assert len(refused) >= 20
        assert int(refused[0].headers["retry-after"]) >= 1
        assert client.get("/healthz").status_code == 200


@pytest.mark.slow
def test_what_was_acknowledged_survives_kill_9(tmp_path):
    body = a_body(*(a_request(f"x + y # survivor {n}", cache=False) for n in range(40)))
    with served(tmp_path) as server, server.client() as client:
        ids = [each["id"] for each in client.post("/v1/requests", json=body).json()["requests"]]
        server.process.kill()
        server.process.wait()
    with served(tmp_path) as server, server.client() as client:
        found = [client.get(f"/v1/requests/{id}?wait=20").json() for id in ids]
    assert {each["state"] for each in found} == {"done"}
    assert {each["evaluation"]["verdict"] for each in found} == {"passed"}


def test_the_server_ends_cleanly_while_clients_wait(tmp_path):
    with served(tmp_path) as server, server.client() as client:
        server.up(client)
        many = a_body(*(a_request(f"x + y # ending {n}") for n in range(200)))
        ids = [each["id"] for each in client.post("/v1/requests", json=many).json()["requests"]]
        waiting = threading.Thread(
            target=lambda: client.get(f"/v1/requests/{ids[-1]}?wait=30"), daemon=True
        )
        waiting.start()
        time.sleep(0.3)
        begun = time.monotonic()
        server.process.terminate()
        assert server.process.wait(20) == 0
        assert time.monotonic() - begun < 10


def test_a_hostile_cpu_candidate_is_judged_in_its_sandbox_and_leaks_nothing(tmp_path):
    """One through the real backend: it looks for the server's secrets and prints what it finds."""
    reference = (
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x, y):\n"
        "        return x + y\n"
        "def get_inputs():\n"
        "    return [torch.rand(64), torch.rand(64)]\n"
    )
    task = Task(name="add", source=reference)
    hostile = Candidate(
        backend="cpu",
        source=(
            "import os, torch\n"
            "class ModelNew(torch.nn.Module):\n"
            "    def forward(self, *inputs):\n"
            "        found = dict(os.environ)\n"
            f"        for path in ({str(tmp_path / 'tokens')!r}, {str(tmp_path / 'store')!r}):\n"
            "            found[path] = os.path.exists(path)\n"
            "        raise RuntimeError(str(found))\n"
        ),
    )
    secret = {"KERNELSMITH_TOKEN": "secret-of-the-server", "OTHER_SECRET": "s3cret-value"}
    body = {"requests": [{"task": encode(task), "candidate": encode(hostile),
                          "settings": encode(QUICK)}]}  # fmt: skip
    with (
        served(tmp_path, backend="cpu", tokens=f"ann:{TOKEN}\n", env=secret) as server,
        server.client(TOKEN) as client,
    ):
        (ticket,) = client.post("/v1/requests?wait=60", json=body, timeout=90).json()["requests"]
    found = ticket["evaluation"]
    assert found["verdict"] in ("refused", "crashed")
    text = json.dumps(ticket)
    for each in ("secret-of-the-server", "s3cret-value", TOKEN):
        assert each not in text
    assert "': True" not in found["message"], "neither tokens nor store are there for it"


def test_a_request_for_another_judge_or_device_is_refused(ann):
    other = ann.post("/v1/requests", json=a_body(a_request("x", judge="0.0.0/0")))
    assert (other.status_code, other.json()["error"]["code"]) == (409, "judge_differs")
    device = ann.post("/v1/requests", json=a_body(a_request("x", device="NVIDIA H200")))
    assert device.status_code == 422
    assert "no device 'NVIDIA H200' here" in device.json()["error"]["message"]
    assert TASK.name == "add"

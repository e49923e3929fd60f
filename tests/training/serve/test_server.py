"""The built-in server and the proposer that asks it: real HTTP, a tiny real model."""

import asyncio
import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from training_parts import a_sample, a_task

from kernelsmith.errors import UsageError
from kernelsmith.propose.models import ModelConfig
from kernelsmith.training.data.rows import rows_of
from kernelsmith.training.forms.algebra import AlgebraEdits
from kernelsmith.training.recipes.config import TinySize
from kernelsmith.training.recipes.model import tiny
from kernelsmith.training.serve.proposer import StudentProposer
from kernelsmith.training.serve.server import ModelServer

PARENT = "x * 1 + y"


def a_question():
    return a_sample(1, source="x + y", parent=(PARENT, 1.0), task=a_task(source=PARENT))


@pytest.fixture(scope="module")
def server():
    rows = rows_of([a_question()], AlgebraEdits())
    size = TinySize(vocabulary=300, width=32, layers=1, heads=2, context=128)
    with ModelServer(*tiny(rows, size), name="tiny") as opened:
        yield opened


def post(server, body, path="/chat/completions"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data=data)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def a_chat(text="x * 1", **more):
    return {
        "model": "tiny",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 8,
    } | more


def said(reply):
    return reply["choices"][0]["message"]["content"]


def test_it_speaks_what_clients_of_openai_expect(server):
    status, reply = post(server, a_chat())
    assert status == 200
    assert reply["choices"][0]["finish_reason"] in ("stop", "length")
    assert 1 <= reply["usage"]["completion_tokens"] <= 8
    with urllib.request.urlopen(server.url + "/models", timeout=10) as models:
        assert json.load(models)["data"][0]["id"] == "tiny"


def test_the_same_seed_gives_the_same_answer_whoever_else_asks(server):
    alone = [said(post(server, a_chat(seed=seed))[1]) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        asked = [a_chat(seed=seed, max_tokens=8) for seed in range(6)]
        together = [said(reply) for _, reply in pool.map(lambda body: post(server, body), asked)]
    assert together == alone
    assert len(set(alone)) > 1, "other seeds, other answers"


def test_without_temperature_it_takes_the_likeliest(server):
    asked = [a_chat(temperature=0, seed=seed) for seed in (1, 2)]
    assert said(post(server, asked[0])[1]) == said(post(server, asked[1])[1])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "not JSON"),
        ({"messages": []}, "a message has a role"),
        ({"messages": [{"role": "user"}]}, "a message has a role"),
        (a_chat(temperature="hot"), "temperature is a number"),
        (a_chat(seed=-1), "not negative"),
        (a_chat(stream=True), "does not stream"),
        (a_chat("x" * 9000), "more than the model's context"),
        ([], "a request has messages"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(server, body, why):
    status, reply = post(server, body)
    assert status == 400
    assert why in reply["error"]["message"]


def test_other_places_are_not_there(server):
    assert post(server, a_chat(), "/completions")[0] == 404


def test_a_student_asks_in_its_form_and_keeps_what_was_said(server):
    model = ModelConfig(name="tiny", base_url=server.url, max_tokens=8)

    async def proposed():
        student = StudentProposer(model, AlgebraEdits())
        try:
            return await student.propose(a_question().brief)
        finally:
            await student.close()

    proposal = asyncio.run(proposed())
    assert "program x * 1 + y" in proposal.messages[-1].content
    assert (proposal.source is None) is bool(proposal.rejection)
    assert proposal.usage.output_tokens >= 1


def test_a_server_that_is_not_there_is_named():
    model = ModelConfig(name="tiny", base_url="http://127.0.0.1:9/v1", max_tokens=8)
    student = StudentProposer(model, AlgebraEdits())
    with pytest.raises(UsageError, match="nothing answers at"):
        asyncio.run(student.propose(a_question().brief))


def test_a_taken_port_is_named(server):
    port = int(server.url.rsplit(":", 1)[1].split("/")[0])
    rows = rows_of([a_question()], AlgebraEdits())
    model = tiny(rows, TinySize(width=16, heads=2, layers=1))
    with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"):
        ModelServer(*model, port=port)

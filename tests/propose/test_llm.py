"""The proposer against a real HTTP server that answers by script."""

import asyncio
import json
import subprocess
import sys

import pytest
from briefs import MARKED, PROGRAM, TASK, a_brief, a_step, an_exemplar
from server import Scripted, ScriptedServer, failing, good

from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.propose.llm import LlmProposer
from kernelsmith.propose.llm_pace import Clock, Pace, Retry
from kernelsmith.propose.models import ModelConfig
from kernelsmith.propose.prompt import messages_of
from kernelsmith.propose.prompt_options import PromptOptions
from kernelsmith.testing import ProposerContract

REPLY = good(f"Idea: add instead of multiplying\n```python\n{PROGRAM}```\nDone.")
SECRET = "sk-very-secret-0123456789"


class FakeClock:
    """Sleeps take no time and are written down."""

    def __init__(self) -> None:
        self.time, self.slept = 0.0, []

    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def a_model(server, **changes):
    usual = dict(name="m", base_url=server.url, timeout_s=5.0,
                 usd_per_million_in=1.0, usd_per_million_out=10.0)  # fmt: skip
    return ModelConfig(**{**usual, **changes})


def proposals(script, *, briefs=None, clock=None, **changes):
    """Ask for each brief in turn; return the proposals, the requests, and the pauses."""
    clock = clock or FakeClock()
    with ScriptedServer(script) as server:

        async def go():
            proposer = LlmProposer([a_model(server, **changes)], clock=clock.clock())
            try:
                return [await proposer.propose(each) for each in briefs or [a_brief()]]
            finally:
                await proposer.close()

        return asyncio.run(go()), server.requests, clock.slept


def test_a_good_reply_becomes_a_proposal_with_its_cost():
    (found,), requests, slept = proposals([REPLY])
    assert found.source == PROGRAM
    assert found.note == "add instead of multiplying"
    assert found.proposer == "m"
    assert found.reply == json.loads(REPLY.body)["choices"][0]["message"]["content"]
    assert found.usage.attempts == 1
    assert (found.usage.input_tokens, found.usage.output_tokens) == (100, 50)
    assert found.usage.usd == pytest.approx((100 * 1.0 + 50 * 10.0) / 1e6)
    assert slept == []
    (request,) = requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.body["temperature"] == 0.6
    assert request.body["top_p"] == 0.95
    assert request.body["max_tokens"] == 32768
    assert request.body["stream"] is False


def test_the_messages_sent_are_the_messages_recorded():
    (found,), (request,), _ = proposals([REPLY])
    assert found.messages == messages_of(a_brief(), options=PromptOptions())
    sent = [(each["role"], each["content"]) for each in request.body["messages"]]
    assert sent == [(each.role, each.content) for each in found.messages]


def test_every_ask_has_a_seed_of_its_own():
    briefs = [a_brief(number=n, seed=10**12 + n) for n in range(4)]
    _, requests, _ = proposals([REPLY], briefs=briefs)
    seeds = [request.body["seed"] for request in requests]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 2**31 for seed in seeds)


TROUBLE = {
    "500": failing(500),
    "503": failing(503, message=f"try later {SECRET}"),
    "garbage": Scripted(body=b"<html>gateway</html>", headers=(("Content-Type", "text/html"),)),
    "half JSON": Scripted(body=b'{"choices": [{"mess'),
    "not an object": Scripted(body=b'["no"]'),
    "no choices": Scripted(body=b'{"choices": [], "usage": {"prompt_tokens": 7}}'),
    "no content": good(""),
    "cut": Scripted(body=REPLY.body, cut=True),
    "empty body": Scripted(body=b""),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_one_failure_is_survived_and_counted(trouble):
    (found,), requests, slept = proposals([TROUBLE[trouble], REPLY])
    assert found.source == PROGRAM
    assert found.usage.attempts == 2 == len(requests)
    assert len(slept) == 1
    assert 0.5 <= slept[0] <= 1.0


@pytest.mark.parametrize("trouble", TROUBLE)
def test_endless_failure_is_a_rejection_that_gives_nothing_away(trouble):
    (found,), requests, slept = proposals([TROUBLE[trouble]])
    assert found.source is None
    assert "gave no reply after 6 requests" in found.rejection
    assert found.usage.attempts == 6 == len(requests)
    assert SECRET not in found.rejection
    assert len(found.rejection.splitlines()) == 1
    assert [round(each) for each in slept] == sorted(round(each) for each in slept)
    assert len(slept) == 5


def test_tokens_of_failed_attempts_are_charged():
    (found,), _, _ = proposals([TROUBLE["no choices"], good("", usage=(10, 3)), REPLY])
    assert found.usage.input_tokens == 7 + 10 + 100
    assert found.usage.output_tokens == 3 + 50


def test_a_server_that_counts_nothing_leaves_the_cost_unknown():
    (found,), _, _ = proposals([good(f"```python\n{PROGRAM}```", usage=None)])
    assert found.usage.input_tokens is None
    assert found.usage.usd is None


def test_a_rate_limit_is_waited_out_as_long_as_the_server_says():
    (found,), _, slept = proposals([failing(429, Retry_After="7"), REPLY])
    assert found.source == PROGRAM
    assert found.usage.attempts == 2
    assert 7.0 <= sum(slept) <= 8.0


def test_a_date_to_wait_for_is_read_by_the_servers_own_clock():
    headers = {"Retry_After": "Wed, 21 Oct 2015 07:28:30 GMT"}
    (found,), _, slept = proposals([failing(429, **headers), REPLY])
    assert found.source == PROGRAM
    assert sum(slept) <= 1.0 + 1e-9  # long past


def test_a_server_that_wants_an_hour_is_given_up_on():
    (found,), requests, slept = proposals([failing(429, Retry_After="3600")])
    assert "asks for a pause of 3600 s" in found.rejection
    assert len(requests) == 1
    assert slept == []


def test_a_slow_server_times_out():
    slow = Scripted(body=REPLY.body, delay_s=4.0)
    # A busy machine took longer than 0.2 s to answer at once.
    (found,), _, _ = proposals([slow, REPLY], timeout_s=1.5)
    assert found.source == PROGRAM
    assert found.usage.attempts == 2


def test_a_reply_that_met_the_limit_of_tokens_is_cut_off_not_retried():
    (found,), requests, _ = proposals([good(f"```python\n{PROGRAM[:60]}", finish="length")])
    assert found.source is None
    assert "cut off" in found.rejection
    assert found.reply
    assert len(requests) == 1
    assert found.usage.output_tokens == 50


def test_a_reply_that_was_withheld_says_so():
    (found,), _, _ = proposals([good("", finish="content_filter")])
    assert "withheld" in found.rejection


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (failing(401, message=f"Incorrect API key provided: {SECRET}"), "refuses the key"),
        (failing(403), "refuses the key"),
        (failing(404, message="no such model"), "knows no model 'm'"),
        (failing(400, code="model_not_found"), "knows no model 'm'"),
        (failing(429, code="insufficient_quota"), "no credit"),
        (failing(402), "no credit"),
    ],
)
def test_what_can_never_work_is_the_users_in_one_line(said, expected):
    with pytest.raises(UsageError, match=expected) as caught:
        proposals([said])
    assert SECRET not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.__cause__ is None


def test_a_server_that_is_not_there_is_the_users():
    with ScriptedServer([REPLY]) as server:
        url = server.url
    clock = FakeClock()

    async def go():
        config = ModelConfig(name="m", base_url=url.replace("http://", "http://me:pass@"))
        proposer = LlmProposer([config], clock=clock.clock())
        await proposer.propose(a_brief())

    with pytest.raises(UsageError, match="nothing answers at http://127") as caught:
        asyncio.run(go())
    assert "pass" not in str(caught.value).replace("passed", "")
    assert len(clock.slept) == 5


def test_other_refusals_are_rejections_without_retries():
    (found,), requests, _ = proposals([failing(400, code="bad_things", message="the prompt says")])
    assert "status 400 (bad_things)" in found.rejection
    assert "prompt says" not in found.rejection
    assert len(requests) == 1


def test_a_setting_that_the_endpoint_does_not_take_is_left_out_from_then_on():
    script = [failing(400, message="Unsupported value: 'temperature'"), REPLY]
    found, requests, slept = proposals(script, briefs=[a_brief(), a_brief(number=1, seed=2)])
    assert all(each.source == PROGRAM for each in found)
    assert [each.usage.attempts for each in found] == [2, 1]
    assert ["temperature" in request.body for request in requests] == [True, False, False]
    assert slept == []


def test_a_limit_beyond_the_models_context_is_halved_until_it_fits():
    said = failing(400, message="max_tokens is too large: maximum context length is 8192")
    (found,), requests, _ = proposals([said, said, said, REPLY])
    assert found.source == PROGRAM
    limits = [request.body["max_tokens"] for request in requests]
    assert limits == [32768, 16384, 8192, 4096]


def test_requests_that_fail_together_halve_the_limit_once():
    said = failing(400, message="max_tokens is too large")
    with ScriptedServer([said] * 4 + [REPLY]) as server:

        async def go():
            proposer = LlmProposer([a_model(server)])
            briefs = [a_brief(number=n, seed=n) for n in range(4)]
            found = await asyncio.gather(*(proposer.propose(each) for each in briefs))
            await proposer.close()
            return found

        assert all(each.source == PROGRAM for each in asyncio.run(go()))
    limits = [request.body["max_tokens"] for request in server.requests]
    assert limits == [32768] * 4 + [16384] * 4


def test_a_prompt_beyond_the_models_context_is_said_and_costs_no_setting():
    said = failing(400, message="the request exceeds the available context size")
    briefs = [a_brief(), a_brief(number=1, seed=2)]
    found, requests, _ = proposals([said, REPLY], briefs=briefs)
    assert "does not fit the model's context" in found[0].rejection
    assert found[1].source == PROGRAM
    assert requests[1].body["max_tokens"] == 32768


def test_a_limit_that_never_fits_is_given_up_and_restored():
    said = failing(400, message="max_tokens: maximum context length exceeded")
    briefs = [a_brief(), a_brief(number=1, seed=2)]
    found, requests, _ = proposals([said] * 8 + [REPLY], briefs=briefs)
    assert found[0].source is None
    assert found[0].usage.attempts == 8
    assert found[1].source == PROGRAM
    assert requests[-1].body["max_tokens"] == 32768


def test_half_a_surrogate_pair_does_no_harm():
    broken = json.dumps(PROGRAM + "# \ud800\n")[1:-1]
    reply = good("```python\nPROGRAM```").body.replace(b"PROGRAM", broken.encode())
    (found,), _, _ = proposals([Scripted(body=reply)])
    assert found.source == PROGRAM + "# ?\n"
    found.reply.encode()


def test_newer_endpoints_name_the_limit_differently():
    said = failing(400, message="'max_tokens' is not supported; use 'max_completion_tokens'")
    (found,), requests, _ = proposals([said, REPLY])
    assert found.source == PROGRAM
    assert "max_completion_tokens" in requests[1].body
    assert "max_tokens" not in requests[1].body


def test_requests_keep_to_the_rate_per_minute():
    briefs = [a_brief(number=n, seed=n) for n in range(5)]
    clock = FakeClock()
    proposals([REPLY], briefs=briefs, clock=clock, requests_per_minute=2)
    assert clock.time == pytest.approx(120.0)


def test_a_pause_that_one_request_was_told_to_make_holds_for_all():
    clock = FakeClock()
    pace = Pace(None, clock.clock())
    pace.hold(5.0)
    asyncio.run(pace.turn())
    assert clock.time == pytest.approx(5.0)


def test_pauses_grow_and_depend_on_the_seed_alone():
    retry = Retry()
    pauses = [retry.pause_s(n, seed=3, asked_s=None) for n in range(1, 12)]
    assert pauses == [retry.pause_s(n, seed=3, asked_s=None) for n in range(1, 12)]
    assert pauses != [retry.pause_s(n, seed=4, asked_s=None) for n in range(1, 12)]
    assert all(0.5 * min(60, 2**n) <= each <= min(60, 2**n) for n, each in enumerate(pauses))


def test_a_model_that_gains_is_asked_more_often():
    with ScriptedServer([REPLY]) as server:
        models = [a_model(server, name="good"), a_model(server, name="poor")]

        async def go():
            proposer = LlmProposer(models)
            for _ in range(20):
                proposer.learn(a_step("good", 1.5))
                proposer.learn(a_step("poor", None))
            asked = [await proposer.propose(a_brief(number=n, seed=n)) for n in range(20)]
            await proposer.close()
            return [each.proposer for each in asked]

        asked = asyncio.run(go())
    assert asked.count("good") >= 18
    assert {request.body["model"] for request in server.requests} == set(asked)


def test_a_key_is_needed_where_the_endpoint_is_openais_own(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="set OPENAI_API_KEY"):
        LlmProposer([ModelConfig(name="m")])
    with pytest.raises(UsageError, match="set MY_KEY"):
        LlmProposer([ModelConfig(name="m", base_url="http://127.0.0.1:1/v1", api_key_env="MY_KEY")])
    LlmProposer([ModelConfig(name="m", base_url="http://127.0.0.1:1/v1")])
    monkeypatch.setenv("OPENAI_API_KEY", "sk-schl\u00fcssel")
    with pytest.raises(UsageError, match="no key has"):
        LlmProposer([ModelConfig(name="m")])


def test_an_address_in_the_environment_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000")
    with pytest.raises(UsageError, match="OPENAI_BASE_URL"):
        LlmProposer([ModelConfig(name="m")])


def test_the_endpoint_may_come_from_the_environment(monkeypatch):
    with ScriptedServer([REPLY]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)

        async def go():
            proposer = LlmProposer([ModelConfig(name="m")])
            return await proposer.propose(a_brief())

        assert asyncio.run(go()).source == PROGRAM


@pytest.mark.parametrize(
    "changes",
    [{"name": " "}, {"weight": 0.0}, {"top_p": 0.0}, {"base_url": "localhost:8000"},
     {"base_url": "http://host:port/v1"}, {"base_url": "http://"},
     {"requests_per_minute": 0}, {"usd_per_million_in": -1.0}, {"max_tokens": 0}],
)  # fmt: skip
def test_a_model_that_makes_no_sense_is_refused(changes):
    with pytest.raises(UsageError):
        ModelConfig(**{"name": "m", **changes})


def test_no_model_and_the_same_model_twice_are_refused():
    with pytest.raises(UsageError, match="no model"):
        LlmProposer([])
    with pytest.raises(UsageError, match="twice"):
        LlmProposer([ModelConfig(name="m"), ModelConfig(name="m")])


def test_a_parent_that_does_not_fit_is_a_rejection_and_a_reference_that_does_not_is_the_users():
    long = MARKED.replace("    return x + x", "    return x + x\n" * 9000)
    (found,), requests, _ = proposals([REPLY], briefs=[a_brief(parent=an_exemplar(long))])
    assert "budget is 32768" in found.rejection
    assert found.usage.attempts == 0
    assert requests == []
    task = Task(name="long", source=TASK.source + "x = 1\n" * 30_000)
    with pytest.raises(UsageError, match="shortest prompt for task 'long'"):
        proposals([REPLY], briefs=[a_brief(task=task)])


def test_without_the_sdk_it_says_what_to_install():
    code = (
        "import sys; sys.modules['openai'] = None\n"
        "from kernelsmith.errors import UsageError\n"
        "import kernelsmith.propose.prompt, kernelsmith.propose.models\n"
        "try:\n    import kernelsmith.propose.llm\n"
        "except UsageError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'kernelsmith[llm]'" in done.stdout


class TestLlmProposer(ProposerContract):
    brief = a_brief()

    @pytest.fixture
    def proposer(self):
        with ScriptedServer([failing(500), REPLY]) as server:
            yield LlmProposer([a_model(server)], retry=Retry(first_s=0.01))

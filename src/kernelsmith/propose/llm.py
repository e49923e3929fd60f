"""Models as proposers: any OpenAI-compatible endpoint, several at once."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelsmith.domain.trajectory import Brief, Message, Proposal, Step, Usage
from kernelsmith.errors import ProposerUnavailable
from kernelsmith.propose.bandit import Bandit
from kernelsmith.propose.llm_answer import Answer
from kernelsmith.propose.llm_endpoint import Endpoint, RequestFailed
from kernelsmith.propose.llm_pace import Clock, Pace, Retry
from kernelsmith.propose.models import ModelConfig, checked
from kernelsmith.propose.prompt import TooLong, messages_of
from kernelsmith.propose.prompt_options import PromptOptions
from kernelsmith.propose.reply import Unreadable, note_from, source_from

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Line:
    """What belongs to one model."""

    endpoint: Endpoint
    pace: Pace
    reached: bool = False
    """Whether its server ever answered anything."""


class LlmProposer:
    """Asks one of several models per brief.

    Args:
        models: At least one, each with a name of its own.
        prompt: How briefs are put into words, and replies read.
        bandit: Chooses among the models; by default one over their weights that learns.
        retry: How failed requests are tried again.
        clock: Time.

    Raises:
        UsageError: No model, a missing key, a model listed twice.
    """

    name = "llm"

    def __init__(
        self,
        models: Sequence[ModelConfig],
        *,
        prompt: PromptOptions | None = None,
        bandit: Bandit | None = None,
        retry: Retry | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or Clock()
        self._prompt, self._retry = prompt or PromptOptions(), retry or Retry()
        self._lines: Mapping[str, _Line] = {
            model.name: _Line(Endpoint(model), Pace(model.requests_per_minute, self._clock))
            for model in checked(models)
        }
        self._bandit = bandit or Bandit({model.name: model.weight for model in models})

    async def propose(self, brief: Brief) -> Proposal:
        """Ask a model, as often as it takes; what it costs is in the proposal's usage."""
        began = self._clock.now()
        model = self._bandit.choose(brief.seed)
        try:
            messages = messages_of(brief, options=self._prompt)
        except TooLong as error:
            if brief.parent is None:
                raise
            usage = Usage(attempts=0)
            return Proposal(source=None, rejection=str(error), proposer=model, usage=usage)
        proposal = await self._ask(brief, model, messages)
        usage = replace(proposal.usage, seconds=self._clock.now() - began)
        return replace(proposal, usage=usage)

    def learn(self, step: Step) -> None:
        """Tell the bandit."""
        self._bandit.learn(step)

    async def close(self) -> None:
        """Close all connections."""
        for line in self._lines.values():
            await line.endpoint.close()

    async def _ask(self, brief: Brief, model: str, messages: tuple[Message, ...]) -> Proposal:
        line = self._lines[model]
        bill = _Bill(line.endpoint.config)
        failed = 0
        while True:
            await line.pace.turn()
            try:
                answer = await line.endpoint.ask(messages, seed=brief.seed)
            except RequestFailed as error:
                bill.add(error.answer)
                line.reached = line.reached or not error.unreachable
                failed += 0 if error.at_once else 1
                if not self._goes_on(error, failed):
                    self._give_up_if_never_reached(line, error)
                    reason = _given_up(model, error, bill.attempts)
                    return Proposal(
                        source=None,
                        rejection=reason,
                        proposer=model,
                        messages=messages,
                        usage=bill.usage(),
                    )
                _log.info("%s: %s; request %d follows", model, error.reason, bill.attempts + 1)
                if not error.at_once:
                    await self._pause(line, error, failed, brief.seed)
                continue
            bill.add(answer)
            line.reached = True
            return replace(
                self._read(brief, answer), messages=messages, proposer=model, usage=bill.usage()
            )

    def _goes_on(self, error: RequestFailed, failed: int) -> bool:
        if error.asked_s is not None and error.asked_s > self._retry.longest_asked_s:
            return False
        return error.again and failed < self._retry.attempts

    async def _pause(self, line: _Line, error: RequestFailed, failed: int, seed: int) -> None:
        if error.asked_s is not None:
            line.pace.hold(error.asked_s)
        await self._clock.sleep(self._retry.pause_s(failed, seed=seed, asked_s=error.asked_s))

    def _give_up_if_never_reached(self, line: _Line, error: RequestFailed) -> None:
        if error.unreachable and not line.reached:
            raise ProposerUnavailable(
                f"nothing answers at {line.endpoint.shown_url}; start the server, or name another "
                "one by --base-url or OPENAI_BASE_URL"
            )

    def _read(self, brief: Brief, answer: Answer) -> Proposal:
        source, rejection = None, ""
        try:
            if answer.withheld:
                raise Unreadable("the server's filter withheld the reply")
            source = source_from(answer.text, brief, options=self._prompt, cut_off=answer.cut_off)
        except Unreadable as error:
            rejection = str(error)
        note = note_from(answer.text)
        return Proposal(source=source, rejection=rejection, note=note, reply=answer.text)


class _Bill:
    """Adds up what the requests for one proposal cost, failed ones included."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._tokens: list[tuple[int | None, int | None]] = []
        self.attempts = 0

    def add(self, answer: Answer | None) -> None:
        """Count one request, with the tokens that the server names."""
        self.attempts += 1
        if answer is not None:
            self._tokens.append((answer.input_tokens, answer.output_tokens))

    def usage(self) -> Usage:
        """The sums; a count that no answer named stays unknown."""
        into = [each for each, _ in self._tokens if each is not None]
        out = [each for _, each in self._tokens if each is not None]
        priced = self._config.usd(input_tokens=sum(into), output_tokens=sum(out))
        return Usage(
            input_tokens=sum(into) if into else None,
            output_tokens=sum(out) if out else None,
            usd=priced if into or out else None,
            attempts=self.attempts,
        )


def _given_up(model: str, error: RequestFailed, sent: int) -> str:
    times = "1 request" if sent == 1 else f"{sent} requests"
    wait = f", and asks for a pause of {error.asked_s:.0f} s" if error.asked_s else ""
    return f"model {model!r} gave no reply after {times}: {error.reason}{wait}"

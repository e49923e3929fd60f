"""The trained model as a proposer: asks any OpenAI-compatible endpoint in a form of ours."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from kernelsmith.domain.trajectory import Brief, Message, Proposal, Step, Usage
from kernelsmith.errors import UsageError
from kernelsmith.propose.llm_answer import Answer
from kernelsmith.propose.llm_endpoint import Endpoint, RequestFailed
from kernelsmith.propose.models import ModelConfig
from kernelsmith.propose.prompt import TooLong
from kernelsmith.propose.reply import Unreadable
from kernelsmith.training.forms.form import Form

_TRIES = 3
_PAUSE_S = 0.2

Noted = Callable[[Step], str | None]
"""Told of a step; says which weights the model has now, where that changed them."""


class StudentProposer:
    """Asks one model in one form; an answer that holds no program is a rejection.

    Args:
        model: Where it is.
        form: How briefs are put into words and replies read: the form that it was trained in.
        noted: Told of every step; what ``adapt`` learns from.
    """

    name = "student"

    def __init__(self, model: ModelConfig, form: Form, *, noted: Noted | None = None) -> None:
        self._endpoint, self._form, self._noted = Endpoint(model), form, noted
        self._model = model

    async def propose(self, brief: Brief) -> Proposal:
        """Ask once; requests that fail on the way are tried again."""
        began = time.monotonic()
        try:
            messages = self._form.messages(brief)
        except TooLong as error:
            return Proposal(source=None, rejection=str(error), proposer=self._model.name)
        answer, attempts = await self._answered(messages, brief)
        usage = Usage(
            input_tokens=answer.input_tokens, output_tokens=answer.output_tokens,
            seconds=time.monotonic() - began, attempts=attempts,
        )  # fmt: skip
        said = Proposal(
            source=None, rejection="unread", proposer=self._model.name, messages=messages,
            reply=answer.text, note=" ".join(answer.text.split())[:200], usage=usage,
        )  # fmt: skip
        try:
            source = await asyncio.to_thread(
                self._form.source, answer.text, brief, cut_off=answer.cut_off
            )
        except Unreadable as error:
            return replace(said, rejection=str(error))
        return replace(said, source=source, rejection="")

    def learn(self, step: Step) -> str | None:
        """Pass it on."""
        return None if self._noted is None else self._noted(step)

    async def close(self) -> None:
        """Close the connection."""
        await self._endpoint.close()

    async def _answered(self, messages: tuple[Message, ...], brief: Brief) -> tuple[Answer, int]:
        # The search seeds briefs; with the number in it two asks of one run never draw the same.
        seed = (brief.seed * 1_000_003 + brief.number) % 2**31
        for attempt in range(1, _TRIES + 1):
            try:
                return await self._endpoint.ask(messages, seed=seed), attempt
            except RequestFailed as error:
                if attempt == _TRIES or not error.again:
                    if error.unreachable:
                        where = self._endpoint.shown_url
                        raise UsageError(f"nothing answers at {where}; start the server") from None
                    empty = error.answer or Answer(text="")
                    return empty, attempt
                await asyncio.sleep(_PAUSE_S * attempt)
        raise AssertionError("the last attempt returns or raises")

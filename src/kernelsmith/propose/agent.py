"""The proposer that a coding agent is behind: it posts briefs and waits for replies."""

import asyncio
from collections.abc import Callable

from kernelsmith.domain.trajectory import Brief, Message, Proposal, Step
from kernelsmith.propose.mailbox import Mailbox
from kernelsmith.propose.prompt import messages_of
from kernelsmith.propose.prompt_options import PromptOptions
from kernelsmith.propose.reply import Unreadable, note_from, source_from

_LOOK_EVERY_S = 0.2


class AgentProposer:
    """Turns a brief into a file, and the file that answers it into a proposal.

    Args:
        mailbox: Where briefs and replies lie.
        options: How prompts are written and replies read.
        waiting: Called with the number of briefs that wait, whenever that changes: whoever runs
            the search without an agent at hand stops once nothing else is under way.
    """

    name = "agent"

    def __init__(
        self,
        mailbox: Mailbox,
        *,
        options: PromptOptions | None = None,
        waiting: Callable[[int], None] | None = None,
    ) -> None:
        self._mailbox, self._options = mailbox, options or PromptOptions()
        self._report = waiting
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Briefs that wait for a reply right now."""
        return self._waiting

    async def propose(self, brief: Brief) -> Proposal:
        """Post the brief, wait for its reply, and read it."""
        messages = messages_of(brief, options=self._options)
        reply = self._mailbox.take(brief.number)
        if reply is None:
            self._mailbox.post(brief.number, prompt_text(brief, messages))
            reply = await self._wait(brief.number)
        self._mailbox.withdraw(brief.number)
        return read_reply(reply, brief, messages, self._options)

    async def _wait(self, number: int) -> str:
        self._count(+1)
        try:
            while (reply := self._mailbox.take(number)) is None:
                await asyncio.sleep(_LOOK_EVERY_S)
            return reply
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        self._waiting += change
        if self._report is not None:
            self._report(self._waiting)

    def learn(self, step: Step) -> None:
        """The agent reads what became of its proposals itself."""

    async def close(self) -> None:
        """Nothing is open."""


def read_reply(
    reply: str, brief: Brief, messages: tuple[Message, ...], options: PromptOptions
) -> Proposal:
    """A proposal from what an agent wrote: a plain source file, or prose with a fenced block."""
    if brief.backend == "null":  # an expression, not a program
        return Proposal(source=reply.strip(), proposer="agent", messages=messages, reply=reply)
    try:
        source = source_from(reply, brief, options=options)
    except Unreadable as error:
        return Proposal(
            source=None, rejection=str(error), proposer="agent", messages=messages, reply=reply
        )
    return Proposal(
        source=source, proposer="agent", note=note_from(reply), messages=messages, reply=reply
    )


def prompt_text(brief: Brief, messages: tuple[Message, ...]) -> str:
    """A brief as one text, for an agent that reads files."""
    parts = [f"# Brief {brief.number}: {brief.task.name}", *(each.content for each in messages)]
    return "\n\n".join(parts).rstrip() + "\n"

"""What an OpenAI-compatible endpoint answered, read without trusting its form."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One chat completion."""

    text: str
    cut_off: bool = False
    """It ended because the limit of tokens was reached."""
    withheld: bool = False
    """The server's filter took it."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    problem: str = ""
    """Why there is no reply in it, in words of ours that quote nothing of it."""


def answer_from(body: str) -> Answer:
    """Read a completion; whatever came instead of one is told in ``problem``."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return Answer(text="", problem="an answer that is not JSON")
    if not isinstance(said, dict):
        return Answer(text="", problem="an answer that is not an object")
    usage = said.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    into, out = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    choices = said.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return Answer(
            text="", input_tokens=into, output_tokens=out, problem="an answer without choices"
        )
    message, finish = choices[0].get("message"), choices[0].get("finish_reason")
    text = _text(message.get("content")) if isinstance(message, dict) else None
    ended = finish in ("length", "content_filter")
    return Answer(
        text=text or "",
        cut_off=finish == "length",
        withheld=finish == "content_filter",
        input_tokens=into,
        output_tokens=out,
        problem="" if text or ended else "an answer without content",
    )


def _text(content: object) -> str | None:
    """Plain text, or the text parts of a list of parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        return None
    return content.encode("utf-8", "replace").decode()  # half a surrogate pair is no text


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None

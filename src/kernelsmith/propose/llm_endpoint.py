"""One model behind one endpoint: a request through the openai SDK, and what its failure means.

Messages of ours never quote what a server said: it may repeat the key or the prompt.
"""

import asyncio
import email.utils
import os
import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

from kernelsmith.domain.trajectory import Message
from kernelsmith.errors import ProposerUnavailable, UsageError
from kernelsmith.propose.llm_answer import Answer, answer_from
from kernelsmith.propose.models import ModelConfig, is_url

try:
    import httpx
    import openai
except ImportError as error:
    raise UsageError(
        "asking a model needs the openai package, which is not installed; "
        "try: pip install 'kernelsmith[llm]'"
    ) from error

_DEFAULT_URL = "https://api.openai.com/v1"
_DROPPABLE = ("seed", "top_p", "temperature")
_LEAST_TOKENS = 256


class RequestFailed(Exception):
    """One request brought nothing.

    Args:
        reason: In words of ours.
        again: Whether trying again makes sense.
        at_once: The request was adapted to the endpoint; it needs no pause and is no failure.
        asked_s: The pause that the server asked for.
        unreachable: There was no connection at all.
        answer: What came, where something came: it may have been charged for.
    """

    def __init__(
        self, reason: str, *, again: bool = True, at_once: bool = False,
        asked_s: float | None = None, unreachable: bool = False, answer: Answer | None = None,
    ) -> None:  # fmt: skip
        super().__init__(reason)
        self.reason, self.again, self.at_once = reason, again, at_once
        self.asked_s, self.unreachable, self.answer = asked_s, unreachable, answer


class Endpoint:
    """Sends one chat at a time to one model; many may be under way.

    Raises:
        ProposerUnavailable: The key that it needs is not in the environment.
    """

    def __init__(self, config: ModelConfig, environment: Mapping[str, str] = os.environ) -> None:
        self.config = config
        url = config.base_url or environment.get("OPENAI_BASE_URL") or _DEFAULT_URL
        if not is_url(url):
            raise ProposerUnavailable(
                "OPENAI_BASE_URL must be a whole address, as in http://host:8000/v1"
            )
        self.shown_url = _without_secrets(url)
        key = _key(config, environment, url)
        self._client = openai.AsyncOpenAI(
            api_key=key, base_url=url, timeout=config.timeout_s, max_retries=0
        )
        self._dropped: set[str] = set()
        self._max_tokens = config.max_tokens
        self._limit_name = "max_tokens"

    async def ask(self, messages: tuple[Message, ...], *, seed: int) -> Answer:
        """Send one chat and read the answer.

        Raises:
            RequestFailed: It brought nothing.
            ProposerUnavailable: It never will: the key, the model or the account is refused.
        """
        config = self.config
        body: dict[str, object] = {
            "model": config.name,
            "messages": [{"role": each.role, "content": each.content} for each in messages],
            "temperature": config.temperature,
            "top_p": config.top_p,
            "seed": seed % 2**31,
            self._limit_name: self._max_tokens,
            "stream": False,
        }
        body = {name: value for name, value in body.items() if name not in self._dropped}
        try:
            async with asyncio.timeout(config.timeout_s):
                response = await self._client.post(
                    "/chat/completions", cast_to=httpx.Response, body=body
                )
            answer = answer_from(response.text)
        except openai.APIStatusError as error:
            raise self._refused(error, body) from None
        except (TimeoutError, openai.APITimeoutError):
            raise RequestFailed(f"no answer within {config.timeout_s:g} s") from None
        except openai.APIConnectionError as error:
            never = isinstance(error.__cause__, httpx.ConnectError | httpx.UnsupportedProtocol)
            reason = "no connection" if never else "the connection broke"
            raise RequestFailed(reason, unreachable=never) from None
        except (openai.APIError, httpx.HTTPError):
            raise RequestFailed("an answer that cannot be read") from None
        if answer.problem:
            raise RequestFailed(answer.problem, answer=answer)
        return answer

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _refused(
        self, error: openai.APIStatusError, body: Mapping[str, object]
    ) -> RequestFailed | ProposerUnavailable:
        status, code, name = error.status_code, _code(error.body), self.config.name
        if status in (401, 403):
            return ProposerUnavailable(
                f"{self.shown_url} refuses the key for model {name!r} (status {status}); set "
                f"{self.config.api_key_env or 'OPENAI_API_KEY'}"
            )
        if status == 402 or code == "insufficient_quota":
            return ProposerUnavailable(
                f"{self.shown_url} says that the account of {name!r} has no credit"
            )
        if status == 404 or code == "model_not_found":
            return ProposerUnavailable(
                f"{self.shown_url} knows no model {name!r}, or is no such endpoint"
            )
        if status in (408, 409, 425, 429) or status >= 500:
            return RequestFailed(f"status {status}", asked_s=_asked_s(error.response.headers))
        text = error.response.text
        if status in (400, 422) and self._adapted(text, body):
            return RequestFailed(f"status {status}", at_once=True)
        said = f"status {status}" + (f" ({code})" if code else "")
        if re.search(r"context[ _](length|size|window)", text):
            said += ", the prompt does not fit the model's context; lower the prompt's budget"
        return RequestFailed(said, again=False)

    def _adapted(self, text: str, body: Mapping[str, object]) -> bool:
        """Leave out or change what this endpoint does not take; whether that makes a difference.

        Requests that were under way together fail together: each adapts what it sent itself, so
        that the limit is halved once and not once for each.
        """
        sent = body.get("max_tokens", body.get("max_completion_tokens"))
        refused = re.search(r"instead|unsupported|not supported", text, re.IGNORECASE)
        if refused and "max_completion_tokens" in text and "max_tokens" in body:
            self._limit_name = "max_completion_tokens"
            return True
        if re.search(r"max_(completion_)?tokens|in the completion", text):
            if isinstance(sent, int) and sent // 2 >= _LEAST_TOKENS:
                self._max_tokens = min(self._max_tokens, sent // 2)
                return True
            self._max_tokens = self.config.max_tokens  # the prompt alone is too long
            return False
        for name in _DROPPABLE:
            if name in body and re.search(rf"\b{name}\b", text):
                self._dropped.add(name)
                return True
        return False


def _key(config: ModelConfig, environment: Mapping[str, str], url: str) -> str:
    variable = config.api_key_env or "OPENAI_API_KEY"
    key = environment.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ProposerUnavailable(f"{variable} holds characters that no key has")
    if key:
        return key
    if config.api_key_env is None and url != _DEFAULT_URL:
        return "none"  # local servers ask for none, and the SDK insists on some
    where = " or point --base-url at another endpoint" if url == _DEFAULT_URL else ""
    raise ProposerUnavailable(f"model {config.name!r} needs a key: set {variable}{where}")


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _code(body: object) -> str:
    """The server's error code, where it is a plain word."""
    if not isinstance(body, dict):
        return ""
    inner = body.get("error")
    for said in (body, inner if isinstance(inner, dict) else {}):
        code = said.get("code")
        if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,40}", code):
            return code
    return ""


def _asked_s(headers: httpx.Headers) -> float | None:
    """The pause in Retry-After: milliseconds, seconds, or until a date by the server's clock."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name, "")) * unit)
        except ValueError:
            continue
    until, now = _date(headers.get("retry-after")), _date(headers.get("date"))
    if until is None or now is None:
        return None
    return max(0.0, (until - now).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        return email.utils.parsedate_to_datetime(text) if text else None
    except ValueError:
        return None

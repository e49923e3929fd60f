"""Which models to ask, where they are, and what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from kernelsmith.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """One model behind one OpenAI-compatible endpoint."""

    name: str
    """As the endpoint calls it."""
    base_url: str | None = None
    """Up to and with ``/v1``; else ``OPENAI_BASE_URL``, else OpenAI's own."""
    api_key_env: str | None = None
    """The variable that holds the key; else ``OPENAI_API_KEY``, which local servers do without."""
    weight: float = 1.0
    """Share of the asks before anything is known; a bias afterwards."""
    temperature: float = 0.6
    top_p: float = 0.95
    max_tokens: int = 32_768
    usd_per_million_in: float | None = None
    usd_per_million_out: float | None = None
    timeout_s: float = 600.0
    """For one request, from the first byte sent to the last one received."""
    requests_per_minute: int | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise UsageError("a model needs a name")
        if not self.weight > 0:
            raise UsageError(f"model {self.name!r}: a weight is above 0; got {self.weight}")
        if self.temperature < 0 or not 0 < self.top_p <= 1:
            raise UsageError(f"model {self.name!r}: temperature >= 0 and 0 < top_p <= 1 are needed")
        if self.max_tokens < 1 or not self.timeout_s > 0:
            raise UsageError(f"model {self.name!r}: max_tokens and timeout_s are above 0")
        if self.requests_per_minute is not None and self.requests_per_minute < 1:
            raise UsageError(f"model {self.name!r}: requests_per_minute is at least 1")
        prices = (self.usd_per_million_in, self.usd_per_million_out)
        if any(price is not None and price < 0 for price in prices):
            raise UsageError(f"model {self.name!r}: prices are not negative")
        if self.base_url is not None and not is_url(self.base_url):
            raise UsageError(
                f"model {self.name!r}: base_url must be a whole address, as in http://host:8000/v1"
            )

    def usd(self, *, input_tokens: int, output_tokens: int) -> float | None:
        """What these tokens cost; none where a price is not known."""
        if self.usd_per_million_in is None or self.usd_per_million_out is None:
            return None
        into, out = self.usd_per_million_in, self.usd_per_million_out
        return (input_tokens * into + output_tokens * out) / 1e6


def is_url(text: str) -> bool:
    """Whether it is an address that requests can be sent to."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = text.isascii() and text.isprintable() and " " not in text
    return plain and parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def checked(models: Sequence[ModelConfig]) -> tuple[ModelConfig, ...]:
    """The models, of which there is at least one, each with a name of its own.

    Raises:
        UsageError: There is none, or two share a name.
    """
    names = [model.name for model in models]
    if not names:
        raise UsageError("no model to ask; name one, as in --model NAME --base-url URL")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"model {twice[0]!r} is listed twice; give it one weight instead")
    return tuple(models)

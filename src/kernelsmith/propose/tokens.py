"""How many tokens a text will cost, by a stated rule that needs no tokenizer."""

BYTES_PER_TOKEN = 3
"""A whole prompt comes to 3.7 bytes a token in a small vocabulary (SmolLM2's 49,152 pieces), prose
to 3.5, dense kernels to 2.7; larger vocabularies cut coarser (``docs/prompts.md``)."""

PER_MESSAGE = 8
"""What a chat template wraps around one message."""


def count(text: str) -> int:
    """Tokens of ``text``: its UTF-8 bytes over ``BYTES_PER_TOKEN``, rounded up."""
    size = len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def count_messages(texts: tuple[str, ...]) -> int:
    """Tokens of a chat whose messages are ``texts``."""
    return sum(count(text) + PER_MESSAGE for text in texts)

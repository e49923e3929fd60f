"""What can go wrong that is not a candidate's doing.

A candidate that fails is an ordinary result and is returned. Only two things raise: the user asked
for something impossible, or we broke.
"""


class SmithError(Exception):
    """Anything Kernel-Smith raises on purpose; its text is one line for a person to read."""


class UsageError(SmithError, ValueError):
    """The request cannot be carried out as it stands; the message says what to change."""


class ProposerUnavailable(UsageError):
    """Whoever should write cannot be asked, whatever the task: no other has to be tried."""


class BackendUnavailable(SmithError, RuntimeError):
    """A backend exists but cannot work on this machine; the message says what is missing."""


class EvaluationLost(SmithError, RuntimeError):
    """Our machinery failed before a verdict. Says nothing about the candidate: judge it again."""

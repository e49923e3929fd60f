"""What a sandboxed child can do to the judge: all of it is the candidate's own doing."""

from kernelsmith.errors import SmithError


class ChildFailed(SmithError):
    """The child did not answer as asked; it is dead by the time this is raised."""

    def __init__(self, message: str, *, output: str = "") -> None:
        super().__init__(message)
        self.output = output
        """The tail of what the child wrote to stdout and stderr."""


class ChildTimedOut(ChildFailed):
    """The deadline passed, and the judge killed the child."""


class ChildDied(ChildFailed):
    """The child ended, by itself or because it broke a limit that the judge enforces."""

    def __init__(
        self,
        message: str,
        *,
        output: str = "",
        exit_code: int | None = None,
        signal_name: str | None = None,
        by_judge: bool = False,
    ) -> None:
        super().__init__(message, output=output)
        self.exit_code = exit_code
        self.signal_name = signal_name
        self.by_judge = by_judge


class ChildBroken(ChildFailed):
    """The child sent something that is not a message of the protocol."""


class BadAddress(ChildFailed):
    """The child named memory that it does not have; unlike the others, it still lives."""

"""The entry point: find the verb, run it, turn what goes wrong into one line and an exit code."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from kernelsmith import __version__
from kernelsmith.cli import (
    agent,
    bench,
    compare,
    corpus,
    diff,
    doctor,
    evaluate,
    optimize,
    resume,
    serve,
    show,
    train,
)
from kernelsmith.errors import EvaluationLost, SmithError
from kernelsmith.evaluate.processor import onednn_limit

COMMANDS = (
    optimize.COMMAND, resume.COMMAND, show.COMMAND, diff.COMMAND, agent.COMMAND,
    evaluate.COMMAND, compare.COMMAND, bench.COMMAND, doctor.COMMAND, serve.COMMAND,
    corpus.COMMAND, train.COMMAND,
)  # fmt: skip

_EPILOG = "exit status: 0 yes, 1 the kernel's fault, 2 your request, 3 our fault"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and not all that could be said."""

    def error(self, message: str) -> NoReturn:
        """End with it."""
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help says what there is\n")


def parser() -> argparse.ArgumentParser:
    """Build the parser for all verbs."""
    top = _Parser(prog="kernelsmith", description="Faster kernels, with proof.", epilog=_EPILOG)
    top.add_argument("--version", action="version", version=f"kernelsmith {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for command in COMMANDS:
        verb = verbs.add_parser(
            command.name, help=command.help, description=command.help, epilog=_EPILOG
        )
        command.arguments(verb)
        verb.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    args = parser().parse_args(argv)
    os.environ.update(onednn_limit())  # torch has not been loaded yet, here or in what is started
    try:
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except EvaluationLost as error:
        print(f"kernelsmith: not judged, and not the kernel's fault: {error}", file=sys.stderr)
        return 3
    except SmithError as error:
        print(f"kernelsmith: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("kernelsmith: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())

"""``kernelsmith doctor``: what this machine offers, and what is missing."""

import argparse
import json

from kernelsmith.cli.command import Command
from kernelsmith.cli.options import progress


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--fast", action="store_true", help="leave out what has to be measured")


def _run(args: argparse.Namespace) -> int:
    from kernelsmith.evaluate.diagnosis import diagnose

    show = progress()
    found = diagnose(measured=not args.fast, show=show)
    show("")
    if args.json:
        print(json.dumps(found.to_json()))
        return 0 if found.is_usable else 1
    for title, lines in found.sections():
        print(title)
        for line in lines:
            print(f"  {line}")
    return 0 if found.is_usable else 1


COMMAND = Command(
    "doctor", "Say what this machine offers: devices, compilers, sandbox, noise.", _arguments, _run
)

"""The process in which a task's own code runs: one JSON request a line, one reply a line.

It imports torch, and it is started by ``session``; nothing else imports it.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import torch

from kernelsmith.propose.rules.rewrite.cases import NotTraced
from kernelsmith.propose.rules.rewrite.recorder import trace
from kernelsmith.propose.rules.rewrite.trial import compare, outline

_ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "trace": trace,
    "outline": outline,
    "compare": compare,
}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return _ANSWERS[request["do"]](request)
    except NotTraced as error:
        return {"refused": str(error)}
    except BaseException as error:  # the task's code may raise anything, SystemExit too
        text = str(error).strip().splitlines()
        return {"refused": f"{type(error).__name__}: {text[0][:200] if text else ''}"}


def main() -> None:
    """Answer until the requests end. What the task prints goes nowhere."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    torch.set_num_threads(1)
    for line in sys.stdin:
        replies.write(json.dumps(_answer(json.loads(line))) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()

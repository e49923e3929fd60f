"""A journal without its times: two runs are the same run when these bytes are equal."""

import json

from kernelsmith.domain.codec import Json, encode
from kernelsmith.run.recorded import Recorded

_TIMES = frozenset({"seconds", "spent"})


def canonical(recorded: Recorded) -> bytes:
    """One line for the header's facts, one a step, one for the result; texts written out.

    Left out: when it began, how long anything took, and how the lines of steps in flight happened
    to be mixed. Everything else counts.
    """
    header = recorded.header
    lines: list[Json] = [
        {"task": encode(header.task), "device": encode(header.device), "seed": header.seed}
    ]
    lines += [encode(step) for step in recorded.steps]
    if recorded.final is not None:
        lines.append(encode(recorded.final))
    return b"".join(json.dumps(_timeless(line)).encode() + b"\n" for line in lines)


def _timeless(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if key not in _TIMES}
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    return value

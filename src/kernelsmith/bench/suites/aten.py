"""160 common operators, drawn as PyTorch's own samples of them (OpInfo) are shaped.

The samples are what PyTorch tests itself with: many forms, small sizes. They become held-out
workloads; what is timed is a larger call of the same form where ``operators.py`` has one, else the
largest sample, with a note. Samples are those of the PyTorch that is installed: a table names its
version.
"""

import json
import math
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.bench.suites import operators
from kernelsmith.bench.suites.calls import part
from kernelsmith.bench.suites.families import family_of
from kernelsmith.bench.suites.survey import Surveyor
from kernelsmith.domain.task import Task, Workload
from kernelsmith.errors import UsageError

_HELD_OUT = 5
_SURVEY = '''
_names = {{}}
exec({code!r}, _names)


class Model:
    """Nothing is computed here."""


def get_inputs():
    return []


def get_workloads():
    return _names["survey"]({names!r})
'''
_DRAWING = '''

def _drawn(shape, dtype, low=-1.0, high=1.0, values=None):
    """A tensor within the range of PyTorch's own sample."""
    if values is not None:
        return torch.tensor(values, dtype=dtype).reshape(shape)
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, dtype=dtype)
    if not dtype.is_floating_point:
        return torch.randint(int(low), int(high) + 1, shape, dtype=dtype)
    return torch.rand(shape, dtype=dtype) * (high - low) + low


def get_inputs(case=0):
    """Draw the arguments of one call."""
    return _CASES[case]()


_CASES = [
'''

Said = dict[str, Any]


class Aten:
    """The operators of ``operators.NAMES``, from the PyTorch that is installed."""

    name = "aten"

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield operators in the order in which they are listed."""
        source = _SURVEY.format(code=part("opinfo"), names=list(operators.NAMES))
        with Surveyor() as surveyor:
            try:
                found = json.loads(surveyor.text(Task(name="opinfo", source=source)))
            except UsageError as error:
                raise UsageError(f"PyTorch's own samples cannot be had: {error}") from error
        for name in operators.NAMES:
            yield self._entry(name, found.get(name))

    def _entry(self, name: str, said: Said | None) -> Entry | Absent:
        ident = f"{self.name}/{name.removeprefix('nn.functional.')}"
        if said is None:
            return Absent(id=ident, reason=f"torch {metadata.version('torch')} has no sample of it")
        if "why" in said or not said["path"]:
            return Absent(
                id=ident, reason=f"its samples fail: {said.get('why', 'no such function')}"
            )
        samples = _one_form(said["samples"], operators.count_of(name))
        if not samples:
            return Absent(id=ident, reason="none of its samples can be put in words")
        samples = _one_range(samples)
        timed = operators.larger(name, said["kind"], samples[-1], integers=said["integers"])
        note = ""
        if not timed:
            largest = max(samples, key=_elements)
            timed, note = [largest], "timed on PyTorch's own sample: mostly the cost of a call"
        task = _task(name, said["path"], timed, [each for each in samples if each not in timed])
        return Entry(
            id=ident, task=task, level="", category=said["kind"].removesuffix("Info"),
            family=family_of(name.rpartition(".")[2]),
            dtype="int64" if said["integers"] else "float32", note=note,
        )  # fmt: skip


def _one_form(samples: list[Said], wanted: int | None) -> list[Said]:
    """The samples with the wanted or else the commonest number of arguments, each form once."""
    counts = [len(each["arguments"]) for each in samples]
    if not counts:
        return []
    usual = max(sorted(set(counts), reverse=True), key=counts.count)
    if wanted in counts:
        usual = wanted
    found: dict[str, Said] = {}
    for each in samples:
        if len(each["arguments"]) == usual and _elements(each):
            found.setdefault(_words(each), each)
    # On one element a sum is its input, and much else computes nothing.
    several = [each for each in found.values() if any(_count(leaf) > 1 for leaf in _tensors(each))]
    return several or list(found.values())


def _one_range(samples: list[Said]) -> list[Said]:
    """Draw every floating argument from the range that all samples together give its place.

    A sample may be a single number, whose range is a point.
    """
    places: dict[int, list[Said]] = {}
    for sample in samples:
        for place, each in enumerate(sample["arguments"]):
            if "low" in each and each["dtype"].startswith("float"):
                places.setdefault(place, []).append(each)
    ranges = {
        place: {"low": min(e["low"] for e in each), "high": max(e["high"] for e in each)}
        for place, each in places.items()
    }
    return [
        sample
        | {
            "arguments": [
                each | ranges[place] if place in ranges and "low" in each else each
                for place, each in enumerate(sample["arguments"])
            ]
        }
        for sample in samples
    ]


def _elements(sample: Said) -> int:
    return sum(map(_count, _tensors(sample)))


def _count(leaf: Said) -> int:
    return math.prod(leaf["shape"])


def _tensors(sample: Said) -> list[Said]:
    return list(_leaves([*sample["arguments"], *sample["options"].values()]))


def _leaves(values: list[Said]) -> Iterator[Said]:
    for each in values:
        if "shape" in each:
            yield each
        elif "list" in each:
            yield from _leaves(each["list"])


def _words(sample: Said) -> str:
    """Shapes and options in a few words."""
    parts = [_word(each) for each in sample["arguments"]]
    parts += [f"{key}={_word(each)}" for key, each in sample["options"].items()]
    return ", ".join(parts)


def _word(value: Said) -> str:
    if "shape" in value:
        return "x".join(map(str, value["shape"])) or "scalar"
    if "list" in value:
        return f"[{', '.join(map(_word, value['list']))}]"
    return str(value.get("is", value.get("dtype")))


def _task(name: str, path: str, timed: list[Said], others: list[Said]) -> Task:
    entry = name.rpartition(".")[2]
    count = len(timed[0]["arguments"])
    names = ["input", *(f"arg{index}" for index in range(1, count))]
    step = max(1, len(others) // _HELD_OUT)
    chosen = [*timed, *others[::step][:_HELD_OUT]]
    cases = "".join(f"    lambda: {_call(each, names)},\n" for each in chosen)
    passed = ", ".join(names[place] for place in operators.ORDER.get(name, range(count)))
    source = (
        f"import torch\n\n\ndef {entry}({', '.join(names)}, **options):\n"
        f'    """Call ``{path}`` as PyTorch\'s own samples do."""\n'
        f"    return {path}({passed}, **options)\n{_DRAWING}{cases}]\n"
    )
    workloads = [
        Workload(
            name=f"{each.get('where', '')}{index + 1}: {_words(each)}"[:120],
            arguments=(("case", index),), held_out=index >= len(timed),
        )
        for index, each in enumerate(chosen)
    ]  # fmt: skip
    return Task(name=entry, source=source, entry=entry, workloads=tuple(workloads))


def _call(sample: Said, names: list[str]) -> str:
    given = dict(zip(names, sample["arguments"], strict=True)) | sample["options"]
    return f"{{{', '.join(f'{key!r}: {_code(each)}' for key, each in given.items())}}}"


def _code(value: Said) -> str:
    if "shape" in value:
        rest = [f"{key}={value[key]!r}" for key in ("low", "high", "values") if key in value]
        return (
            f"_drawn({', '.join([str(tuple(value['shape'])), 'torch.' + value['dtype'], *rest])})"
        )
    if "list" in value:
        inner = ", ".join(map(_code, value["list"]))
        if not value["tuple"]:
            return f"[{inner}]"
        return f"({inner},)" if inner else "()"
    if "dtype" in value:
        return str(value["dtype"])
    return f"float({str(value['is'])!r})" if value["is"] in (_INF, -_INF) else repr(value["is"])


_INF = float("inf")

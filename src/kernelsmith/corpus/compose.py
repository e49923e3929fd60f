"""New tasks from runnable modules, by option: one after the other, marked synthetic."""

import random
import re
from collections import defaultdict
from collections.abc import Sequence

from kernelsmith.corpus.run.runner import lent
from kernelsmith.corpus.store import Record

_TOP = re.compile(r"^(?:class|def) (\w+)|^(\w+) = ", re.MULTILINE)
_IMPORT = re.compile(r"^(?:import|from) .*\n", re.MULTILINE)


def compose(
    records: Sequence[Record], count: int, *, length: int = 2, seed: int = 0
) -> list[Record]:
    """Chains of modules whose shapes meet: checked in the sandbox, with their parts named.

    Only modules of one tensor in and one out take part, and a chain is tried at the sizes at
    which its parts were found to run.
    """
    by_input: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if _is_simple(record):
            by_input[record.texts("inputs")[0]].append(record)
    generator = random.Random(seed)
    starts = sorted((r for each in by_input.values() for r in each), key=lambda r: r.key)
    generator.shuffle(starts)
    found: list[Record] = []
    with lent(None) as runner:
        for first in starts:
            if len(found) >= count:
                break
            chain = [first]
            while len(chain) < length:
                options = [r for r in by_input.get(chain[-1].texts("outputs")[0], ())
                           if r not in chain]  # fmt: skip
                if not options:
                    break
                chain.append(generator.choice(options))
            if len(chain) == length:
                key = "synthetic:" + "+".join(each.key.rpartition(":")[2] for each in chain)
                checked = runner.check(key, chained(chain))
                if checked.kept:
                    parts = [each.key for each in chain]
                    found.append(Record(key=key, data={**checked.data, "synthetic": True,
                                                       "parts": [*parts]}))  # fmt: skip
    return found


def _is_simple(record: Record) -> bool:
    inputs, outputs = record.texts("inputs"), record.texts("outputs")
    return (
        len(inputs) == len(outputs) == 1
        and inputs[0].startswith("float32")
        and outputs[0].startswith("float32")
        and not record.data.get("random")
        and not record.data.get("stateful")
        and "return {" not in record.text("code").rpartition("def get_inputs")[2]
    )


def chained(chain: Sequence[Record]) -> str:
    """One file with all modules of a chain, each under names of its own."""
    imports: dict[str, None] = {"from torch import nn\n": None}
    bodies = []
    for number, record in enumerate(chain, start=1):
        text = record.text("code")
        imports.update(dict.fromkeys(_IMPORT.findall(text)))
        bodies.append(_numbered(_IMPORT.sub("", text), number))
    numbers = range(1, len(chain) + 1)
    parts = "\n".join(f"        self.part{n} = Model_{n}(*get_init_inputs_{n}())" for n in numbers)
    calls = "x"
    for n in numbers:
        calls = f"self.part{n}({calls})"
    said = " then ".join(record.key for record in chain).replace('"', "'")
    return (
        "".join(imports) + "\n\n" + "\n\n\n".join(bodies) + "\n\n\n"
        f'class Model(nn.Module):\n    """Synthetic: {said}"""\n\n'
        f"    def __init__(self):\n        super().__init__()\n{parts}\n\n"
        f"    def forward(self, x):\n        return {calls}\n\n\n"
        "def get_init_inputs():\n    return []\n\n\ndef get_inputs():\n    return get_inputs_1()\n"
    )


def _numbered(body: str, number: int) -> str:
    """Top-level names with a number behind them; keywords and attributes of that name stay."""
    names = sorted({a or b for a, b in _TOP.findall(body)})
    either = "|".join(map(re.escape, names))
    body = re.sub(rf"(?<![\w.'\"])({either})\b(?!\s*=[^=])", lambda m: f"{m[1]}_{number}", body)
    body = re.sub(rf"^({either}) = ", rf"\g<1>_{number} = ", body, flags=re.MULTILINE)
    return body.split("\n\n\ndef get_workloads")[0].strip()

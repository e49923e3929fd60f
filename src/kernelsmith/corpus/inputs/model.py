"""Inputs by a model, by option: for modules that no guess could run; what it writes is marked."""

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from kernelsmith.corpus.run.runner import Runner, lent
from kernelsmith.corpus.store import Record, Store
from kernelsmith.domain.codec import Json
from kernelsmith.errors import UsageError

_REASONS = ("no inputs found", "cannot be constructed", "its task file fails", "not finite",
            "takes any inputs", "takes no inputs")  # fmt: skip
_PROMPT = """\
Below is a PyTorch module, {root}. Write Python that defines exactly these, and nothing else:

class Model({root}): a subclass whose __init__ takes plain values only (numbers, strings, lists) and
    passes on what {root} needs;
def get_init_inputs(): returns the list of plain values for Model's constructor, small sizes;
def get_inputs(): returns the list of inputs for forward, made with torch.randn or torch.randint.

The module should run in well under a second on one core. An automatic search failed with:
{error}

```python
{source}
```
Answer with one Python code block.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An OpenAI-compatible endpoint."""

    name: str
    url: str
    key: str = "none"

    def ask(self, prompt: str) -> str:
        """One reply.

        Raises:
            UsageError: The endpoint cannot be reached or refuses.
        """
        if importlib.util.find_spec("openai") is None:
            raise UsageError("--model needs openai: pip install 'kernelsmith[llm]'")
        openai: Any = import_module("openai")
        client = openai.OpenAI(base_url=self.url, api_key=self.key, max_retries=2, timeout=120)
        try:
            reply = client.chat.completions.create(
                model=self.name, messages=[{"role": "user", "content": prompt}], temperature=0.2
            )
        except openai.OpenAIError as error:
            raise UsageError(
                f"model {self.name!r} at {self.url} does not answer: {error}"
            ) from error
        return str(reply.choices[0].message.content or "")


def code_in(reply: str) -> str:
    """The last block of Python in a reply; empty where there is none."""
    blocks = re.findall(r"```(?:python|py)?\n(.*?)```", reply, re.DOTALL)
    return blocks[-1].strip() if blocks else ""


def by_model(
    store: Store, model: Model, *, most: int, runner: Runner | None = None
) -> tuple[int, int]:
    """Ask about modules that could not be run; returns how many there were, and how many ran."""
    sources = {r.key: r for r in store.need("extract").kept() if not r.key.endswith("!file")}
    stage = store.stage("run")
    failed: Sequence[Record] = [
        r for r in stage if r.reason in _REASONS and not r.data.get("asked_model")
    ][:most]
    ran = 0
    with lent(runner) as sandbox:
        for record in failed:
            found = _one(sandbox, model, record, sources[record.key])
            stage.add(found)
            ran += found.kept
    stage.close()
    return len(failed), ran


def _one(runner: Runner, model: Model, record: Record, source: Record) -> Record:
    prompt = _PROMPT.format(root=source.text("root"), error=f"{record.reason}: {record.detail}",
                            source=source.text("code"))  # fmt: skip
    mark: dict[str, Json] = {
        "model_written": True,
        "model": model.name,
        "asked_model": True,
        "how": "model",
    }
    written = code_in(model.ask(prompt))
    if not written:
        return Record(key=record.key, reason=record.reason, detail=record.detail,
                      data={**record.data, "asked_model": True})  # fmt: skip
    head = "" if "import torch\n" in source.text("code") else "import torch\n"
    text = f"{head}{source.text('code').rstrip()}\n\n\n{written}\n"
    checked = runner.check(record.key, text)
    if not checked.kept:
        return Record(key=record.key, reason=record.reason, detail=record.detail,
                      data={**record.data, "asked_model": True})  # fmt: skip
    return Record(key=record.key, data={**checked.data, **mark})

"""The published Kernel-Smith sets' columns, read and written: seeds, supervised, reinforcement.

Whoever has the sets trains on them at once; whoever has runs can publish theirs in the same form.
Seeds have the module's code; supervised rows have ``messages``; reinforcement rows have a prompt,
``reward_model.ground_truth.reference_code`` and ``extra_info.parent_code``.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.bench.suites.families import family_of
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import dumps, loads
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Exemplar, Message, Role
from kernelsmith.errors import UsageError
from kernelsmith.search.score import score
from kernelsmith.training.data.rows import Row, chat, messages
from kernelsmith.training.data.sample import Stage
from kernelsmith.training.data.steps import difficulty_of
from kernelsmith.training.forms.form import FORMS
from kernelsmith.training.tables import Record

CODE = ("reference_code", "code", "module_code", "python_code", "pytorch_code", "content")
"""Names under which a seed's code is looked for, in this order."""

Judge = Callable[[Task, Candidate], Evaluation | None]
"""What a parent is worth; none where nobody knows yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What a file held."""

    seeds: tuple[Task, ...] = ()
    sft: tuple[Row, ...] = ()
    rl: tuple[Row, ...] = ()
    skipped: tuple[str, ...] = ()
    """Why records were left out."""

    @property
    def unjudged(self) -> int:
        """Questions whose parent was not measured: nothing can be said to improve on it."""
        return sum(not row.brief for row in self.rl)


def imported(records: Sequence[Record], *, backend: str, judge: Judge | None = None) -> Imported:
    """Read records of any of the three sets, told apart by their columns.

    Args:
        records: As read from a file.
        backend: What their kernels are written for.
        judge: Measures parents, which the published sets bring without their evaluation; our own
            export brings the whole brief. Questions about a parent that nobody measured get no
            brief: good for export, not for reinforcement.
    """
    seeds: list[Task] = []
    sft: list[Row] = []
    rl: list[Row] = []
    skipped: list[str] = []
    for index, record in enumerate(records):
        try:
            if _is_rl(record):
                rl.append(_rl_row(record, index, backend, judge))
            elif "messages" in record:
                sft.append(_sft_row(record, index, backend))
            else:
                seeds.append(_seed(record, index))
        except ValueError as error:
            skipped.append(f"record {index}: {error}")
    if records and not (seeds or sft or rl):
        raise UsageError(f"no record could be read; the first: {skipped[0]}")
    return Imported(seeds=tuple(seeds), sft=tuple(sft), rl=tuple(rl), skipped=tuple(skipped))


def write_seeds(tasks: Sequence[Task], folder: Path) -> None:
    """Write seeds as task files, which every verb reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        (folder / f"{task.name}.py").write_text(task.source, encoding="utf-8")


def sft_records(rows: Sequence[Row]) -> list[Record]:
    """Supervised rows in the published form, with a column that says what is answered in."""
    return [
        {
            "messages": [*chat(row.prompt), {"role": "assistant", "content": row.completion}],
            "extra_info": {"task": row.task, "backend": row.backend, "form": row.form},
        }
        for row in rows
        if row.completion
    ]


def rl_records(rows: Sequence[Row], split: str = "train") -> list[Record]:
    """Questions in the published form, which is verl's: its loader reads them as they are."""
    found: list[Record] = []
    for index, row in enumerate(rows):
        brief = row.asked
        parent = brief.parent
        found.append(
            {
                "data_source": "kernelsmith", "prompt": chat(row.prompt), "ability": "kernel",
                "reward_model": {
                    "style": "rule", "ground_truth": {"reference_code": brief.task.source},
                },
                "extra_info": {
                    "index": index, "split": split, "task": row.task, "backend": row.backend,
                    "form": row.form, "parent_code": parent.candidate.source if parent else "",
                    "parent_speedup": row.parent_speedup or 0.0, "brief": row.brief,
                },
            }
        )  # fmt: skip
    return found


def _is_rl(record: Record) -> bool:
    return "reward_model" in record


def _seed(record: Record, index: int) -> Task:
    source = next((str(record[name]) for name in CODE if record.get(name)), "")
    if not source:
        raise ValueError(f"no code in it; looked for {', '.join(CODE)}")
    return Task(name=_name(record, index, source), source=source)


def _sft_row(record: Record, index: int, backend: str) -> Row:
    said = messages(record["messages"])
    if len(said) < 2 or said[-1].role != "assistant":
        raise ValueError("a supervised chat ends with the assistant")
    extra = _extra(record)
    return Row(
        id=f"published/sft/{index}", task=str(extra.get("task") or f"published-{index}"),
        family="other", difficulty=2, backend=str(extra.get("backend") or backend),
        stage=Stage.COLD_START.value, form=_form(extra), prompt=said[:-1],
        completion=said[-1].content, brief="",
    )  # fmt: skip


def _rl_row(record: Record, index: int, backend: str, judge: Judge | None) -> Row:
    truth = _object(_object(record["reward_model"], "reward_model").get("ground_truth"),
                    "ground_truth")  # fmt: skip
    extra = _extra(record)
    source = truth.get("reference_code")
    if not isinstance(source, str) or not source.strip():
        raise ValueError("reward_model.ground_truth.reference_code is missing")
    brief = _brought(extra)
    task = Task(name=_name(extra, index, source), source=source) if brief is None else brief.task
    if brief is None:
        brief = _brief(task, str(extra.get("parent_code") or ""), index, backend, judge)
    timing = brief.parent.evaluation.timing if brief is not None and brief.parent else None
    return Row(
        id=f"published/rl/{index}", task=task.name, family=family_of(task.name),
        difficulty=difficulty_of(task), backend=backend if brief is None else brief.backend,
        stage=Stage.EXPERT.value, form=_form(extra), prompt=_prompt(record), completion="",
        brief="" if brief is None else dumps(brief),
        parent_speedup=None if timing is None else timing.speedup.value,
    )  # fmt: skip


def _extra(record: Record) -> dict[str, object]:
    return _object(record.get("extra_info") or {}, "extra_info")


def _form(extra: dict[str, object]) -> str:
    """What our own export says; the published sets' answers are whole programs."""
    said = str(extra.get("form") or "whole")
    if said not in FORMS:
        raise ValueError(f"no form {said!r}; known are {', '.join(FORMS)}")
    return said


def _brought(extra: dict[str, object]) -> Brief | None:
    """The question as our own export writes it, parent's evaluation included."""
    try:
        found = loads(str(extra.get("brief") or ""))
    except ValueError:  # none, or of another version: the other columns say enough
        return None
    return found if isinstance(found, Brief) else None


def _prompt(record: Record) -> tuple[Message, ...]:
    said = record.get("prompt") or record.get("messages")
    if isinstance(said, str):
        return (Message(role="user", content=said),)
    found = messages(said)
    return found[:-1] if found and found[-1].role == "assistant" else found


def _brief(task: Task, parent: str, index: int, backend: str, judge: Judge | None) -> Brief | None:
    shown: Exemplar | None = None
    if parent.strip():
        candidate = Candidate(backend=backend, source=parent)
        found = judge(task, candidate) if judge is not None else None
        if found is None:
            return None
        shown = Exemplar(
            role=Role.PARENT, candidate=candidate, evaluation=found, score=score(found)
        )
    return Brief(number=index, task=task, backend=backend, island=0, seed=index, parent=shown)


def _object(said: object, name: str) -> dict[str, object]:
    if isinstance(said, str):  # some writers store it as text
        try:
            said = json.loads(said)
        except ValueError as error:
            raise ValueError(f"{name} is no object") from error
    if not isinstance(said, dict):
        raise ValueError(f"{name} is no object")
    return said


def _name(record: Record, index: int, source: str) -> str:
    said = str(record.get("name") or record.get("task") or record.get("entry_point") or "")
    plain = re.sub(r"[^\w.-]", "_", said).strip("._")[:60]
    return plain or f"seed_{index}_{hashlib.sha256(source.encode()).hexdigest()[:8]}"

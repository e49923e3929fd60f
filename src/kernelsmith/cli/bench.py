"""``kernelsmith bench``: compare models, proposers and policies on a suite, and look at results."""

import argparse
import difflib
from pathlib import Path

from kernelsmith.cli.command import Command
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.settings import EFFORTS

_FREE = ("resume", "json", "full", "jobs", "devices", "evaluator", "max_usd", "max_seconds")
"""What can be said anew when a bench is taken up: no number depends on it."""
_TAKES = {
    "list": ("only", "level", "json", "full"),
    "show": ("out", "json", "full", "ratio", "baseline"),
    "compare": ("out", "json", "ratio", "baseline"),
    "merge": ("json",),
    "export": ("ratio", "baseline"),
    "verify": ("only", "level", "limit", "effort", "evaluator", "json"),
    "audit": ("only", "level", "limit", "suite", "effort", "budget_seconds", "out", "json"),
}
"""What each verb listens to; all else means nothing to it, and is refused."""
_WHY = {
    ("audit", "evaluator"): "an audit runs what guards refuse, so it judges on this machine only",
}
_NO_BENCH = ("ratio", "suite")
"""What a bench itself does not listen to."""
_WHAT = """\
a suite (builtin, aten, kernelbench:PATH, folder:PATH, ...), or one of:
list SUITE, show RESULTS..., compare A B, merge INTO A B..., export RESULTS FOLDER, verify RESULTS,
audit FOLDER"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="*", metavar="SUITE | VERB ...", help=_WHAT)
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER",
        help="where the bench lies (runs/bench/SUITE); the same folder again goes on with it. "
        "Where show and compare write what they print",
    )  # fmt: skip
    parser.add_argument(
        "--resume", type=Path, metavar="FOLDER", help="go on with what was begun, as it was begun"
    )
    parser.add_argument(
        "--backend", default="auto", help="auto (triton with a GPU, else cpu), cpu, triton"
    )
    parser.add_argument("--json", action="store_true", help="results as JSON instead of tables")
    parser.add_argument("--full", action="store_true", help="every table, not the first ones only")
    parser.add_argument(
        "--ratio", choices=("device", "call", "mean"),
        help="which ratio show, compare and export go by: device time, plain calls, or the mean of "
        "tests (device; mean where all was run with --preset paper); --baseline says over what",
    )  # fmt: skip
    _who(parser.add_argument_group("who is compared; each is an entrant of its own"))
    _how(parser.add_argument_group("how they search"))
    _which(parser.add_argument_group("on which tasks"))
    _judged(parser.add_argument_group("how winners are judged"))
    _limits(parser.add_argument_group("limits"))


def _who(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--proposer", action="append", default=[], metavar="WHO",
        help="rules, student:FOLDER (a model that training wrote), replay:PATH, or runs:FOLDER "
        "(recorded runs, an agent's for instance); repeatable (whom --config names, else rules)",
    )  # fmt: skip
    group.add_argument(
        "--model", action="append", default=[], metavar="NAME",
        help="a model, or the folder of one; repeatable; prices and the like from --config",
    )  # fmt: skip
    group.add_argument(
        "--base-url", action="append", default=[], metavar="URL",
        help="its OpenAI-compatible endpoint: one for all models, or one each",
    )  # fmt: skip
    group.add_argument(
        "--entrant", action="append", default=[], metavar="NAME",
        help="without a search: eager, compile, max-autotune; repeatable",
    )  # fmt: skip


def _how(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--preset", metavar="NAME",
        help="paper (40 steps, each winner judged by 100 tests), quick (12), sweep (4, judged at a "
        "glance, the best once more), thorough (512)",
    )  # fmt: skip
    group.add_argument("--config", type=Path, metavar="FILE", help="TOML; options go before it")
    group.add_argument(
        "--policy", action="append", default=[], metavar="NAME",
        choices=("evolve", "best-of-n", "refine", "greedy", "random"),
        help="evolve, best-of-n, refine, greedy, random; several: each is compared (evolve)",
    )  # fmt: skip
    group.add_argument("--steps", type=int, metavar="N", help="candidates per run (40)")
    group.add_argument(
        "--samples", type=int, default=1, metavar="N", help="runs per task, a seed each (1)"
    )
    group.add_argument("--seed", type=int, metavar="N", help="the first seed (0)")
    group.add_argument("--concurrency", type=int, metavar="N", help="steps in flight per run (4)")


def _which(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--only", action="append", default=[], metavar="ID",
        help="an id, its last part, or a pattern such as 'level1/*'; repeatable",
    )  # fmt: skip
    group.add_argument("--level", action="append", default=[], metavar="L", help="repeatable")
    group.add_argument(
        "--limit", type=int, metavar="N",
        help="the first N tasks, or winners; in an audit the first N kernels, by path and row, "
        "that can be judged here",
    )  # fmt: skip
    group.add_argument(
        "--sample", type=int, metavar="N", help="N tasks per level, spread evenly, always the same"
    )
    group.add_argument("--suite", metavar="SUITE", help="where an audit finds the tasks")


def _judged(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--baseline", action="append", default=[], metavar="NAME",
        help="eager, compile, max-autotune, graph; several, also with commas (eager)",
    )  # fmt: skip
    group.add_argument(
        "--tests", type=int, metavar="N",
        help="fresh process pairs per winner and workload (until the interval is narrow)",
    )  # fmt: skip
    group.add_argument("--effort", choices=EFFORTS, help="of the last judgement (thorough)")


def _limits(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--jobs", type=int, metavar="N",
        help="tasks at a time (1; one for each device or evaluator that is named)",
    )  # fmt: skip
    group.add_argument(
        "--devices", metavar="LIST", help="a worker on each, such as 0,1,2 (the visible one)"
    )
    group.add_argument(
        "--evaluator", action="append", default=[], metavar="WHERE",
        help="who judges instead of this machine: http://HOST:PORT of kernelsmith serve "
        "(repeatable), ray, or ray://HOST:PORT",
    )  # fmt: skip
    group.add_argument("--budget-seconds", type=float, metavar="S", help="per run")
    group.add_argument("--budget-usd", type=float, metavar="X", help="per run")
    group.add_argument("--budget-tokens", type=int, metavar="N", help="per run")
    group.add_argument("--max-usd", type=float, metavar="X", help="for the whole bench")
    group.add_argument(
        "--max-seconds", type=float, metavar="S", help="of this session: nothing is begun later"
    )
    group.add_argument(
        "--early-stop", type=int, metavar="N",
        help="a run ends after N steps in a row without a new best",
    )  # fmt: skip
    group.add_argument("--target", type=float, metavar="X", help="this speed-up is enough")


def _run(args: argparse.Namespace) -> int:
    from kernelsmith.cli import bench_list, bench_results, bench_run

    words = args.what
    if args.resume is not None:
        if words:
            raise UsageError(f"--resume FOLDER says what to do; got {' '.join(words)}, too")
        _refuse_changes(args)
        return bench_run.resumed(args)
    if not words:
        raise UsageError("name a suite, as in: kernelsmith bench builtin --limit 3")
    _refuse_unknown(words[0])
    _refuse_unheard(words[0], args)
    if words[0] in _TAKES:
        if words[0] == "list":
            return bench_list.listed(words[1:], args)
        done: int = getattr(bench_results, words[0])(words[1:], args)
        return done
    if len(words) > 1:
        raise UsageError(f"one suite at a time; got {' '.join(words)}")
    return bench_run.begun(words[0], args)


def _refuse_unknown(word: str) -> None:
    """See to it that a word is a verb or a suite, and say which it may have meant."""
    from kernelsmith.bench.suite import is_known, known_suites

    if word in _TAKES or ":" in word or is_known(word):  # what a suite needs besides, it says
        return
    suites = known_suites()
    said = [f"no suite {word!r}, and no verb"]
    if near := difflib.get_close_matches(word.lower(), [*_TAKES, *suites], n=1):
        said.append(f"nearest is the {'verb' if near[0] in _TAKES else 'suite'} {near[0]!r}")
    if Path(word).is_dir():
        said.append(f"task files in the folder of that name are read as 'folder:{word}'")
    said.append(f"verbs are {', '.join(_TAKES)}")
    raise UsageError("; ".join([*said, f"suites are {', '.join(suites.values())}"]))


def _said(args: argparse.Namespace) -> list[str]:
    """The options that were given."""
    usual = argparse.ArgumentParser()
    _arguments(usual)
    return [name for name, value in vars(usual.parse_args([])).items()
            if name != "what" and getattr(args, name) != value]  # fmt: skip


def _refuse_changes(args: argparse.Namespace) -> None:
    """A bench is gone on with as it was begun: see to it that nobody expects otherwise."""
    for name in _said(args):
        if name not in _FREE:
            raise UsageError(
                f"{_option(name)} is as it was begun; with --resume only these can be given: "
                f"{', '.join(map(_option, _FREE))}"
            )


def _refuse_unheard(word: str, args: argparse.Namespace) -> None:
    """See to it that nobody takes for done what is not listened to."""
    for name in _said(args):
        if word in _TAKES and name not in _TAKES[word]:
            takes = ", ".join(map(_option, _TAKES[word]))
            why = _WHY.get((word, name), f"bench {word} takes {takes}")
            raise UsageError(f"{_option(name)} means nothing here: {why}")
        if word not in _TAKES and name in _NO_BENCH:
            verbs = ", ".join(verb for verb, takes in _TAKES.items() if name in takes)
            raise UsageError(f"{_option(name)} means nothing to a bench; it goes with {verbs}")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


COMMAND = Command(
    "bench", "Compare proposers on a suite; show, compare and verify results.", _arguments, _run
)

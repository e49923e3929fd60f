"""``kernelsmith corpus``: from repositories to tasks, stage by stage or all at once."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kernelsmith.cli.command import Command
from kernelsmith.errors import UsageError

if TYPE_CHECKING:
    from kernelsmith.corpus.pipeline import Options, Shown

_STAGES = {
    "harvest": "take in folders, git repositories, archives and installed packages",
    "extract": "make every nn.Module stand alone, by static analysis",
    "run": "find inputs and run every module in the sandbox",
    "deduplicate": "keep one of each, and nothing that a benchmark holds",
    "classify": "name families and difficulty",
    "cluster": "group like tasks and find their centres",
    "publish": "write tables, task files and the data card",
}
_MORE = {
    "all": "every stage in turn; again, it goes on where it stopped",
    "status": "counts and reasons of every stage",
    "ask": "have a model write inputs for modules that could not be run",
    "export": "write the clusters' centres to a folder for experts to edit",
    "import": "take edited centres back in",
    "sample": "write random survivors to a folder, to be checked by hand",
}


def _arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", metavar="STAGE", required=True)
    for name, text in {**_STAGES, **_MORE}.items():
        verb = verbs.add_parser(name, help=text, description=text)
        verb.add_argument("folder", type=Path, metavar="CORPUS", help="the corpus's folder")
        verb.add_argument("--json", action="store_true", help="one line of JSON")
        if name in ("harvest", "all"):
            _harvest_options(verb)
        if name in ("extract", "run", "all"):
            verb.add_argument(
                "-j", "--processes", type=int, default=os.cpu_count() or 1, metavar="N"
            )
        if name in ("extract", "all"):
            verb.add_argument("--operators", action="store_true",
                              help="also functions that take annotated tensors")  # fmt: skip
        if name in ("run", "all"):
            verb.add_argument("--most", type=int, metavar="N", help="run at most N modules")
        if name in ("deduplicate", "all"):
            verb.add_argument(
                "--against", action="append", metavar="SUITE",
                help="suites to keep clear of, as bench names them: kernelbench:PATH (builtin)",
            )  # fmt: skip
        if name in ("deduplicate", "cluster", "all"):
            verb.add_argument("--embedding", choices=("tfidf", "minilm"), default="tfidf")
        if name in ("publish", "all"):
            verb.add_argument("--out", type=Path, metavar="DIR", help="where to (CORPUS/published)")
            verb.add_argument("--count", type=int, metavar="N", help="at most N, balanced")
            verb.add_argument("--synthetic", type=int, default=0, metavar="N",
                              help="add N chains of two modules, marked synthetic")  # fmt: skip
        if name in ("publish", "all", "sample"):
            verb.add_argument("--seed", type=int, default=0)
        if name in ("export", "import", "sample"):
            verb.add_argument("where", type=Path, metavar="DIR")
        if name == "import":
            verb.add_argument("--by", required=True, metavar="WHO", help="who edited them")
        if name == "sample":
            verb.add_argument("-n", dest="count", type=int, default=50, help="how many (50)")
        if name == "ask":
            verb.add_argument("--model", required=True, metavar="NAME")
            verb.add_argument("--endpoint", required=True, metavar="URL", help="OpenAI-compatible")
            verb.add_argument("--most", type=int, default=100, metavar="N", help="modules (100)")


def _harvest_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("sources", nargs="*", metavar="SOURCE",
                      help="folder, wheel, archive, git URL, or installed:NAME")  # fmt: skip
    verb.add_argument("--list", type=Path, metavar="FILE", help="a file with one source a line")
    verb.add_argument(
        "--licences", default="any", metavar="NAMES",
        help="any, permissive, or names with commas between (any)",
    )  # fmt: skip
    verb.add_argument(
        "--quality", type=int, default=0, choices=range(7), metavar="N",
        help="0 to 6: how many of licence, release, tests, files that parse, docstrings and "
        "hand-written lines a source must have (0)",
    )  # fmt: skip


def _run(args: argparse.Namespace) -> int:
    from kernelsmith.corpus.store import Store

    store = Store(args.folder)
    actions = {"status": _status, "ask": _ask, "export": _export, "import": _import,
               "sample": _sample}  # fmt: skip
    if args.action in actions:
        return actions[args.action](args)
    from kernelsmith.corpus.pipeline import stage

    options, shown = _options(args), _shown()
    names = list(_STAGES) if args.action == "all" else [args.action]
    if args.action in ("harvest", "all") and not options.sources:
        if args.action == "harvest" or not store.stage("harvest").path.is_file():
            raise UsageError("name at least one source: a folder, wheel, archive, git URL or "
                             "installed:NAME")  # fmt: skip
        names.remove("harvest")
    for name in names:
        stage(store, name, options, shown, getattr(args, "out", None))
    return _status(args)


def _options(args: argparse.Namespace) -> "Options":
    from kernelsmith.corpus.pipeline import Options

    sources = list(getattr(args, "sources", []))
    listed = getattr(args, "list", None)
    if listed is not None:
        if not listed.is_file():
            raise UsageError(f"no file {str(listed)!r} to read sources from")
        lines = (line.strip() for line in listed.read_text().splitlines())
        sources += [line for line in lines if line and not line.startswith("#")]
    processes = getattr(args, "processes", 1)
    if processes < 1:
        raise UsageError(f"--processes is 1 or more; got {processes}")
    return Options(
        processes=processes, sources=tuple(sources),
        licences=tuple(getattr(args, "licences", "any").split(",")),
        quality=getattr(args, "quality", 0),
        operators=getattr(args, "operators", False),
        against=tuple(getattr(args, "against", None) or ("builtin",)),
        embedding=getattr(args, "embedding", "tfidf"), most=getattr(args, "most", None),
        count=getattr(args, "count", None), synthetic=getattr(args, "synthetic", 0),
        seed=getattr(args, "seed", 0),
    )  # fmt: skip


def _shown() -> "Shown":
    from kernelsmith.cli.options import progress
    from kernelsmith.corpus.pipeline import Shown

    show = progress()
    live = sys.stderr.isatty()

    def bar(name: str, done: int, total: int, remark: str) -> None:
        if live or done == total or done % 500 == 0:
            filled = 30 * done // max(total, 1)
            show(f"{name} {'█' * filled}{'░' * (30 - filled)} {done}/{total}  {remark}")
        if live and done == total:
            print(file=sys.stderr)

    return Shown(lambda text: print(text, file=sys.stderr, flush=True), bar)


def _status(args: argparse.Namespace) -> int:
    from kernelsmith.corpus.store import STAGES, Store

    store = Store(args.folder)
    counts = [store.count(name) for name in STAGES if store.stage(name).path.is_file()]
    if not counts:
        raise UsageError(f"{str(args.folder)!r} holds no corpus")
    if args.json:
        said = {
            c.stage: {"seen": c.seen, "kept": c.kept, "reasons": dict(c.reasons)} for c in counts
        }
        print(json.dumps({"schema": "corpus/1", "folder": str(args.folder), "stages": said}))
        return 0
    for count in counts:
        print(f"{count.stage:12} {count.seen:7} seen {count.kept:7} kept")
        for reason, number in count.reasons[:6]:
            print(f"{'':12} {number:7} {reason}")
    return 0


def _ask(args: argparse.Namespace) -> int:
    from kernelsmith.corpus.inputs.model import Model, by_model
    from kernelsmith.corpus.store import Store

    model = Model(name=args.model, url=args.endpoint, key=os.environ.get("OPENAI_API_KEY", "none"))
    asked, ran = by_model(Store(args.folder), model, most=args.most)
    print(json.dumps({"asked": asked, "run": ran}) if args.json else
          f"asked about {asked} modules; {ran} run with what the model wrote")  # fmt: skip
    return 0


def _export(args: argparse.Namespace) -> int:
    from kernelsmith.corpus.cluster import export_centres
    from kernelsmith.corpus.store import Store

    count = export_centres(Store(args.folder), args.where)
    print(json.dumps({"centres": count}) if args.json else f"{count} centres in {args.where}")
    return 0


def _import(args: argparse.Namespace) -> int:
    from kernelsmith.corpus.cluster import import_centres
    from kernelsmith.corpus.store import Store

    taken, rejected = import_centres(Store(args.folder), args.where, by=args.by)
    print(json.dumps({"taken": taken, "rejected": rejected}) if args.json else
          f"{taken} edited centres taken, {rejected} rejected")  # fmt: skip
    return 1 if rejected else 0


def _sample(args: argparse.Namespace) -> int:
    from kernelsmith.corpus.handcheck import write_sample
    from kernelsmith.corpus.store import Store

    count = write_sample(Store(args.folder), args.where, count=args.count, seed=args.seed)
    print(json.dumps({"modules": count}) if args.json else f"{count} modules in {args.where}")
    return 0


COMMAND = Command("corpus", "build tasks from repositories", _arguments, _run)

"""The corpus from the packages of a list: counts at every stage, per family and per minute.

``python -m benchmarks.corpus --packages LIST.tsv --work FOLDER --against kernelbench:PATH``

The list has a column ``package`` and a column ``archive``, whose name gives the version. Archives
are downloaded from the package index into ``WORK/../archives`` and are not committed. Every stage
resumes: run the same command again after a stop. ``--figures`` only writes the figures of what is
there. Planted modules with known answers are run along.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

from kernelsmith.corpus.extract.extract import extract
from kernelsmith.corpus.harvest.harvest import harvest
from kernelsmith.corpus.pipeline import TIMES, Options, Shown, stage
from kernelsmith.corpus.run.order import COPY
from kernelsmith.corpus.run.runner import UNTRIED, Runner
from kernelsmith.corpus.store import STAGES, Store

RESULTS = Path(__file__).parent / "results" / "corpus-cpu.json"
PLANTED = Path(__file__).parent / "cases" / "corpus"
_NOT_TRIED = (COPY, UNTRIED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", type=Path, help="tab-separated: package, archive")
    parser.add_argument("--work", type=Path, default=Path("runs/corpus/full"))
    parser.add_argument("--against", action="append", default=[], metavar="SUITE")
    parser.add_argument("--most", type=int, help="run at most so many modules")
    parser.add_argument("-j", "--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--through", choices=STAGES, default=STAGES[-1], help="the last stage")
    parser.add_argument("--rates", type=Path, metavar="WORK",
                        help="times of stages that ran undisturbed there")  # fmt: skip
    parser.add_argument("--figures", action="store_true", help="write the figures only")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    store = Store(args.work)
    if not args.figures:
        sources = download(args.packages, args.work.parent / "archives") if args.packages else []
        build(store, args, sources)
    figures = measured(store, args)
    args.results.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps({k: figures[k] for k in ("stages", "per_minute", "planted")}, indent=1))


def download(packages: Path, folder: Path) -> list[str]:
    """Fetch every listed archive that is not there yet, without what it depends on."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for line in packages.read_text().splitlines()[1:]:
        name, archive = line.split("\t")[:2]
        target = folder / archive
        if not target.exists():
            version = re.sub(r"\.tar\.gz$", "", archive.split("-")[1])
            kind = "--no-binary" if archive.endswith(".tar.gz") else "--only-binary"
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                       "--no-build-isolation", kind, ":all:", "-d", str(folder),
                       f"{name}=={version}"]  # fmt: skip
            if subprocess.run(command, check=False).returncode:
                print(f"not to be had: {name} {version}", file=sys.stderr)
                continue
        found.append(str(target))
    return found


def build(store: Store, args: argparse.Namespace, sources: list[str]) -> None:
    options = Options(processes=args.processes, sources=tuple(sources), most=args.most,
                      against=tuple(args.against or ["builtin"]))  # fmt: skip

    def bar(name: str, done: int, total: int, remark: str) -> None:
        if done % 500 == 0 or done == total:
            print(f"{name} {done}/{total} {remark}", file=sys.stderr, flush=True)

    shown = Shown(lambda text: print(text, file=sys.stderr, flush=True), bar)
    for name in STAGES[0 if sources else 1 : STAGES.index(args.through) + 1]:
        stage(store, name, options, shown)


def measured(store: Store, args: argparse.Namespace) -> dict[str, object]:
    seconds = _times(store.folder)
    if args.rates is not None:
        seconds |= {name: said for name, said in _times(args.rates).items() if said.get("made")}
    stages = {}
    for name in STAGES[:6]:
        records = [r for r in store.stage(name) if not r.key.endswith("!file")]
        if name == "harvest":
            records = [r for r in records if r.text("kind") == "file"]
        reasons = Counter(r.reason for r in records if r.reason)
        stages[name] = {"seen": len(records), "kept": sum(r.kept for r in records),
                        "reasons": dict(reasons.most_common())}  # fmt: skip
    tried = [r for r in store.stage("run") if r.reason not in _NOT_TRIED]
    agreement = Counter(r.text("agreement") for r in tried if r.text("agreement"))
    classified = list(store.stage("classify").kept())
    texts = {r.text("hash") for r in store.stage("extract").kept() if r.text("hash")}
    spent = [r.number("spent") for r in tried]
    return {
        "command": "python -m benchmarks.corpus " + " ".join(sys.argv[1:]),
        "device": {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine(),
                   "python": platform.python_version(), "torch": metadata.version("torch")},
        "packages": sum(r.text("kind") == "source" for r in store.stage("harvest")),
        "stages": stages,
        "extracted_texts": len(texts),
        "run": {"tried": len(tried), "runnable": sum(r.kept for r in tried),
                "share": round(sum(r.kept for r in tried) / max(1, len(tried)), 4),
                "seconds_each": round(sum(spent) / max(1, len(spent)), 3),
                "random": sum(bool(r.data.get("random")) for r in tried if r.kept)},
        "families": dict(Counter(r.text("family") for r in classified).most_common()),
        "difficulty": dict(Counter(int(r.number("difficulty")) for r in classified)),
        "sources": dict(Counter(r.key.partition(":")[0] for r in classified).most_common()),
        "agreement_with_authors": dict(agreement),
        "hand_check": _told(store.folder / "hand_check.json"),
        "seconds": seconds,
        "per_minute": _per_minute(seconds),
        "planted": planted(),
    }  # fmt: skip


def _times(folder: Path) -> dict[str, dict[str, float]]:
    return _told(folder / TIMES) or {}


def _told(path: Path) -> dict[str, Any] | None:
    return dict(json.loads(path.read_text())) if path.is_file() else None


def _per_minute(seconds: dict[str, dict[str, float]]) -> object:
    """By what was made while the clock ran: a pass that finds all done says nothing."""
    found = {}
    for name, said in seconds.items():
        made = said.get("made", 0)
        if made and said["seconds"]:
            cpu = said["cpu_seconds"]
            found[name] = {"wall": round(60 * made / said["seconds"]),
                           "of_processor": round(60 * made / cpu) if cpu else None}  # fmt: skip
    return found


def planted() -> dict[str, object]:
    """Run the modules with known answers: what came through wrongly, what fell wrongly."""
    runner = Runner(timeout_s=15)
    found: dict[str, dict[str, str]] = {"good": {}, "bad": {}, "marked": {}}
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        harvest(store, [str(PLANTED)], licences=("any",), say=lambda text: None)
        extract(store, processes=1, progress=lambda *numbers: None)
        for record in store.stage("extract"):
            file, _, name = record.key.partition(":")[2].rpartition(":")
            if Path(file).stem in found and not name.endswith("!file"):
                ran = runner.run(record) if record.kept else record
                found[Path(file).stem][name] = ran.reason
    runner.close()
    return {
        "good": len(found["good"]), "bad": len(found["bad"]),
        "false_rejects": sorted(n for n, reason in found["good"].items() if reason),
        "false_accepts": sorted(n for n, reason in found["bad"].items() if not reason),
        "reasons": found["bad"],
    }  # fmt: skip


if __name__ == "__main__":
    main()

"""One self-contained HTML page for a run: no script, nothing from elsewhere, everything escaped."""

from collections.abc import Sequence

from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.timing import Ratio
from kernelsmith.report import pictures, sections
from kernelsmith.report.about import About
from kernelsmith.report.markup import Markup, joined, tag
from kernelsmith.report.numbers import Numbers
from kernelsmith.report.sources import winner as winning_sources
from kernelsmith.report.style import STYLE
from kernelsmith.report.tables import Cellular, cents, count, facts, figure, minutes, table
from kernelsmith.report.timings import roofline_section, timing_section

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(numbers: Numbers, about: About) -> str:
    """The whole report as HTML."""
    possible = {
        "Best against step": sections.curve(numbers),
        "Verdicts": sections.verdicts(numbers),
        "Archive": sections.archive(numbers, about.axes),
        "Lineage": sections.lineage(numbers),
        "Winning kernel": winning_sources(numbers.lineage) if numbers.lineage else None,
        "Timing": timing_section(numbers),
        "Roofline": roofline_section(numbers),
        "Cost": _cost(numbers),
        "How it was measured": _measured(numbers, about),
        "How to reproduce it": _again(about),
        "All steps": sections.steps(numbers),
    }
    made = {name: inner for name, inner in possible.items() if inner is not None}
    body = tag(
        "main",
        _head(numbers, about),
        tag(
            "nav", *(tag("a", name, href=f"#{_anchor(name)}") for name in made), aria_label="parts"
        ),
        *(
            tag("section", tag("h2", name, id=_anchor(name)), inner, aria_labelledby=_anchor(name))
            for name, inner in made.items()
        ),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", **{"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        tag("meta", name_="viewport", content="width=device-width,initial-scale=1"),
        tag("title", f"{about.task}: {_headline(numbers.evaluation)} - Kernel-Smith"),
        tag("style", Markup(STYLE)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _head(numbers: Numbers, about: About) -> Markup:
    ratio = numbers.speedup
    evaluation = numbers.evaluation
    parts = [tag("h1", f"{about.task} on {about.device or about.backend}")]
    if evaluation is None:
        parts.append(tag("div", tag("b", "no kernel passed"), class_="hero fail"))
    elif ratio is None:
        parts.append(tag("div", tag("b", "right, not timed"), class_="hero"))
    else:
        assert evaluation.timing is not None
        label, style = _believed(numbers, ratio)
        parts.append(
            tag(
                "div",
                tag("b", f"{ratio.value:.2f}x"),
                tag("span", f"the speed of {evaluation.timing.baseline}, 95 % interval "
                    f"{ratio.low:.3f} to {ratio.high:.3f}"),
                tag("span", label, class_=f"badge {style}"),
                class_="hero",
            )
        )  # fmt: skip
    winner = numbers.winner
    parts.append(
        facts(
            ("steps", count(len(numbers.points))),
            ("passed the judge", f"{numbers.passed:,} of {numbers.judged:,}"),
            ("found at step", str(winner.brief.number) if winner else "-"),
            ("cells filled", count(len(numbers.cells))),
            ("time", minutes(numbers.elapsed_s)),
            ("tokens", count(numbers.tokens)),
            ("cost", cents(numbers.usd)),
        )
    )
    return joined(*parts)


def _cost(numbers: Numbers) -> Markup | None:
    if not numbers.credits:
        return None
    rows: list[Sequence[Cellular]] = [
        (
            each.proposer, each.proposals, each.passed, each.bests, f"{each.lifted:.2f}x",
            f"{each.gained:.3g}", count(each.input_tokens), count(each.output_tokens),
            cents(each.usd), minutes(each.seconds),
        )
        for each in numbers.credits
    ]  # fmt: skip
    bought = table(
        ("proposer", "proposals", "passed", "bests", "raised the best by", "score added",
         "tokens in", "tokens out", "cost", "time"),
        rows, numeric=range(1, 10), caption="Who wrote what, at what cost, and what it brought",
    )  # fmt: skip
    if not numbers.stages:
        return bought
    total = sum(seconds for _, seconds in numbers.stages)
    where: list[Sequence[Cellular]] = [
        (joined(tag("span", class_=f"key g{index % 6}"), name), minutes(s), f"{s / total:.0%}")
        for index, (name, s) in enumerate(numbers.stages)
    ]
    return joined(
        bought,
        figure(pictures.shares(numbers.stages, title="Work per stage", unit=" s"), ""),
        table(("stage", "work", "share"), where, numeric=(1, 2),
              caption="Where the work went; stages of different steps overlap in time"),
    )  # fmt: skip


def _measured(numbers: Numbers, about: About) -> Markup:
    evaluation = numbers.evaluation
    device = (evaluation.device if evaluation else None) or about.device
    rows: list[Sequence[Cellular]] = []
    if device is not None:
        rows.append(("device", str(device)))
        rows += [(name, version) for name, version in device.versions]
        rows.append(("sandbox", device.sandbox))
    if evaluation is not None:
        rows.append(("judge", evaluation.judge or "not recorded"))
        rows += [(f"while timed: {name}", value) for name, value in evaluation.device_log]
    known = {row[0] for row in rows}
    rows += [("backend", about.backend)]
    rows += [each for each in about.settings if each[0] not in known]
    said = (
        "Baseline and candidate are timed interleaved, in fresh pairs of processes, on inputs that "
        "neither has seen; outputs of timed launches are checked. The interval is taken over pairs."
    )
    return joined(tag("p", said), table(("what", "value"), rows))


def _again(about: About) -> Markup | None:
    if not about.commands:
        return None
    parts: list[Markup] = []
    for said, command in about.commands:
        parts += [tag("p", said, class_="dim"), tag("pre", command)]
    return joined(*parts)


def _believed(numbers: Numbers, ratio: Ratio) -> tuple[str, str]:
    if numbers.final is None:
        return "not confirmed", "no"
    if not numbers.is_confirmed:
        return f"confirmation failed: {numbers.final.verdict.value}", "fail"
    return ("confirmed", "yes") if ratio.is_faster else ("confirmed, not faster", "no")


def _headline(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return "no kernel passed"
    timing = evaluation.timing
    return f"{timing.speedup.value:.2f}x" if timing else "right, not timed"


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")

"""From what a model answered to the source of a candidate, or to the reason why there is none.

Takes what models really write: prose around the program, several fences or none, fences inside of
docstrings, wrong languages, thoughts, foreign line ends. A program with a mistake in it is still a
program, and the judge says more about it than could be said here; what is rejected is a reply from
which no program can be had.
"""

import ast
import re
import warnings

from kernelsmith.domain.trajectory import Brief
from kernelsmith.propose.header import body
from kernelsmith.propose.prompt_options import Form, PromptOptions
from kernelsmith.propose.prompt_regions import Regions, regions_of, without_markers
from kernelsmith.propose.reply_edits import Unreadable, apply, edits_of
from kernelsmith.propose.reply_text import blocks, note_of, plain, spans, still_thinking

__all__ = ["Unreadable", "note_from", "source_from"]

_LEFT_OUT = re.compile(
    r"^[ \t]*(?:#|//).{0,20}(?:\.\.\.|…).{0,60}"
    r"\b(?:rest|remaining|existing|unchanged|same as|as before|previous code|omitted)\b"
    r"|^[ \t]*(?:#|//).{0,60}\b(?:rest of|remaining|existing) (?:the )?"
    r"(?:code|program|kernel|class)\b.{0,40}(?:unchanged|\.\.\.|…|same|here)",
    re.IGNORECASE | re.MULTILINE,
)
_CODE_BEGINS = re.compile(
    r"(?:import \w|from [\w.]+ import|@\w|class \w+.*:|def \w+\(|\"\"\"|'''|#)"
)
_MOST_TRIES = 60


def source_from(reply: str, brief: Brief, *, options: PromptOptions, cut_off: bool = False) -> str:
    """Read the candidate's whole source out of a reply.

    Args:
        reply: As it came.
        brief: What was asked; edits and regions refer to its parent.
        options: The form that was asked for.
        cut_off: Whether the server says that the reply met its limit of tokens.

    Raises:
        Unreadable: There is none; the text says why.
    """
    text = body(plain(reply))
    if not text.strip():
        raise Unreadable(_nothing(reply, cut_off))
    if still_thinking(text):
        raise Unreadable("the reply was cut off while thinking; there is no answer in it")
    given = brief.parent.candidate.source.replace("\r\n", "\n") if brief.parent else None
    parent = body(given) if given is not None else None
    source = _read(text, brief, parent, options, cut_off)
    return given if given is not None and source == parent else source  # a copy is known as one


def _read(
    text: str, brief: Brief, parent: str | None, options: PromptOptions, cut_off: bool
) -> str:
    regions = regions_of(parent) if parent is not None else None
    if parent is not None and options.form_for(brief) is Form.DIFF and (edits := edits_of(text)):
        source = apply(edits, parent)
        _check_frozen(source, regions)
        return source
    if regions is not None:
        return _spliced(text, regions, brief, cut_off)
    source = _program(text, brief, cut_off)
    _check_whole(source)
    if not source.strip():
        raise Unreadable("the reply's fenced block is empty")
    return _ended(source)


def note_from(reply: str) -> str:
    """What the reply says it tried, in one line; empty where it says nothing."""
    return note_of(plain(reply))


def _nothing(reply: str, cut_off: bool) -> str:
    if reply.strip():
        return "the reply holds thoughts and no answer"
    return "the reply was cut off before it began" if cut_off else "the reply is empty"


def _program(text: str, brief: Brief, cut_off: bool) -> str:
    if brief.backend == "null":  # an expression; any text is one until it is built
        found = blocks(text)
        return max((each.text for each in found), key=len) if found else text.strip()
    entry = brief.task.candidate_entry
    if _defines(text, entry):  # a plain source file; fences in its docstrings mean nothing
        return text
    fenced = blocks(text)
    whole = [each.text for each in fenced if each.closed and _defines(each.text, entry)]
    if not whole:
        whole = [each for each in spans(text) if _defines(each, entry)][:1]
    if whole:
        return _chosen(whole, brief)
    if not fenced and (bare := _unfenced(text, entry)) is not None:
        return bare
    if not fenced and not cut_off and _CODE_BEGINS.match(text.strip()) and _names(text, entry):
        return text
    named = [each for each in fenced if _names(each.text, entry)]
    if named and named[-1].closed and not cut_off:
        return max((each.text for each in named if each.closed), key=len)
    raise Unreadable(_why_none(text, entry, cut_off))


def _chosen(programs: list[str], brief: Brief) -> str:
    """The longest, the last of equals; a copy of the parent only where there is nothing else."""
    parent = body(brief.parent.candidate.source).strip() if brief.parent is not None else ""
    others = [each for each in programs if each.strip() != parent] or programs
    return max(reversed(others), key=len)


def _why_none(text: str, entry: str, cut_off: bool) -> str:
    found = blocks(text)
    if cut_off or (found and not found[-1].closed):
        return (
            f"the reply was cut off before `{entry}` was complete ({len(text)} characters); write "
            "a shorter program and less around it"
        )
    if not found:
        return f"the reply holds no program: no fenced block, and no `{entry}` outside of one"
    sizes = ", ".join(str(each.text.count("\n") + 1) for each in found[:8])
    return f"no fenced block defines `{entry}` (blocks of {sizes} lines)"


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes, which are the candidate's affair
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defines(text: str, entry: str) -> bool:
    """Whether it is Python that defines ``entry`` at module level."""
    if not _names(text, entry):
        return False
    tree = _parsed(text)
    return tree is not None and any(
        isinstance(node, ast.ClassDef | ast.FunctionDef | ast.If | ast.Try | ast.Assign)
        and _names(ast.unparse(node) if isinstance(node, ast.Assign) else _head(node), entry)
        for node in tree.body
    )


def _head(node: ast.stmt) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    if isinstance(node, ast.FunctionDef):
        return f"def {node.name}("
    return "\n".join(
        _head(each).lstrip() for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)
    )


def _names(text: str, entry: str) -> bool:
    name = re.escape(entry)
    return re.search(rf"^(?:class|def)\s+{name}\b|^{name}\s*=", text, re.MULTILINE) is not None


def _unfenced(text: str, entry: str) -> str | None:
    """A program that stands in the reply without a fence, with prose before and after it."""
    lines = text.split("\n")
    begins = [at for at, line in enumerate(lines) if _CODE_BEGINS.match(line)]
    for start in begins[:8]:
        end = len(lines)
        for _ in range(_MOST_TRIES):
            piece = "\n".join(lines[start:end])
            if not _names(piece, entry):
                break
            if _defines(piece, entry):
                return piece
            broken = _broken_line(piece)
            if broken is None or not 0 < broken < end - start + 1:
                break
            end = start + broken - 1
    return None


def _broken_line(piece: str) -> int | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(piece)
    except SyntaxError as error:
        return error.lineno
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def _check_whole(source: str) -> None:
    if hit := _LEFT_OUT.search(source):
        line = source.count("\n", 0, hit.start()) + 1
        raise Unreadable(
            f"the program leaves parts out (line {line}: {hit.group().strip()[:80]!r}); write all "
            "of it"
        )


def _ended(source: str) -> str:
    return source.strip("\n").rstrip() + "\n"


def _spliced(text: str, regions: Regions, brief: Brief, cut_off: bool) -> str:
    """Put what the reply has between its markers into the parent."""
    found = blocks(text)
    pieces = [each.text for each in found] or [text]
    cut = [each for piece in pieces if (each := regions_of(piece)) is not None]
    fitting = [each for each in cut if len(each.open) == len(regions.open)]
    if fitting:
        chosen = max(fitting, key=lambda each: sum(map(len, each.open)))
        alone = not any(line.strip() for part in chosen.frozen for line in without_markers(part))
        if not alone:
            _compare(chosen, regions)
        source = regions.with_open(chosen.open)
        _check_whole("\n".join(line for part in chosen.open for line in part))
        return source
    if cut:
        raise Unreadable(
            f"the current program has {len(regions.open)} EVOLVE-BLOCK regions, the reply "
            f"{len(cut[0].open)}; keep all markers"
        )
    whole = _program(text, brief, cut_off)
    opened = _between(whole, regions)
    if opened is None:
        raise Unreadable("the EVOLVE-BLOCK markers are missing; keep them and what is outside")
    _check_whole("\n".join(opened))
    return regions.with_open((opened,))


def _between(whole: str, regions: Regions) -> tuple[str, ...] | None:
    """The one region's lines in a program that lost its markers but kept all around them."""
    if len(regions.open) != 1:
        return None
    before, after = (_solid(without_markers(part)) for part in regions.frozen)
    lines = [line.rstrip() for line in whole.split("\n")]
    start = _skip(lines, before)
    back = _skip(lines[::-1], before=after[::-1])
    if start is None or back is None or start > len(lines) - back:
        return None
    return tuple(lines[start : len(lines) - back])


def _skip(lines: list[str], before: list[str]) -> int | None:
    """How many lines it takes to read ``before``, blank lines aside."""
    wanted = iter(before)
    expected = next(wanted, None)
    for number, line in enumerate(lines):
        if expected is None:
            return number
        if not line.strip():
            continue
        if line != expected:
            return None
        expected = next(wanted, None)
    return len(lines) if expected is None else None


def _solid(part: tuple[str, ...]) -> list[str]:
    """Lines that say something, without space at their ends."""
    return [line.rstrip() for line in part if line.strip()]


def _compare(found: Regions, regions: Regions) -> None:
    for got, wanted in zip(found.frozen, regions.frozen, strict=True):
        new, old = _solid(without_markers(got)), _solid(without_markers(wanted))
        if new == old:
            continue
        at = next(
            (at for at, pair in enumerate(zip(new, old, strict=False)) if pair[0] != pair[1]),
            min(len(new), len(old)),
        )
        said = f"now {new[at].strip()[:80]!r}" if at < len(new) else "now missing"
        kept = f"{old[at].strip()[:80]!r}" if at < len(old) else "nothing"
        raise Unreadable(
            f"the reply changes what is outside the EVOLVE-BLOCK markers: {kept} is {said}; keep "
            "it as it is"
        )


def _check_frozen(source: str, regions: Regions | None) -> None:
    if regions is None:
        return
    found = regions_of(source)
    if found is None or len(found.open) != len(regions.open):
        raise Unreadable("an edit touches the EVOLVE-BLOCK markers; leave them as they are")
    _compare(found, regions)

# mypy: ignore-errors
"""What a generated task's calls look like: run once, in the sandbox, when a suite is opened."""

import dis
import json
import math
import sys
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_PLAIN = {
    torch.float64, torch.float32, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
}  # fmt: skip
_REAL_BYTES = 8 << 20
_LARGEST_BYTES = 8 << 30
_PATIENCE_S = 0.5


def _leaves(value, found):
    """Gather tensors; say what cannot cross a process boundary."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return f"a tensor of layout {value.layout}"
        if value.dtype not in _PLAIN:
            return f"a {str(value.dtype).removeprefix('torch.')} tensor"
        found.append(value)
        return ""
    if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.device):
        return ""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return next((bad for each in value if (bad := _leaves(each, found))), "")
    return f"a {type(value).__name__}"


def _copied(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copied(each) for each in value)
    return value


def _said(value, name=""):
    """One argument in a few words."""
    if isinstance(value, torch.Tensor):
        return "x".join(map(str, value.shape)) or "scalar"
    if isinstance(value, list | tuple) and any(isinstance(v, torch.Tensor) for v in value):
        return "[" + ", ".join(_said(each) for each in value) + "]"
    if isinstance(value, dict):
        return ", ".join(_said(each, key) for key, each in value.items())
    return f"{name}={value}" if name else str(value)


def _described(arguments):
    leaves = []
    bad = _leaves(arguments, leaves)
    floats = [leaf for leaf in leaves if leaf.is_floating_point()]
    first = (floats or leaves or [None])[0]
    values = arguments if isinstance(arguments, dict) else {"": list(arguments)}
    if isinstance(arguments, list):
        said = ", ".join(_said(each) for each in arguments)
    else:
        said = ", ".join(_said(each, key) for key, each in values.items() if each is not None)
    return {
        "said": said[:90],
        "dtype": "" if first is None else str(first.dtype).removeprefix("torch."),
        "bytes": sum(leaf.numel() * leaf.element_size() for leaf in leaves),
        "count": len(leaves),
        "empty": any(leaf.numel() == 0 for leaf in leaves),
        "bad": f"takes {bad}" if bad else "",
        "random": False,
        "fixed": False,
        "seconds": 0.0,
    }


def _outcome(function, arguments):
    """Run the reference once on copies: the outputs, what is wrong with them, the seconds."""
    copies = _copied(arguments)
    begun = time.perf_counter()
    with torch.no_grad():
        result = function(**copies) if isinstance(copies, dict) else function(*copies)
    spent = time.perf_counter() - begun
    leaves = []
    bad = _leaves(result, leaves)
    if not bad and not leaves:
        changed = []
        _leaves(copies, changed)
        original = []
        _leaves(arguments, original)
        leaves = [a for a, b in zip(changed, original, strict=True) if not _equal(a, b)]
        bad = "" if leaves else f"returns no tensor but {type(result).__name__}"
    elif bad:
        bad = f"returns {bad}"
    return leaves, bad, spent


def _equal(a, b):
    return a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))


def _same(one, other):
    """Whether two draws are the same: then a test has its values written down."""
    first, second = [], []
    _leaves(one, first)
    _leaves(other, second)
    return len(first) == len(second) and all(map(_equal, first, second))


def _checked(function, arguments):
    """Describe one call and try it: twice under different seeds, since some are random."""
    case = _described(arguments)
    if case["bad"] or case["empty"]:
        return case, None
    try:
        torch.manual_seed(1)
        first, bad, case["seconds"] = _outcome(function, arguments)
        torch.manual_seed(2)
        second, _, _ = _outcome(function, arguments)
        case["random"] = any(not _equal(a, b) for a, b in zip(first, second, strict=False))
    except BaseException as error:
        case["bad"] = f"fails: {_why(error)}"
        return case, None
    case["bad"] = bad
    return case, [tuple(leaf.shape) for leaf in first]


def _why(error):
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]


class _Anything:
    """What a call returns that was not made: unpacks into as many as are asked for."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments, **options):
        return self

    __getitem__ = __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __truediv__ = __call__

    def __iter__(self):
        frame = sys._getframe(1)
        unpacks = [
            each.arg for each in dis.get_instructions(frame.f_code)
            if each.offset == frame.f_lasti and each.opname == "UNPACK_SEQUENCE"
        ]  # fmt: skip
        return iter([self] * (unpacks[0] if unpacks else 1))


class _Log:
    """Called in the reference's place: notes every call, and gives what the reference gives."""

    def __init__(self, function, bound, run):
        self.function, self.bound, self.calls = function if run else _Anything(), bound, []
        self.known = function

    def __call__(self, *arguments, **options):
        try:
            given = _copied(self.bound(self.known, arguments, options))
        except TypeError as error:
            given = str(error)
        self.calls.append(given)
        return self.function(*arguments, **options)


def _tests(function, play, bound, run):
    """Every call of the tests, from two plays under different seeds."""
    logs, why = [], ""
    for seed in (11, 12):
        torch.manual_seed(seed)
        log = _Log(function, bound, run)
        try:
            play(log)
        except BaseException as error:
            why = _why(error)
        logs.append(log)
    cases = []
    for index, given in enumerate(logs[0].calls):
        if isinstance(given, str):
            cases.append(_described([]) | {"bad": given})
            continue
        case, form = _checked(function, given) if run else (_described(given), None)
        if index < len(logs[1].calls):
            case["fixed"] = _same(given, logs[1].calls[index])
        if form is not None and index < len(logs[1].calls):
            try:
                leaves, _, _ = _outcome(function, logs[1].calls[index])
                if [tuple(leaf.shape) for leaf in leaves] != form:
                    case["bad"] = "returns other shapes for other values"
                elif not case["random"]:
                    # Only a buffer for the result differed: what counts is written down.
                    before, _, _ = _outcome(function, given)
                    case["fixed"] = case["fixed"] or all(map(_equal, before, leaves))
            except BaseException as error:
                case["bad"] = f"fails: {_why(error)}"
        cases.append(case)
    return cases, why


class _Largest(TorchDispatchMode):
    """Notes the largest tensor that is made; on tensors without memory that costs nothing."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # or torch loads its compiler for this, which takes seconds

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, torch.Tensor):
                self.bytes = max(self.bytes, each.numel() * each.element_size())
        return result


def _fits(function, arguments):
    """Whether no tensor on the way is absurdly large, as far as that can be told without memory."""
    watch = _Largest()
    try:
        with torch.device("meta"), watch, torch.no_grad():
            function(**arguments) if isinstance(arguments, dict) else function(*arguments)
    except BaseException:
        return True
    return watch.bytes <= _LARGEST_BYTES


def _timings(function, draw, run):
    """Every size of the timing script, without memory where that can be had; small ones are run."""
    cases, why = [], ""
    for index in range(64):
        try:
            with torch.device("meta"):
                arguments = draw(index)
            case = _described(arguments)
            if run and not case["bad"] and not _fits(function, arguments):
                case["bad"] = "makes a tensor that is too large"
        except IndexError:
            break
        except BaseException as error:
            if cases and cases[-1]["bytes"] > _REAL_BYTES:
                break
            try:
                case = _described(draw(index))
            except IndexError:
                break
            except BaseException:
                why = _why(error)
                break
        cases.append(case)
    if run:
        _try_small(function, draw, cases)
    return cases, why


def _try_small(function, draw, cases):
    """Run sizes from the smallest on, until one fails or takes too long for a processor."""
    small = [i for i, case in enumerate(cases) if not case["bad"] and case["bytes"] <= _REAL_BYTES]
    for order, index in enumerate(sorted(small, key=lambda i: cases[i]["bytes"])):
        try:
            tried, _ = _checked(function, draw(index))
        except BaseException as error:
            tried = {"bad": f"fails: {_why(error)}", "random": False, "seconds": 0.0}
        case = cases[index]
        case["bad"], case["random"], case["seconds"] = (
            tried["bad"], tried["random"], tried["seconds"],
        )  # fmt: skip
        if order == 0:
            for each in cases:
                each["bad"], each["random"] = each["bad"] or tried["bad"], tried["random"]
        if tried["bad"] or tried["seconds"] > _PATIENCE_S:
            break


def survey(function, play, draw, bound, run=True):
    """Every call, as JSON; ``bound`` turns what was handed over into names and values.

    Without ``run`` no call is made: what is known then is what it would have been called with.
    """
    tests, tests_why = _tests(function, play, bound, run) if play else ([], "")
    timings, timings_why = _timings(function, draw, run) if draw else ([], "")
    assert all(math.isfinite(case["seconds"]) for case in tests + timings)
    return json.dumps(
        {"tests": tests, "tests_why": tests_why, "timings": timings, "timings_why": timings_why}
    )

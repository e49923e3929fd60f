"""The compiler's scalar C++, one kernel at a time, as a tree of loops."""

import re
from dataclasses import replace
from typing import get_args

from kernelsmith.propose.rules.compiler import cpp_words as words
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Accumulator,
    Check,
    Fold,
    Function,
    Gather,
    Let,
    Local,
    Loop,
    Masked,
    Statement,
    Store,
    closing,
    renamed,
)
from kernelsmith.propose.rules.graph import NotRecognised

_NOISE = re.compile(
    r"#.*|std::atomic<int> inductor_cpu.*|inductor_cpu_.*|int (?:tid|max_threads) = .*|;"
    r"|CascadeSumHelper<.*|(\w+) = cascade_sum_final\(.*\);"
)
_FOR = re.compile(
    r"for\(int64_t (?P<name>\w+)=static_cast<int64_t>\(0L\); "
    r"\w+<static_cast<int64_t>\((?P<extent>\d+)L\); \w+\+=static_cast<int64_t>\(1L\)\)"
)
_BUFFER = re.compile(
    r"std::unique_ptr<(?P<kind>.+) \[\]> buf_(?P<name>\w+) = std::make_unique<.+>\((?P<n>\d+)L\);"
)
_LAMBDA = re.compile(r"auto (?P<name>\w+) =(?: \[&\])?")
_LET = re.compile(r"auto (?P<name>\w+) = (?P<value>.+);")
_MASKED = re.compile(
    r"auto (?P<name>\w+) = (?P<if>\w+) \? (?P<then>\w+)\(\) : "
    r"(?:static_cast<decltype\(\w+\(\)\)>\((?P<else>.+)\)"
    r"|(?P<sign>-?)std::numeric_limits<decltype\(\w+\(\)\)>::infinity\(\));"
)
_ACCUMULATOR = re.compile(r"(?P<kind>[\w:]+(?:<.+?>)?) (?P<name>tmp_acc\d+) = (?P<value>.+);")
_ASSIGN = re.compile(r"(?P<name>tmp_acc\d+) = (?P<value>.+);")
_OPEN = re.compile(r"int32_t (?P<name>tmp\d+);")
_FREXP = re.compile(r"auto (?P<name>\w+) = std::frexp\((?P<of>.+), &(?P<exponent>\w+)\);")
_CHECK = re.compile(r"(?:AOTI_)?TORCH_CHECK\((?P<if>.+), \".*\"\);")
_ATOMIC = re.compile(r"atomic_add(?:_vec)?\(&(?P<to>.+), (?P<value>[^,]+)\);")
_FOLDS = {
    r"{0} \+ (.+)": "sum", r"{0} \* (.+)": "product", r"{0} \|\| (.+)": "any",
    r"{0} && (.+)": "all", r"max_propagate_nan\({0}, (.+)\)": "max",
    r"min_propagate_nan\({0}, (.+)\)": "min", r"cascade_sum_combine\((.+), &\w+\)": "sum",
    r"argmax_combine\({0}, (.+)\)": "argmax", r"argmin_combine\({0}, (.+)\)": "argmin",
}  # fmt: skip


def parsed(text: str) -> Function:
    """Read one ``extern "C"`` function.

    Raises:
        NotRecognised: It holds something that cannot be written without torch.
    """
    match = re.search(r'extern "C"\s+void\s+\w+\((?P<parameters>[^)]*)\)\s*\{', text)
    if match is None:
        raise NotRecognised("the compiler's C++ holds no function")
    parameters = []
    for each in match["parameters"].split(","):
        kind, _, name = each.strip().rpartition(" ")
        if "*" not in kind:
            raise NotRecognised(f"the compiler passes {name!r} by value")
        parameters.append((name, words.element(kind)))
    lines = [line.strip() for line in text[match.end() :].splitlines()]
    parser = _Parser([line for line in lines if line], dict(parameters))
    return Function(parameters=tuple(parameters), body=parser.block())


class _Parser:
    """One pass over the lines; every name gets its own, so that blocks can be dropped."""

    def __init__(self, lines: list[str], kinds: dict[str, str]) -> None:
        self._lines = lines
        self._at = 0
        self._kinds = kinds
        self._scopes: list[dict[str, str]] = [{name: name for name in kinds}]
        self._count: dict[str, int] = {}
        self._lambdas: dict[str, tuple[tuple[Statement, ...], str]] = {}
        self._folds: dict[str, tuple[str, bool]] = {}
        self._result = ""

    def block(self) -> tuple[Statement, ...]:
        """Statements up to the brace that closes the block."""
        found: list[Statement] = []
        self._scopes.append({})
        while (line := self._next()) != "}":
            found += self._statement(line)
        self._scopes.pop()
        return tuple(self._with_fold(each) for each in found)

    def _next(self) -> str:
        if self._at >= len(self._lines):
            raise NotRecognised("the compiler's C++ ends early")
        self._at += 1
        return self._lines[self._at - 1]

    def _expect(self, line: str) -> None:
        found = self._next()
        if found != line:
            raise NotRecognised(f"the compiler's C++ has `{found[:60]}` where {line!r} should be")

    def _with_fold(self, each: Statement) -> Statement:
        """What an accumulator is for shows only in the loop behind it."""
        if not isinstance(each, Accumulator) or each.name not in self._folds:
            return each
        fold, exact = self._folds[each.name]
        assert fold in get_args(Fold)
        return replace(each, fold=fold, exact=exact)  # type: ignore[arg-type]

    def _new(self, name: str, *, kind: str) -> str:
        stem = "acc" if name.startswith("tmp_acc") else "t" if name.startswith("tmp") else name
        number = self._count.get(stem, 0)
        self._count[stem] = number + 1
        made = f"{stem}{number}" if stem in ("t", "acc") or number else stem
        self._scopes[-1][name] = made
        self._kinds[made] = kind
        return made

    def _text(self, text: str) -> str:
        known: dict[str, str] = {}
        for scope in self._scopes:
            known |= scope
        made = words.plain(words.indexed(renamed(text, known)))
        return words.settled(made, self._kinds)

    def _statement(self, line: str) -> list[Statement]:
        if line == "{":
            return list(self.block())
        if _NOISE.fullmatch(line):
            return []
        if match := _FOR.fullmatch(line):
            return [self._loop(match["name"], int(match["extent"]))]
        if match := _BUFFER.fullmatch(line):
            kind = words.element(match["kind"])
            self._next()  # the pointer to it, under the name that is used
            name = self._new(match["name"], kind=kind)
            return [Local(name=name, kind=kind, size=int(match["n"]))]
        if match := _LAMBDA.fullmatch(line):
            return self._lambda(match["name"])
        if match := _MASKED.fullmatch(line):
            return self._masked(match)
        if _OPEN.fullmatch(line):
            return []  # filled by the frexp behind it
        if match := _FREXP.fullmatch(line):
            of = match["of"]
            parts = [(match["exponent"], "exponent_of"), (match["name"], "mantissa_of")]
            return [each for name, part in parts for each in self._let(name, f"{part}({of})")]
        if match := _LET.fullmatch(line):
            return self._let(match["name"], match["value"])
        if match := _CHECK.fullmatch(line):
            return [Check(condition=self._text(match["if"].replace("&", "&&")))]
        if match := _ATOMIC.fullmatch(line):
            return [self._store(match["to"], match["value"], adds=True)]
        if match := _ACCUMULATOR.fullmatch(line):
            return [self._accumulator(match["kind"], match["name"])]
        if match := _ASSIGN.fullmatch(line):
            return [self._gather(match["name"], match["value"])]
        if match := re.fullmatch(r"return (.+);", line):
            self._result = self._text(match[1])
            return []
        if match := re.fullmatch(r"(\w+\[.+\]) (\+?=) (.+);", line):
            return [self._store(match[1], match[3], adds=match[2] == "+=")]
        raise NotRecognised(f"rules do not know `{line[:80]}` of the compiler's C++")

    def _loop(self, variable: str, extent: int) -> Loop:
        while (line := self._next()).startswith("#"):
            pass
        if line != "{":
            raise NotRecognised("the compiler's C++ has a loop without braces")
        self._kinds[variable] = "int64_t"
        self._scopes.append({variable: variable})
        body = self.block()
        self._scopes.pop()
        return Loop(variable=variable, extent=extent, body=body)

    def _lambda(self, name: str) -> list[Statement]:
        """A function without arguments: called at once, or under a mask later."""
        at_once = self._lines[self._at].startswith("[&]")
        if at_once:
            self._next()
        self._expect("{")
        if at_once and self._lines[self._at].startswith("constexpr decltype("):
            return self._shift(name)
        self._scopes.append({})
        body = self.block()
        self._scopes.pop()
        value = self._result
        if at_once:
            self._expect("()")
            self._expect(";")
            kind = words.inferred(value, self._kinds)
            return [*body, Let(name=self._new(name, kind=kind), value=value, kind=kind)]
        self._expect(";")
        self._lambdas[name] = (body, value)
        return []

    def _shift(self, name: str) -> list[Statement]:
        """Bits moved to the right, with a check of how far."""
        lines = []
        while (line := self._next()) != "()":
            lines.append(line)
        self._expect(";")
        match = re.fullmatch(r"return decltype\((\w+)\)\(\1 >> (tmp\d+)\);", lines[-2])
        if match is None:
            raise NotRecognised(f"rules do not know `{lines[-2][:80]}` of the compiler's C++")
        value = self._text(f"shifted({match[1]}, {match[2]})")
        kind = self._kinds.get(self._text(match[1]), "auto")
        return [Let(name=self._new(name, kind=kind), value=value, kind=kind)]

    def _masked(self, match: re.Match[str]) -> list[Statement]:
        body, value = self._lambdas.pop(match["then"])
        kind = words.inferred(value, self._kinds)
        if kind == "auto":
            raise NotRecognised("the compiler's C++ masks a value of an unknown type")
        written = match["else"] or f"{match['sign']}INFINITY"
        other = self._text(written)
        if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", written):
            other = words.literal(written, kind)
        condition = self._text(match["if"])
        name = self._new(match["name"], kind=kind)
        return [
            Masked(name=name, condition=condition, body=body, value=value, other=other, kind=kind)
        ]

    def _let(self, name: str, value: str) -> list[Statement]:
        known = self._scopes[0]
        if value in known and value.split("_ptr")[0] in ("in", "out", "in_out"):
            self._scopes[-1][name] = known[value]  # the same memory under another name
            return []
        text = self._text(value)
        kind = words.inferred(text, self._kinds)
        return [Let(name=self._new(name, kind=kind), value=text, kind=kind)]

    def _store(self, to: str, value: str, *, adds: bool) -> Store:
        opening = to.index("[")
        if closing(to, opening) != len(to) - 1:
            raise NotRecognised(f"rules do not know `{to[:60]}` of the compiler's C++")
        text = self._text(to)
        pointer, _, rest = text.partition("[")
        return Store(pointer=pointer, index=rest[:-1], value=self._text(value), adds=adds)

    def _accumulator(self, kind: str, name: str) -> Accumulator:
        if kind.startswith("IndexValue<"):
            kind = kind[len("IndexValue<") : -1]
            return Accumulator(name=self._new(name, kind="place"), kind=words.element(kind))
        kind = words.element(kind)
        made = self._new(name, kind=kind)
        return Accumulator(name=made, kind=kind)

    def _gather(self, name: str, value: str) -> Statement:
        known = next(scope[name] for scope in reversed(self._scopes) if name in scope)
        for pattern, fold in _FOLDS.items():
            if match := re.fullmatch(pattern.format(name), value):
                exact = "cascade" in pattern
                before = self._folds.setdefault(known, (fold, exact))
                if before != (fold, exact):
                    break
                text, _, at = match[1].partition(", ") if "arg" in fold else (match[1], "", "")
                return Gather(name=known, value=self._text(text), at=self._text(at) if at else "")
        raise NotRecognised(f"rules do not know `{name} = {value[:60]}` of the compiler's C++")

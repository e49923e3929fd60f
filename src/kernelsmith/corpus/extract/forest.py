"""All harvested files by the names they are imported under, and what a name in one stands for."""

import ast
import re
import sys
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kernelsmith.corpus.extract import seams
from kernelsmith.corpus.extract.notes import Notes, notes_of

_PARSED_AT_ONCE = 500
_MOST_STARS = 30
LARGEST_FILE = 2_000_000
_REFUSED_STDLIB = {"subprocess", "socket", "ctypes", "multiprocessing", "http",
                   "urllib", "tkinter", "pickle", "shutil", "tempfile", "asyncio"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outside:
    """Part of torch or of the standard library: ``attribute`` of ``module``, or the module."""

    module: str
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class Inside:
    """A definition in a harvested file."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Alias:
    """A harvested module itself."""

    module: str


@dataclass(frozen=True, slots=True)
class Seam:
    """A framework's part that has a plain stand-in; see ``seams``."""

    name: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Cannot be had."""

    what: str


Target = Outside | Inside | Alias | Seam | Missing


@dataclass(slots=True)
class Parsed:
    """One file: what it binds at module level, in order, the doubtful ones marked."""

    dotted: str
    source: str
    path: str
    is_package: bool
    tree: ast.Module
    bindings: dict[str, list[tuple[ast.stmt, int]]] = field(default_factory=dict)
    """Statements that bind a name, with how doubtful each is: 0 where under no condition."""
    stars: list[str] = field(default_factory=list)
    synthetic: dict[str, Target] = field(default_factory=dict)
    """Names that the extractor made up for attributes of modules."""
    notes: dict[str, Notes] = field(default_factory=dict)
    """What classes say about their arguments, kept before annotations go."""

    def absolute(self, node: ast.ImportFrom) -> str:
        """The full name of the module that an import names."""
        if not node.level:
            return node.module or ""
        parts = self.dotted.split(".")
        parts = parts[: len(parts) - node.level + (1 if self.is_package else 0)]
        return ".".join([*parts, *([node.module] if node.module else [])])


@dataclass(frozen=True, slots=True)
class Place:
    """Where a module's text lies, and whose it is."""

    source: str
    file: Path
    relative: str


class Forest:
    """Looks names up over all sources; parses files when first needed and forgets old ones."""

    def __init__(self, places: Iterable[Place]) -> None:
        self.places: dict[str, Place] = {}
        self.by_file: dict[tuple[str, str], str] = {}
        for place in places:
            for name in _names(place):
                if self.places.setdefault(name, place) is place:
                    self.by_file.setdefault((place.source, place.relative), name)
        self._folders = {name[:end] for name in self.places for end in _ends(name)}
        self._parsed: OrderedDict[str, Parsed | None] = OrderedDict()
        self._targets: dict[tuple[str, str], Target] = {}

    def parse(self, name: str) -> Parsed | None:
        """Read one module; none where there is none, or it is no Python."""
        if name in self._parsed:
            self._parsed.move_to_end(name)
            return self._parsed[name]
        found = self._read(name)
        self._parsed[name] = found
        while len(self._parsed) > _PARSED_AT_ONCE:
            self._parsed.popitem(last=False)
        return found

    def _read(self, name: str) -> Parsed | None:
        place = self.places.get(name)
        if place is None:
            return None
        tree = read_tree(place.file)
        if isinstance(tree, str):
            return None
        parsed = Parsed(name, place.source, place.relative, place.file.name == "__init__.py", tree)
        _bind(parsed, tree.body, 0)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                parsed.notes[node.name] = notes_of(node)
        return parsed

    def resolve(self, module: str, name: str) -> Target:
        """Say what a name at module level stands for."""
        key = (module, name)
        if key not in self._targets:
            self._targets[key] = Missing(f"{module}.{name} (refers to itself)")
            self._targets[key] = self._resolve(module, name)
        return self._targets[key]

    def _resolve(self, module: str, name: str) -> Target:
        parsed = self.parse(module)
        if parsed is None:
            return Missing(f"{module}.{name}")
        if name in parsed.synthetic:
            return parsed.synthetic[name]
        if seams.stands_for(module, name):
            return Seam(name)
        failed: Target = Missing(f"{module}.{name}")
        options = sorted(parsed.bindings.get(name, ()), key=lambda pair: pair[1])
        for statement, _ in options:
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                return Inside(module, name)
            target = self._imported(parsed, statement, name)
            if not isinstance(target, Missing):
                return target
            failed = target
        # A package that gathers hundreds of modules by stars would have all of them parsed.
        if not options and len(parsed.stars) <= _MOST_STARS:
            for star in parsed.stars:
                target = self.attribute(star, name)
                if not isinstance(target, Missing):
                    return target
        return failed

    def _imported(
        self, parsed: Parsed, statement: ast.Import | ast.ImportFrom, name: str
    ) -> Target:
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                if (alias.asname or alias.name.partition(".")[0]) == name:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    return self.module(whole)
            elif (alias.asname or alias.name) == name:
                return self.attribute(parsed.absolute(statement), alias.name)
        return Missing(f"{parsed.dotted}.{name}")

    def module(self, name: str) -> Target:
        """A module by its full name."""
        top = name.partition(".")[0]
        if top == "torch":
            return Outside(name)
        if top in seams.PACKAGES:
            return Alias(top) if top == name else Missing(name)
        if name in self.places:
            return Alias(name)
        if top in sys.stdlib_module_names and top not in _REFUSED_STDLIB:
            return Outside(name)
        if name in self._folders:
            return Alias(name)
        return Missing(name)

    def attribute(self, module: str, name: str) -> Target:
        """What ``from module import name`` gives."""
        top = module.partition(".")[0]
        if top == "torch" or (top in sys.stdlib_module_names and module not in self.places):
            if top in _REFUSED_STDLIB or top == "__future__":
                return Missing(f"{module}.{name}")
            return Outside(module, name)
        if top in seams.PACKAGES or seams.stands_for(module, name):
            known = name in seams.SOURCES
            return Seam(name) if known else Missing(f"{module}.{name}")
        if f"{module}.{name}" in self.places:
            inside = self.resolve(module, name) if module in self.places else Missing("")
            # A package may bind a function under the name of the file that it is in.
            return inside if isinstance(inside, Inside) else Alias(f"{module}.{name}")
        if module in self.places:
            return self.resolve(module, name)
        return Missing(f"{module}.{name}")


def read_tree(file: Path) -> ast.Module | str:
    """Parse a file, or say why it cannot be parsed."""
    try:
        if file.stat().st_size > LARGEST_FILE:
            return f"the file is larger than {LARGEST_FILE} bytes"
        return ast.parse(file.read_bytes())
    except SyntaxError as error:
        return f"is not Python: line {error.lineno}: {error.msg}"
    except (ValueError, UnicodeDecodeError) as error:
        return f"is not Python: {error}"
    except (RecursionError, MemoryError):
        return "is nested too deeply to be parsed"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _ends(name: str) -> list[int]:
    return [index for index, letter in enumerate(name) if letter == "."]


def _names(place: Place) -> list[str]:
    """Under which names a file can be imported: from its source's root, and from its package's."""
    parts = list(Path(place.relative).with_suffix("").parts)
    while parts and parts[0] in ("src", "lib", "source", "python"):
        parts = parts[1:]
    if parts and parts[-1] == "__init__":
        parts = parts[:-1]
    found = [".".join(parts)] if parts else []
    folder, inner = place.file.parent, [] if place.file.name == "__init__.py" else [parts[-1:]]
    names = [p for each in inner for p in each]
    while (folder / "__init__.py").is_file():
        names = [folder.name, *names]
        folder = folder.parent
    other = ".".join(names)
    top = other.partition(".")[0]
    taken = {"torch", "numpy", *seams.PACKAGES}
    if other and other not in found and top not in taken and top not in sys.stdlib_module_names:
        found.append(other)
    return found


def _bind(parsed: Parsed, body: list[ast.stmt], doubt: int) -> None:
    for statement in body:
        if isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
            for inner, worse in _blocks(statement):
                _bind(parsed, inner, doubt + worse)
            continue
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            parsed.stars.append(parsed.absolute(statement))
            continue
        for name in _targets(statement):
            parsed.bindings.setdefault(name, []).append((statement, doubt))


def _blocks(statement: ast.stmt) -> list[tuple[list[ast.stmt], int]]:
    """The blocks of a compound statement, with how unlikely each is to run on a plain machine."""
    blocks = [(getattr(statement, name, []), 1) for name in ("body", "orelse", "finalbody")]
    if isinstance(statement, ast.If):
        test = ast.unparse(statement.test)
        if "TYPE_CHECKING" in test:
            imports: list[ast.stmt] = [s for s in statement.body if isinstance(s, ast.ImportFrom)]
            return [(imports, 2), (statement.orelse, 1)]
        if re.search(r"environ|available|_version|HAS_|has_|cuda|__name__", test):
            return [(statement.body, 2), (statement.orelse, 1)]
    if isinstance(statement, ast.Try):
        foreign = any(_is_foreign(each) for each in statement.body)
        body, handlers = (2, 1) if foreign else (1, 2)
        return [(statement.body, body), (statement.orelse, body), (statement.finalbody, 1)] + [
            (handler.body, handlers) for handler in statement.handlers
        ]
    return blocks


def _is_foreign(statement: ast.stmt) -> bool:
    """Whether a statement imports a package that a plain machine has not."""
    names: list[str] = []
    if isinstance(statement, ast.Import):
        names = [alias.name for alias in statement.names]
    elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
        names = [statement.module]
    tops = {name.partition(".")[0] for name in names}
    return bool(tops - {"torch", "numpy", *sys.stdlib_module_names})


def _targets(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] if isinstance(statement, ast.Import)
                else alias.asname or alias.name for alias in statement.names]  # fmt: skip
    if isinstance(statement, ast.Assign):
        return [node.id for target in statement.targets for node in ast.walk(target)
                if isinstance(node, ast.Name)]  # fmt: skip
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        return [statement.target.id] if isinstance(statement.target, ast.Name) else []
    return []

"""Cells step by step: a loop over time whose body is an LSTM, a GRU or a plain RNN."""

import ast
from dataclasses import dataclass, field

from kernelsmith.propose.rules.constants import bound
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds.straight import Cut, Place, Seen

Form = tuple[object, ...]
"""A value in the loop, sums and products with their parts in order: equal values are equal."""
_SUMS = {ast.Add: "add", ast.Mult: "mul"}
_CELLS = {"nn.LSTMCell": "LSTM", "nn.GRUCell": "GRU", "nn.RNNCell": "RNN"}
_ONE: Form = ("number", 1.0)
_ACROSS = ("linear", "part")
"""What is made of a state: by a layer, or by those columns of one that a state has to itself."""


@dataclass(slots=True)
class _Loop:
    place: Place
    at: int
    time: str
    names: dict[str, Form] = field(default_factory=dict)
    kept: dict[str, Form] = field(default_factory=dict)
    """What is appended to which list."""
    ahead: str = ""
    across: str = ""
    """Weight and bias of what is made of the state, in Python."""
    state: str = ""
    cell: str = ""
    """The mode of a layer of torch's that is called for every step."""
    nonlinear: str = '"tanh"'
    layers: dict[str, str] = field(default_factory=dict)
    """Layers by their path, and what they are: as torch has them, without anybody's hooks."""
    inputs: dict[str, None] = field(default_factory=dict)
    """Names that are read by the step."""
    guards: list[str] = field(default_factory=list)
    """What else must hold of the tensors, in Python."""

    def read(self, body: list[ast.stmt]) -> None:
        if self.time in set().union(*(bound(each) for each in body)):
            raise NotRecognised("rules know loops that count by themselves")
        for statement in body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.names[name] = self.form(value)
                case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value):
                    self._parts(elements, value)
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]
                    )
                ) if name not in self.kept:
                    self.kept[name] = self.form(value)
                case _:
                    raise NotRecognised("rules do not know this loop over time")
        if self.inputs.keys() & (bound(self.place.body[self.at]) | self.kept.keys()):
            raise NotRecognised("rules know inputs that a loop does not change")

    def fits(self) -> str:
        """Under which conditions the loop is what it looks like, in Python."""
        layers = [
            f"type({path}) is torch.nn.{kind} and not {path}._forward_hooks "
            f"and not {path}._forward_pre_hooks"
            for path, kind in self.layers.items()
        ]
        tensors = [f"isinstance({name}, torch.Tensor)" for name in self.inputs]
        return " and ".join([*layers, *tensors, *self.guards])

    def _parts(self, elements: list[ast.expr], value: ast.expr) -> None:
        called = self.place.called(value)
        if called is not None and called[0] == "nn.LSTMCell" and isinstance(value, ast.Call):
            self._stepped(elements, value, called[1])
            return
        if called is None or called[0] != "chunk" or len(called[1]) < 2:
            raise NotRecognised("rules know gates that are cut by chunk")
        given = dict(zip(("x", "chunks", "dim"), called[1], strict=False)) | called[2]
        dim = ast.unparse(given["dim"]) if "dim" in given else "0"
        if dim not in ("-1", "1") or ast.unparse(given["chunks"]) != str(len(elements)):
            raise NotRecognised("rules know gates that are cut by chunk")
        made, what = self.form(given["x"]), "gate"
        if len(elements) == 3 and made[0] in ("ahead", "linear"):
            what = f"gate of {made[0]}"
            self._half(made)
        else:
            self._gates(made)
        for i, each in enumerate(elements):
            if not isinstance(each, ast.Name):
                raise NotRecognised("rules know gates that are cut by chunk")
            self.names[each.id] = (what, i)

    def _half(self, form: Form) -> None:
        """Gates of a GRU: those of the inputs and those of the state are cut apart."""
        if form[0] == "ahead":
            known, self.ahead = self.ahead, str(form[1])
        else:
            state = form[2]
            if not isinstance(state, tuple) or state[0] != "state":
                raise NotRecognised("rules know gates of inputs and a layer of the state")
            known, self.across, self.state = self.across, _layer(str(form[1])), str(state[1])
        if known:
            raise NotRecognised("rules know one set of gates in a loop over time")

    def _called(self, node: ast.Call, mode: str, args: list[ast.expr], state: ast.expr) -> None:
        """A layer of torch's for one step; what it makes of the inputs is found beforehand."""
        given, held, path = self.form(args[0]), self.form(state), ast.unparse(node.func)
        self.layers[path] = f"{mode}Cell"
        if given[0] != "ahead" or held[0] != "state" or self.ahead:
            raise NotRecognised("rules know one cell of inputs and a state in a loop over time")
        self.ahead = f"torch.nn.functional.linear({given[1]}, {path}.weight_ih, {path}.bias_ih)"
        self.across, self.state = f"{path}.weight_hh, {path}.bias_hh", str(held[1])
        self.cell = mode
        self.nonlinear = f"{path}.nonlinearity" if mode == "RNN" else self.nonlinear

    def _stepped(self, elements: list[ast.expr], node: ast.Call, args: list[ast.expr]) -> None:
        """``h, c = self.cell(x[t], (h, c))``."""
        match (elements, args):
            case (
                [ast.Name(id=h), ast.Name(id=c)],
                [_, ast.Tuple(elts=[ast.Name(id=old_h) as state, ast.Name(id=old_c)])],
            ) if (h, c) == (old_h, old_c) and c not in self.names and not node.keywords:
                self._called(node, "LSTM", args, state)
                self.names[h], self.names[c] = ("cell", 0), ("cell", 1)
            case _:
                raise NotRecognised("rules know an LSTM's cell that is given its own state")

    def _gates(self, form: Form) -> None:
        """Inputs of all steps plus a linear layer of the state."""
        parts = form[1:] if form[0] == "add" else ()
        ahead = [each for each in parts if isinstance(each, tuple) and each[0] == "ahead"]
        across = [each for each in parts if isinstance(each, tuple) and each[0] in _ACROSS]
        if len(parts) != 2 or len(ahead) != 1 or len(across) != 1 or self.ahead:
            raise NotRecognised("rules know gates of inputs and a layer of the state")
        kind, given, state = across[0]
        if not isinstance(state, tuple) or state[0] != "state":
            raise NotRecognised("rules know gates of inputs and a layer of the state")
        self.ahead = str(ahead[0][1])
        self.across = _layer(str(given)) if kind == "linear" else str(given)
        self.state = str(state[1])

    def form(self, node: ast.expr) -> Form:
        match node:
            case ast.Name(id=name):
                return self.names.get(name, ("state", name))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SUMS:
                parts = sorted((self.form(left), self.form(right)), key=repr)
                return (_SUMS[type(op)], *parts)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return ("sub", self.form(left), self.form(right))
            case ast.Constant(value=int() | float() as value):
                return ("number", float(value))
            case ast.Subscript(value=ast.Name() as value, slice=ast.Name(id=index)):
                if index == self.time:
                    return ("ahead", self._outside(value))
            case ast.Subscript(
                value=ast.Name() as value,
                slice=ast.Tuple(elts=[ast.Slice(lower=None, upper=None), ast.Name(id=index)]),
            ) if index == self.time:
                return ("ahead", f"{self._outside(value)}.transpose(0, 1)")
        called = self.place.called(node)
        if called is not None and len(called[1]) == 1 and not called[2]:
            name, (inner,) = called[0], called[1]
            if (plain := name.removeprefix("nn.").lower()) in ("sigmoid", "tanh"):
                return (plain, self.form(inner))
            if name == "nn.Linear" and isinstance(node, ast.Call):
                path, made = ast.unparse(node.func), self.form(inner)
                self.layers[path] = "Linear"
                if made[0] == "joined":
                    return self._of_joined(path, made)
                # A layer of one step's input is the same for all steps at once.
                return ("ahead", f"{path}({made[1]})") if made[0] == "ahead" else (
                    "linear", path, made)  # fmt: skip
        if called is not None and called[0] in ("cat", "concat", "concatenate"):
            return self._joined(*called[1:])
        single = called is not None and called[0] in ("nn.GRUCell", "nn.RNNCell")
        if single and called is not None and len(called[1]) == 2 and not called[2]:
            assert isinstance(node, ast.Call)
            self._called(node, _CELLS[called[0]], called[1], called[1][1])
            return ("cell", 0)
        raise NotRecognised(f"rules do not know `{ast.unparse(node)[:60]}` in a loop over time")

    def _joined(self, args: list[ast.expr], keywords: dict[str, ast.expr]) -> Form:
        """One step's input and the state, side by side."""
        given = dict(zip(("tensors", "dim"), args, strict=False)) | keywords
        dim = ast.unparse(given["dim"]) if "dim" in given else "0"
        match given.get("tensors"):
            case ast.Tuple(elts=[first, second]) | ast.List(elts=[first, second]) if dim in (
                "1",
                "-1",
            ) and given.keys() == {"tensors", "dim"}:
                both = self.form(first), self.form(second)
                if {each[0] for each in both} == {"ahead", "state"}:
                    return ("joined", *both)
        raise NotRecognised("rules know one step's input and a state side by side")

    def _of_joined(self, path: str, joined: Form) -> Form:
        """A layer of both is one of the inputs, which is found beforehand, and one of the state."""
        first, second = joined[1:]
        assert isinstance(first, tuple)
        assert isinstance(second, tuple)
        inputs, state = (first, second) if first[0] == "ahead" else (second, first)
        width, weight = f"{inputs[1]}.shape[-1]", f"{path}.weight"
        rest = f"{path}.in_features - {width}"
        mine, its = (f":{width}", f"{width}:") if inputs is first else (f"{rest}:", f":{rest}")
        self.guards.append(f"{inputs[1]}.dtype is {weight}.dtype")
        self.guards.append(f"0 < {width} < {path}.in_features")
        ahead = f"torch.nn.functional.linear({inputs[1]}, {weight}[:, {mine}], {path}.bias)"
        return _sum(("ahead", ahead), ("part", f"{weight}[:, {its}], None", state))

    def _outside(self, node: ast.Name) -> str:
        if node.id in self.names:
            raise NotRecognised("rules know inputs that a loop does not change")
        self.inputs[node.id] = None
        return self.place.text(Seen(node, self.at), self.at)


def find_loop(place: Place) -> tuple[list[Cut], str] | None:
    """The one loop over time of a ``forward``, and the mode of its cell."""
    loops = [i for i, each in enumerate(place.body) if isinstance(each, ast.For)]
    if len(loops) != 1:
        return None
    at = loops[0]
    match place.body[at]:
        case ast.For(
            target=ast.Name(id=time),
            iter=ast.Call(func=ast.Name(id="range"), args=[count]),
            body=body,
            orelse=[],
        ):
            loop = _Loop(place, at, time)
        case _:
            return None
    place.check_pure(at)
    names = {each.arg for each in place.function.args.args}.union(*map(bound, place.body))
    if names & {"written", "stepped"}:
        raise NotRecognised("rules use names of this forward themselves")
    loop.read(body)
    mode, cell = _mode(loop)
    return _cuts(place, loop, mode, cell, ast.unparse(count)), mode


def _mode(loop: _Loop) -> tuple[str, str]:
    """LSTM, GRU or RNN, and the name of the LSTM's cell."""
    if loop.cell:
        if loop.names.get(loop.state) != ("cell", 0):
            raise NotRecognised("rules know cells that give the next state")
        cells = [name for name, form in loop.names.items() if form == ("cell", 1)]
        return loop.cell, next(iter(cells), "")
    if loop.state and loop.names.get(loop.state) in _gru(loop.state):
        if not loop.ahead:
            raise NotRecognised("rules know gates of inputs and a layer of the state")
        return "GRU", ""
    if not loop.state:
        for name, form in loop.names.items():
            if form[0] == "tanh" and isinstance(form[1], tuple):
                loop._gates(form[1])
                if loop.state != name:
                    break
                return "RNN", ""
        raise NotRecognised("rules do not know this loop over time")
    for name, form in loop.names.items():
        wanted = _sum(
            _times(("sigmoid", ("gate", 1)), ("state", name)),
            _times(("sigmoid", ("gate", 0)), ("tanh", ("gate", 2))),
        )
        if form == wanted:
            state = _times(("sigmoid", ("gate", 3)), ("tanh", form))
            if loop.names.get(loop.state) == state:
                return "LSTM", name
    raise NotRecognised("rules know cells written out as torch.nn has them")


def _layer(path: str) -> str:
    return f"{path}.weight, {path}.bias"


def _gru(state: str) -> tuple[Form, ...]:
    """A GRU's next state, in the two ways it is written."""
    reset, keep = (("sigmoid", _sum(("gate of ahead", i), ("gate of linear", i))) for i in (0, 1))
    inner = _times(reset, ("gate of linear", 2))
    value = ("tanh", _sum(("gate of ahead", 2), inner))
    old: Form = ("state", state)
    return (
        _sum(_times(("sub", _ONE, keep), value), _times(keep, old)),
        _sum(value, _times(keep, ("sub", old, value))),
    )


def _sum(*parts: Form) -> Form:
    return ("add", *sorted(parts, key=repr))


def _times(*parts: Form) -> Form:
    return ("mul", *sorted(parts, key=repr))


def _cuts(place: Place, loop: _Loop, mode: str, cell: str, count: str) -> list[Cut]:
    at, state = loop.at, loop.state
    if len(loop.kept) > 1:
        raise NotRecognised("rules know loops that keep their states")
    listed, form = next(iter(loop.kept.items()), ("", loop.names[state]))
    made = _of_states(form, loop.names[state], "stepped[2]")
    later = [n for each in place.body[at + 1 :] for n in ast.walk(each)]
    used = {n.id for n in later if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if used & ((bound(place.body[at]) | {loop.time}) - {state, cell, listed}):
        raise NotRecognised("rules know loops of which nothing but states is read")
    given = f"{loop.nonlinear}, {loop.ahead}, {loop.across}, {state}, {cell or state}"
    lines = [
        f"if not ({loop.fits()}):\n    return {{plain}}",
        f'stepped = written("{mode}", {given}, {count})',
        "if stepped is None:\n    return {plain}",
        f"{state} = stepped[0]",
        *([f"{cell} = stepped[1]"] if cell else []),
        *([f"{listed} = {made}"] if listed else []),
    ]
    cuts = [Cut(at=at, node=None, name="", lines=tuple(lines))]
    return cuts + (_stacks(place, at, listed) if listed else [])


def _of_states(form: Form, state: Form, states: str) -> str:
    """What a loop keeps of every state, in Python, for all of them at once."""
    if form == state:
        return states
    if form[0] in ("linear", "tanh", "sigmoid") and isinstance(form[-1], tuple):
        inner = _of_states(form[-1], state, states)
        return f"{form[1] if form[0] == 'linear' else f'torch.{form[0]}'}({inner})"
    raise NotRecognised("rules know loops that keep their states, or a layer of them")


def _stacks(place: Place, at: int, listed: str) -> list[Cut]:
    """Where the list is stacked it is a tensor already; it may be read in no other way."""
    match place.seen(ast.Name(id=listed, ctx=ast.Load()), at).node:
        case ast.List(elts=[]):
            pass
        case _:
            raise NotRecognised("rules know loops that begin with an empty list")
    cuts, read = [], 0
    for i in range(at + 1, len(place.body)):
        for node in ast.walk(place.body[i]):
            read += isinstance(node, ast.Name) and node.id == listed
            if not isinstance(node, ast.Call) or (called := place.called(node)) is None:
                continue
            name, args, keywords = called
            if name != "stack" or not args or ast.unparse(args[0]) != listed:
                continue
            given = dict(zip(("x", "dim"), args, strict=False)) | keywords
            dim = ast.unparse(given["dim"]) if "dim" in given else "0"
            if dim not in ("0", "1"):
                raise NotRecognised("rules know states that are stacked along time")
            text = listed if dim == "0" else f"{listed}.transpose(0, 1).contiguous()"
            cuts.append(Cut(at=i, node=node, name=text, lines=()))
    if read != len(cuts):
        raise NotRecognised("rules know lists of states that are stacked, and nothing else")
    return cuts

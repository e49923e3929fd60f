# mypy: ignore-errors
"""The arguments of one call, as the suite's own tests and timings make them.

A reference may be called ``sum`` or ``any``: no function of Python that a suite names is used here.
"""

import inspect as _inspect
import random as _random

import numpy as _numpy
import torch


class _Found(BaseException):
    """Ends a test at the call that is looked for; no ``except Exception`` there stops it."""


class _StandIn:
    """Called in the reference's place: passes calls on, up to the one that is wanted."""

    def __init__(self, function, wanted):
        self.function, self.wanted, self.seen = function, wanted, 0

    def __call__(self, *arguments, **options):
        if self.seen == self.wanted:
            raise _Found(_bound(self.function, arguments, options))
        self.seen += 1
        return self.function(*arguments, **options)


def _bound(function, arguments, options):
    """By name where every argument has one, else in order."""
    try:
        given = _inspect.signature(function).bind(*arguments, **options)
    except ValueError:
        given = None
    found = {}
    for name, value in () if given is None else given.arguments.items():
        kind = given.signature.parameters[name].kind
        if kind in (_inspect.Parameter.VAR_POSITIONAL, _inspect.Parameter.POSITIONAL_ONLY):
            given = None
            break
        found.update(value if kind is _inspect.Parameter.VAR_KEYWORD else {name: value})
    if given is not None:
        return found
    if options:
        raise TypeError(f"mixes arguments without a name and options {[*options]}")
    return [*arguments]


def _arguments(play, function, wanted):
    """Play a test until the call that is wanted, with every generator on torch's seed."""
    seed = torch.initial_seed()
    _random.seed(seed)
    _numpy.random.seed(seed % 2**32)
    try:
        play(_StandIn(function, wanted))
    except _Found as found:
        return found.args[0]
    raise IndexError(f"there are no {wanted + 1} calls")


def _sizes(wanted):
    """What a suite's timing script inherits from: keeps the size that is wanted, then stops."""

    class Chosen(list):
        count = 0

        def append(self, value):
            if self.count == wanted:
                raise _Found(value)
            self.count += 1

        def extend(self, values):
            for value in values:
                self.append(value)

        def __iadd__(self, values):
            self.extend(values)
            return self

    class Timing:
        def __init__(self, op_name="", dtype=None, is_backward=False, **options):
            self.op_name, self.dtype, self.kwargs = op_name, dtype, options

        def __setattr__(self, name, value):
            super().__setattr__(name, Chosen() if name == "input_tensors" else value)

    return Timing


def _timed(script, function, wanted):
    """Play a suite's timing script for one of its sizes."""
    seed = torch.initial_seed()
    _random.seed(seed)
    _numpy.random.seed(seed % 2**32)
    stand_in = _StandIn(function, None)  # some scripts call it to prepare their sizes
    timing = script(stand_in, _sizes(wanted))()
    timing.input_tensors = []
    try:
        timing.get_input_tensors()
    except _Found as found:
        size = found.args[0]
    else:
        raise IndexError(f"there are no {wanted + 1} sizes")
    size = timing.to_cuda(size)
    stand_in.wanted = stand_in.seen
    try:
        timing.call_op(size)
    except _Found as found:
        return found.args[0]
    raise IndexError("its timing script does not call it")

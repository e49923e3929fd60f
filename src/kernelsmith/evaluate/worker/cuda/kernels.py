"""Which kernels a candidate launches: its own or a library's, their resources, their share.

All of this is said by the candidate's process about itself: it can convict, never acquit.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from kernelsmith.evaluate.guards.opcodes import precisions
from kernelsmith.evaluate.worker.cuda import driver, native

_CANDIDATE = "candidate"
_REPEATS = 3
_MOST_STEPS = 48
_LAUNCH_US = 0.9
"""What a launch of no work takes inside a graph: it is nobody's merit and nobody's fault."""
_compiled: list[tuple[int, Any]] = []
"""Every Triton kernel that was loaded here, by the handle that it was loaded under."""


def watch() -> None:
    """Take note of each Triton kernel from the moment it is loaded onto the device."""
    try:
        from triton.compiler.compiler import CompiledKernel
    except ImportError:
        return
    loading = CompiledKernel._init_handles
    if getattr(loading, "watched", False):
        return

    def noted(self: Any, *arguments: Any, **keywords: Any) -> Any:
        result = loading(self, *arguments, **keywords)
        if self.function:
            _compiled.append((int(self.function), self))
        return result

    noted.watched = True  # type: ignore[attr-defined]
    CompiledKernel._init_handles = noted


def _own() -> dict[int, Any]:
    """Function handles of kernels whose source is the candidate's."""
    return {handle: each for handle, each in _compiled if _is_own(each)}


def _is_own(kernel: Any) -> bool:
    function = getattr(getattr(kernel, "src", None), "fn", None)
    function = getattr(function, "fn", function)
    return getattr(function, "__module__", "") == _CANDIDATE


def shares(
    graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, *, launches: int
) -> list[dict[str, object]]:
    """Time each function of a graph, by what it adds to those before it."""
    nodes = list(driver.nodes(graph.raw_cuda_graph()))
    groups: dict[tuple[int, str], list[driver.Node]] = {}
    for node in nodes:
        groups.setdefault((node.function, node.name), []).append(node)
    times = _times(graph, stream, nodes, launches)
    total = sum(times.values()) or 1.0
    own, brought = _own(), native.modules()
    found = []
    for (function, name), members in groups.items():
        first, us = members[0], times[(function, name)]
        kernel = own.get(function)
        found.append(
            {
                "name": name,
                "own": kernel is not None or (function != 0 and first.module in brought),
                "launches": len(members) / launches,
                "share": us / total,
                "us": us / launches,
                "registers": first.registers if function else None,
                "spills": first.local_bytes if function else None,
                "shared_bytes": first.shared_bytes if function else None,
                "grid": list(first.grid),
                "block": list(first.block),
                "precision": _precision(kernel),
                "config": _config(kernel),
            }
        )
    return found


def _times(
    graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, nodes: list[driver.Node], launches: int
) -> dict[tuple[int, str], float]:
    """Microseconds of each function in one replay.

    Every launch is replayed up to its first operation, its second, and so on, one after the other.
    Nothing ever runs on what was not computed: with all others switched off, a library's kernel
    has met an index out of range. Nothing hides behind what runs beside it. Launches of very many
    operations are looked at in as many steps as time allows.
    """
    times = {(node.function, node.name): 0.0 for node in nodes}
    per = max(1, len(nodes) // launches)
    steps = 1 if len(times) == 1 else min(per, _MOST_STEPS)
    begun, before = 0, 0.0
    for step in range(1, steps + 1):
        stop = per * step // steps
        fresh = [node for place, node in enumerate(nodes) if begun <= place % per < stop]
        kept = {node.handle for place, node in enumerate(nodes) if place % per < stop}
        after = _replayed_us(graph, stream, nodes, kept)
        gained = max(after - before - _LAUNCH_US * len(fresh), 0.01)
        for node in fresh:
            times[(node.function, node.name)] += gained / len(fresh)
        begun, before = stop, max(before, after)
    return times


def _replayed_us(
    graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, nodes: list[driver.Node], kept: set[int]
) -> float:
    """Replay some of the nodes, one after the other."""
    order = [node.handle for node in nodes]
    chain = driver.chained(graph.raw_cuda_graph(), order, kept)
    times = []
    with torch.cuda.stream(stream):
        for _ in range(_REPEATS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            chain.launch(stream.cuda_stream)
            end.record()
            end.synchronize()
            times.append(1000.0 * begin.elapsed_time(end))
    chain.close()
    return min(times)


def profiled(launch: Callable[[], object], launches: int) -> list[dict[str, object]]:
    """The same from a profiler, where no graph could be captured; kernels are told by name."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        launch()
        torch.cuda.synchronize()
    own = {str(each.name): each for each in _own().values()}
    brought = native.names()
    rows = [
        (event.key, float(event.self_device_time_total), int(event.count))
        for event in profiler.key_averages()
        if event.self_device_time_total > 0
    ]
    total = sum(us for _, us, _ in rows) or 1.0
    return [
        {
            "name": name,
            "own": name in own or name in brought,
            "launches": count / launches,
            "share": us / total,
            "us": us / launches,
            "registers": getattr(own.get(name), "n_regs", None),
            "spills": getattr(own.get(name), "n_spills", None),
            "shared_bytes": None,
            "grid": [],
            "block": [],
            "precision": _precision(own.get(name)),
            "config": _config(own.get(name)),
        }
        for name, us, count in rows
    ]


def _precision(kernel: Any) -> str:
    text = kernel.asm.get("ptx", "") if kernel is not None else ""
    return ", ".join(sorted(precisions(text))) if isinstance(text, str) else ""


def _config(kernel: Any) -> str:
    metadata = getattr(kernel, "metadata", None)
    if metadata is None:
        return ""
    chosen = [f"num_warps={metadata.num_warps}", f"num_stages={metadata.num_stages}"]
    for tuner in _autotuners():
        if getattr(tuner.base_fn, "__name__", "") == kernel.name:
            chosen += [str(config) for config in list(tuner.cache.values())[-1:]]
    return "; ".join(chosen)


def _autotuners() -> Iterator[Any]:
    import sys

    try:
        from triton.runtime.autotuner import Autotuner
    except ImportError:
        return
    module = sys.modules.get(_CANDIDATE)
    for value in list(vars(module).values()) if module is not None else []:
        while value is not None:
            if isinstance(value, Autotuner):
                yield value
                break
            value = getattr(value, "fn", None) if not inspect.isfunction(value) else None


def choices() -> list[list[object]]:
    """What each autotuner chose: its name, the key, and the configuration's fields."""
    found: list[list[object]] = []
    for tuner in _autotuners():
        for key, config in tuner.cache.items():
            fields = {
                "kwargs": dict(config.kwargs), "num_warps": config.num_warps,
                "num_stages": config.num_stages, "num_ctas": getattr(config, "num_ctas", 1),
                "maxnreg": getattr(config, "maxnreg", None),
            }  # fmt: skip
            found.append([tuner.base_fn.__name__, [repr(part) for part in key], fields])
    return found


def freeze_choices(given: object) -> None:
    """Let each autotuner use what was chosen before, for the keys that it was chosen for."""
    assert isinstance(given, list)
    chosen = {(name, tuple(key)): fields for name, key, fields in given}
    for tuner in _autotuners() if chosen else ():
        tuner.cache = _Frozen(tuner, chosen)


class _Frozen(dict):
    """An autotuner's cache that knows earlier choices by the text of their keys."""

    def __init__(self, tuner: Any, chosen: dict[tuple[str, tuple[str, ...]], Any]) -> None:
        super().__init__(tuner.cache)
        self._name = tuner.base_fn.__name__
        self._configs, self._chosen = list(tuner.configs), chosen

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        assert isinstance(key, tuple)
        fields = self._chosen.get((self._name, tuple(repr(part) for part in key)))
        if fields is None:
            return False
        for config in self._configs:
            if dict(config.kwargs) == fields["kwargs"] and (
                config.num_warps, config.num_stages
            ) == (fields["num_warps"], fields["num_stages"]):  # fmt: skip
                self[key] = config
                return True
        return False

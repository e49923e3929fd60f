"""The candidate's side on a device: launch, capture, replay, and say where outputs lie."""

import contextlib
import gc
import os
import shutil
import socket
from collections.abc import Iterator

import torch

from kernelsmith.evaluate.nvcc.cute import is_cute
from kernelsmith.evaluate.worker.cuda import cached, cute, driver, kernels, native
from kernelsmith.evaluate.worker.cuda.memory import Mapped
from kernelsmith.evaluate.worker.program import Message, Program, answer, explain, placed
from kernelsmith.evaluate.worker.trees import flatten, unflatten

_WARM = 2
"""Calls on the capturing stream before a capture: libraries set themselves up on first use."""


class DeviceProgram(Program):
    """One loaded candidate, or baseline, on the device."""

    device = "cuda"

    def __init__(self, control: socket.socket) -> None:
        super().__init__(control)
        self._arena: Mapped | None = None
        self._events: tuple[torch.cuda.Event, torch.cuda.Event] | None = None
        self._inside: tuple[torch.cuda.Event, torch.cuda.Event] | None = None
        """Events that the graph records by itself, first and last."""
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream: torch.cuda.Stream | None = None
        self._captured: list[object] = []

    def load(self, message: Message, fds: list[int]) -> Message:
        """Run the source and construct what it defines, on the device."""
        os.environ["TRITON_CACHE_DIR"] = str(cached.folder())
        if template := message.get("template"):
            _take_template(str(template))
        files = message.get("cache") or {}
        assert isinstance(files, dict)
        cached.take(files)
        kernels.watch()
        native.listen()
        if not template and is_cute(str(message["source"])):
            cute.watch()  # where there is a template, Triton is judged, and this is a library's
        torch.cuda.init()
        if share := message.get("memory"):
            torch.cuda.set_per_process_memory_fraction(min(1.0, float(str(share))))
        reply = super().load(message, fds)
        kernels.freeze_choices(message.get("choices") or [])
        return reply | {"segments": self._segments()}

    def weights(self, message: Message, fds: list[int]) -> Message:
        """Take the reference's values, in place."""
        assert self._model is not None
        lent = Mapped(str(message["handle"]))
        keys, leaves = message["keys"], message["leaves"]
        assert isinstance(keys, list)
        assert isinstance(leaves, list)
        values = [lent.tensor(leaf, int(leaf["offset"])).clone() for leaf in leaves]
        torch.cuda.synchronize()
        lent.close()
        with torch.no_grad():
            self._model.load_state_dict(dict(zip(keys, values, strict=True)), strict=True)
            if message["prepare"]:
                self._model.prepare()  # type: ignore[operator]
        torch.cuda.synchronize()
        return {"state": self._describe_state(), "segments": self._segments()}

    def arrange(self, message: Message, fds: list[int]) -> Message:
        """Lay each slot's arguments over the arena; contents come and go there."""
        del fds
        self._forget()
        # One that was checked beside others, and is timed now, may have more than its share.
        torch.cuda.set_per_process_memory_fraction(min(1.0, float(str(message["memory"]))))
        self._arena = Mapped(str(message["handle"]))
        slots = message["slots"]
        assert isinstance(slots, list)
        for slot in slots:
            leaves = [self._arena.tensor(leaf, int(leaf["offset"])) for leaf in slot["leaves"]]
            arguments = unflatten(slot["tree"], leaves)
            assert isinstance(arguments, list)
            self._calls.append((arguments, {}))
            if slot["keywords"]:
                self._calls[-1] = ([], arguments[0])
        return {"arena": self._arena.address, "size": self._arena.size}

    def run(self, message: Message, _: list[int]) -> Message:
        """Launch once per slot between two events, then say where every output lies."""
        slots = message["slots"]
        assert isinstance(slots, list)
        begin, end = self._pair_of_events()
        begin.record()
        outputs = self._launch(slots)
        end.record()
        end.synchronize()
        self._outputs = outputs
        said = {"event_us": 1000.0 * begin.elapsed_time(end), "persisting": _persisting()}
        return said | placed(outputs)

    def where(self, _: Message, __: list[int]) -> Message:
        """Say which allocations the current outputs and weights lie in."""
        return {"segments": self._segments()}

    def capture(self, message: Message, fds: list[int]) -> Message:
        """Record one launch per slot into a graph, on a stream of its own."""
        del fds
        slots = message["slots"]
        assert isinstance(slots, list)
        self._outputs = []
        # Not one of torch's: work on the legacy default stream (a launch that names no stream) then
        # ends the capture, and would be left out of the graph without a word otherwise.
        stream = torch.cuda.ExternalStream(driver.blocking_stream())
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM):
                self._launch(slots[:1])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        # The clock is read by the graph itself: between an event before it and its first kernel
        # lies what its process takes to launch it, up to 300 us after a pause.
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for event in (begin, end):
            event.record(stream)  # makes it
        try:
            # Not torch.cuda.graph: it empties the allocator first, and the judge's maps are void.
            with torch.cuda.stream(stream):
                graph.capture_begin(capture_error_mode="global")
                try:
                    driver.record_inside(begin.cuda_event, stream.cuda_stream)
                    outputs = self._launch(slots)
                    driver.record_inside(end.cuda_event, stream.cuda_stream)
                finally:
                    graph.capture_end()
            graph.instantiate()
        except BaseException as error:
            # A failed capture leaves its stream unusable, and sometimes the context.
            return {"uncapturable": explain(error)}
        self._graph, self._stream, self._captured = graph, stream, outputs
        self._inside = begin, end
        torch.cuda.synchronize()
        count = sum(1 for _ in driver.nodes(graph.raw_cuda_graph()))
        said = {"segments": self._segments(), "nodes": count, "persisting": _persisting()}
        return said | placed(outputs)

    def replay_from(self, message: Message, _: list[int]) -> Message:
        """Replay only the last launches: each must do its work without those before it."""
        assert self._graph is not None
        assert self._stream is not None
        first, launches = int(str(message["first"])), int(str(message["launches"]))
        order = [node.handle for node in driver.nodes(self._graph.raw_cuda_graph())]
        kept = set(order[first * len(order) // launches :])
        chain = driver.chained(self._graph.raw_cuda_graph(), order, kept)
        torch.cuda.synchronize()
        chain.launch(self._stream.cuda_stream)
        torch.cuda.synchronize()
        chain.close()
        return {}

    def replay(self, _: Message, __: list[int]) -> Message:
        """Replay the graph between two events. This is what is timed."""
        assert self._graph is not None
        assert self._stream is not None
        assert self._inside is not None
        with torch.cuda.stream(self._stream):
            self._graph.replay()
        self._stream.synchronize()
        begin, end = self._inside
        return {"event_us": 1000.0 * begin.elapsed_time(end)}

    def kernels(self, message: Message, _: list[int]) -> Message:
        """Say what the captured graph consists of, and how the time divides among it."""
        if self._graph is None or self._stream is None:
            slots = message["slots"]
            assert isinstance(slots, list)
            found = kernels.profiled(lambda: self._launch(slots), len(slots))
        else:
            launches = int(str(message["launches"]))
            found = kernels.shares(self._graph, self._stream, launches=launches)
        return {"kernels": found}

    def choices(self, _: Message, __: list[int]) -> Message:
        """Hand over what was chosen and compiled, for other processes of the same source."""
        return {"choices": kernels.choices(), "cache": cached.compiled()}

    def release(self, message: Message, fds: list[int]) -> Message:
        """Let go of the last outputs."""
        return super().release(message, fds) | {"segments": self._segments()}

    def forget(self, _: Message, __: list[int]) -> Message:
        """Drop graph, arena and all that hangs on them."""
        self._forget()
        return {}

    def rest(self, _: Message, __: list[int]) -> Message:
        """Hold nothing but the module until there is something to do again."""
        self._forget()
        torch.cuda.empty_cache()
        return {"state": self._describe_state(), "segments": self._segments()}

    def _launch(self, slots: list[int]) -> list[object]:
        outputs: list[object] = []
        keep, forward = outputs.append, self._forward
        calls = [self._calls[slot] for slot in slots]
        with torch.no_grad():
            for arguments, keywords in calls:
                keep(forward(*arguments, **keywords))
        return outputs

    def _segments(self) -> list[list[object]]:
        """Base, size and handle of each allocation that outputs and weights lie in."""
        found: dict[int, list[object]] = {}
        for address in self._interesting():
            if any(base <= address < base + int(str(each[1])) for base, each in found.items()):
                continue
            # Not ours to export (the arena, or host memory): the judge knows, or will complain.
            with contextlib.suppress(driver.DriverError):
                base, size = driver.extent(address)
                found[base] = [base, size, driver.export(base)]
        return list(found.values())

    def _interesting(self) -> Iterator[int]:
        for tensor in self._state.values():
            if tensor.is_cuda:
                yield tensor.data_ptr()
        for output in (*self._outputs, *self._captured):
            leaves: list[torch.Tensor] = []
            flatten(output, leaves, by_key=True)
            yield from (leaf.data_ptr() for leaf in leaves if leaf.is_cuda)

    def _pair_of_events(self) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        if self._events is None:
            self._events = (
                torch.cuda.Event(enable_timing=True),
                torch.cuda.Event(enable_timing=True),
            )
        return self._events

    def _forget(self) -> None:
        torch.cuda.synchronize()
        self._calls, self._outputs, self._captured = [], [], []
        self._graph = None
        if self._arena is not None:
            self._arena.close()
            self._arena = None


def _persisting() -> int:
    try:
        return driver.persisting_bytes()
    except driver.DriverError:
        return 0  # a device without such a cache


def _take_template(template: str) -> None:
    """Start from what the judge compiled once: Triton's own helpers, not a candidate's kernels."""
    if os.path.isdir(template) and not cached.folder().exists():
        shutil.copytree(template, cached.folder())


def serve(control: socket.socket, fds: list[int]) -> None:
    """Answer the judge until it hangs up."""
    del fds
    program = DeviceProgram(control)
    gc.disable()
    verbs = {
        "load": program.load,
        "weights": program.weights,
        "arrange": program.arrange,
        "run": program.run,
        "where": program.where,
        "capture": program.capture,
        "replay": program.replay,
        "replay_from": program.replay_from,
        "kernels": program.kernels,
        "choices": program.choices,
        "release": program.release,
        "forget": program.forget,
        "rest": program.rest,
        "modules": program.modules,
    }
    answer(control, verbs)

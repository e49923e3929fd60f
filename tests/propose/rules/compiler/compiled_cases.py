"""What Inductor (torch 2.11, H200) wrote for some of our own tasks, replayed.

The files under ``fixtures`` are its text as it was, without comments on the graph.
"""

from pathlib import Path

from kernelsmith.domain.task import Task
from kernelsmith.evaluate.tasks import load_task
from kernelsmith.propose.rules.compiler.call import Argument
from kernelsmith.propose.rules.compiler.capture import Captured

HERE = Path(__file__).parent
TASKS = HERE.parents[3] / "tasks"

ARGUMENTS = {
    "batched_matmul": {"a": ((96, 32, 64), "float32"), "b": ((96, 64, 32), "float32")},
    "cumulative_sum": {"x": ((256, 2048), "float32")},
    "depthwise_conv1d": {
        "x": ((2, 256, 512), "float32"),
        "self.conv.weight": ((256, 1, 4), "float32"),
        "self.conv.bias": ((256,), "float32"),
    },
    "embedding_scale": {
        "self.table.weight": ((8192, 768), "float32"),
        "ids": ((4, 128), "int64"),
    },
    "layer_norm": {
        "self.norm.weight": ((768,), "float32"),
        "self.norm.bias": ((768,), "float32"),
        "x": ((512, 768), "float32"),
    },
    "linear_gelu": {
        "self.linear.weight": ((768, 48), "float32"),
        "self.linear.bias": ((768,), "float32"),
        "x": ((256, 48), "float32"),
    },
    "log_softmax_nll": {"logits": ((64, 8192), "float32"), "targets": ((64, 8192), "float32")},
    "topk_router": {"logits": ((2048, 64), "float32")},
}
MADE_WITH = {
    "depthwise_conv1d": (("channels", "256"), ("width", "4")),
    "embedding_scale": (("tokens", "8192"), ("dim", "768")),
    "layer_norm": (("dim", "768"),),
    "linear_gelu": (("inputs", "48"), ("outputs", "768")),
}
TREES = {"topk_router": ("({0}, {1})", 2)}


def task(name: str) -> Task:
    return load_task(TASKS / f"{name}.py")


def captured(name: str, *, option: str = "", **changes: object) -> Captured:
    """A capture as it came from the device; tests name only the fields they are about."""
    tree, outputs = TREES.get(name, ("{0}", 1))
    arguments = tuple(
        Argument(name=f"arg{number}_1", path=path, shape=shape, stride=dense(shape), dtype=dtype)
        for number, (path, (shape, dtype)) in enumerate(ARGUMENTS[name].items())
    )
    usual = {
        "code": (HERE / "fixtures" / f"{name}{option}.txt").read_text(),
        "arguments": arguments,
        "tree": tree,
        "outputs": outputs,
        "made_with": MADE_WITH.get(name, ()),
    }
    return Captured(**{**usual, **changes})


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    found = [1]
    for size in reversed(shape[1:]):
        found.append(found[-1] * size)
    return tuple(reversed(found))

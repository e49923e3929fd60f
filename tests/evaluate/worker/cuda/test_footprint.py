"""Memory of a forward, predicted without taking any."""

import resource

import pytest
import torch
from torch import nn

from kernelsmith.evaluate.worker.cuda.footprint import Footprint, footprint, tried

GB = 10**9


def of_function(function, *shapes, dtype=None, draw=torch.rand) -> Footprint | None:
    return footprint(lambda: None, function, lambda: [draw(*shape) for shape in shapes], dtype)


def of_model(make, *shapes, dtype=None) -> Footprint | None:
    return footprint(make, None, lambda: [torch.rand(*shape) for shape in shapes], dtype)


def test_nothing_real_is_allocated():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = of_function(lambda x: torch.relu(x), (4, 10**9))
    assert found == Footprint(
        inputs=16 * GB, weights=0, outputs=16 * GB, activations=0, batched=True
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


@pytest.mark.triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="allocates on a GPU")
def test_a_real_forward_takes_what_the_one_without_memory_says_and_workspaces():
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 32, bias=False))

    def inputs() -> list[torch.Tensor]:
        return [torch.rand(100_000, 64) * 2 - 1]

    real, traced = tried(make, None, inputs, None), footprint(make, None, inputs, None)
    assert real is not None
    assert traced is not None
    assert (real.outputs, real.inputs) == (4 * 100_000 * 32, traced.inputs)
    assert traced.activations <= real.activations <= traced.activations + (64 << 20)


@pytest.mark.triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="allocates on a GPU")
def test_a_forward_that_there_is_no_room_for_is_not_measured():
    assert tried(lambda: None, torch.relu, lambda: [torch.rand(10**12)], None) is None
    assert torch.cuda.memory_reserved() < 1 << 30


def test_what_lives_between_input_and_output_is_activation():
    found = of_function(lambda x: x * torch.sigmoid(x), (1000, 1000))
    assert found == Footprint(
        inputs=4_000_000, weights=0, outputs=4_000_000, activations=4_000_000, batched=True
    )


def test_what_dies_before_the_next_is_made_is_not_counted_twice():
    def chain(x):
        for _ in range(10):
            x = x + 1
        return x.sum()

    found = of_function(chain, (1000, 1000))
    assert found is not None
    assert found.activations + found.outputs == 8_000_000  # one that is read, one that is written


def test_the_peak_may_come_before_the_output():
    found = of_function(lambda x: (x.repeat(8) + 1)[:10] * 2, (1000,))
    assert found is not None
    assert (found.outputs, found.outputs + found.activations) == (40, 64_000)


def test_weights_are_parameters_buffers_and_whatever_the_module_holds():
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(100, 50)
            self.register_buffer("table", torch.zeros(30))
            self.plain = torch.ones(20)
            self.tied = self.linear.weight

        def forward(self, x):
            return self.linear(x)

    found = of_model(Model, (8, 100))
    assert found == Footprint(
        inputs=3200, weights=4 * (100 * 50 + 50 + 30 + 20), outputs=1600, activations=0,
        batched=True,
    )  # fmt: skip


def test_weights_and_inputs_are_converted():
    found = of_model(lambda: nn.Linear(100, 50), (8, 100), dtype=torch.float16)
    assert found == Footprint(
        inputs=1600, weights=2 * 5050, outputs=800, activations=0, batched=True
    )


def test_integers_keep_their_width():
    found = footprint(
        lambda: nn.Embedding(1000, 16), None, lambda: [torch.randint(1000, (64,))], torch.bfloat16
    )
    assert found == Footprint(
        inputs=64 * 8, weights=1000 * 16 * 2, outputs=64 * 16 * 2, activations=0, batched=True
    )


def test_an_output_that_is_the_input_costs_a_copy():
    assert of_function(lambda x: x.view(-1), (10, 10)) == Footprint(
        inputs=400, weights=0, outputs=400, activations=0
    )


@pytest.mark.parametrize(
    ("function", "batched"),
    [(lambda x: x.sum(1), True), (lambda x: (x, x.sum()), False), (lambda x: x.sum(0), False)],
)
def test_outputs_with_a_row_for_every_row_of_the_input_are_known(function, batched):
    found = of_function(function, (8, 10))
    assert found is not None
    assert found.batched is batched


def test_views_of_one_output_are_kept_once():
    found = of_function(lambda x: (x * 2).chunk(4), (8, 10))
    assert found is not None
    assert found.outputs == 320


@pytest.mark.parametrize(
    "arguments", [{"x": (4, 4), "scale": 2.0}, [(4, 4), 2.0], ((4, 4), 2.0)]
)  # fmt: skip
def test_inputs_come_as_lists_tuples_or_by_name(arguments):
    def made(value):
        return torch.rand(*value) if isinstance(value, tuple) else value

    def make_inputs():
        if isinstance(arguments, dict):
            return {key: made(value) for key, value in arguments.items()}
        return type(arguments)(made(value) for value in arguments)

    found = footprint(lambda: None, lambda x, scale: x * scale, make_inputs, None)
    assert found == Footprint(inputs=64, weights=0, outputs=64, activations=0, batched=True)


def test_a_batch_norm_in_training_and_a_whole_network():
    found = of_model(
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        (2, 3, 10, 10),
    )
    assert found is not None
    assert found.outputs == 2 * 8 * 4 * 4 * 4
    assert found.activations + found.outputs >= 2 * 2 * 8 * 8 * 8 * 4


@pytest.mark.parametrize(
    "function",
    [lambda x: x if x.sum() > 0 else -x, lambda x: torch.from_numpy(x.numpy()),
     lambda x: x[x > 0], lambda x: x * float(x.max()), lambda x: x.missing],
)  # fmt: skip
def test_what_needs_values_cannot_be_predicted(function):
    assert of_function(function, (8, 8), draw=torch.randn) is None


def test_random_state_stays_as_it_was():
    before = torch.get_rng_state()
    of_model(lambda: nn.Linear(10, 10), (4, 10))
    assert torch.equal(torch.get_rng_state(), before)

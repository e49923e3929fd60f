"""Honest reorderings of float32 arithmetic pass; a silent drop of precision does not."""

import pytest
import torch
from answer_factories import accepted, answered, carried, refused
from torch.nn import functional as F

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Kind

torch.manual_seed(0)
A, B = torch.randn(128, 512), torch.randn(512, 96)
X = torch.randn(128, 1000)
IMAGE, FILTER = torch.randn(2, 8, 20, 20), torch.randn(16, 8, 3, 3)
POSITIVE = torch.rand(256, 4096)


def tf32(tensor: torch.Tensor) -> torch.Tensor:
    bits = tensor.contiguous().view(torch.int32)
    rounded = (bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF
    return rounded.view(torch.float32)


def bf16(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.bfloat16().float()


def fp16(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.half().float()


def convolve(image, weight):
    return F.conv2d(image, weight, padding=1)


def normalise(x):
    return F.layer_norm(x, (x.shape[1],))


def one_by_one(a, b):
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total += a[:, k : k + 1] * b[k : k + 1]
    return total


def by_blocks(a, b):
    parts = [a[:, k : k + 32] @ b[k : k + 32] for k in range(0, a.shape[1], 32)]
    return torch.stack(parts).sum(0)


def two_passes(x):
    centered = x - x.mean(1, keepdim=True)
    return centered * torch.rsqrt((centered**2).mean(1, keepdim=True) + 1e-5)


def welford(x):
    mean, squares = torch.zeros(x.shape[0]), torch.zeros(x.shape[0])
    for i in range(x.shape[1]):
        delta = x[:, i] - mean
        mean = mean + delta / (i + 1)
        squares = squares + delta * (x[:, i] - mean)
    return (x - mean[:, None]) / torch.sqrt(squares / x.shape[1] + 1e-5)[:, None]


def online_softmax(x):
    top, total = torch.full((x.shape[0],), -torch.inf), torch.zeros(x.shape[0])
    for part in x.split(64, dim=1):
        new = torch.maximum(top, part.max(1).values)
        total = total * torch.exp(top - new) + torch.exp(part - new[:, None]).sum(1)
        top = new
    return torch.exp(x - top[:, None]) / total[:, None]


HONEST = {
    "matmul in one order": (torch.matmul, one_by_one, (A, B)),
    "matmul in blocks": (torch.matmul, by_blocks, (A, B)),
    "matmul of positives in one order": (torch.matmul, one_by_one, (POSITIVE, POSITIVE.T)),
    "conv by unfolding": (
        convolve,
        lambda x, w: (w.view(16, -1) @ F.unfold(x, 3, padding=1)).view(2, 16, 20, 20),
        (IMAGE, FILTER),
    ),
    "online softmax": (lambda x: F.softmax(x, 1), online_softmax, (X,)),
    "layer norm in two passes": (normalise, two_passes, (X,)),
    "layer norm by Welford": (normalise, welford, (X,)),
    "gelu by erf": (F.gelu, lambda x: 0.5 * x * (1 + torch.erf(x * 0.70710678)), (X,)),
    "tanh by sigmoid": (torch.tanh, lambda x: 2 * torch.sigmoid(2 * x) - 1, (X,)),
    "silu by exp": (F.silu, lambda x: x / (1 + torch.exp(-x)), (X,)),
    "sum in blocks": (
        lambda x: x.sum(1),
        lambda x: x.view(len(x), 64, -1).sum(2).sum(1),
        (POSITIVE,),
    ),
    "fused multiply and add": (
        lambda x: x * 3 + 0.1,
        lambda x: (x.double() * 3 + 0.1).float(),
        (X,),
    ),
}

REFERENCES = {
    "matmul": (torch.matmul, (A, B)),
    "matmul of positives": (torch.matmul, (POSITIVE, POSITIVE.T)),
    "conv": (convolve, (IMAGE, FILTER)),
    "softmax": (lambda x: F.softmax(x, 1), (X,)),
    "layer norm": (normalise, (X,)),
    "gelu": (F.gelu, (X,)),
    "relu": (F.relu, (X,)),
    "row sum": (lambda x: x.sum(1), (POSITIVE,)),
    "log-sum-exp": (lambda x: torch.logsumexp(x, 1), (X,)),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_reordering_is_right(name):
    reference, variant, inputs = HONEST[name]
    accepted(carried(variant(*inputs)), answered(reference, *inputs))


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("drop", [bf16, fp16, tf32])
def test_inputs_rounded_to_half_precision_are_found_out(name, drop):
    reference, inputs = REFERENCES[name]
    found = reference(*(drop(each) for each in inputs))
    assert refused(carried(found), answered(reference, *inputs)).kind is Kind.ERROR


@pytest.mark.parametrize("name", REFERENCES)
def test_an_output_rounded_to_bfloat16_is_found_out_and_named(name):
    reference, inputs = REFERENCES[name]
    message = refused(carried(bf16(reference(*inputs))), answered(reference, *inputs)).message
    assert "only the bits of bfloat16" in message


def test_another_function_of_the_same_looks_is_found_out():
    refused(carried(F.gelu(X, approximate="tanh")), answered(F.gelu, X))


def test_half_precision_is_right_where_the_task_allows_it():
    found = carried(bf16(A) @ bf16(B))
    loose = Tolerance(atol=1.0, rtol=1.0)
    accepted(found, answered(torch.matmul, A, B), compute="bfloat16", tolerance=loose)


def test_the_size_of_the_error_names_the_precision():
    answer = answered(torch.matmul, A, B)
    assert "bfloat16 inputs" in refused(carried(bf16(A) @ bf16(B)), answer).message
    assert "TF32 inputs" in refused(carried(tf32(A) @ tf32(B)), answer).message


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_precision_task_accepts_half_precision_sums_and_refuses_missing_terms(dtype):
    a, b = A.to(dtype), B.to(dtype)
    answer, name = answered(torch.matmul, a, b), str(dtype).removeprefix("torch.")
    accepted(carried(by_blocks(a, b)), answer, compute=name, tolerance=Tolerance(atol=1, rtol=1))
    short = carried((a[:, 8:].float() @ b[8:].float()).to(dtype))
    refused(short, answer, compute=name)

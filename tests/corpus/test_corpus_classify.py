import pytest

from kernelsmith.bench.suites.families import FAMILIES
from kernelsmith.corpus.classify import computing, difficulty_of, family_of, sample
from kernelsmith.corpus.store import Record


@pytest.mark.parametrize(
    ("name", "ops", "family"),
    [
        ("Block", {"addmm": 2, "gelu": 1}, "matmul"),
        ("Attn", {"bmm": 2, "_softmax": 1, "addmm": 4}, "attention"),
        ("Net", {"convolution": 3, "relu": 3}, "convolution"),
        ("DiceLoss", {"mul": 1, "sum": 2}, "loss"),
        ("Norm", {"native_layer_norm": 1}, "normalisation"),
        ("Act", {"silu": 1, "mul": 1}, "activation"),
        ("Pool", {"max_pool2d_with_indices": 1}, "pooling"),
        ("Table", {"embedding": 1, "mul": 1}, "indexing"),
        ("MoeLayer", {"topk": 1, "addmm": 4}, "routing"),
        ("Encoder", {"lstm": 1}, "recurrence"),
        ("Plain", {"add": 1, "mul": 2, "view": 5}, "elementwise"),
        ("Sum", {"cumsum": 1, "add": 1}, "scan"),
    ],
)
def test_the_family_follows_from_the_operators(name, ops, family):
    assert family_of(name, ops, "", ["float32[2, 3]"]) == family
    assert family in FAMILIES


def test_moving_is_not_computing():
    assert computing({"view": 3, "permute": 1, "_to_copy": 2, "mm": 1}) == {"mm": 1}


def test_difficulty_counts_what_computes():
    assert difficulty_of("matmul", {"mm": 1, "view": 90}) == 1
    assert difficulty_of("attention", {"bmm": 2, "_softmax": 1}) == 2
    assert difficulty_of("matmul", {"mm": 30}) == 3


def test_a_balanced_sample_has_all_families_before_it_repeats_one():
    records = [Record(key=f"a{i}", data={"family": "matmul", "difficulty": 1}) for i in range(50)]
    records += [Record(key="b", data={"family": "loss", "difficulty": 1}),
                Record(key="c", data={"family": "scan", "difficulty": 2})]  # fmt: skip
    chosen = sample(records, 4, seed=1)
    assert {record.text("family") for record in chosen} == {"matmul", "loss", "scan"}
    assert chosen == sample(records, 4, seed=1)
    assert len(sample(records, 100)) == 52

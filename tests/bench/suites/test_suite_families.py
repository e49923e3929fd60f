"""One word for what a task computes, from how suites name their tasks."""

import pytest

from kernelsmith.bench.suites.families import FAMILIES, family_of


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Conv2D_ReLU_BiasAdd", "convolution"),
        ("conv_transposed_3D_asymmetric_input", "transposed convolution"),
        ("conv_depthwise_2D_square_input", "transposed convolution"),
        ("ConvTranspose2d_Max_Pool", "transposed convolution"),
        ("Gemm_Swish_Divide_Clamp", "matmul"),
        ("BMM_InstanceNorm_Sum", "batched matmul"),
        ("fused_bmm_dropout_gelu", "batched matmul"),
        ("LayerNorm", "normalisation"),
        ("MSELoss", "loss"),
        ("CrossEntropyLoss", "loss"),
        ("cumsum_reverse", "scan"),
        ("Max_Pooling_2D", "pooling"),
        ("log_softmax", "attention"),
        ("gqa_paged_decode_h32_kv8", "attention"),
        ("AdamW", "optimiser"),
        ("index_select", "indexing"),
        ("linear_w4a16", "matmul"),
        ("LSTMBidirectional", "recurrence"),
        ("sqrt_exp", "elementwise"),
        ("ReLU", "activation"),
        ("nothing_known", "other"),
    ],
)
def test_names_of_tasks_tell_their_family(name, family):
    assert family_of(name) == family
    assert family in FAMILIES


def test_a_category_tells_where_the_name_does_not():
    assert family_of("puzzle1", "Pooling") == "pooling"

import pytest

from kernelsmith.corpus.inputs.guesses import completed, init_guesses, input_kind, shrunk
from kernelsmith.corpus.inputs.recipe import Recipe, is_plain, write
from kernelsmith.corpus.inputs.repair import INDEX, Many, Other, Tensor, edits


def shapes(message, *shape, kind="RuntimeError", line="", pairs=()):
    state = (("x", Tensor(shape)),)
    found = edits(message, kind, line, state, list(pairs))
    return [each[0][1] for each in found]


@pytest.mark.parametrize(
    ("message", "shape", "wanted"),
    [
        ("mat1 and mat2 shapes cannot be multiplied (32x48 and 64x128)", (2, 16, 48), (2, 16, 64)),
        ("Given groups=1, weight of size [8, 3, 3, 3], expected input[2, 64, 32, 32] to have 3 "
         "channels, but got 64 channels instead", (2, 64, 32, 32), (2, 3, 32, 32)),
        ("Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [2, 64]",
         (2, 64), (2, 64, 32, 32)),
        ("Given normalized_shape=[96], expected input with shape [*, 96], but got input of "
         "size[2, 16, 64]", (2, 16, 64), (2, 16, 96)),
        ("The size of tensor a (16) must match the size of tensor b (49) at non-singleton "
         "dimension 1", (2, 16, 64), (2, 49, 64)),
        ("Dimension out of range (expected to be in range of [-2, 1], but got 2)", (2, 64),
         (2, 16, 64)),
    ],
)  # fmt: skip
def test_an_error_says_which_shape_it_wanted(message, shape, wanted):
    assert wanted in [each.shape for each in shapes(message, *shape)[:6]]


def test_a_failed_unpacking_says_the_rank():
    found = shapes("not enough values to unpack (expected 4, got 3)", 2, 16, 64, kind="ValueError",
                   line="b, c, h, w = x.shape")  # fmt: skip
    assert len(found[0].shape) == 4


def test_indices_are_tried_where_an_embedding_wants_them():
    found = shapes("Expected tensor for argument #1 'indices' to have one of the following scalar "
                   "types: Long, Int; but got torch.FloatTensor instead", 2, 16, 64)  # fmt: skip
    assert any(each.dtype == INDEX and each.shape == (2, 16) for each in found[:4])


def test_numbers_that_a_silent_assertion_compared_are_used():
    found = shapes("", 2, 16, 64, kind="AssertionError", pairs=[(16, 49)])
    assert (2, 49, 64) in [each.shape for each in found]


def test_no_edit_is_what_failed_already_and_none_comes_twice():
    state = (("x", Tensor((2, 16, 64))), ("y", Many((Tensor((2, 64)),))), ("n", Other("None")))
    found = edits("'NoneType' object is not iterable 2 16 64 3", "TypeError", "", state, [(16, 3)])
    assert state not in found
    assert len(set(found)) == len(found) <= 24


def test_names_say_what_an_argument_is():
    assert init_guesses("num_heads")[0] == "4"
    assert init_guesses("dropout")[0] == "0.0"
    assert init_guesses("whatever", "bool")[0] == "True"
    assert init_guesses("norm_layer")[0] == "nn.LayerNorm"
    assert input_kind("input_ids") == "index"
    assert input_kind("attention_mask") == "mask"
    assert input_kind("x") == "tensor"
    assert input_kind("feats", "List[Tensor]") == "list"


def test_a_config_shrinks_by_one_factor_and_stays_divisible():
    values = {"hidden_size": "4096", "num_attention_heads": "32", "intermediate_size": "11008",
              "head_dim": "128", "num_hidden_layers": "32", "vocab_size": "32000",
              "num_key_value_heads": "None", "hidden_act": "'silu'"}  # fmt: skip
    small = shrunk(completed(values))
    assert small["hidden_size"] == "256"
    assert int(small["num_attention_heads"]) * int(small["head_dim"]) == 256
    assert small["num_key_value_heads"] == small["num_attention_heads"]
    assert small["intermediate_size"] == "688"
    assert small["hidden_act"] == "'silu'"


def test_a_task_file_has_a_plain_constructor_whatever_the_module_takes():
    recipe = Recipe("Net", init={"dim": "64", "act": "nn.ReLU()"}, config="config",
                    values={"eps": "1e-05"}, inputs=(("x", Tensor((-1, 64))),),
                    sizes={"batch": 8}, workloads=[{"batch": 4}])  # fmt: skip
    text = write("class Net(nn.Module):\n    pass\n", recipe, "a:b:Net")
    assert "def __init__(self, eps=1e-05, dim=64):" in text
    assert "super().__init__(config=SimpleNamespace(eps=eps), dim=dim, act=nn.ReLU())" in text
    assert "def get_init_inputs():\n    return [1e-05, 64]" in text
    assert "def get_inputs(batch=8):\n    return [torch.randn(batch, 64)]" in text
    assert "{'name': 'batch=4', 'inputs': {'batch': 4}}" in text


def test_plain_is_what_any_process_can_be_handed():
    assert is_plain("[1, (2.0, 'a')]")
    assert not is_plain("nn.ReLU()")
    assert not is_plain("{1: 2}")

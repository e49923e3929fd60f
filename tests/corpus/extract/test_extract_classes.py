import ast

import pytest

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def code(records, name):
    record = records[name]
    assert record.kept, (record.reason, record.detail)
    return record.text("code")


def test_a_class_takes_along_what_it_uses_and_nothing_else(repository):
    repository.write(
        a=HEAD + "SCALE = 2.0\nOTHER = 3.0\n\ndef helper(x):\n    return x * SCALE\n\n"
        "class A(nn.Module):\n    def forward(self, x):\n        return helper(x)\n"
    )
    text = code(repository.extract(), "A")
    assert "SCALE = 2.0" in text
    assert "OTHER" not in text
    assert "functional" not in text


def test_bases_and_helpers_are_followed_into_other_files(repository):
    repository.write(
        base=HEAD + "class Base(nn.Module):\n    def forward(self, x):\n        return self.f(x)\n",
        a=HEAD + "from .base import Base as B\n\nclass A(B):\n    def f(self, x):\n"
        "        return x + 1\n",
    )
    text = code(repository.extract(), "A")
    assert "class Base(nn.Module)" in text
    assert "class A(Base)" in text


def test_attributes_of_harvested_modules_become_plain_names(repository):
    repository.write(
        ops="def double(x):\n    return x * 2\n",
        a=HEAD + "from . import ops\n\nclass A(nn.Module):\n    def forward(self, x):\n"
        "        return ops.double(x)\n",
    )
    text = code(repository.extract(), "A")
    assert "def double" in text
    assert "ops.double" not in text


def test_two_things_of_one_name_get_two_names(repository):
    repository.write(
        one="def f(x):\n    return x + 1\n", two="def f(x):\n    return x + 2\n",
        a=HEAD + "from .one import f as g\nfrom .two import f\n\nclass A(nn.Module):\n"
        "    def forward(self, x):\n        return f(g(x))\n",
    )  # fmt: skip
    text = code(repository.extract(), "A")
    names = [n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    assert len(set(names)) == 2
    called = ast.unparse(ast.parse(text).body[-1])
    assert f"return {names[0]}({names[1]}(x))" in called or (
        f"return {names[1]}({names[0]}(x))" in called
    )


def test_methods_that_forward_never_reaches_are_left_out(repository):
    repository.write(
        a=HEAD + "import requests\n\nclass A(nn.Module):\n    def forward(self, x):\n"
        "        return self.used(x)\n\n    def used(self, x):\n        return x * 2\n\n"
        "    def download(self):\n        return requests.get('x')\n"
    )
    text = code(repository.extract(), "A")
    assert "def used" in text
    assert "download" not in text


def test_a_path_that_needs_what_is_not_here_refuses_and_the_others_stay(repository):
    repository.write(
        a=HEAD + "from flash_attn import fast\n\nclass A(nn.Module):\n"
        "    def forward(self, x, quick=False):\n        if quick:\n"
        "            return fast(x)\n        return x * 2\n"
    )
    record = repository.extract()["A"]
    assert "raise NotImplementedError('needs flash_attn.fast')" in record.text("code")
    assert record.texts("refused") == ("flash_attn.fast",)


def test_a_class_that_cannot_do_without_is_rejected_by_name(repository):
    repository.write(
        a=HEAD + "from flash_attn import fast\n\nclass A(nn.Module):\n"
        "    def forward(self, x):\n        y = fast(x)\n        return y\n\n"
        "class B(fast):\n    pass\n"
    )
    record = repository.extract()["A"]
    assert record.reason == "needs what is not here"
    assert "flash_attn.fast" in record.detail


def test_decorators_logging_annotations_and_docstrings_go(repository):
    repository.write(
        a=HEAD + "import logging\nfrom somewhere import Config, REGISTRY\n"
        "logger = logging.getLogger(__name__)\n\n@REGISTRY.register()\nclass A(nn.Module):\n"
        "    '''Doc.'''\n    def forward(self, x: Config) -> 'Config':\n        '''Doc.'''\n"
        "        logger.info('x')\n        y: Config = x * 2\n        return y\n"
    )
    text = code(repository.extract(), "A")
    assert "Config" not in text
    assert "REGISTRY" not in text
    assert "logg" not in text
    assert "Doc" not in text


def test_questions_about_the_surroundings_are_answered(repository):
    repository.write(
        a=HEAD + "from .utils import is_flash_available\n\nclass A(nn.Module):\n"
        "    def forward(self, x):\n        if is_flash_available():\n"
        "            return x\n        return x * 2\n",
        utils="def is_flash_available():\n    return True\n",
    )
    assert "if False:" in code(repository.extract(), "A")


def test_einops_and_numbers_of_numpy_are_written_out(repository):
    repository.write(
        a=HEAD + "import numpy as np\nfrom einops import rearrange\n\nclass A(nn.Module):\n"
        "    def forward(self, x):\n        y = rearrange(x, 'b (h d) -> b h d', h=2)\n"
        "        return y * np.sqrt(2)\n"
    )
    text = code(repository.extract(), "A")
    assert "import einops" not in text
    assert "numpy" not in text
    assert "math.sqrt(2)" in text


def test_only_torch_and_the_standard_library_are_imported(repository):
    repository.write(
        a=HEAD + "import os, re, numpy, scipy\n\nclass A(nn.Module):\n"
        "    def forward(self, x):\n        n = len(re.findall('a', 'aa'))\n"
        "        if n > 5:\n            return scipy.fft(x)\n        return x * n\n"
    )
    tree = ast.parse(code(repository.extract(), "A"))
    found = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert found <= {"torch", "re", "torch.nn.functional"}


def test_a_configs_defaults_are_read_from_its_class(repository):
    repository.write(
        config="class Base:\n    eps: float = 1e-5\n\nclass NetConfig(Base):\n"
        "    attribute_map = {'width': 'hidden_size'}\n"
        "    def __init__(self, hidden_size=64, heads=4, name=None):\n        pass\n",
        a=HEAD + "from .config import NetConfig\n\nclass A(nn.Module):\n"
        "    def __init__(self, config: NetConfig):\n        super().__init__()\n"
        "        self.l = nn.LayerNorm(config.width, eps=config.eps)\n"
        "    def forward(self, x):\n        return self.l(x)\n",
    )
    record = repository.extract()["A"]
    assert record.data["config"] == "config"
    assert record.data["config_values"] == {"width": "64", "eps": "1e-05"}


def test_authors_calls_are_read_from_tests_and_docstrings(repository):
    repository.write(
        a=HEAD + "class A(nn.Module):\n    '''A.\n\n    >>> m = A(8, k=2)\n"
        "    >>> m(torch.rand(2, 8))\n    '''\n    def __init__(self, n, k):\n"
        "        super().__init__()\n    def forward(self, x):\n        return x * 2\n",
        test_a="import torch\nfrom .a import A\n\ndef test_it(n=4):\n    net = A(n, k=1)\n"
        "    x = torch.zeros(1, n)\n    assert net(x).shape == x.shape\n",
    )
    examples = repository.extract()["A"].data["examples"]
    assert [(e["init"], e["inputs"]) for e in examples] == [
        (["8"], ["torch.rand(2, 8)"]), (["4"], ["torch.zeros(1, 4)"]),
    ]  # fmt: skip


def test_operators_are_extracted_by_option(repository):
    repository.write(
        a=HEAD + "from torch import Tensor\n\ndef soft(x: Tensor, k: float = 2.0) -> Tensor:\n"
        "    return torch.tanh(x / k) * k\n\ndef plain(x):\n    return x\n"
    )
    assert "soft()" not in repository.extract()
    repository.store.stage("extract").clear()
    found = repository.extract(operators=True)
    assert "class SoftOperator(nn.Module)" in code(found, "soft()")
    assert "plain()" not in found


def test_what_was_read_is_not_read_again(repository):
    repository.write(a=HEAD + "class A(nn.Module):\n    def forward(self, x):\n        return x\n")
    repository.extract()
    before = repository.store.stage("extract").path.read_text()
    repository.extract()
    assert repository.store.stage("extract").path.read_text() == before


HOSTILE = {
    "syntax": ("class A(nn.Module:\n", "is not Python"),
    "nul": ("x = '\\x00'\nclass A(:", "is not Python"),
    "nested": ("x = " + "(" * 3000 + ")" * 3000, "is not Python"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_python_is_a_reason(repository, name):
    text, reason = HOSTILE[name]
    repository.write(**{name: text, "fine": HEAD + "class Fine(nn.Module):\n"
                        "    def forward(self, x):\n        return x * 2\n"})  # fmt: skip
    found = repository.extract()
    assert found[f"{name}.py!file"].reason == reason
    assert found["Fine"].kept


def test_import_time_side_effects_never_happen(repository, tmp_path):
    flag = tmp_path / "flag"
    repository.write(
        a=f"open({str(flag)!r}, 'w').close()\n{HEAD}\nclass A(nn.Module):\n"
        "    def forward(self, x):\n        return x * 2\n"
    )
    assert "open(" not in code(repository.extract(), "A")
    assert not flag.exists()


def test_stars_are_followed_and_cycles_end(repository):
    repository.write(
        a=HEAD + "from .b import *\n\nclass A(nn.Module):\n    def forward(self, x):\n"
        "        return from_c(x)\n\ndef from_a(x):\n    return from_c(x)\n",
        b="from .a import *\nfrom .c import *\n",
        c="from .b import *\nfrom .a import from_a\n\ndef from_c(x):\n"
        "    return x if x is None else x * 2\n\ndef also(x):\n    return from_a(x)\n",
    )
    assert "def from_c" in code(repository.extract(), "A")


def test_a_class_that_is_its_own_base_is_no_module(repository):
    repository.write(a=HEAD + "class A(B):\n    pass\n\nclass B(A):\n    pass\n")
    assert set(repository.extract()) == {"a.py!file", "__init__.py!file"}


def test_functions_that_call_each_other_are_taken_once(repository):
    repository.write(
        a=HEAD + "def even(n):\n    return n == 0 or odd(n - 1)\n\ndef odd(n):\n"
        "    return n != 0 and even(n - 1)\n\nclass A(nn.Module):\n    def forward(self, x):\n"
        "        return x * even(x.dim())\n"
    )
    text = code(repository.extract(), "A")
    assert text.count("def even") == text.count("def odd") == 1


def test_a_table_of_addresses_that_cannot_be_made_does_not_keep_its_class_from_loading(repository):
    repository.write(
        a=HEAD + "from urllib.parse import quote\n\ndef address(name):\n"
        "    return 'https://' + quote(name)\n\nTABLE = {}\nTABLE['a'] = address('a')\n\n"
        "class A(nn.Module):\n    def __init__(self, pretrained=False):\n"
        "        super().__init__()\n        if pretrained:\n            self.load(TABLE['a'])\n\n"
        "    def forward(self, x):\n        return x * 2\n"
    )
    text = code(repository.extract(), "A")
    space = {}
    exec(text, space)
    assert space["A"]()(3) == 6
    with pytest.raises(NotImplementedError, match=r"needs TABLE \(urllib.parse.quote\)"):
        space["A"](pretrained=True)


def test_a_value_stays_where_the_function_it_calls_may_answer(repository):
    repository.write(
        a=HEAD + "from urllib.parse import quote\n\ndef named(name):\n    if name.isalpha():\n"
        "        return name\n    return quote(name)\n\nNAME = named('abc')\n\n"
        "class A(nn.Module):\n    def forward(self, x):\n        return x * len(NAME)\n"
    )
    space = {}
    exec(code(repository.extract(), "A"), space)
    assert space["A"]()(2) == 6

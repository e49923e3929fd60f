"""The family of compiled candidates, over captures that were made on an H200 and are replayed."""

import ast
import dataclasses

import pytest
from compiled_cases import captured, task

from kernelsmith.domain.task import Workload
from kernelsmith.propose.rules.compiler.call import Launch
from kernelsmith.propose.rules.compiler.capture import AUTOTUNE, DEFAULT, Options, Skipped
from kernelsmith.propose.rules.compiler.compiled import compiled_family
from kernelsmith.propose.rules.family import owned
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.space import Parameter

WORKLOAD = Workload(name="one")


class Replay:
    """Answers with captures from files, and counts what it was asked."""

    def __init__(self, name, **options):
        self.found = {"default": captured(name), **options}
        self.asked = []

    def __call__(self, task, requests):
        self.asked.append([(each.workload.name, each.options.name) for each in requests])
        return [
            self.found.get(each.options.name, Skipped(reason=f"no {each.options.name} here"))
            for each in requests
        ]


def a_task(name, *workloads):
    return dataclasses.replace(task(name), workloads=workloads or (WORKLOAD,))


def forms(name, *names):
    return [Form(name=each, source=task(name).source) for each in names or ("written",)]


def family(name="linear_gelu", capture=None, **changes):
    return compiled_family(
        changes.pop("task", a_task(name)), "triton", changes.pop("forms", forms(name)),
        capture=capture or Replay(name), **changes,
    )  # fmt: skip


def autotuned():
    return Replay("linear_gelu", autotune=captured("linear_gelu", option="_autotune"))


def test_the_defaults_are_what_the_compiler_does():
    found = family()
    source = found.source(found.space.defaults)
    assert "# kernelsmith rules: compiled form=written option=default" in source
    assert "XBLOCK=1024, num_warps=4" in source
    assert "The task as written, compiled: as the compiler does by itself." in source


def test_every_parameter_gives_a_text_that_is_owned():
    found = family(capture=autotuned())
    for each in found.space.parameters:
        for value in each.choices:
            source = found.source({**found.space.defaults, each.name: value})
            ast.parse(source)
            assert owned(found, source) == {**found.space.defaults, each.name: value}


def test_seeds_begin_with_what_was_captured_and_go_on_with_launches():
    found = family(capture=autotuned())
    starts = found.space.starts
    assert starts[0] == found.space.defaults
    assert starts[1]["option"] == "autotune"
    assert len({found.source(each) for each in starts}) == len(starts)


def test_blocks_scale_within_what_the_masks_allow():
    found = family()
    wide = found.source({**found.space.defaults, "k1_xblock": "8", "k1_warps": "16"})
    assert "XBLOCK=4096, num_warps=16" in wide
    narrow = found.source({**found.space.defaults, "k1_xblock": "1/8"})
    assert "XBLOCK=128, num_warps=4" in narrow


def test_an_option_that_gives_the_same_is_not_offered_twice():
    again = Options(name="again")
    found = family(capture=Replay("linear_gelu", again=captured("linear_gelu")),
                   options=(DEFAULT, again))  # fmt: skip
    assert found.space.named("option").choices == ("default",)


def test_options_for_products_are_asked_for_only_where_there_are_products():
    replay = Replay("layer_norm")
    family("layer_norm", capture=replay)
    assert replay.asked == [[("one", "default")]]


def test_lazy_options_wait_for_a_candidate():
    replay = autotuned()
    found = family(capture=replay, options=(DEFAULT, AUTOTUNE), lazy=True)
    assert replay.asked == [[("one", "default")]]
    found.source({**found.space.defaults, "option": "autotune"})
    assert replay.asked[1:] == [[("one", "autotune")]]


def test_what_was_captured_is_kept():
    replay = autotuned()
    found = family(capture=replay)
    before = len(replay.asked)
    found.source(found.space.defaults)
    found.source({**found.space.defaults, "option": "autotune"})
    assert len(replay.asked) == before


def test_workloads_are_captured_once_each_and_held_out_ones_never():
    replay = Replay("linear_gelu")
    workloads = (
        WORKLOAD,
        Workload(name="same inputs"),
        Workload(name="two", arguments=(("rows", 3),)),
        Workload(name="secret", held_out=True, arguments=(("rows", 5),)),
    )
    found = family(capture=replay, task=a_task("linear_gelu", *workloads), options=(DEFAULT,))
    assert replay.asked == [[("one", "default"), ("two", "default")]]
    assert len(found.calls("written")) == 1, "both have the same shapes"


def test_nothing_to_be_had_names_all_reasons():
    replay = Replay("linear_gelu", default=Skipped(reason="a graph break"))
    with pytest.raises(NotRecognised, match=r"written \(default\): a graph break"):
        family(capture=replay)


def test_a_module_of_library_calls_only_is_skipped():
    with pytest.raises(NotRecognised, match="libraries only"):
        family("batched_matmul", options=(DEFAULT,))


def test_a_form_by_algebra_says_so_in_its_candidates():
    found = family(forms=forms("linear_gelu", "written", "folded"))
    for form, says in (("written", False), ("folded", True)):
        source = found.source({**found.space.defaults, "form": form})
        assert ("\n# algebra: folded: " in source) is says


def test_a_form_that_fails_leaves_the_others():
    class Once(Replay):
        def __call__(self, task, requests):
            return [Skipped(reason="no"), *super().__call__(task, requests)[1:]]

    found = family(capture=Once("linear_gelu"), forms=forms("linear_gelu", "folded", "written"),
                   options=(DEFAULT,))  # fmt: skip
    assert found.space.named("form").choices == ("written",)
    assert found.reasons() == {("folded", "default"): "no"}


def test_a_transform_changes_calls_by_parameters_of_its_own():
    own = Parameter(name="twice", choices=("no", "yes"), default="no", why="a test")

    def twice(call, chosen):
        extra = [step for step in call.steps if isinstance(step, Launch)]
        return dataclasses.replace(call, steps=(*call.steps, *extra * (chosen["twice"] == "yes")))

    found = family(transform=twice, parameters=(own,), options=(DEFAULT,))
    plain = found.source(found.space.defaults)
    doubled = found.source({**found.space.defaults, "twice": "yes"})
    assert doubled.count("addmm_gelu[(") == plain.count("addmm_gelu[(") + 1


def test_functions_are_those_of_the_devices_library_or_written_out():
    found = family("log_softmax_nll")
    usual = found.source(found.space.defaults)
    assert "from triton.language.extra import libdevice" in usual
    assert "    return libdevice.exp(x)" in usual
    exact = found.source({**found.space.defaults, "math": "exact"})
    assert "libdevice" not in exact
    assert "tl.exp2(n)" in exact


def test_the_devices_own_exponential_is_a_choice():
    found = family("log_softmax_nll")
    source = found.source({**found.space.defaults, "math": "native"})
    assert "return tl.exp(x)" in source
    assert found.space.named("math").safe == "exact"


def test_another_backend_is_refused():
    with pytest.raises(NotRecognised):
        compiled_family(a_task("linear_gelu"), "cpu", forms("linear_gelu"))

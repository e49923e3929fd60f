"""Each rule refuses its plain form and the usual disguises, and leaves honest kernels alone."""

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.guards.static import Finding, FindingKind, inspect_source

TASK = Task(name="relu", source="class Model: ...")
ENTRY = "\nclass ModelNew:\n    pass\n"


def inspect(source: str, *, entry: str = ENTRY) -> Finding | None:
    """Inspect a fragment together with an entry, so that only the fragment can offend."""
    return inspect_source(Candidate(backend="cpu", source=source + entry), TASK)


HONEST = '''
import ctypes, functools, math, os, re
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from kernelsmith.kernels import cpp
from torch.utils.cpp_extension import load_inline

N = 4096
SOURCE = r"""
#include <torch/extension.h>
#include <thread>
#include <vector>
#include "omp.h"
// system("rm") would be refused, were it not in a comment
struct Solver { int system(int x) { return x; } };
int use(Solver s) { return s.system(3); }
const char* help = "fork() and popen( are only words here";
void run(float* x, long n) {
  std::vector<std::thread> pool;
  for (auto& each : pool) each.join();
}
"""
PATTERN = re.compile(r"\\d+")
os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0"
os.environ["CXX"] = "g++"
THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))

try:
    import triton
except ImportError:
    triton = None

@functools.lru_cache(maxsize=None)
def build():
    return cpp(SOURCE)

class ModelNew(nn.Module):
    """Do not trust the reviewer; please system( this."""

    def __init__(self, signal=None, code=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.weight.data = torch.zeros(3)
        self.eval()
        torch.set_num_threads(2)
        setattr(self, "bias", None)
        lib = ctypes.CDLL(None)
        lib.malloc.argtypes = [ctypes.c_size_t]
        self.dtype = getattr(torch, "float32")
        self.window = torch.signal.windows.hann(3)

    @torch.jit.unused
    def compile(self, x):
        return x

    def forward(self, x):
        with torch.no_grad():
            out = torch.empty_like(x)
        out[0] = math.exp(1.0)
        out.requires_grad = False
        if torch.jit.is_scripting() or torch.jit.is_tracing() or torch.compiler.is_compiling():
            return x
        return F.relu(out)
'''


def test_an_honest_kernel_with_all_the_usual_trimmings_passes():
    assert inspect(HONEST, entry="") is None


REFUSED = [
    ("compiler", "import torch\nf = torch.compile(lambda x: x)"),
    ("compiler", "import torch as T\nf = T.compile(abs)"),
    ("compiler", "from torch import compile as c\nf = c(abs)"),
    ("compiler", "import torch\nf = getattr(torch, 'com' + 'pile')(abs)"),
    ("compiler", "import torch\nf = torch.__dict__['compile'](abs)"),
    ("compiler", "import torch\nf = vars(torch)['compile'](abs)"),
    ("compiler", "T = __import__('torch')\nf = T.compile(abs)"),
    ("compiler", "import torch\n@torch.jit.script\ndef f(x): return x"),
    ("compiler", "import torch\ntorch.jit.trace(abs, torch.ones(1))"),
    ("compiler", "import torch\njit = torch.jit\njit.script(abs)"),
    ("compiler", "import torch._inductor.config"),
    ("compiler", "from torch import _dynamo"),
    ("compiler", "(t := __import__('torch')).export.export(None)"),
    ("frames", "import sys\nsys._getframe(1)"),
    ("frames", "from sys import _getframe as g"),
    ("frames", "import torch\ntorch.sys._getframe(1)"),
    ("frames", "import inspect\ninspect.stack()"),
    ("frames", "import traceback\ntraceback.walk_stack(None)"),
    ("frames", "try:\n    1/0\nexcept Exception as e:\n    e.__traceback__.tb_frame"),
    ("heap", "import gc\n[o for o in gc.get_objects()]"),
    ("heap", "import gc\ng = gc\ng.get_referrers(1)"),
    ("modules", "import sys\nsys.modules['__main__']"),
    ("modules", "import __main__"),
    ("modules", "import importlib\nimportlib.import_module('__main__')"),
    ("modules", "import kernelsmith"),
    ("modules", "from kernelsmith.evaluate import worker"),
    ("modules", "import kernelsmith.kernels\nkernelsmith.evaluate.tensors"),
    ("patches-module", "import torch\ntorch.cuda.Event.elapsed_time = lambda *a: 0.0"),
    ("patches-module", "import torch\nE = torch.cuda.Event\nE.elapsed_time = abs"),
    ("patches-module", "import torch\nsetattr(torch.cuda.Event, 'elapsed_time', abs)"),
    ("patches-module", "import torch\nobject.__setattr__(torch, 'allclose', abs)"),
    ("patches-module", "import torch\ntorch.__dict__['allclose'] = abs"),
    ("patches-module", "import torch\nvars(torch).update(allclose=abs)"),
    ("patches-module", "import time\ntime.perf_counter = abs"),
    ("patches-module", "import torch.nn as nn\nnn.Linear.forward = abs"),
    ("patches-module", "import torch\ntorch.backends.mkldnn.enabled = False"),
    ("patches-module", "import builtins\nbuiltins.print = abs"),
    ("patches-module", "__builtins__['print'] = abs"),
    ("patches-module", "import gc, time\na, b = gc, time\nb.time = abs"),
    ("tensor-subclass", "import torch\nclass Lazy(torch.Tensor): pass"),
    ("tensor-subclass", "from torch.nn import Parameter as P\nclass Lazy(P): pass"),
    ("tensor-subclass", "class L:\n    def __torch_function__(self): pass"),
    ("tensor-subclass", "def f(x, k):\n    x.__class__ = k"),
    ("tensor-subclass", "def f(x, k):\n    return x.as_subclass(k)"),
    ("background", "import threading"),
    ("background", "import _thread"),
    ("background", "from concurrent.futures import ThreadPoolExecutor"),
    ("background", "t = __import__('thr' + 'eading')"),
    ("processes", "import os\nos.system('ls')"),
    ("processes", "from os import fork"),
    ("processes", "import subprocess as s"),
    ("network", "import urllib.request"),
    ("network", "import socket"),
    ("hidden-code", "exec(open('x').read())"),
    ("hidden-code", "import base64\nexec(base64.b64decode('eA=='))"),
    ("hidden-code", "e = eval\ne(input())"),
    ("hidden-code", "import os\ngetattr(os, chr(102))"),
    ("hidden-code", "name = chr(1)\n__import__(name)"),
    ("hidden-code", "import marshal"),
    ("heap", "exec('import gc; gc.get_objects()')"),
    ("hooks", "import sys\nsys.settrace(None)"),
    ("hooks", "import atexit"),
    ("environment", "import os\nos.environ['LD_PRELOAD'] = 'x'"),
    ("environment", "import os\nos.environ.update({'OMP_NUM_THREADS': '1'})"),
    ("environment", "from os import environ as e\ne.setdefault('PYTHONPATH', 'x')"),
    ("global-state", "import torch\ntorch.manual_seed(42)"),
    ("global-state", "import torch\ntorch.set_default_dtype(torch.bfloat16)"),
    ("native-process", 'S = """#include <cstdlib>\nint x = std::system("ls");"""'),
    ("native-process", 'S = "#include <unistd.h>\\n" + "int f() { return fork(); }"'),
    ("native-process", 'n = 3\nS = f"#include <x>\\nint f() {{ return popen({n}); }}"'),
    ("native-include", 'S = "#include \\"/proc/self/environ\\""'),
    ("native-include", 'S = """#include <x>\nasm(".incbin \\\\"/etc/passwd\\\\"");"""'),
    ("inherits-reference", "class A(Model): pass"),
]


@pytest.mark.parametrize(("rule", "source"), REFUSED)
def test_what_no_kernel_needs_is_refused(rule: str, source: str):
    found = inspect(source)
    assert found is not None
    assert (found.kind, found.rule) == (FindingKind.REFUSED, rule)


def test_the_message_names_line_and_offence():
    found = inspect("import sys\n\n\nprint(sys._getframe(0))")
    assert found is not None
    assert found.message == (
        "line 4: `sys._getframe` looks into the caller; a kernel has no need of it"
    )


def test_an_offence_in_cpp_is_reported_at_its_own_line():
    found = inspect('SOURCE = """\n#include <x>\nint f() { return fork(); }\n"""')
    assert found is not None
    assert found.line == 3


def test_the_first_offence_in_the_source_is_the_one_reported():
    found = inspect("import gc\ngc.get_objects()\nimport threading")
    assert found is not None
    assert found.rule == "heap"


def test_source_that_does_not_parse_is_a_build_failure_at_its_line():
    found = inspect("x = 1\ny = = 2")
    assert found is not None
    assert (found.kind, found.rule, found.line) == (FindingKind.BUILD, "syntax", 2)


@pytest.mark.parametrize("source", ["x = '\0'", "(" * 5000 + ")" * 5000, "-" * 100_000 + "1"])
def test_source_that_breaks_the_parser_is_a_build_failure(source: str):
    found = inspect(source)
    assert found is not None
    assert found.kind is FindingKind.BUILD


def test_a_candidate_without_its_entry_is_a_build_failure_that_says_so():
    found = inspect("def f():\n    class ModelNew: pass", entry="")
    assert found is not None
    assert found.kind is FindingKind.BUILD
    assert "'ModelNew'" in found.message


@pytest.mark.parametrize(
    "source", ["ModelNew = make()", "if True:\n    class ModelNew: pass", "from x import ModelNew"]
)
def test_an_entry_may_be_defined_in_any_way_at_module_level(source: str):
    assert inspect(source, entry="") is None


def test_a_function_task_asks_for_its_function():
    task = Task(name="add", source="def add(x): ...", entry="add")
    candidate = Candidate(backend="cpu", source="def add(x): return x")
    assert inspect_source(candidate, task) is None


def test_a_parameter_that_shares_a_builtins_name_is_not_that_builtin():
    assert inspect("def f(compile, x):\n    return compile(x)") is None

"""Kernels as torch's compiler (2.13, scalar, one thread) writes them, for tasks of our own."""

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.compiler.call import Argument
from kernelsmith.propose.rules.compiler.capture import Captured
from kernelsmith.propose.rules.forms import Form


def loop(variable: str, extent: int) -> str:
    """The head of a loop, in the compiler's words."""
    zero, end, one = (f"static_cast<int64_t>({n}L)" for n in (0, extent, 1))
    return f"for(int64_t {variable}={zero}; {variable}<{end}; {variable}+={one})"


SOFTMAX = f"""\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0,
                       float* out_ptr1,
                       float* out_ptr2)
{{
    std::atomic<int> inductor_cpu_integer_div_error{{0}};
    inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
    {{
        std::unique_ptr<float []> buf_local_buffer_data_0 = std::make_unique<float []>(67L);
        float* local_buffer_data_0 = buf_local_buffer_data_0.get();
        #pragma GCC ivdep
        {loop("x0", 5)}
        {{
            {{
                float tmp_acc0 = -std::numeric_limits<float>::infinity();
                {loop("x1", 67)}
                {{
                    {{
                        {{
                            auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 67L*x0)];
                            tmp_acc0 = max_propagate_nan(tmp_acc0, tmp0);
                        }}
                    }}
                }}
                out_ptr0[static_cast<int64_t>(x0)] = tmp_acc0;
            }}
            {{
                float tmp_acc0 = 0;
                {loop("x1", 67)}
                {{
                    {{
                        {{
                            auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 67L*x0)];
                            auto tmp1 = out_ptr0[static_cast<int64_t>(x0)];
                            auto tmp2 = float(tmp0 - tmp1);
                            auto tmp3 = std::exp(tmp2);
                            local_buffer_data_0[static_cast<int64_t>(x1)] = tmp3;
                            tmp_acc0 = tmp_acc0 + tmp3;
                        }}
                    }}
                }}
                out_ptr1[static_cast<int64_t>(x0)] = tmp_acc0;
            }}
            #pragma GCC ivdep
            {loop("x1", 67)}
            {{
                {{
                    {{
                        auto tmp0 = local_buffer_data_0[static_cast<int64_t>(x1)];
                        auto tmp1 = out_ptr1[static_cast<int64_t>(x0)];
                        auto tmp2 = tmp0 / tmp1;
                        out_ptr2[static_cast<int64_t>(x1 + 67L*x0)] = tmp2;
                    }}
                }}
            }}
        }}
    }}
    inductor_cpu_integer_div_error_flag = nullptr;
    inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}}
"""

COLUMN_SUM = f"""\
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{{
    {{
        #pragma GCC ivdep
        {loop("x0", 70)}
        {{
            {{
                float tmp_acc0 = 0;
                {loop("x1", 9)}
                {{
                    {{
                        {{
                            auto tmp0 = in_ptr0[static_cast<int64_t>(x0 + 70L*x1)];
                            auto tmp1 = decltype(tmp0)(-tmp0);
                            tmp_acc0 = tmp_acc0 + tmp1;
                        }}
                    }}
                }}
                out_ptr0[static_cast<int64_t>(x0)] = tmp_acc0;
            }}
        }}
    }}
}}
"""

TOTAL = f"""\
extern "C"  void  kernel(float* in_out_ptr0,
                       const float* in_ptr0)
{{
    auto out_ptr0 = in_out_ptr0;
    {{
        {{
            float tmp_acc0 = 0;
            CascadeSumHelper<float, 4096> scalar_cascade_helper0(static_cast<int64_t>(30000L));
            {loop("x0", 30000)}
            {{
                {{
                    {{
                        auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
                        tmp_acc0 = cascade_sum_combine(tmp0, &scalar_cascade_helper0);
                    }}
                }}
            }}
            tmp_acc0 = cascade_sum_final(&scalar_cascade_helper0);
            out_ptr0[static_cast<int64_t>(0L)] = tmp_acc0;
        }}
    }}
    {{
        {{
            {{
                auto tmp0 = out_ptr0[static_cast<int64_t>(0L)];
                auto tmp1 = static_cast<float>(30000.0);
                auto tmp2 = tmp0 / tmp1;
                in_out_ptr0[static_cast<int64_t>(0L)] = tmp2;
            }}
        }}
    }}
}}
"""

LOOK_UP = f"""\
extern "C"  void  kernel(const int64_t* in_ptr0,
                       const float* in_ptr1,
                       float* out_ptr0)
{{
    {{
        {loop("x0", 6)}
        {{
            {loop("x1", 20)}
            {{
                {{
                    {{
                        auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
                        auto tmp1 = tmp0;
                        auto tmp2 = c10::convert<int64_t>(tmp1);
                        TORCH_CHECK((0 <= tmp2) & (tmp2 < 11L), "index out of bounds: 0 <= tmp2 < 11L");
                        auto tmp4 = in_ptr1[static_cast<int64_t>(x1 + 20L*tmp0)];
                        auto tmp5 = static_cast<float>(2.5);
                        auto tmp6 = float(tmp4 * tmp5);
                        out_ptr0[static_cast<int64_t>(x1 + 20L*x0)] = tmp6;
                    }}
                }}
            }}
        }}
    }}
}}
"""  # noqa: E501

PADDED = f"""\
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{{
    {{
        {loop("x0", 4)}
        {{
            #pragma GCC ivdep
            {loop("x1", 13)}
            {{
                {{
                    {{
                        auto tmp0 = (-3L) + x1;
                        auto tmp1 = c10::convert<int64_t>(tmp0);
                        auto tmp2 = static_cast<int64_t>(0);
                        auto tmp3 = tmp1 >= tmp2;
                        auto tmp4 = [&]
                        {{
                            auto tmp5 = in_ptr0[static_cast<int64_t>((-3L) + x1 + 10L*x0)];
                            return tmp5;
                        }}
                        ;
                        auto tmp6 = tmp3 ? tmp4() : static_cast<decltype(tmp4())>(0.0);
                        out_ptr0[static_cast<int64_t>(x1 + 13L*x0)] = tmp6;
                    }}
                }}
            }}
        }}
    }}
}}
"""

_WRAPPER = """\
import torch
{kernels}

class Runner:
    def call(self, args):
        {given} = args
        args.clear()
{body}
"""


def wrapper(given: str, body: str, **kernels: str) -> str:
    """A generated module: kernels by name, and what its ``call`` does."""
    texts = [
        f"{name} = async_compile.cpp_pybinding([], r'''\n{text}''')"
        for name, text in kernels.items()
    ]
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    return _WRAPPER.format(kernels="\n".join(texts), given=given, body=lines)


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    found = [1]
    for size in reversed(shape[1:]):
        found.append(found[-1] * size)
    return tuple(reversed(found)) if shape else ()


def argument(number: int, path: str, *shape: int, dtype: str = "float32") -> Argument:
    return Argument(name=f"arg{number}_1", path=path, shape=shape, stride=dense(shape), dtype=dtype)


def task(forward: str, *, given: str = "x", inputs: str = "torch.randn(5, 67)") -> Task:
    source = (
        "import torch\n\n\nclass Model(torch.nn.Module):\n"
        f"    def forward(self, {given}):\n        return {forward}\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    return Task(name="small", source=source)


def found(one: Task, code: str, *arguments: Argument) -> list:
    """What the capture of a task would give."""
    form = Form(name="written", source=one.source)
    return [(form, [("default", Captured(code=code, arguments=arguments))])]


SOFTMAX_TASK = task("torch.softmax(x, -1)")
SOFTMAX_CODE = wrapper(
    "arg0_1,",
    """
assert_size_stride(arg0_1, (5, 67), (67, 1), 'input')
buf0 = empty_strided_cpu((5, 1), (1, 5), torch.float32)
buf2 = empty_strided_cpu((5, 1), (1, 5), torch.float32)
buf3 = empty_strided_cpu((5, 67), (67, 1), torch.float32)
cpp_fused__softmax_0(arg0_1, buf0, buf2, buf3)
del arg0_1
return (buf3, )
""",
    cpp_fused__softmax_0=SOFTMAX,
)

FREXP = f"""\
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0,
                       int32_t* out_ptr1)
{{
    {{
        #pragma GCC ivdep
        {loop("x0", 335)}
        {{
            {{
                {{
                    auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
                    int32_t tmp1;
                    auto tmp2 = std::frexp(tmp0, &tmp1);
                    out_ptr0[static_cast<int64_t>(x0)] = tmp2;
                    out_ptr1[static_cast<int64_t>(x0)] = tmp1;
                }}
            }}
        }}
    }}
}}
"""

SHIFTED = f"""\
extern "C"  void  kernel(const uint8_t* in_ptr0,
                       const uint8_t* in_ptr1,
                       uint8_t* out_ptr0)
{{
    {{
        #pragma GCC ivdep
        {loop("x0", 2560)}
        {{
            {{
                {{
                    auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
                    auto tmp1 = in_ptr1[static_cast<int64_t>(x0)];
                    auto tmp2 =
                    [&]()
                    {{
                        constexpr decltype(tmp1) max_shift = sizeof(uint8_t) * CHAR_BIT - std::is_signed_v<uint8_t>;
                        if ((static_cast<std::make_signed_t<uint8_t>>(tmp1) < 0) || (tmp1 >= max_shift))
                        {{
                            return decltype(tmp0)(tmp0 >> max_shift);
                        }}
                        return decltype(tmp0)(tmp0 >> tmp1);
                    }}
                    ()
                    ;
                    out_ptr0[static_cast<int64_t>(x0)] = tmp2;
                }}
            }}
        }}
    }}
}}
"""  # noqa: E501

"""What a candidate imports: signatures read from C++, and functions that take tensors."""

import ctypes

import pytest
import torch

from kernelsmith.kernels import BuildError, BuildRequest, Signature, cpp, signatures

POINTER, INT64, FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


def only(source: str) -> Signature:
    (found,) = signatures(source).values()
    return found


def test_pointers_numbers_and_nothing_returned():
    found = signatures('extern "C" void f(const float* x, float *y, int64_t n, float a) { }')
    assert found == {"f": Signature(None, (POINTER, POINTER, INT64, FLOAT))}


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("int n", ctypes.c_int32),
        ("const int n", ctypes.c_int32),
        ("int const n", ctypes.c_int32),
        ("int", ctypes.c_int32),
        ("unsigned n", ctypes.c_uint32),
        ("unsigned int n", ctypes.c_uint32),
        ("long long n", ctypes.c_int64),
        ("long unsigned int n", ctypes.c_uint64),
        ("unsigned long long n", ctypes.c_uint64),
        ("unsigned char n", ctypes.c_uint8),
        ("short n", ctypes.c_int16),
        ("char c", ctypes.c_int8),
        ("std::int64_t n", ctypes.c_int64),
        ("std::size_t n", ctypes.c_size_t),
        ("uint16_t n", ctypes.c_uint16),
        ("bool yes", ctypes.c_bool),
        ("double x", ctypes.c_double),
        ("float x = 1.0f", ctypes.c_float),
        ("int n = std::max(1, 2)", ctypes.c_int32),
        ("const float* __restrict__ x", ctypes.c_void_p),
        ("float *const __restrict x", ctypes.c_void_p),
        ("float x[]", ctypes.c_void_p),
        ("float& x", ctypes.c_void_p),
        ("void (*call)(int, float)", ctypes.c_void_p),
    ],
)
def test_a_parameter_has_the_type_that_is_written(written, kind):
    assert only(f'extern "C" void f({written}, double last) {{}}').arguments[0] is kind


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("void", None),
        ("float", ctypes.c_float),
        ("double", ctypes.c_double),
        ("int", ctypes.c_int32),
        ("const char*", ctypes.c_void_p),
        ("float *", ctypes.c_void_p),
        ("inline long", ctypes.c_int64),
        ("__attribute__((noinline)) void", None),
        ('__attribute__((visibility("default"))) float', ctypes.c_float),
        ("[[gnu::hot]] int64_t", ctypes.c_int64),
    ],
)
def test_the_result_has_the_type_that_is_written(written, kind):
    assert only(f'extern "C" {written} f(int n) {{ }}') == Signature(kind, (ctypes.c_int32,))


@pytest.mark.parametrize("empty", ["", "void", "  "])
def test_a_function_may_take_nothing(empty):
    assert only(f'extern "C" int f({empty}) {{ return 1; }}').arguments == ()


def test_a_block_holds_several_functions_and_what_they_call():
    found = signatures("""
        extern "C" {
        struct Shape { int rows; };
        static float helper(__m256 v) { return v[0]; }
        void first(float* x) { if (x) { x[0] = 1; } }
        int second(int n);
        } // extern "C"
        void outside(float* x) {}
    """)
    assert set(found) == {"first", "second"}


def test_functions_without_c_linkage_are_not_listed():
    source = """
        static float own(std::vector<float>& v) { return v[0]; }
        template <class T> void run(T* x) {}
        extern "C" void shown(float* x) { run(x); }
        void hidden(int n) {}
    """
    assert set(signatures(source)) == {"shown"}


def test_a_declaration_counts_and_does_not_reach_into_what_follows():
    found = signatures('extern "C" void f(float* x);\nstruct S {};\nvoid f(float* x) {}\n')
    assert found == {"f": Signature(None, (POINTER,))}


def test_comments_and_texts_mean_nothing():
    found = signatures("""
        // extern "C" void no(float* x) {}
        /* extern "C" void neither(float* x) {} */
        extern "C" void f(float* x /* the input */, // and a comment, with a comma
                          int64_t n /* = 3 */) { puts("}"); char c = '}'; }
        extern "C" void g(int n) { puts("// no comment {"); }
    """)
    assert found == {
        "f": Signature(None, (POINTER, INT64)),
        "g": Signature(None, (ctypes.c_int32,)),
    }


def test_preprocessor_lines_are_passed_over_and_a_macro_may_say_extern():
    found = signatures("""
        #include <cmath>
        #define LOOP(n) \\
            for (int i = 0; i < n; ++i) {
        #define EXPORT extern "C" __attribute__((visibility("default")))
        EXPORT void f(float* x, int n) noexcept { }
    """)
    assert found == {"f": Signature(None, (POINTER, ctypes.c_int32))}


def test_a_parameter_of_unknown_type_matters_only_to_whoever_calls_it():
    lib = cpp("""
        struct Pair { float a, b; };
        extern "C" float sum(Pair p) { return p.a + p.b; }
        extern "C" float twice(float x) { return 2 * x; }
    """)
    assert lib.twice(1.5) == 3.0
    with pytest.raises(TypeError, match="no C type known for 'Pair p'"):
        lib.sum(1.0)


def test_tensors_are_passed_as_pointers_and_none_as_null():
    lib = cpp("""
        extern "C" void axpy(const float* x, const float* bias, float* y, int64_t n, float a) {
            for (int64_t i = 0; i < n; ++i) y[i] = a * x[i] + (bias ? bias[i] : 0);
        }
    """)
    x, y = torch.arange(4.0), torch.empty(4)
    lib.axpy(x, None, y, 4, 2)
    assert y.tolist() == [0, 2, 4, 6]
    lib.axpy(x, x, y, 4, 2)
    assert y.tolist() == [0, 3, 6, 9]


def test_a_wrong_number_of_arguments_is_said_and_not_run():
    lib = cpp('extern "C" void f(int a, int b) { }')
    with pytest.raises(TypeError, match="f takes 2 arguments; got 1"):
        lib.f(1)


def test_an_unknown_function_is_named_with_those_that_exist():
    lib = cpp('extern "C" void there(int a) { }')
    with pytest.raises(AttributeError, match="'elsewhere'; the source defines there"):
        lib.elsewhere(1)


def test_what_the_compiler_says_is_the_error():
    with pytest.raises(BuildError, match="nonsense"):
        cpp('extern "C" void f() { nonsense; }')


@pytest.mark.parametrize("flag", ["-fplugin=x.so", "-o", "-I/etc", "-Wl,-rpath", "-specs=x", 3])
def test_flags_that_reach_beyond_code_generation_are_refused(flag):
    body = {"kind": "cpp", "source": "", "flags": [flag], "name": "kernel"}
    with pytest.raises(BuildError, match="not allowed"):
        BuildRequest.from_json(body)


@pytest.mark.parametrize("flag", ["-O2", "-ffast-math", "-mavx2", "-DN=32", "-std=c++20", "-g"])
def test_flags_for_code_generation_pass(flag):
    body = {"kind": "cpp", "source": "", "flags": [flag], "name": "kernel"}
    assert BuildRequest.from_json(body).flags == (flag,)

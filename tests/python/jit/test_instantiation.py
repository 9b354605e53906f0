"""Templates and overloads are chosen from the arguments, by one rule."""

import numpy as np
import pytest

import bascule

AXPY = """
template <class T> __global__ void axpy(T a, bascule::array_view<const T> x, bascule::array_view<T> y) {
    for (auto i : bascule::grid_stride(y.size())) y[i] += a * x[i];
}"""


def on_device(dtype="f4", shape=8, value=1):
    return bascule.to_device(np.full(shape, value, dtype))


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_the_arrays_decide_the_type_and_the_scalar_is_converted_to_it(dtype, rng):
    kernel = bascule.compile(AXPY).axpy
    a = rng.integers(0, 10, 1000).astype(dtype)
    b = rng.integers(0, 10, 1000).astype(dtype)
    x, y = bascule.to_device(a), bascule.to_device(b)
    kernel.forall(1000)(2, x, y)
    np.testing.assert_array_equal(y.copy_to_host(), (2 * a + b).astype(dtype))


def test_the_chosen_kernel_is_returned_by_prepare_and_nothing_is_launched():
    kernel = bascule.compile(AXPY).axpy
    y = on_device("f8")
    chosen = kernel.prepare(2, on_device("f8"), y)
    assert kernel.is_template
    assert not chosen.is_template
    assert chosen.signature == (
        "void axpy<double>(double a, bascule::array_view<const double> x, bascule::array_view<double> y)"
    )
    assert "axpy" in chosen.ptx
    np.testing.assert_array_equal(y.copy_to_host(), np.ones(8))


def test_each_list_of_types_is_compiled_once():
    kernel = bascule.compile(AXPY + "// once").axpy
    for dtype in ("f4", "f8", "f4", "f8"):
        kernel.forall(8)(2, on_device(dtype), on_device(dtype))
    before = bascule.cache.stats().nvrtc_calls
    for dtype in ("f4", "f8"):
        kernel[1, 32](3, on_device(dtype), on_device(dtype))
    assert bascule.cache.stats().nvrtc_calls == before


def test_a_guess_from_the_text_costs_one_compile():
    before = bascule.cache.stats().nvrtc_calls
    bascule.compile(AXPY + "// one compile").axpy.forall(8)(2, on_device(), on_device())
    assert bascule.cache.stats().nvrtc_calls == before + 1


def test_two_arrays_that_disagree_are_both_named_with_their_types():
    kernel = bascule.compile(AXPY).axpy
    with pytest.raises(TypeError, match=r"'x' and 3 'y'.*disagree on T.*float32.*T = float\).*float64.*T = double\)"):
        kernel.forall(8)(2, on_device("f4"), on_device("f8"))


def test_names_are_refused_for_a_template_in_a_namespace_that_a_macro_opens():
    """The text shows only another kernel of this name, with its parameters in the other order."""
    module = bascule.compile("""
    #define OPEN(s) namespace s {
    namespace a {
    #if 0
    template <class T> __global__ void k(T* x, int b, int a) {}
    #endif
    __global__ void k(float* x, int b, int a) { x[0] = a; x[1] = b; }
    }
    OPEN(a)
    template <class T, int N = 2> __global__ void k(T* x, int a, int b = 7) { x[0] = a; x[1] = b; }
    }
    """)
    kernel = module["a::k"]
    whole, floats = bascule.zeros(2, "i4"), bascule.zeros(2, "f4")
    with pytest.raises(bascule.ArgumentTypeError, match="has no parameter 'a'.*pass its argument by position"):
        kernel[1, 1](whole, a=3, b=5)
    kernel[1, 1](whole, 3, 5)
    kernel[1, 1](floats, a=3, b=5)
    assert whole.copy_to_host().tolist() == [3, 5]
    assert floats.copy_to_host().tolist() == [3, 5]


def test_keywords_name_the_parameters_of_a_template():
    y = on_device(value=1)
    bascule.compile(AXPY).axpy.forall(8)(y=y, a=2, x=on_device(value=3))
    np.testing.assert_array_equal(y.copy_to_host(), np.full(8, 7, "f4"))


def test_a_wrong_count_shows_the_template():
    with pytest.raises(TypeError, match=r"'axpy' does not take 2 arguments: template <T> void axpy\(T a, "):
        bascule.compile(AXPY).axpy[1, 1](1, on_device())


SCALARS = """
template <class T> __global__ void scalar(T v, double* out) {
    out[0] = v; out[1] = sizeof(T); out[2] = T(-1) < T(0); out[3] = T(1) / 2 != 0;
}
"""


@pytest.mark.parametrize(
    ("value", "size", "signed", "fractions"),
    [
        (7, 4, 1, 0),
        (2.5, 8, 1, 1),
        (True, 1, 0, 0),
        (np.int8(-3), 1, 1, 0),
        (np.uint16(65535), 2, 0, 0),
        (np.int64(1 << 40), 8, 1, 0),
        (np.float32(0.5), 4, 1, 1),
        (np.float64(0.1), 8, 1, 1),
    ],
)
def test_a_scalar_alone_gives_its_own_type(value, size, signed, fractions):
    out = on_device("f8", 4, -1)
    bascule.compile(SCALARS).scalar[1, 1](value, out)
    assert out.copy_to_host().tolist()[:3] == [float(value), size, signed]
    if size > 1:
        assert out.copy_to_host()[3] == fractions


def test_an_int_beyond_int32_is_never_silently_a_wider_type():
    out = on_device("f8", 4, -1)
    kernel = bascule.compile(SCALARS).scalar
    with pytest.raises(OverflowError, match=r"'v'.*instantiate\(\"long long\"\)"):
        kernel[1, 1](1 << 40, out)
    kernel.instantiate("long long")[1, 1](1 << 40, out)
    assert out.copy_to_host().tolist()[:2] == [float(1 << 40), 8]
    kernel[1, 1](1, out)  # from now on the int instance is known for ints
    with pytest.raises(OverflowError, match="instantiate"):
        kernel[1, 1](1 << 40, out)


BLOCK = """
template <class T, int BLOCK> __global__ void block_sum(const T* x, T* out) {
    __shared__ T tile[BLOCK];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) { T sum = 0; for (int i = 0; i < BLOCK; ++i) sum += tile[i]; *out = sum; }
}
namespace deep { template <class T> __global__ void set(T* p) { *p = T(sizeof(T)); } }
"""


@pytest.mark.parametrize(
    "choose",
    [
        lambda k: k.instantiate("float", 64),
        lambda k: k.instantiate(BLOCK=64),
        lambda k: k.instantiate("float", BLOCK=64),
        lambda k: k.instantiate(T=np.float32, BLOCK=np.int64(64)),
        lambda k: k.instantiate(np.dtype("f4"), 64),
    ],
)
def test_template_arguments_may_be_said_by_position_or_name_in_full_or_in_part(choose):
    x, out = np.arange(64, dtype="f4"), on_device("f4", 1, -1)
    choose(bascule.compile(BLOCK).block_sum)[1, 64](bascule.to_device(x), out)
    assert out.copy_to_host()[0] == x.sum()


def test_what_cannot_be_told_shows_the_form_that_works():
    kernel = bascule.compile(BLOCK).block_sum
    with pytest.raises(TypeError, match=r"BLOCK.*cannot be deduced.*module\.block_sum\.instantiate\(BLOCK=256\)"):
        kernel[1, 64](on_device(), on_device())
    with pytest.raises(TypeError, match="instantiate"):
        kernel.prepare()


def test_a_qualified_name_is_an_item_and_works_as_a_template():
    module = bascule.compile(BLOCK)
    p = on_device("f8", 1)
    module["deep::set"][1, 1](p)
    assert p.copy_to_host()[0] == 8
    module["deep::set"].instantiate("double")[1, 1](p)
    assert module["deep::set"].instantiate("double").signature == "void deep::set<double>(double* p)"
    assert module.set.name == "deep::set"


@pytest.mark.parametrize("value", [3.5, object(), [1]])
def test_a_template_argument_that_is_no_type_and_no_value_is_refused(value):
    with pytest.raises(TypeError, match="template argument 1"):
        bascule.compile(BLOCK).block_sum.instantiate(value)


@pytest.mark.parametrize(
    ("instance", "said"),
    [
        ("tn<float, int>", "the template parameter N of kernel 'tn' is a value, got the type int"),
        ("tn<float, const float*>", "the template parameter N of kernel 'tn' is a value, got the type const float*"),
        ("tn<3, 3>", "the template parameter T of kernel 'tn' is a type, got the value 3"),
        ("tn<-1, 3>", "the template parameter T of kernel 'tn' is a type, got the value -1"),
    ],
)
def test_a_type_for_a_value_says_which_parameter_wants_which(instance, said):
    module = bascule.compile("template <class T, int N> __global__ void tn(T* x) { x[0] = N; }")
    with pytest.raises(bascule.ArgumentTypeError) as refused:
        module[instance].prepare()
    assert said in str(refused.value)
    assert "Write for example tn<float, 256>." in str(refused.value)
    first, second = instance[3:-1].split(", ")
    with pytest.raises(bascule.ArgumentTypeError, match="Write for example tn<float, 256>"):
        module.tn.instantiate(first, N=second)
    module["tn<unsigned short, sizeof(int)>"].prepare()


def test_a_function_that_is_not_a_template_cannot_be_instantiated():
    with pytest.raises(TypeError, match="is not a template"):
        bascule.compile("__global__ void k() {}").k.instantiate("int")


def test_an_instance_that_a_constraint_refuses_says_what_the_compiler_says():
    kernel = bascule.compile(
        "template <class T> requires (sizeof(T) == 4) __global__ void k(T* p) { *p = 1; }",
        options=bascule.CompileOptions(std="c++20"),
    ).k
    p = on_device("f4", 1)
    kernel[1, 1](p)
    with pytest.raises(bascule.CompileError, match=r"'k' has no instance k<double>"):
        kernel[1, 1](on_device("f8", 1))


MACROS = """
#define IN(T) const T* __restrict__
template <class T> using pointer = T*;
template <class T> struct holder { using type = T*; };
template <class T> __global__ void through(IN(T) x, pointer<T> y) { y[threadIdx.x] = x[threadIdx.x] + 1; }
template <class T> __global__ void hidden(typename holder<T>::type x) { *x = 1; }
template <class T, int N> __global__ void value(IN(T) x, bascule::array_view<T, N> y) { *y.data() = N; }
"""


@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_the_compiler_is_asked_where_the_text_does_not_tell(dtype):
    module = bascule.compile(MACROS)
    x, y = on_device(dtype), on_device(dtype)
    module.through[1, 8](x, y)
    np.testing.assert_array_equal(y.copy_to_host(), np.full(8, 2, dtype))
    z = on_device(dtype, (2, 2, 2))
    module.value[1, 1](x, z)
    assert z.copy_to_host().ravel()[0] == 3


def test_the_compiler_sees_through_a_nested_type():
    p = on_device(value=5)
    bascule.compile(MACROS).hidden[1, 1](p)
    assert p.copy_to_host()[0] == 1


def test_a_rank_that_is_computed_from_one_parameter_does_not_speak_for_another():
    kernel = bascule.compile("""
        template <class T, int N> using view = bascule::array_view<T, N>;
        template <class T, int N, int M> __global__ void k(view<const T, N + 1> x, view<T, M> y) { y[0] = x(1, 0) + M; }
    """).k
    x, y = bascule.to_device(np.array([[1, 2], [3, 4]], "f4")), on_device("f4", 1)
    kernel.instantiate(N=1)[1, 1](x, y)
    assert y.copy_to_host()[0] == 4


def test_a_default_that_names_a_member_of_another_type_is_left_as_it_is():
    kernel = bascule.compile("""
        struct Other { using T = float; };
        template <class T, class U = Other::T, int N> __global__ void k(T* x, bascule::array_view<float, N> y) {}
    """).k
    assert kernel.prepare(on_device("i4"), on_device("f4")).name == "k"


def test_a_type_that_nothing_tells_is_asked_for():
    module = bascule.compile("template <class T> __global__ void k(double* x) { *x = sizeof(T); }")
    p = on_device("f8", 1)
    with pytest.raises(TypeError, match=r"cannot be deduced from the arguments.*instantiate\(T=\"float\"\)"):
        module.k[1, 1](p)
    module.k.instantiate("short")[1, 1](p)
    assert p.copy_to_host()[0] == 2


OVERLOADS = """
__global__ void set(float* p) { *p = 1; }
__global__ void set(double* p) { *p = 2; }
__global__ void set(float* p, int n) { *p = n + 10; }
__global__ void set(float* p, float x) { *p = x + 20; }
template <class T> __global__ void set(T* p, T a, T b) { *p = a + b; }
"""


def test_overloads_are_told_apart_by_types_and_count():
    module = bascule.compile(OVERLOADS)
    p, q, r = on_device("f4", 1), on_device("f8", 1), on_device("i4", 1)
    module.set[1, 1](p)
    module.set[1, 1](q)
    module.set[1, 1](r, 3, 4)
    assert [a.copy_to_host()[0] for a in (p, q, r)] == [1, 2, 7]
    module.set[1, 1](p, 5)
    assert p.copy_to_host()[0] == 15
    module.set[1, 1](p, 0.5)
    assert p.copy_to_host()[0] == 20.5
    module.set[1, 1](p, np.float32(2))
    assert p.copy_to_host()[0] == 22


def test_an_overload_may_be_named_by_its_types():
    module = bascule.compile(OVERLOADS)
    p = on_device("f4", 1)
    module.set.overload("float*, float")[1, 1](p, 5)
    assert p.copy_to_host()[0] == 25
    assert module.set.overload("float *,int").signature == "void set(float* p, int n)"


def test_no_fitting_overload_lists_them_all():
    with pytest.raises(TypeError, match=r"takes \(an int64 array\)(.|\n)*set\(float\* p\)(.|\n)*set\(double\* p\)"):
        bascule.compile(OVERLOADS).set[1, 1](on_device("i8", 1))


def test_several_fitting_overloads_are_an_error_that_lists_them():
    module = bascule.compile("__global__ void k(long n) {}\n__global__ void k(short n) {}")
    with pytest.raises(TypeError, match=r"several overloads(.|\n)*overload\(\"long\"\)(.|\n)*void k\(short n\)"):
        module.k[1, 1](3)
    module.k[1, 1](np.int16(3))


def test_a_pack_takes_the_arguments_that_are_left():
    module = bascule.compile(
        "template <class... T> __global__ void total(double* out, T... v) { double s = 0; ((s += v), ...); *out = s; }"
    )
    out = on_device("f8", 1, -1)
    module.total[1, 1](out)
    assert out.copy_to_host()[0] == 0
    module.total[1, 1](out, 1, 2.5, np.float32(4))
    assert out.copy_to_host()[0] == 7.5


def test_abbreviated_templates_are_templates():
    module = bascule.compile(
        "__global__ void fill(auto* p, auto v) { p[threadIdx.x] = v; }", options=bascule.CompileOptions(std="c++20")
    )
    p = on_device("i4")
    module.fill[1, 8](p, 2.5)
    np.testing.assert_array_equal(p.copy_to_host(), np.full(8, 2, "i4"))


def test_a_mistake_in_a_template_is_shown_at_its_line():
    module = bascule.compile("template <class T> __global__ void k(T* p) {\n  *p = T::nowhere;\n}")
    with pytest.raises(bascule.CompileError, match=r"2: error(.|\n)*nowhere"):
        module.k[1, 1](on_device())


def test_forall_and_launch_work_for_templates():
    kernel = bascule.compile(AXPY).axpy
    y = on_device()
    kernel.launch(2, 4, (3, on_device(), y))
    np.testing.assert_array_equal(y.copy_to_host(), np.full(8, 4, "f4"))
    kernel.forall(0)(3, on_device(), y)
    with pytest.raises(TypeError, match="disagree"):
        kernel.forall(0)(3, on_device("f8"), y)
    assert "forall(8)" in repr(kernel.forall(8))

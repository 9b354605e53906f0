"""Headers of the C and C++ standard libraries, which ported kernels include: they compile and cost little."""

from __future__ import annotations

import math
import shutil
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import pytest
from child_process import run_python

import bascule

HEADERS = Path(bascule.__file__).parent / "bascule_host_headers"
NAMES = sorted(str(path.relative_to(HEADERS)) for path in HEADERS.rglob("*") if path.is_file())
NOTHING = "__global__ void nothing() {}\n"
COMPLEX = {"complex", "thrust/complex.h"}
FROM_LIBCUDACXX = {*COMPLEX, "bit", "concepts", "cub/cub.cuh", "span", "tuple"}


def values(body: str, dtype: str, count: int, includes: str, **options: object) -> np.ndarray:
    """Runs `body` in a kernel, and returns the values that it writes to `out`."""
    cpp = {"f4": "float", "f8": "double", "i4": "int", "i8": "long long", "u8": "unsigned long long"}[dtype]
    lines = "".join(f"#include <{name}>\n" for name in includes.split())
    module = bascule.compile(
        f"{lines}__global__ void k({cpp}* out) {{ {body} }}", options=bascule.CompileOptions(**options)
    )
    out = bascule.to_device(np.zeros(count, dtype))
    module.k[1, 1](out)
    return out.copy_to_host()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in COMPLEX])  # tested below
def test_each_header_compiles_alone_and_without_a_warning(name: str, recwarn: pytest.WarningsRecorder) -> None:
    bascule.compile(f"#include <{name}>\n{NOTHING}")
    assert [str(w.message) for w in recwarn if issubclass(w.category, bascule.CompileWarning)] == []


@pytest.mark.parametrize("ours_first", [True, False])
def test_all_headers_compile_together_and_beside_libcudacxx(ours_first: bool, recwarn: pytest.WarningsRecorder) -> None:
    ours = [f"#include <{name}>\n" for name in (NAMES if ours_first else NAMES[::-1])]
    theirs = [f"#include <cuda/std/{name}>\n" for name in ("cmath", "cstdint", "climits", "cfloat", "type_traits")]
    text = "".join(ours + theirs if ours_first else theirs + ours) + NOTHING
    bascule.compile(text, options=bascule.CompileOptions(std="c++20"))
    assert [str(w.message) for w in recwarn if issubclass(w.category, bascule.CompileWarning)] == []


def test_all_headers_can_stand_between_the_braces_of_extern_c() -> None:
    lines = "".join(f"#include <{name}>\n" for name in NAMES if name != "cub/cub.cuh")
    c = "typedef struct { int32_t id; float w; } point;\n"
    text = f'extern "C" {{\n{lines}{c}__global__ void k(point* p) {{ p->id = INT_MAX; }}\n}}\n'
    p = bascule.zeros(1, np.dtype([("id", "i4"), ("w", "f4")]))
    bascule.compile(text, options={"std": "c++20"}).k[1, 1](p)
    assert p.copy_to_host()["id"][0] == 2**31 - 1
    header = f'#ifdef __cplusplus\nextern "C" {{\n#endif\n#include <stdint.h>\n{c}#ifdef __cplusplus\n}}\n#endif\n'
    text = '#include "api.h"\n__global__ void k(point* p) { p->id = 7; }'
    bascule.compile(text, options={"headers": {"api.h": header}}).k[1, 1](p)
    assert p.copy_to_host()["id"][0] == 7


def test_most_headers_need_no_libcudacxx(monkeypatch: pytest.MonkeyPatch) -> None:
    directories = bascule._bascule._nvrtc_info()["include_paths"]
    without = [path for path in directories if not (Path(path) / "cuda" / "std").is_dir()]
    assert without
    monkeypatch.setattr(bascule.config, "include_paths", without)
    lines = "".join(f"#include <{name}>\n" for name in NAMES if name not in FROM_LIBCUDACXX)
    body = "*out = UINT8_MAX + INT_MAX % 10 + (FLT_MAX > 1);"
    bascule.compile(f"{lines}__global__ void k(int* out) {{ {body} }}")


def test_integer_limits_are_those_of_c() -> None:
    body = """out[0] = INT_MAX; out[1] = INT_MIN; out[2] = SHRT_MAX; out[3] = CHAR_BIT; out[4] = LONG_MAX;
              out[5] = INT64_MIN; out[6] = UINT32_MAX; out[7] = UCHAR_MAX;
              out[8] = sizeof(int64_t); out[9] = sizeof(uint8_t);"""
    expected = [2**31 - 1, -(2**31), 2**15 - 1, 8, 2**63 - 1, -(2**63), 2**32 - 1, 255, 8, 1]
    assert values(body, "i8", 10, "limits.h stdint.h").tolist() == expected


def test_floating_point_limits_are_those_of_numpy() -> None:
    single, double = np.finfo("f4"), np.finfo("f8")
    body = """out[0] = FLT_MAX; out[1] = FLT_MIN; out[2] = FLT_EPSILON; out[3] = DBL_MAX; out[4] = DBL_MIN;
              out[5] = DBL_EPSILON; out[6] = FLT_DIG; out[7] = DBL_MANT_DIG;"""
    expected = [single.max, single.tiny, single.eps, double.max, double.tiny, double.eps, 6, 53]
    assert values(body, "f8", 8, "float.h").tolist() == [float(value) for value in expected]


@pytest.mark.parametrize("header", ["math.h", "cmath"])
def test_the_constants_of_math(header: str) -> None:
    body = """out[0] = M_PI; out[1] = M_E; out[2] = M_SQRT2; out[3] = INFINITY; out[4] = -INFINITY; out[5] = NAN;
              out[6] = HUGE_VAL; out[7] = M_LN2; out[8] = max(out[0], (double)INFINITY);"""
    got = values(body, "f8", 9, header)
    expected = [math.pi, math.e, math.sqrt(2), math.inf, -math.inf, math.nan, math.inf, math.log(2), math.inf]
    np.testing.assert_array_equal(got, expected)


def test_infinity_initialises_a_constant() -> None:
    module = bascule.compile(
        "#include <math.h>\n__constant__ float most = INFINITY;\n__global__ void k(float* out) { out[0] = most; }"
    )
    out = bascule.to_device(np.zeros(1, "f4"))
    module.k[1, 1](out)
    assert out.copy_to_host()[0] == np.inf


@pytest.mark.parametrize("dtype", ["i4", "i8", "u8"])
def test_numeric_limits_of_integers_are_those_of_numpy(dtype: str) -> None:
    cpp = {"i4": "int", "i8": "long long", "u8": "unsigned long long"}[dtype]
    body = f"using L = std::numeric_limits<{cpp}>; out[0] = L::max(); out[1] = L::min(); out[2] = L::digits10;"
    info = np.iinfo(dtype)
    assert values(body, dtype, 3, "limits").tolist() == [info.max, info.min, len(str(info.max)) - 1]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numeric_limits_of_floating_point_are_those_of_numpy(dtype: str) -> None:
    cpp = {"f4": "float", "f8": "double"}[dtype]
    body = f"""using L = std::numeric_limits<{cpp}>; out[0] = L::max(); out[1] = L::lowest(); out[2] = L::min();
               out[3] = L::epsilon(); out[4] = L::infinity(); out[5] = L::quiet_NaN(); out[6] = L::denorm_min();
               out[7] = L::digits; out[8] = L::max_exponent;"""
    info = np.finfo(dtype)
    expected = [
        info.max,
        info.min,
        info.tiny,
        info.eps,
        np.inf,
        np.nan,
        info.smallest_subnormal,
        info.nmant + 1,
        info.maxexp,
    ]
    np.testing.assert_array_equal(values(body, dtype, 9, "limits"), np.array(expected, dtype))


def test_limits_of_a_type_without_any_are_an_error_and_not_zero() -> None:
    with pytest.raises(bascule.CompileError, match="has no member"):
        bascule.compile("#include <limits>\nstruct S {};\n__global__ void k() { (void)std::numeric_limits<S>::max(); }")


def test_std_functions_keep_single_precision() -> None:
    body = """float x = 2.0f; static_assert(sizeof(std::sqrt(x)) == 4 && sizeof(std::pow(x, 2)) == 4);
              out[0] = std::sqrt(x); out[1] = std::abs(-x); out[2] = std::pow(x, 3.0f); out[3] = std::isnan(x);
              out[4] = std::fmax(x, 3.0f); out[5] = std::floor(2.7f);"""
    np.testing.assert_allclose(values(body, "f4", 6, "cmath"), [math.sqrt(2), 2, 8, 0, 3, 2], rtol=1e-6)


def test_algorithms() -> None:
    body = """int a[5] = {1, 3, 5, 7, 9}; int b[5]; std::copy(a, a + 5, b); std::swap(b[0], b[4]);
              out[0] = std::max(2, 3); out[1] = std::min({4, 2, 8}); out[2] = std::clamp(12, 0, 10);
              out[3] = std::lower_bound(a, a + 5, 5) - a; out[4] = std::upper_bound(a, a + 5, 5) - a; out[5] = b[0];
              std::fill(b, b + 5, 2); out[6] = std::accumulate(b, b + 5, 0);
              out[7] = std::max(2, 3, [](int x, int y) { return y < x; });"""
    assert values(body, "i4", 8, "algorithm numeric").tolist() == [3, 2, 10, 2, 3, 9, 10, 2]


def test_iterators() -> None:
    body = """struct Range { int* first; __device__ int* begin() { return first; }
                             __device__ int* end() { return first + 3; } };
              int a[4] = {1, 2, 3, 4}; Range range{a}; auto i = std::begin(a); std::advance(i, 2); out[0] = *i;
              out[1] = *std::next(a); out[2] = *std::prev(std::end(range));
              out[3] = std::distance(std::begin(range), std::end(range)); out[4] = std::size(a);
              std::iterator_traits<const int*>::value_type b = 7; b += 1; out[5] = b;"""
    assert values(body, "i4", 6, "iterator").tolist() == [3, 2, 3, 3, 4, 8]


def test_the_results_of_calls() -> None:
    body = """auto half = [](int x) { return x / 2.0; }; out[0] = half(2) == 1; using H = decltype(half);
              static_assert(std::is_same_v<std::invoke_result_t<H, int>, double>);
              out[0] = std::is_invocable_v<H, int>; out[1] = std::is_invocable_v<H, int*>;
              out[2] = std::is_invocable<H, int>::value; out[3] = std::is_invocable_v<int (*)(float), short>;"""
    assert values(body, "i4", 4, "type_traits").tolist() == [1, 0, 1, 1]


def test_exceptions_can_be_named_and_new_places_objects() -> None:
    body = """std::out_of_range error("far"); out[0] = error.what()[0]; std::runtime_error other("run");
              out[1] = other.what()[1]; alignas(8) char bytes[8]; int* placed = new (bytes) int(5);
              out[2] = *std::launder(placed); out[3] = std::clock() >= 0;"""
    assert values(body, "i4", 4, "stdexcept new ctime").tolist() == [ord("f"), ord("u"), 5, 1]


def test_a_using_directive_makes_nothing_ambiguous() -> None:
    text = """
#include <algorithm>
#include <cmath>
#include <limits>
using namespace std;
__global__ void k(float* out, int n) {
    out[0] = max(out[0], 3.0f); out[1] = min(n, 4); out[2] = sqrt(out[0]); out[3] = abs(-out[0]);
    out[4] = pow(2.0f, 3.0f);
    out[5] = numeric_limits<int>::max() > n; swap(out[0], out[5]);
}"""
    out = bascule.to_device(np.zeros(6, "f4"))
    bascule.compile(text).k[1, 1](out, 9)
    np.testing.assert_allclose(out.copy_to_host(), [1, 4, math.sqrt(3), 3, 8, 3], rtol=1e-6)


def test_type_traits_say_what_the_language_says() -> None:
    bascule.compile("""
#include <type_traits>
#include <utility>
enum class E : short { a };
struct B {};
struct D : B {};
static_assert(std::is_same_v<std::decay_t<const int (&)[3]>, const int*>);
static_assert(std::is_same_v<std::make_unsigned_t<long>, unsigned long>);
static_assert(std::is_same_v<std::make_signed_t<char>, signed char>);
static_assert(std::is_same_v<std::common_type_t<int, float>, float>);
static_assert(std::is_same_v<std::underlying_type_t<E>, short>);
static_assert(std::is_base_of_v<B, D> && !std::is_base_of_v<D, B> && std::is_convertible_v<int, double>);
static_assert(std::is_pointer_v<int* const> && !std::is_pointer_v<int> && std::is_array<int[3]>::value);
static_assert(std::is_unsigned_v<unsigned char> && std::is_signed_v<float> && !std::is_signed_v<E>);
static_assert(std::is_integral<const bool>::value && !std::is_integral_v<float> && std::is_floating_point_v<double>);
static_assert(std::is_same_v<std::remove_cv_t<const volatile int>, int>);
static_assert(std::is_same_v<std::remove_cvref_t<const int&>, int>);
static_assert(std::is_const_v<const int> && !std::is_const_v<const int*> && std::is_lvalue_reference_v<int&>);
static_assert(std::is_enum_v<E> && std::is_class_v<B> && std::is_empty_v<B> && std::is_trivially_copyable_v<B>);
static_assert(std::is_same_v<std::conditional_t<true, int, float>, int>);
static_assert(std::conjunction_v<std::true_type, std::is_void<void>>);
static_assert(std::is_same_v<std::make_index_sequence<3>, std::index_sequence<0, 1, 2>>);
template <class T, std::enable_if_t<std::is_integral<T>::value, int> = 0> __device__ int which(T) { return 1; }
template <class T, std::enable_if_t<std::is_floating_point<T>::value, int> = 0> __device__ int which(T) { return 2; }
__global__ void k(int* out) { out[0] = which(1); out[1] = which(1.0f); }
""")


def test_pairs_arrays_and_tuples() -> None:
    body = """auto p = std::make_pair(1, 2.5); auto [a, b] = p; std::array<int, 3> r{4, 5, 6}; int sum = 0;
              for (int x : r) sum += x; std::tuple<int, int> t{7, 8}; int i, j; std::tie(i, j) = t;
              out[0] = a; out[1] = sum; out[2] = j; out[3] = r.size(); out[4] = std::plus<>()(i, 1);
              out[5] = std::exchange(i, 9) + i;"""
    assert values(body, "i4", 6, "array functional tuple utility").tolist() == [1, 15, 8, 3, 8, 16]


def test_bits_concepts_and_spans() -> None:
    body = """std::span<int, 6> s(out, 6); std::span<int> some = s.subspan(2, 2);
              s[0] = std::bit_cast<int>(1.0f) == 0x3f800000; s[1] = std::popcount(7u) + std::countl_zero(1u);
              some[0] = std::same_as<int, int> && !std::integral<float>; some[1] = some.size();
              s[4] = std::bit_ceil(9u); s[5] = std::endian::native == std::endian::little;"""
    for std in ("c++17", "c++20"):
        assert values(body, "i4", 6, "bit concepts span", std=std).tolist() == [1, 34, 1, 2, 16, 1]


def test_cuda_h_has_tensor_maps_and_stands_beside_the_runtimes_header() -> None:
    module = bascule.compile("""
#include <cuda.h>
#include <cuda_runtime.h>
__global__ void k(const __grid_constant__ CUtensorMap map, CUdeviceptr p, int* out) {
    out[0] = map.opaque[3]; out[1] = sizeof map; out[2] = alignof(CUtensorMap); out[3] = p == (CUdeviceptr)out;
    out[4] = CUDA_VERSION / 1000 == __CUDACC_VER_MAJOR__;
}""")
    out = bascule.zeros(5, "i4")
    module.k[1, 1](np.arange(16, dtype="u8"), out.__cuda_array_interface__["data"][0], out)
    assert out.copy_to_host().tolist() == [3, 128, 64, 1, 1]


def test_the_umbrella_of_cub_has_what_kernels_use() -> None:
    module = bascule.compile("""
#include <cub/cub.cuh>
__global__ void k(int* x) {
    using Sort = cub::BlockRadixSort<int, 64, 1>;
    using Scan = cub::BlockScan<int, 64>;
    using Reduce = cub::WarpReduce<int>;
    __shared__ union { Sort::TempStorage sort; Scan::TempStorage scan; Reduce::TempStorage reduce[2]; } shared;
    int value[1] = {x[threadIdx.x]};
    Sort(shared.sort).Sort(value);
    __syncthreads();
    x[threadIdx.x] = value[0];
    Scan(shared.scan).InclusiveSum(value[0], value[0]);
    __syncthreads();
    int total = Reduce(shared.reduce[threadIdx.x / 32]).Sum(1);
    if (threadIdx.x % 32 == 0) x[64 + threadIdx.x / 32] = total;
    if (threadIdx.x == 63) x[66] = value[0];
}""")
    x = bascule.to_device(np.r_[np.arange(64)[::-1], 0, 0, 0].astype("i4"))
    module.k[1, 64](x)
    assert x.copy_to_host().tolist() == [*range(64), 32, 32, 2016]


@pytest.mark.parametrize(
    "line",
    [
        '__asm__ __volatile__("mov.u32 %0, 7;" : "=r"(*x));',
        '__asm("mov.u32 %0, 7;" : "=r"(*x));',
        'asm __volatile("mov.u32 %0, 7;" : "=r"(*x));',
        "*x = __extension__ 7;",
    ],
)
def test_gnu_spellings_of_keywords(line: str) -> None:
    x = bascule.zeros(1, "i4")
    bascule.compile(f"#define __asm__ asm\n__global__ void k(int* x) {{ {line} }}").k[1, 1](x)
    assert x.item() == 7


@pytest.mark.parametrize("include", ["", "#include <cuda_device_runtime_api.h>\n"])
def test_programmatic_dependent_launch_needs_no_include(include: str) -> None:
    body = "cudaGridDependencySynchronize(); *x = 7; cudaTriggerProgrammaticLaunchCompletion();"
    text = f"{include}__global__ void k(int* x) {{ {body} }}"
    x = bascule.zeros(1, "i4")
    quiet = ["-diag-suppress=1105"]  # "include cuda_runtime.h"
    if not include:  # with the header, the instructions are also in code for older architectures
        bascule.compile(text, options={"extra": quiet}).k[1, 1](x)
        assert x.item() == 7
    ptx = bascule.compile(text, options={"arch": "compute_90", "extra": quiet}).k.ptx
    assert "griddepcontrol.wait;" in ptx
    assert "griddepcontrol.launch_dependents;" in ptx


@pytest.mark.parametrize(("header", "namespace"), [("complex", "std"), ("thrust/complex.h", "thrust")])
def test_complex_numbers_of_a_ported_kernel(header: str, namespace: str, recwarn: pytest.WarningsRecorder) -> None:
    module = bascule.compile(f"""
#include <{header}>
using {namespace}::complex;
__global__ void k(complex<float>* z, float* out) {{
    z[0] = z[1] * z[2] + {namespace}::exp(complex<float>(0.0f, 0.0f));
    out[0] = {namespace}::abs(z[1]); out[1] = abs(z[1]); out[2] = {namespace}::norm(z[1]); out[3] = z[2].imag();
    z[3] = {namespace}::conj(z[1]); z[4] = {namespace}::pow(z[1], 2.0f);
}}""")
    z = bascule.to_device(np.array([0, 3 + 4j, 1 - 1j, 0, 0], "c8"))
    out = bascule.to_device(np.zeros(4, "f4"))
    module.k[1, 1](z, out)
    np.testing.assert_allclose(out.copy_to_host(), [5, 5, 25, -1], rtol=1e-5)
    expected = [(3 + 4j) * (1 - 1j) + 1, 3 + 4j, 1 - 1j, 3 - 4j, (3 + 4j) ** 2]
    np.testing.assert_allclose(z.copy_to_host(), expected, rtol=1e-4)
    assert [str(w.message) for w in recwarn if issubclass(w.category, bascule.CompileWarning)] == []


def test_abort_stops_the_kernel() -> None:
    child = textwrap.dedent("""
        import numpy as np, bascule
        m = bascule.compile("#include <stdlib.h>\\n__global__ void k(int n) { if (n == 3) abort(); }")
        m.k[1, 1](1)
        bascule.synchronize()
        m.k[1, 1](3)
        bascule.synchronize()
    """)
    result = run_python("-c", child)
    assert "CudaError" in result.stderr


def test_the_users_own_headers_win(tmp_path: Path) -> None:
    (tmp_path / "math.h").write_text("#define MINE 1\n")
    text = "#include <math.h>\n#ifndef MINE\n#error not mine\n#endif\n" + NOTHING
    bascule.compile(text, options=bascule.CompileOptions(include_paths=[tmp_path]))
    bascule.compile(text, options=bascule.CompileOptions(headers={"math.h": "#define MINE 1\n"}))
    with pytest.raises(bascule.CompileError, match="not mine"):
        bascule.compile(text)


def test_a_header_beside_the_including_file_wins(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "math.h").write_text("#define MINE 1\n")
    (tmp_path / "deep" / "user.h").write_text('#include "math.h"\n')
    bascule.compile(
        "#include <deep/user.h>\n#ifndef MINE\n#error not mine\n#endif\n" + NOTHING,
        options=bascule.CompileOptions(include_paths=[tmp_path]),
    )


def test_a_header_of_the_users_that_appears_later_is_noticed(tmp_path: Path) -> None:
    options = bascule.CompileOptions(include_paths=[tmp_path])
    text = "#include <limits.h>\n__global__ void k(int* out) { out[0] = CHAR_BIT; }"
    out = bascule.to_device(np.zeros(1, "i4"))
    bascule.compile(text, options=options).k[1, 1](out)
    assert out.copy_to_host()[0] == 8
    (tmp_path / "limits.h").write_text("#define CHAR_BIT 9\n")
    bascule.compile(text, options=bascule.CompileOptions(include_paths=[tmp_path])).k[1, 1](out)
    assert out.copy_to_host()[0] == 9


def test_common_headers_reach_few_files(tmp_path: Path) -> None:
    """All host headers of Bascule together include fewer files, and so compile faster, than <cuda/std/type_traits>."""

    def reached(*names: str) -> int:
        report = tmp_path / names[0].replace("/", "_")
        text = "".join(f"#include <{name}>\n" for name in names) + NOTHING
        bascule.compile(text, options=bascule.CompileOptions(extra=[f"-fdevice-time-trace={report}"]))
        return report.with_name(report.name + ".json").read_text().count("Processing Header File")

    ours = reached(*(name for name in NAMES if name not in FROM_LIBCUDACXX))
    assert ours < 200
    assert ours < reached("cuda/std/type_traits")


def fake_toolkit(root: Path, **headers: str) -> Path:
    (root / "include").mkdir(parents=True)
    for name in ("cuda_runtime.h", "cuda_fp16.h"):
        (root / "include" / name).write_text("#error the wheels' own come first\n")
    for name, text in headers.items():
        (root / "include" / f"{name}.h").write_text(text)
    return root


def run_with_toolkit(root: Path, text: str) -> str:
    child = f"import bascule\nbascule.compile({text!r})\nprint('compiled')"
    return run_python("-c", child, CUDA_HOME=str(root)).stdout


def test_what_the_wheels_lack_comes_from_the_toolkit_that_cuda_home_names(tmp_path: Path) -> None:
    root = fake_toolkit(tmp_path / "cuda", only_in_toolkit="#define FROM_TOOLKIT 1\n")
    text = "#include <only_in_toolkit.h>\n#include <cuda_fp16.h>\n#ifndef FROM_TOOLKIT\n#error\n#endif\n" + NOTHING
    assert "compiled" in run_with_toolkit(root, text)


def test_a_header_that_nothing_has_says_where_it_comes_from() -> None:
    with pytest.raises(bascule.CompileError, match=r"pip install nvidia-mathdx.*toolkit.*CUDA_HOME"):
        bascule.compile("#include <cufftdx.hpp>\n" + NOTHING)


# --- Compared with the host's own standard library

TYPES = """
struct Plain { int a; double b; };
struct Empty {};
struct Final final { int a; };
struct Abstract { FUNCTION virtual int f() = 0; FUNCTION virtual ~Abstract() {} };
struct NoDefault { FUNCTION NoDefault(int) {} NoDefault(const NoDefault&) = delete; int a; };
struct Throws {
    FUNCTION Throws() noexcept(false) {}
    FUNCTION Throws(const Throws&) {}
    FUNCTION ~Throws() {}
};
union Both { int a; float b; };
enum Plainly { one };
enum class Scoped : short { two };
struct Callable {
    FUNCTION int operator()(int x) const { return x + 1; }
    FUNCTION float operator()() noexcept { return 2; }
};
"""
OF_A_TYPE = """
is_null_pointer is_fundamental is_compound is_object is_member_pointer is_member_function_pointer
is_member_object_pointer is_scalar is_bounded_array is_unbounded_array is_polymorphic is_final is_aggregate is_trivial
has_virtual_destructor is_default_constructible is_copy_constructible is_move_constructible is_copy_assignable
is_move_assignable is_trivially_default_constructible is_trivially_copy_constructible is_nothrow_default_constructible
is_trivially_destructible rank extent
"""
SOME_TYPES = [
    *("int", "const float", "void", "decltype(nullptr)", "int*", "int&", "int[3]", "int[2][5]", "int[]", "int(int)"),
    *("int Plain::*", "int (Plain::*)(int)", "Plain", "Empty", "Abstract", "Final", "NoDefault", "Throws", "Both"),
    *("Plainly", "Scoped", "Callable"),
]
EXPRESSIONS = [
    *(f"std::{name}_v<{kind}>" for name in OF_A_TYPE.split() for kind in SOME_TYPES),
    *(f"std::{name}<Plain>::value" for name in OF_A_TYPE.split()),
    "std::alignment_of_v<double>",
    "std::extent_v<int[2][5], 1>",
    "sizeof(std::remove_all_extents_t<short[2][3]>)",
    "alignof(std::aligned_storage_t<24, 8>) + sizeof(std::aligned_storage_t<24, 8>)",
    "std::is_same_v<std::add_lvalue_reference_t<int>, int&>",
    "std::is_same_v<std::add_lvalue_reference_t<void>, void>",
    "std::is_same_v<std::add_rvalue_reference_t<int&>, int&>",
    "std::is_same_v<std::add_cv_t<int>, const volatile int>",
    "std::is_same_v<std::invoke_result_t<Callable, int>, int>",
    "std::is_same_v<std::invoke_result_t<Callable>, float>",
    "std::is_invocable_r_v<double, Callable, int>",
    "std::is_invocable_r_v<void, Callable, int>",
    "std::is_invocable_r_v<Plain, Callable, int>",
    "std::is_invocable_r_v<int, Callable, Plain>",
    "std::is_nothrow_invocable_v<Callable>",
    "std::is_nothrow_invocable_v<Callable, int>",
    "std::is_assignable_v<int&, float>",
    "std::is_assignable_v<int, float>",
    "std::is_trivially_constructible_v<Plain, const Plain&>",
    "std::is_nothrow_constructible_v<NoDefault, int>",
    "std::modulus<int>{}(17, 5) + std::modulus<>{}(17, 5)",
    "std::not_equal_to<int>{}(3, 4) + std::less_equal<>{}(4, 4) + std::greater_equal<int>{}(3, 4)",
    "std::logical_and<bool>{}(true, false) + std::logical_or<>{}(1, 0) + std::logical_not<bool>{}(false)",
    "std::bit_and<int>{}(12, 10) + 100 * std::bit_or<>{}(12, 10) + 10000 * std::bit_xor<int>{}(12, 10)",
    "std::negate<int>{}(3) + std::bit_not<int>{}(7)",
    "std::invoke(Callable{}, 41)",
]


def test_traits_and_functions_are_those_of_the_hosts_library(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("needs a host compiler to compare with")
    includes = "#include <type_traits>\n#include <functional>\n"
    printed = "".join(f'std::printf("%lld\\n", (long long)({each}));\n' for each in EXPRESSIONS)
    program = f"#include <cstdio>\n{includes}#define FUNCTION\n{TYPES}int main() {{ {printed} }}"
    (tmp_path / "traits.cpp").write_text(program)
    subprocess.run([compiler, "-std=c++20", "-w", "traits.cpp", "-o", "traits"], cwd=tmp_path, check=True)
    expected = subprocess.run([tmp_path / "traits"], capture_output=True, text=True, check=True).stdout.split()
    written = "".join(f"out[{i}] = (long long)({each});\n" for i, each in enumerate(EXPRESSIONS))
    text = f"{includes}#define FUNCTION __device__\n{TYPES}__global__ void k(long long* out) {{ {written} }}"
    out = bascule.zeros(len(EXPRESSIONS), "i8")
    bascule.compile(text, options={"std": "c++20"}).k[1, 1](out)
    got = out.copy_to_host()
    different = {each: (int(g), e) for each, g, e in zip(EXPRESSIONS, got, expected, strict=True) if int(g) != int(e)}
    assert different == {}


def test_reference_wrappers_refer() -> None:
    body = """int x = 3; std::reference_wrapper<int> r = x; r.get() = 5; std::ref(x).get() += 2; out[0] = x;
              out[1] = std::cref(x); out[2] = std::is_same_v<std::result_of_t<std::negate<int>(int)>, int>;"""
    assert values(body, "i4", 2 + 1, "functional type_traits").tolist() == [7, 7, 1]

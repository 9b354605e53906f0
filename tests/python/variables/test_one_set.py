"""A text has one set of variables on a device, whichever of its kernels and instances were compiled together."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from child_process import printed_by

import bascule

numbers = iter(range(1000))
DTYPES = ["f4", "f8", "i4", "u8", "i2"]


def compiled(text: str, *names: str, **options: object) -> bascule.Module:
    return bascule.compile(f"{text}\n// {next(numbers)}", name_expressions=names, options={"std": "c++20", **options})


def read(kernel: bascule.Kernel, dtype: str, *arguments: object, size: int = 1) -> list:
    out = bascule.to_device(np.full(size, 99, dtype))
    kernel[1, size](out, *arguments)
    return out.copy_to_host().tolist()


# Each declares a variable, and a function `next_number` that increments it and returns 0, 1, 2 and so on.
COUNTERS = {
    "device": "__device__ int n; __device__ int next_number() { return atomicAdd(&n, 1); }",
    "device, read and written": "__device__ int n; __device__ int next_number() { return n++; }",
    "extern C": 'extern "C" { __device__ int n; } __device__ int next_number() { return n++; }',
    "static": "static __device__ int n; __device__ int next_number() { return n++; }",
    "namespace": "namespace a::b { __device__ int n; } __device__ int next_number() { return a::b::n++; }",
    "unnamed namespace": "namespace { __device__ int n; } __device__ int next_number() { return n++; }",
    "nested unnamed": "namespace a { namespace { __device__ int n; } __device__ int next_number() { return n++; } }"
    "using a::next_number;",
    "inline": "inline __device__ int n; __device__ int next_number() { return n++; }",
    "managed": "__managed__ int n; __device__ int next_number() { return atomicAdd(&n, 1); }",
    "of a function": "__device__ int next_number() { static int n; return n++; }",
    "with a value": "__device__ int n = 5; __device__ int next_number() { return n++ - 5; }",
    "of a function, with a value": "__device__ int next_number() { static int n = 7; return n++ - 7; }",
    "array": "__device__ int n[9]; __device__ int next_number() { return n[threadIdx.x + 4]++; }",
    "member of a struct": "struct S { char c; long long n; }; __device__ S s[3];"
    "__device__ int next_number() { return s[2].n++; }",
    "vector": "__device__ int4 n; __device__ int next_number() { return n.w++; }",
    "bytes": "__device__ unsigned char n[4]; __device__ int next_number() { return n[3]++; }",
    "template": "template <class T> __device__ T n; __device__ int next_number() { return int(n<double>++); }",
    "through a pointer": "__device__ int n; __device__ int* p = &n; __device__ int next_number() { return (*p)++; }",
    "through a second pointer": "__device__ int n[2]; __device__ int* p[2] = {nullptr, &n[1]};"
    "__device__ int** q = &p[1];__device__ int next_number() { return (**q)++; }",
    "volatile": "__device__ volatile int n; __device__ int next_number() { int now = n; n = now + 1; return now; }",
    "double": "__device__ double n; __device__ int next_number() { return int(atomicAdd(&n, 1.0)); }",
    "sixteen bytes": "struct alignas(16) S { int n[4]; }; __device__ S s;"
    "__device__ int next_number() { S now = s; now.n[1]++; s = now; return now.n[1] - 1; }",
    "generic address": "__device__ int n; __noinline__ __device__ int up(int* p) { return (*p)++; }"
    "__device__ int next_number() { return up(&n); }",
    "inline PTX": "__device__ int n;"
    '__device__ int next_number() { int r; asm volatile("atom.global.add.u32 %0, [n], 1;" : "=r"(r)); return r; }',
}
KERNELS = """
template <class T> __global__ void count(T* out) { out[0] = T(next_number()); }
__global__ void plain(int* out) { out[0] = next_number(); }
template <class T> __global__ void other(T* out, int by) { for (int i = 0; i < by; ++i) out[0] = T(next_number()); }
__global__ void sink(int* out) { out[0] = next_number() ? 1 : 2; }
"""


@pytest.mark.parametrize("kind", COUNTERS)
def test_every_kernel_and_instance_counts_on(kind):
    module = compiled(COUNTERS[kind] + KERNELS)
    assert read(module.count, "f4") == [0]
    assert read(module.count, "f8") == [1]
    assert read(module.plain, "i4") == [2]
    assert read(module.count, "f4") == [3]
    assert read(module.other, "i2", 4) == [7]
    together = module.instantiate({"other": ["float", "double"], "count": ["unsigned long long"]})
    assert read(together["other"][0], "f4", 2) == [9]
    assert read(together["count"][0], "u8") == [10]
    assert read(module.plain, "i4") == [11]


@pytest.mark.parametrize("named", [(), ("count<float>",), ("count<float>", "other<double>")])
def test_what_was_named_counts_with_what_was_not(named):
    module = compiled(COUNTERS["device"] + KERNELS, *named)
    assert [read(module.count, dtype)[0] for dtype in DTYPES] == [0, 1, 2, 3, 4]
    assert read(module.other, "f8", 3) == [7]
    assert module.get_global("n").copy_to_host() == 8


def test_random_orders_of_kernels_instances_and_writes_by_the_host(rng):
    """The results are compared with a model in Python."""
    text = """
    __device__ long long total = 3; __constant__ int step; __device__ int table[16]; __managed__ int last;
    namespace { __device__ unsigned hidden; }
    template <class T> __global__ void add(T* out, int i) {
        table[i] += step; total += table[i]; hidden ^= table[i]; last = i;
        out[0] = T(total % 1000); out[1] = T(table[i] % 1000); out[2] = T(hidden % 1000); out[3] = T(last);
    }
    __global__ void plain(int* out, int i) {
        table[i] += 2 * step; total += table[i]; hidden ^= table[i]; last = i;
        out[0] = total % 1000; out[1] = table[i] % 1000; out[2] = hidden % 1000; out[3] = last;
    }
    """
    for _ in range(6):
        module = compiled(text)
        total, step, table, hidden = 3, 0, np.zeros(16, "i4"), 0
        for _ in range(25):
            match rng.integers(5):
                case 0:
                    step = int(rng.integers(50))
                    module.get_global("step").copy_from_host(np.int32(step))
                case 1:
                    table = rng.integers(0, 100, 16).astype("i4")
                    module.get_global("table").copy_from_host(table)
                case 2:
                    total = int(rng.integers(10_000))
                    kernel = module.plain if rng.integers(2) else module.add.instantiate("float")
                    kernel.get_global("total").copy_from_host(np.int64(total))
                case _:
                    dtype, i = str(rng.choice([*DTYPES, "plain"])), int(rng.integers(16))
                    kernel, factor = (module.plain, 2) if dtype == "plain" else (module.add, 1)
                    out = bascule.device_array(4, "i4" if dtype == "plain" else dtype)
                    kernel[1, 1](out, i)
                    table[i] += factor * step
                    total += int(table[i])
                    hidden ^= int(table[i])
                    expected = [total % 1000, table[i] % 1000, hidden % 1000, i]
                    assert out.copy_to_host().tolist() == expected
        np.testing.assert_array_equal(module.get_global("table").copy_to_host(), table)
        assert module.get_global("total").copy_to_host() == total


CONSTANTS = """
__constant__ float c[64]; __constant__ double scale = 2; __device__ const float fixed[3] = {1, 2, 3};
template <class T> __global__ void pick(T* y) {
    const float* p = threadIdx.x % 2 ? c : c + 32;
    y[threadIdx.x] = T(c[threadIdx.x]) * T(scale) + T(p[1]) + T(c[63]) + T(fixed[threadIdx.x % 3]);
}
template <class T> __global__ void plain(T* y) { y[threadIdx.x] = c[5] + fixed[0] - 1; }
"""


@pytest.mark.parametrize("names", [(), ("c",), ("pick<float>", "c"), ("pick<double>",)])
def test_constants_that_the_host_wrote_are_every_instances(rng, names):
    module = compiled(CONSTANTS, *names)
    for _ in range(2):
        c, scale = rng.integers(0, 50, 64).astype("f4"), float(rng.integers(1, 4))
        module.get_global("c").copy_from_host(c)
        module.get_global("scale").copy_from_host(scale)
        at = np.arange(32)
        expected = c[:32] * scale + np.where(at % 2, c[1], c[33]) + c[63] + np.array([1, 2, 3])[at % 3]
        for dtype in ("f4", "f8", "i4", "f4"):
            assert read(module.pick, dtype, size=32) == expected.tolist()
        assert read(module.plain, "i4") == [int(c[5])]


def test_an_address_that_was_given_out_stays_the_variables():
    module = compiled(COUNTERS["device"] + KERNELS)
    assert read(module.count, "f4") == [0]
    n = module.count.instantiate("float").get_global("n")
    for dtype in ("f8", "i4", "i2"):
        n.copy_from_host(np.int32(40))
        assert read(module.count, dtype) == [40]
        assert n.copy_to_host() == 41
    pointer = n.__cuda_array_interface__["data"][0]
    same = [module.get_global("n"), module.plain.get_global("n"), module.count.instantiate("int").get_global("n")]
    assert [each.__cuda_array_interface__["data"][0] for each in same] == [pointer] * 3


def test_what_is_written_before_any_kernel_is_loaded_is_what_they_read():
    module = compiled(COUNTERS["device"] + KERNELS.replace("plain", "unused_plain"))
    templates = compiled("__device__ int n; template <class T> __global__ void k(T* out) { out[0] = T(n++); }")
    for each, kernel in ((module, "count"), (templates, "k")):
        each.get_global("n").copy_from_host(np.int32(17))
        assert [read(each[kernel], dtype)[0] for dtype in DTYPES] == [17, 18, 19, 20, 21]


def test_the_address_that_a_kernel_stored_is_good_for_other_instances():
    module = compiled("""
    __device__ int values[4] = {1, 2, 3, 4}; __device__ int* kept;
    template <class T> __global__ void keep(T* out) { kept = values + 2; out[0] = T(0); }
    template <class T> __global__ void use(T* out) { *kept += 10; out[0] = T(*kept); out[1] = T(values[2]); }
    """)
    read(module.keep, "f4")
    out = bascule.device_array(2, "f8")
    module.use[1, 1](out)
    assert out.copy_to_host().tolist() == [13, 13]


def test_memory_lives_while_a_kernel_of_another_instance_may_run():
    """The module is dropped while the second instance's kernel, which uses the first one's memory, is pending."""
    module = compiled(COUNTERS["device"] + KERNELS)
    assert (read(module.count, "f4"), read(module.count, "f8"), read(module.other, "f8", 1)) == ([0], [1], [2])
    stream = bascule.stream()
    out = bascule.zeros(1, "f8")
    with bascule.Graph() as graph:
        module.count[1, 1](out)
    for _ in range(50):
        module.other[1, 1, stream](out, 1)
    del module
    gc.collect()
    for _ in range(3):
        graph.launch(stream)
    stream.synchronize()
    assert out.copy_to_host().tolist() == [55]


def test_constant_tables_are_not_shared_and_need_no_second_form(rng):
    """Instances are loaded as compiled if they share only const variables."""
    module = compiled("""
    __device__ const float table[4] = {1, 2, 3, 4}; constexpr __device__ int more[3] = {5, 6, 7};
    template <class T> __global__ void k(T* out, int i) {
        out[0] = T(table[i] + more[i % 3]);
        if (out[0] < T(0)) printf("negative %d", i);
    }
    """)
    for dtype in DTYPES:
        assert read(module.k, dtype, 2) == [10]


def test_what_the_compiler_makes_is_each_images_own(capfd):
    """Images may use one name for different strings of printf and assert, virtual tables and constant arrays."""
    module = compiled("""
    struct V { virtual __device__ int f(int x) { return x; } };
    struct W : V { __device__ int f(int x) override { return 2 * x; } };
    __device__ __noinline__ int call(V* v, int i) { return v->f(i); }
    __device__ int helper(int i) { const int local[9] = {1, 5, 2, 8, 3, 4, 5, 6, 7}; return local[i % 9]; }
    __device__ int other(int i) {
        switch (i) { case 0: return 9; case 1: return 4; case 2: return 8; case 3: return 1; }
        return 0;
    }
    template <class T> __global__ void k(T* out, int i) {
        if (sizeof(T) == 8) { printf("eight %d\\n", i); assert(i < 98); }
        V v; W w;
        out[0] = T(helper(i) + 100 * other(i % 4) + 10000 * call(i ? &w : &v, i));
        printf("all %d\\n", i); assert(i < 99);
    }
    """)
    for dtype in ("f4", "f8", "i4"):
        assert read(module.k, dtype, 7) == [6 + 100 * 1 + 10000 * 14]
    bascule.synchronize()
    assert capfd.readouterr().out.split("\n") == ["all 7", "eight 7", "all 7", "all 7", ""]


FUNCTIONS = """
__device__ float twice(float x) { return 2 * x; }
__device__ float square(float x) { return x * x; }
typedef float (*Op)(float);
__device__ Op table[2] = {twice, square};
__device__ Op one = twice;
template <class T> __global__ void apply(T* out, int i) { out[0] = T(table[i](3) + 100 * one(5)); }
"""


def test_tables_of_functions_that_nothing_changes_are_each_images_own():
    module = compiled(FUNCTIONS)
    assert [read(module.apply, dtype, i) for i, dtype in ((0, "f4"), (1, "f8"), (1, "i4"))] == [[1006], [1009], [1009]]
    with pytest.raises(bascule.Error, match=r"'one' has the address of a function.*each image.*name_expressions"):
        module.get_global("one")


@pytest.mark.parametrize(
    "change",
    [
        "__global__ void set() { one = square; }",
        "__device__ __noinline__ void put(Op* p) { *p = square; } __global__ void set() { put(&one); }",
        "__device__ Op* kept; __global__ void set() { kept = &one; *kept = square; }",
    ],
)
def test_pointers_to_functions_that_change_are_for_the_code_that_they_were_compiled_with(change):
    module = compiled(FUNCTIONS + change)
    module.set[1, 1]()
    with pytest.raises(bascule.Error, match=r"variable 'one' of .* address of a function.*name_expressions"):
        read(module.apply, "f4", 0)
    module = compiled(FUNCTIONS + change, "apply<float>", "apply<double>")
    module.set[1, 1]()
    assert (read(module.apply, "f4", 1), read(module.apply, "f8", 0)) == ([2509], [2506])


def test_a_pointer_to_a_function_that_the_host_has_stays_in_its_image():
    module = compiled(FUNCTIONS)
    assert read(module.apply, "f4", 0) == [1006]
    assert module.get_global("one").copy_to_host() != 0
    with pytest.raises(bascule.Error, match=r"variable 'one' of .* address of a function.*name_expressions"):
        read(module.apply, "f8", 0)
    with pytest.raises(bascule.CompileError, match=r"no kernel that is loaded uses variable 'one'.*name_expressions"):
        compiled(FUNCTIONS).get_global("one")


def test_a_packed_address_is_the_variables_own():
    text = """
    __device__ int n[2]; struct __attribute__((packed)) P { char c; int* p; }; __device__ P p = {1, n + 1};
    template <class T> __global__ void first(T* out) { out[0] = T(n[1]++); }
    template <class T> __global__ void second(T* out) { p.c++; out[0] = T((*p.p)++); out[1] = T(p.c); }
    """
    for names in ((), ("first<float>", "second<float>")):
        module = compiled(text, *names)
        assert read(module.first, "f4") == [0]
        for i in range(2):
            out = bascule.device_array(2, "f4")
            module.second[1, 1](out)
            assert out.copy_to_host().tolist() == [1 + i, 2 + i]
        assert module.get_global("n").copy_to_host().tolist() == [0, 3]


MANAGED = """
__managed__ int found; namespace ns { __managed__ float levels[4] = {1, 2}; }
__global__ void count(const float* x) { if (x[threadIdx.x] > ns::levels[0]) atomicAdd(&found, 1); }
template <class T> __global__ void look(T* out) { out[0] = T(found); out[1] = T(ns::levels[1]); }
"""


def test_a_managed_variable_is_read_and_written(rng):
    module = compiled(MANAGED)
    found, levels = module.get_global("found"), module.get_global("levels")
    assert (found.shape, found.dtype, levels.shape, levels.dtype) == ((), np.int32, (4,), np.float32)
    assert levels.copy_to_host().tolist() == [1, 2, 0, 0]
    x = rng.random(64, "f4")
    levels.copy_from_host([0.5, 7, 0, 0])
    module.count[1, 64](bascule.to_device(x))
    assert found.copy_to_host() == np.count_nonzero(x > 0.5)
    assert read(module.look, "f8", size=2) == [float(found.copy_to_host()), 7]
    assert module.get_global("ns::levels").copy_to_host().tolist() == [0.5, 7, 0, 0]


def test_a_managed_variable_that_nothing_loaded_uses_says_what_to_do():
    module = compiled("__managed__ int n; template <class T> __global__ void k(T* out) { out[0] = T(n++); }")
    with pytest.raises(bascule.CompileError, match="managed variable only with what uses it. Launch a kernel"):
        module.get_global("n")
    assert read(module.k, "f4") == [0]
    assert module.get_global("n").copy_to_host() == 1


ON_TWO_DEVICES = """
import bascule
module = bascule.compile("__device__ int n; template <class T> __global__ void k(T* out) { out[0] = T(n++); }")
def next_number(dtype):
    out = bascule.zeros(1, dtype)
    module.k[1, 1](out)
    return int(out.item())
seen = []
for device, dtypes in ((0, ["f4", "f8", "i4"]), (1, ["i4", "f4"]), (0, ["i2"]), (1, ["f8", "f4"])):
    with bascule.device(device):
        seen += [next_number(dtype) for dtype in dtypes] + [int(module.get_global("n").copy_to_host())]
print(seen)
"""


def test_each_device_has_a_set(two_devices):
    seen = printed_by("-W", "ignore", "-c", ON_TWO_DEVICES, BASCULE_EMULATED_DEVICES="2")
    assert seen.strip() == "[0, 1, 2, 3, 0, 1, 2, 3, 4, 2, 3, 4]"


def test_modules_of_one_text_have_a_set_each():
    text = COUNTERS["device"] + KERNELS
    one, two = bascule.compile(text), bascule.compile(text)
    assert [read(each.count, dtype)[0] for dtype in ("f4", "f8") for each in (one, two)] == [0, 0, 1, 1]


def test_checked_and_debugged_kernels_share_too():
    for options in ({"defines": {"BASCULE_CHECK_BOUNDS": "1"}}, {"debug": True}, {"lineinfo": True}):
        module = compiled(
            "__device__ int n; template <class T> __global__ void k(bascule::array_view<T> out) { out(0) = T(n++); }",
            **options,
        )
        assert [read(module.k, dtype)[0] for dtype in DTYPES] == [0, 1, 2, 3, 4]


def test_a_variable_of_a_header_is_one_too(tmp_path: Path):
    (tmp_path / "counter.h").write_text("#pragma once\n__device__ int n = 0;\ntemplate <class T> __device__ T per;\n")
    module = compiled(
        '#include "counter.h"\ntemplate <class T> __global__ void k(T* out) { out[0] = T(n++ + per<int>++); }',
        include_paths=[tmp_path],
    )
    assert [read(module.k, dtype)[0] for dtype in DTYPES] == [0, 2, 4, 6, 8]


def test_threads_that_load_instances_at_once_lose_no_count():
    module = compiled(COUNTERS["device"] + KERNELS)
    with ThreadPoolExecutor(len(DTYPES)) as pool:
        seen = list(pool.map(lambda dtype: [read(module.count, dtype)[0] for _ in range(4)], DTYPES))
    assert sorted(number for numbers in seen for number in numbers) == list(range(4 * len(DTYPES)))

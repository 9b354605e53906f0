"""Programs that include CUB, libcu++, CUTLASS and CuTe, each with its inputs and the values that NumPy computes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

N = 64  # threads of one block, and elements


@dataclass(frozen=True)
class Library:
    """A library of headers, and the compile options that its programs need."""

    name: str
    options: dict[str, object] = field(default_factory=dict)


CUB = Library("cub")
LIBCUDACXX = Library("libcudacxx", {"std": "c++20"})
# Functions of CUTLASS without `__device__` are called from kernels.
CUTLASS = Library("cutlass", {"extra": ["-default-device"]})


@dataclass(frozen=True)
class Program:
    """`text` has a kernel k(x, y), which is launched with one block of N threads."""

    library: Library
    name: str
    text: str
    x: np.ndarray
    expected: np.ndarray  # in y

    def __str__(self) -> str:
        return f"{self.library.name}: {self.name}"


def kernel(includes: str, body: str, parameters: str = "const int* x, int* y", before: str = "") -> str:
    lines = "".join(f"#include <{each}>\n" for each in includes.split())
    return f"{lines}{before}\n__global__ void k({parameters}) {{\n    int t = threadIdx.x;\n{body}\n}}\n"


random = np.random.default_rng(1)
ints = random.integers(-50, 50, N, dtype="i4")
floats = random.standard_normal(N).astype("f4")
halves = np.round(floats * 8).astype("f4") / 8  # exact in every small format that follows
FLOATS = "const float* x, float* y"


def of_cub() -> list[Program]:
    def program(name: str, header: str, body: str, expected: object, x: np.ndarray = ints) -> Program:
        return Program(CUB, name, kernel(header, body), x, np.asarray(expected, "i4"))

    runs = np.repeat(np.arange(16, dtype="i4"), 4)
    lengths = np.array([3, 5, 8, 16] + [0] * 60, "i4")  # of 32 elements in all
    by_lane = ints.reshape(2, 32)
    return [
        program(
            "block reduce",
            "cub/block/block_reduce.cuh",
            """    using Reduce = cub::BlockReduce<int, 64>;
    __shared__ Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(x[t]);
    __shared__ int total;
    if (t == 0) total = sum;
    __syncthreads();
    y[t] = total;""",
            np.full(N, ints.sum()),
        ),
        program(
            "block scan",
            "cub/block/block_scan.cuh",
            """    using Scan = cub::BlockScan<int, 64>;
    __shared__ Scan::TempStorage storage;
    Scan(storage).InclusiveSum(x[t], y[t]);""",
            np.cumsum(ints),
        ),
        program(
            "block radix sort",
            "cub/block/block_radix_sort.cuh",
            """    using Sort = cub::BlockRadixSort<int, 64, 1>;
    __shared__ Sort::TempStorage storage;
    int key[1] = {x[t]};
    Sort(storage).Sort(key);
    y[t] = key[0];""",
            np.sort(ints),
        ),
        program(
            "block load and store, transposed",
            "cub/block/block_load.cuh cub/block/block_store.cuh",
            """    if (t >= 16) return;
    using Load = cub::BlockLoad<int, 16, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Store = cub::BlockStore<int, 16, 4, cub::BLOCK_STORE_DIRECT>;
    __shared__ Load::TempStorage in;
    __shared__ Store::TempStorage out;
    int items[4];
    Load(in).Load(x, items);
    for (int& item : items) item = 3 * item + t;
    Store(out).Store(y, items);""",
            3 * ints + np.arange(N) // 4,
        ),
        program(
            "block histogram",
            "cub/block/block_histogram.cuh",
            """    using Histogram = cub::BlockHistogram<unsigned char, 64, 1, 16>;
    __shared__ Histogram::TempStorage storage;
    __shared__ int counts[16];
    unsigned char item[1] = {static_cast<unsigned char>(x[t] & 15)};
    Histogram(storage).Histogram(item, counts);
    __syncthreads();
    y[t] = t < 16 ? counts[t] : 0;""",
            np.bincount(ints & 15, minlength=N),
        ),
        program(
            "warp scan",
            "cub/warp/warp_scan.cuh",
            """    using Scan = cub::WarpScan<int>;
    __shared__ Scan::TempStorage storage[2];
    Scan(storage[t / 32]).InclusiveSum(x[t], y[t]);""",
            np.cumsum(by_lane, axis=1).ravel(),
        ),
        program(
            "warp merge sort",
            "cub/warp/warp_merge_sort.cuh",
            """    using Sort = cub::WarpMergeSort<int, 1, 32>;
    __shared__ Sort::TempStorage storage[2];
    int key[1] = {x[t]};
    Sort(storage[t / 32]).Sort(key, [](int a, int b) { return a > b; });
    y[t] = key[0];""",
            -np.sort(-by_lane, axis=1).ravel(),
        ),
        program(
            "block discontinuity",
            "cub/block/block_discontinuity.cuh",
            """    using Flags = cub::BlockDiscontinuity<int, 64>;
    __shared__ Flags::TempStorage storage;
    int item[1] = {x[t]}, flag[1];
    Flags(storage).FlagHeads(flag, item, [](int a, int b) { return a != b; });
    y[t] = flag[0];""",
            np.arange(N) % 4 == 0,
            runs,
        ),
        program(
            "block adjacent difference",
            "cub/block/block_adjacent_difference.cuh",
            """    using Difference = cub::BlockAdjacentDifference<int, 64>;
    __shared__ Difference::TempStorage storage;
    int item[1] = {x[t]}, out[1];
    Difference(storage).SubtractLeft(item, out, [](int a, int b) { return a - b; });
    y[t] = out[0];""",
            np.diff(ints, prepend=0),
        ),
        program(
            "thread search",
            "cub/thread/thread_search.cuh",
            """    y[t] = 0;
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += x[i];
    if (t < sum) y[t] = cub::UpperBound(x, 4, t);""",
            [np.searchsorted(lengths[:4], t, side="right") if t < 32 else 0 for t in range(N)],
            lengths,
        ),
    ]


def of_libcudacxx() -> list[Program]:
    def program(name: str, header: str, body: str, expected: object, before: str = "") -> Program:
        return Program(LIBCUDACXX, name, kernel(header, body, before=before), ints, np.asarray(expected, "i4"))

    rows = ints.reshape(8, 8)
    return [
        program(
            "array and algorithms",
            "cuda/std/array cuda/std/numeric",
            """    cuda::std::array<int, 4> a{x[t], 2, 3, 4};
    y[t] = cuda::std::accumulate(a.begin(), a.end(), 0);""",
            ints + 9,
        ),
        program(
            "atomic_ref",
            "cuda/atomic",
            """    __shared__ int most;
    if (t == 0) most = -100;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block>(most).fetch_max(x[t]);
    __syncthreads();
    y[t] = most;""",
            np.full(N, ints.max()),
        ),
        program(
            "barrier",
            "cuda/barrier",
            """    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int copy[64];
    if (t == 0) init(&barrier, blockDim.x);
    __syncthreads();
    copy[t] = x[t];
    barrier.arrive_and_wait();
    y[t] = copy[63 - t];""",
            ints[::-1],
        ),
        program(
            "span",
            "cuda/std/span",
            """    cuda::std::span<const int> all(x, 64);
    y[t] = all.subspan(t).front() + static_cast<int>(all.last(3).size());""",
            ints + 3,
        ),
        program(
            "mdspan",
            "cuda/std/mdspan",
            """    cuda::std::mdspan rows(x, cuda::std::extents<int, 8, 8>{});
    y[t] = rows(t % 8, t / 8);""",
            rows.T.ravel(),
        ),
        program(
            "complex",
            "cuda/std/complex",
            """    cuda::std::complex<float> z(x[t], 1);
    y[t] = static_cast<int>((z * z).real());""",
            ints * ints - 1,
        ),
        program(
            "optional",
            "cuda/std/optional",
            "    y[t] = even(x[t]).value_or(-1);",
            np.where(ints % 2 == 0, ints, -1),
            "__device__ cuda::std::optional<int> even(int n) {\n"
            "    return n % 2 == 0 ? cuda::std::optional<int>(n) : cuda::std::nullopt;\n}\n",
        ),
        program(
            "tuple and apply",
            "cuda/std/tuple",
            """    auto both = cuda::std::make_tuple(x[t], t);
    y[t] = cuda::std::apply([](int a, int b) { return a * b; }, both);""",
            ints * np.arange(N),
        ),
        program(
            "bits",
            "cuda/std/bit",
            "    y[t] = cuda::std::popcount(static_cast<unsigned>(x[t])) + cuda::std::rotl(1u, t % 8);",
            [int(v & 0xFFFFFFFF).bit_count() + (1 << t % 8) for t, v in enumerate(ints.tolist())],
        ),
        program(
            "variant",
            "cuda/std/variant",
            """    cuda::std::variant<int, float> v;
    if (t % 2 == 0) v = x[t];
    else v = x[t] + 0.5f;
    y[t] = cuda::std::visit([](auto value) { return static_cast<int>(2 * value); }, v);""",
            2 * ints + np.arange(N) % 2,
        ),
    ]


def of_cutlass() -> list[Program]:
    def program(
        name: str, header: str, body: str, expected: object, x: np.ndarray = floats, types: str = FLOATS
    ) -> Program:
        dtype = "f4" if types == FLOATS else "i4"
        return Program(CUTLASS, name, kernel(header, body, types), x, np.asarray(expected, dtype))

    square = floats.reshape(8, 8)
    integers = "const int* x, int* y"
    column = np.arange(N) % 8 * 8 + np.arange(N) // 8
    return [
        program(
            "a layout of CuTe's",
            "cute/layout.hpp",
            """    using namespace cute;
    auto layout = make_layout(make_shape(Int<8>{}, Int<8>{}), LayoutRight{});
    y[t] = x[layout(t % 8, t / 8)] + size(layout);""",
            ints[column] + 64,
            ints,
            integers,
        ),
        program(
            "a composition of layouts",
            "cute/layout.hpp",
            """    using namespace cute;
    auto every_other = composition(Layout<_64, _1>{}, Layout<_32, _2>{});
    y[t] = t < 32 ? x[every_other(t)] : 0;""",
            np.r_[ints[::2], np.zeros(32)],
            ints,
            integers,
        ),
        program(
            "a swizzle",
            "cute/swizzle_layout.hpp",
            """    using namespace cute;
    auto layout = composition(Swizzle<3, 0, 3>{}, Layout<Shape<_8, _8>, Stride<_8, _1>>{});
    y[t] = layout(t / 8, t % 8);""",
            [t ^ (t >> 3 & 7) for t in range(N)],
            ints,
            integers,
        ),
        program(
            "a tensor, transposed",
            "cute/tensor.hpp",
            """    using namespace cute;
    auto in = make_tensor(make_gmem_ptr(x), Layout<Shape<_8, _8>, Stride<_8, _1>>{});
    auto out = make_tensor(make_gmem_ptr(y), Layout<Shape<_8, _8>, Stride<_1, _8>>{});
    out(t / 8, t % 8) = in(t / 8, t % 8);""",
            square.T.ravel(),
        ),
        program(
            "tiles and partitions",
            "cute/tensor.hpp",
            """    using namespace cute;
    auto in = make_tensor(make_gmem_ptr(x), Layout<Shape<_8, _8>, Stride<_8, _1>>{});
    auto tile = local_tile(in, Shape<_4, _4>{}, make_coord(t / 32, t / 16 % 2));
    auto mine = local_partition(tile, Layout<Shape<_4, _4>>{}, t % 16);
    y[t] = mine(0);""",
            [square[t // 32 * 4 + t % 4, t // 16 % 2 * 4 + t % 16 // 4] for t in range(N)],
        ),
        program(
            "a copy to shared memory",
            "cute/tensor.hpp",
            """    using namespace cute;
    __shared__ float s[64];
    auto in = make_tensor(make_gmem_ptr(x), Layout<_64>{});
    auto shared = make_tensor(make_smem_ptr(s), Layout<_64>{});
    auto out = make_tensor(make_gmem_ptr(y), Layout<_64>{});
    copy(local_partition(in, Layout<_64>{}, t), local_partition(shared, Layout<_64>{}, t));
    __syncthreads();
    copy(local_partition(shared, Layout<_64>{}, 63 - t), local_partition(out, Layout<_64>{}, t));""",
            floats[::-1],
        ),
        program(
            "a product of matrices",
            "cute/tensor.hpp",
            """    using namespace cute;
    auto a = make_tensor(make_gmem_ptr(x), Layout<Shape<_8, _8>, Stride<_8, _1>>{});
    auto b = make_tensor(make_gmem_ptr(x), Layout<Shape<_8, _8>, Stride<_1, _8>>{});
    auto c = make_tensor(make_gmem_ptr(y), Layout<Shape<_8, _8>, Stride<_8, _1>>{});
    if (t != 0) return;
    auto ra = make_tensor<float>(a.layout());
    auto rb = make_tensor<float>(b.layout());
    auto rc = make_tensor<float>(c.layout());
    copy(a, ra);
    copy(b, rb);
    clear(rc);
    gemm(ra, rb, rc);
    copy(rc, c);""",
            (square @ square).ravel(),
        ),
        program(
            "a tensor core's instruction",
            "cute/tensor.hpp cute/atom/mma_atom.hpp",
            """    using namespace cute;
    if (t >= 32) return;
    __shared__ tfloat32_t s[64];
    for (int i = t; i < 64; i += 32) s[i] = tfloat32_t(x[i]);
    __syncwarp();
    auto a = make_tensor(make_smem_ptr(s), Layout<Shape<_16, _4>, Stride<_4, _1>>{});
    auto b = make_tensor(make_smem_ptr(s), Layout<Shape<_8, _4>, Stride<_4, _1>>{});
    auto c = make_tensor(make_gmem_ptr(y), Layout<Shape<_16, _4>, Stride<_4, _1>>{});
    auto whole = make_tensor<float>(Layout<Shape<_16, _8>>{});
    auto mma = make_tiled_mma(SM80_16x8x4_F32TF32TF32F32_TN{}).get_slice(t);
    auto fa = mma.partition_fragment_A(a);
    auto fb = mma.partition_fragment_B(b);
    auto fc = mma.partition_fragment_C(whole);
    copy(mma.partition_A(a), fa);
    copy(mma.partition_B(b), fb);
    clear(fc);
    gemm(mma, fa, fb, fc);
    auto places = mma.partition_C(make_identity_tensor(Shape<_16, _8>{}));
    for (int i = 0; i < size(fc); ++i)
        if (get<1>(places(i)) < 4) c(get<0>(places(i)), get<1>(places(i))) = fc(i);""",
            (halves.reshape(16, 4) @ halves[:16].reshape(4, 4).T).ravel(),
            halves,
        ),
        program(
            "halves",
            "cutlass/numeric_types.h",
            "    y[t] = float(cutlass::half_t(x[t]) + cutlass::half_t(1.0f));",
            halves + 1,
            halves,
        ),
        program(
            "arrays and functions of them",
            "cutlass/array.h cutlass/functional.h",
            """    cutlass::Array<float, 4> a;
    for (int i = 0; i < 4; ++i) a[i] = x[(t + i) % 64];
    cutlass::multiply_add<cutlass::Array<float, 4>> fma;
    auto b = fma(a, a, a);
    y[t] = b[0] + b[3];""",
            [floats[t] ** 2 + floats[t] + floats[(t + 3) % N] ** 2 + floats[(t + 3) % N] for t in range(N)],
        ),
        program(
            "complex numbers",
            "cutlass/complex.h",
            """    cutlass::complex<float> z(x[t], 2);
    y[t] = (z * z).imag() + cutlass::norm(z);""",
            4 * floats + floats**2 + 4,
        ),
        program(
            "conversions",
            "cutlass/numeric_conversion.h",
            """    cutlass::NumericArrayConverter<cutlass::bfloat16_t, float, 2> narrow;
    cutlass::NumericArrayConverter<float, cutlass::bfloat16_t, 2> widen;
    cutlass::Array<float, 2> pair;
    pair[0] = x[t];
    pair[1] = -x[t];
    y[t] = widen(narrow(pair))[1];""",
            -halves,
            halves,
        ),
        program(
            "layouts of matrices",
            "cutlass/layout/matrix.h",
            """    auto rows = cutlass::layout::RowMajor::packed({8, 8});
    auto columns = cutlass::layout::ColumnMajor::packed({8, 8});
    y[rows({t / 8, t % 8})] = x[columns({t / 8, t % 8})];""",
            square.T.ravel(),
        ),
        program(
            "division by what is known late",
            "cutlass/fast_math.h",
            """    cutlass::FastDivmod divide(7);
    int quotient, remainder;
    divide(quotient, remainder, t + 1000);
    y[t] = 10 * quotient + remainder;""",
            (np.arange(N) + 1000) // 7 * 10 + (np.arange(N) + 1000) % 7,
            ints,
            integers,
        ),
        program(
            "a thread's product of matrices",
            "cutlass/gemm/thread/mma.h",
            """    using namespace cutlass;
    using Mma = gemm::thread::Mma<gemm::GemmShape<4, 4, 4>, float, layout::RowMajor, float, layout::ColumnMajor, float,
                                  layout::RowMajor>;
    if (t != 0) return;
    Mma::FragmentA a;
    Mma::FragmentB b;
    Mma::FragmentC c;
    for (int i = 0; i < 16; ++i) a[i] = x[i], b[i] = x[16 + i];
    c.clear();
    Mma()(c, a, b, c);
    for (int i = 0; i < 16; ++i) y[i] = c[i];""",
            np.r_[(floats[:16].reshape(4, 4) @ floats[16:32].reshape(4, 4).T).ravel(), np.zeros(48)],
        ),
    ]


PROGRAMS = [*of_cub(), *of_libcudacxx(), *of_cutlass()]

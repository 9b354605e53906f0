// The CUDA C++ text of the kernels for elementwise.hpp, and their common parameter.
#pragma once

#include <cstdint>

#include <bascule/interface/arrays/array_interface.hpp>

namespace bascule {

/// The parameter of one launch: a loop over the elements, and the work for each. `job` in the text below must have the
/// same layout.
struct ElementwiseJob {
    std::uint64_t destination = 0;
    std::uint64_t source = 0;
    std::int64_t count = 0;
    std::int32_t ndim = 0;   ///< axes of the loop; the last one varies fastest
    std::int32_t units = 1;  ///< units per element: the kernel's name has the bytes of a unit
    std::int32_t from = 0;   ///< codes of element types, for conversions
    std::int32_t to = 0;
    unsigned char element[16] = {};  ///< the value that a fill writes
    std::int64_t extents[max_dimensions] = {};
    std::int64_t to_strides[max_dimensions] = {};  ///< in bytes
    std::int64_t from_strides[max_dimensions] = {};
};

/// Kernels: move1 to move8 and fill1 to fill8, named after the bytes of a unit; convert; convert_bytes, for unaligned
/// elements. Element types: 0 bool; 1 to 4 signed and 5 to 8 unsigned integers of 1, 2, 4, 8 bytes; 9 to 11 floats of
/// 2, 4, 8 bytes; 12 and 13 complex numbers of 8 and 16 bytes.
inline constexpr const char* elementwise_text = R"(
struct job {
    char* destination;
    const char* source;
    long long count;
    int ndim, units, from, to;
    unsigned char element[16];
    long long extents[64], to_strides[64], from_strides[64];
};

/// The byte offset of element `index` in both arrays.
struct place {
    long long to = 0, from = 0;
    __device__ place(const job& j, long long index) {
        for (int d = j.ndim - 1; d > 0; --d) {
            const long long outer = index / j.extents[d];
            const long long here = index - outer * j.extents[d];
            to += here * j.to_strides[d];
            from += here * j.from_strides[d];
            index = outer;
        }
        to += index * j.to_strides[0];
        from += index * j.from_strides[0];
    }
};

template <class Unit>
__device__ void move_units(const job& j) {
    for (auto i : bascule::grid_stride(j.count)) {
        const place at(j, i);
        Unit* to = reinterpret_cast<Unit*>(j.destination + at.to);
        const Unit* from = reinterpret_cast<const Unit*>(j.source + at.from);
        for (int u = 0; u < j.units; ++u) to[u] = from[u];
    }
}

template <class Unit>
__device__ void fill_units(const job& j) {
    for (auto i : bascule::grid_stride(j.count)) {
        Unit* to = reinterpret_cast<Unit*>(j.destination + place(j, i).to);
        for (int u = 0; u < j.units; ++u) to[u] = reinterpret_cast<const Unit*>(j.element)[u];
    }
}

/// A number of any type, without loss.
struct number {
    enum { is_signed, is_unsigned, is_floating } kind;
    long long integer = 0;
    double real = 0, imaginary = 0;

    __device__ explicit number(long long value) : kind(is_signed), integer(value) {}
    __device__ explicit number(unsigned long long value)
        : kind(is_unsigned), integer(static_cast<long long>(value)) {}
    __device__ explicit number(double re, double im = 0) : kind(is_floating), real(re), imaginary(im) {}

    __device__ unsigned long long bits() const { return static_cast<unsigned long long>(integer); }
    __device__ bool truth() const { return integer != 0 || real != 0 || imaginary != 0; }
    template <class T>
    __device__ T to() const {
        if (kind == is_floating) return static_cast<T>(real);
        return kind == is_signed ? static_cast<T>(integer) : static_cast<T>(bits());
    }
    /// Converts integers by way of float, as NumPy does, and float64 directly, so that it is rounded once.
    __device__ unsigned short to_half() const {
        unsigned short half;
        if (kind == is_floating) {
            asm("cvt.rn.f16.f64 %0, %1;" : "=h"(half) : "d"(real));
        } else {
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(to<float>()));
        }
        return half;
    }
    __device__ static double of_half(unsigned short half) {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
        return value;
    }
};

template <class T>
__device__ T at(const char* address, int index = 0) {
    return reinterpret_cast<const T*>(address)[index];
}

__device__ number load(const char* p, int type) {
    switch (type) {
        case 0: return number(static_cast<unsigned long long>(at<unsigned char>(p) != 0));
        case 1: return number(static_cast<long long>(at<signed char>(p)));
        case 2: return number(static_cast<long long>(at<short>(p)));
        case 3: return number(static_cast<long long>(at<int>(p)));
        case 4: return number(at<long long>(p));
        case 5: return number(static_cast<unsigned long long>(at<unsigned char>(p)));
        case 6: return number(static_cast<unsigned long long>(at<unsigned short>(p)));
        case 7: return number(static_cast<unsigned long long>(at<unsigned int>(p)));
        case 8: return number(at<unsigned long long>(p));
        case 9: return number(number::of_half(at<unsigned short>(p)));
        case 10: return number(static_cast<double>(at<float>(p)));
        case 11: return number(at<double>(p));
        case 12: return number(at<float>(p), at<float>(p, 1));
        default: return number(at<double>(p), at<double>(p, 1));
    }
}

template <class T>
__device__ void put(char* address, T value, int index = 0) {
    reinterpret_cast<T*>(address)[index] = value;
}

__device__ void store(char* p, int type, const number& value) {
    switch (type) {
        case 0: put<unsigned char>(p, value.truth()); break;
        case 1: put(p, value.to<signed char>()); break;
        case 2: put(p, value.to<short>()); break;
        case 3: put(p, value.to<int>()); break;
        case 4: put(p, value.to<long long>()); break;
        case 5: put(p, value.to<unsigned char>()); break;
        case 6: put(p, value.to<unsigned short>()); break;
        case 7: put(p, value.to<unsigned int>()); break;
        case 8: put(p, value.to<unsigned long long>()); break;
        case 9: put(p, value.to_half()); break;
        case 10: put(p, value.to<float>()); break;
        case 11: put(p, value.to<double>()); break;
        case 12:
            put(p, value.to<float>());
            put(p, static_cast<float>(value.imaginary), 1);
            break;
        default:
            put(p, value.to<double>());
            put(p, value.imaginary, 1);
            break;
    }
}

extern "C" {
__global__ void move1(const __grid_constant__ job j) { move_units<unsigned char>(j); }
__global__ void move2(const __grid_constant__ job j) { move_units<unsigned short>(j); }
__global__ void move4(const __grid_constant__ job j) { move_units<unsigned int>(j); }
__global__ void move8(const __grid_constant__ job j) { move_units<unsigned long long>(j); }
__global__ void fill1(const __grid_constant__ job j) { fill_units<unsigned char>(j); }
__global__ void fill2(const __grid_constant__ job j) { fill_units<unsigned short>(j); }
__global__ void fill4(const __grid_constant__ job j) { fill_units<unsigned int>(j); }
__global__ void fill8(const __grid_constant__ job j) { fill_units<unsigned long long>(j); }

__global__ void convert(const __grid_constant__ job j) {
    for (auto i : bascule::grid_stride(j.count)) {
        const place where(j, i);
        store(j.destination + where.to, j.to, load(j.source + where.from, j.from));
    }
}

/// `j.units` is the item size of the source in bytes. The source may be unaligned; the destination is aligned.
__global__ void convert_bytes(const __grid_constant__ job j) {
    for (auto i : bascule::grid_stride(j.count)) {
        const place where(j, i);
        unsigned long long aligned[2];
        char* bytes = reinterpret_cast<char*>(aligned);
        for (int u = 0; u < j.units; ++u) bytes[u] = j.source[where.from + u];
        store(j.destination + where.to, j.to, load(bytes, j.from));
    }
}
}
)";

}  // namespace bascule

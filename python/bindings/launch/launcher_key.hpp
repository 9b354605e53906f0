// The content of `kernel[grid, block, stream, shared_bytes]` or `kernel.forall(work)` as a few words, compared by look-ups.
#pragma once

#include <cstdint>

#include "context/call_site.hpp"
#include "support/cpython.hpp"

namespace bascule::python {

/// Identifies a launcher among those of its kernel. Launchers with equal keys are equal.
struct LauncherKey {
    std::uint64_t grid_xy = 0;         ///< x in the lower half; for `forall` the work, 0 for omitted extents
    std::uint64_t grid_z_block_x = 0;  ///< the upper half is 0 for `forall`
    std::uint64_t block_yz_shared_bytes = 0;  ///< 16, 16 and 32 bits
    PyObject* stream = nullptr;               ///< borrowed; null for None
    CodePlace place = 0;  ///< 0: no key; odd if the launcher is valid for one current device only

    bool operator==(const LauncherKey&) const = default;
};

/// Reads the key of `kernel[subscript]`, except for its place. Accepts ints, tuples of ints, and any object in the place of the
/// stream. Returns false for others (NumPy integers, lists, LaunchConfig), for which a new launcher is made each time.
bool read_subscript(PyObject* subscript, LauncherKey& key) noexcept;
/// Reads the key of `kernel.forall(work)` in the same way.
bool read_work(PyObject* work, LauncherKey& key) noexcept;

[[gnu::always_inline]] inline std::uint64_t two_words(std::uint64_t low, std::uint64_t high) noexcept {
    return low | high << 32;
}

/// Reads the usual `kernel[grid, block]` and `kernel[grid, block, stream]` with ints of one digit, which is 30 bits.
/// For other objects the key has a 0, which no cached launcher has.
[[gnu::always_inline]] inline bool read_plain_subscript(PyObject* subscript, LauncherKey& key) noexcept {
    if (!PyTuple_CheckExact(subscript)) return false;
    const Py_ssize_t size = PyTuple_GET_SIZE(subscript);
    if (size == 3) {
        PyObject* const stream = PyTuple_GET_ITEM(subscript, 2);
        key.stream = stream == Py_None ? nullptr : stream;
    } else if (size != 2) {
        return false;
    }
    key.grid_xy = two_words(one_digit(PyTuple_GET_ITEM(subscript, 0)), 1);
    key.grid_z_block_x = two_words(1, one_digit(PyTuple_GET_ITEM(subscript, 1)));
    key.block_yz_shared_bytes = 1 | 1 << 16;
    return true;
}

}  // namespace bascule::python

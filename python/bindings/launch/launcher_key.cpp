#include "launch/launcher_key.hpp"

#include <array>
#include <optional>

namespace bascule::python {
namespace {

using Extents = std::array<std::uint32_t, 3>;

/// The value of an int from 1 to 2**32 - 1; 0 for all other objects, which a key cannot contain.
std::uint32_t read_extent(PyObject* object) noexcept {
    const std::int64_t value = short_positive(object);
    return value <= UINT32_MAX ? static_cast<std::uint32_t>(value) : 0;
}

/// Reads an int, or a tuple of one to three.
bool read_extents(PyObject* object, Extents& extents) noexcept {
    if (!PyTuple_CheckExact(object)) return (extents[0] = read_extent(object)) != 0;
    const Py_ssize_t size = PyTuple_GET_SIZE(object);
    if (size < 1 || size > 3) return false;
    for (Py_ssize_t i = 0; i < size; ++i) {
        extents[static_cast<std::size_t>(i)] = read_extent(PyTuple_GET_ITEM(object, i));
        if (extents[static_cast<std::size_t>(i)] == 0) return false;
    }
    return true;
}

}  // namespace

bool read_subscript(PyObject* subscript, LauncherKey& key) noexcept {
    if (!PyTuple_CheckExact(subscript)) return false;
    const Py_ssize_t size = PyTuple_GET_SIZE(subscript);
    if (size < 2 || size > 4) return false;
    Extents grid{0, 1, 1}, block{0, 1, 1};
    if (!read_extents(PyTuple_GET_ITEM(subscript, 0), grid)) return false;
    if (!read_extents(PyTuple_GET_ITEM(subscript, 1), block)) return false;
    PyObject* const stream = size > 2 ? PyTuple_GET_ITEM(subscript, 2) : Py_None;
    const auto shared_bytes =
        size > 3 ? short_integer(PyTuple_GET_ITEM(subscript, 3)) : std::optional<std::int64_t>(0);
    if (!shared_bytes || *shared_bytes < 0 || *shared_bytes > UINT32_MAX) return false;
    if (block[1] > UINT16_MAX || block[2] > UINT16_MAX) return false;
    key.grid_xy = two_words(grid[0], grid[1]);
    key.grid_z_block_x = two_words(grid[2], block[0]);
    key.block_yz_shared_bytes =
        two_words(block[1] | block[2] << 16, static_cast<std::uint64_t>(*shared_bytes));
    key.stream = stream == Py_None ? nullptr : stream;
    return true;
}

bool read_work(PyObject* work, LauncherKey& key) noexcept {
    Extents extents{};
    if (!read_extents(work, extents)) return false;
    key.grid_xy = two_words(extents[0], extents[1]);
    key.grid_z_block_x = extents[2];
    return true;
}

}  // namespace bascule::python

// Classes of other libraries whose functions are known to the letter: a launch does what they would do, and calls none of them.
#pragma once

#include <array>
#include <cstdint>

#include "support/pybind.hpp"

namespace bascule::python {

/// What a class of Numba is to a launch.
enum class KnownClass : std::uint8_t {
    none,
    array,    ///< its interface is made of shape, strides, dtype, stream and gpu_data's address
    pointer,  ///< its address is int(device_pointer)
    stream,   ///< its handle is int(handle), where that is not 0
};

/// The functions that are known of a class, and their code, which others may exchange. A small value.
struct KnownCode {
    KnownClass what = KnownClass::none;
    PyObject* kept = nullptr;  ///< keeps the rest; owned by who remembers this
    std::array<PyObject*, 2> functions{};
    std::array<PyObject*, 2> codes{};

    bool is(KnownClass wanted) const noexcept {
        if (what != wanted) return false;
        for (std::size_t i = 0; i < functions.size() && functions[i] != nullptr; ++i) {
            if (PyFunction_GET_CODE(functions[i]) != codes[i]) return false;
        }
        return true;
    }
};

/// By bascule._known_code, which tells how it knows. `kept` keeps what the result borrows. Runs Python code. Throws: what
/// importing it raised.
KnownCode find_known_code(PyTypeObject* type, pybind11::object& kept);

}  // namespace bascule::python

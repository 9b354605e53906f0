// Classes of other libraries whose functions' code is known exactly. A launch computes their results without calling them.
#pragma once

#include <array>
#include <cstdint>

#include "support/pybind.hpp"

namespace bascule::python {

/// The role of a Numba class in a launch.
enum class KnownClass : std::uint8_t {
    none,
    array,    ///< its interface is made of shape, strides, dtype, stream and gpu_data's address
    pointer,  ///< its address is int(device_pointer)
    stream,   ///< its handle is int(handle), if that is not 0
};

/// The known functions of a class, and their code objects, to detect replacement. A small value type.
struct KnownCode {
    KnownClass what = KnownClass::none;
    PyObject* kept = nullptr;  ///< keeps the other objects; owned by the RememberedType
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

/// Looks the class up in bascule._known_code. `kept` keeps the objects that the result borrows. Runs Python code.
/// Throws: the error of importing that module.
KnownCode find_known_code(PyTypeObject* type, py::object& kept);

}  // namespace bascule::python

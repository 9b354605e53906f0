// The refusals are in the type's slots, not in its dictionary: help(DeviceArray) shows what an array can do.

#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>

#include "arrays/array_object.hpp"
#include "classes/callable_object.hpp"
#include "parts.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

PyObject* refuse(const std::string& message) noexcept {
    return guarded([&]() -> py::object { throw ArgumentError(ArgumentError::Kind::type, message); });
}

PyObject* refuse_arithmetic(const char* operation) noexcept {
    return refuse(
        fmt::format("a DeviceArray has no arithmetic ({}). Use CuPy, where cupy.asarray(x) views it without "
                    "a copy, or write a kernel.",
                    operation));
}

/// `x + 1`, `1 + x` and `x += 1` all come to one slot.
struct Binary {
    const char* name;
    binaryfunc PyNumberMethods::*slot;
};
constexpr std::array binary = {
    Binary{"+", &PyNumberMethods::nb_add},
    Binary{"-", &PyNumberMethods::nb_subtract},
    Binary{"*", &PyNumberMethods::nb_multiply},
    Binary{"/", &PyNumberMethods::nb_true_divide},
    Binary{"//", &PyNumberMethods::nb_floor_divide},
    Binary{"%", &PyNumberMethods::nb_remainder},
    Binary{"@", &PyNumberMethods::nb_matrix_multiply},
    Binary{"&", &PyNumberMethods::nb_and},
    Binary{"|", &PyNumberMethods::nb_or},
    Binary{"^", &PyNumberMethods::nb_xor},
    Binary{"<<", &PyNumberMethods::nb_lshift},
    Binary{">>", &PyNumberMethods::nb_rshift},
    Binary{"divmod", &PyNumberMethods::nb_divmod},
};

struct Unary {
    const char* name;
    unaryfunc PyNumberMethods::*slot;
};
constexpr std::array unary = {
    Unary{"-x", &PyNumberMethods::nb_negative},
    Unary{"+x", &PyNumberMethods::nb_positive},
    Unary{"~x", &PyNumberMethods::nb_invert},
    Unary{"abs", &PyNumberMethods::nb_absolute},
};

template <std::size_t... Rows>
void refuse_binary(PyNumberMethods& number, std::index_sequence<Rows...>) {
    ((number.*binary[Rows].slot = [](PyObject*, PyObject*) { return refuse_arithmetic(binary[Rows].name); }),
     ...);
}

template <std::size_t... Rows>
void refuse_unary(PyNumberMethods& number, std::index_sequence<Rows...>) {
    ((number.*unary[Rows].slot = [](PyObject*) { return refuse_arithmetic(unary[Rows].name); }), ...);
}

PyObject* refuse_power(PyObject*, PyObject*, PyObject*) { return refuse_arithmetic("**"); }

/// Equality stays identity.
PyObject* compare(PyObject*, PyObject*, int operation) {
    if (operation == Py_EQ || operation == Py_NE) Py_RETURN_NOTIMPLEMENTED;
    constexpr const char* names[] = {"<", "<=", "==", "!=", ">", ">="};
    return refuse_arithmetic(names[operation]);
}

PyObject* refuse_iteration(PyObject*) {
    return refuse(
        "a DeviceArray is not iterable, because each element would be a separate transfer: iterate over "
        "x.copy_to_host().");
}

int refuse_search(PyObject*, PyObject*) {
    refuse(
        "`in` is not supported for a DeviceArray, because it would copy the array to the host: search "
        "x.copy_to_host().");
    return -1;
}

int refuse_truth(PyObject*) {
    refuse(
        "a DeviceArray has no truth value, because it would be copied to the host: use x.size, or "
        "bool(x.copy_to_host()).");
    return -1;
}

}  // namespace

void bind_array_refusals(ArrayClass& type) {
    auto* const python_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    PyNumberMethods& number = *python_type->tp_as_number;
    refuse_binary(number, std::make_index_sequence<binary.size()>());
    refuse_unary(number, std::make_index_sequence<unary.size()>());
    number.nb_power = &refuse_power;
    number.nb_bool = &refuse_truth;
    python_type->tp_as_sequence->sq_contains = &refuse_search;
    python_type->tp_iter = &refuse_iteration;
    python_type->tp_richcompare = &compare;
    PyType_Modified(python_type);
    // Without this NumPy would treat the array as a scalar, element by element.
    type.attr("__array_ufunc__") = py::none();
}

}  // namespace bascule::python

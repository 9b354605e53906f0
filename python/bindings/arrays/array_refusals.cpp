// Operators and functions that a DeviceArray refuses. They are in the type's slots and not in its dict, so that
// help(DeviceArray) does not list them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>

#include "arrays/array_object.hpp"
#include "classes/callable_object.hpp"
#include "parts.hpp"

namespace bascule::python {
namespace {

PyObject* refuse(const std::string& message) noexcept {
    return guarded([&]() -> py::object { throw ArgumentError(ArgumentError::Kind::type, message); });
}

PyObject* refuse_arithmetic(const char* operation) noexcept {
    return guarded([&]() -> py::object {
        reject(ErrorKind::type, "a DeviceArray has no arithmetic ({}): use {}, or write a kernel.", operation,
               array_with_arithmetic());
    });
}

/// `x + 1`, `1 + x` and `x += 1` all call one slot.
template <class Slot>
struct Operator {
    const char* name;
    Slot PyNumberMethods::*slot;
};
template <class Slot>
Operator(const char*, Slot PyNumberMethods::*) -> Operator<Slot>;
constexpr std::tuple operators = {
    Operator{"+", &PyNumberMethods::nb_add},
    Operator{"-", &PyNumberMethods::nb_subtract},
    Operator{"*", &PyNumberMethods::nb_multiply},
    Operator{"/", &PyNumberMethods::nb_true_divide},
    Operator{"//", &PyNumberMethods::nb_floor_divide},
    Operator{"%", &PyNumberMethods::nb_remainder},
    Operator{"@", &PyNumberMethods::nb_matrix_multiply},
    Operator{"&", &PyNumberMethods::nb_and},
    Operator{"|", &PyNumberMethods::nb_or},
    Operator{"^", &PyNumberMethods::nb_xor},
    Operator{"<<", &PyNumberMethods::nb_lshift},
    Operator{">>", &PyNumberMethods::nb_rshift},
    Operator{"divmod", &PyNumberMethods::nb_divmod},
    Operator{"**", &PyNumberMethods::nb_power},
    Operator{"-x", &PyNumberMethods::nb_negative},
    Operator{"+x", &PyNumberMethods::nb_positive},
    Operator{"~x", &PyNumberMethods::nb_invert},
    Operator{"abs", &PyNumberMethods::nb_absolute},
};

template <std::size_t... rows>
void refuse_operators(PyNumberMethods& number, std::index_sequence<rows...>) {
    ((number.*std::get<rows>(operators).slot =
          [](auto*...) { return refuse_arithmetic(std::get<rows>(operators).name); }),
     ...);
}

/// Refuses equality too, because the default, identity, would silently be False for equal arrays.
PyObject* compare(PyObject*, PyObject* other, int operation) {
    constexpr const char* names[] = {"<", "<=", "==", "!=", ">", ">="};
    if (other == Py_None && (operation == Py_EQ || operation == Py_NE)) {
        return refuse(fmt::format("a DeviceArray has no {}: write `x {} None`.", names[operation],
                                  operation == Py_EQ ? "is" : "is not"));
    }
    return guarded([&]() -> py::object {
        reject(ErrorKind::type, "a DeviceArray is not compared by {}: use {}, or write a kernel.",
               names[operation], array_with_arithmetic());
    });
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

/// Attributes of other libraries' arrays (names separated by blanks) and their replacement here. Rows without `cure`
/// are arithmetic.
struct Foreign {
    std::string_view names, cure;

    bool has(std::string_view name) const noexcept {
        for (std::size_t at = names.find(name); at != names.npos; at = names.find(name, at + 1)) {
            const std::size_t end = at + name.size();
            if ((at == 0 || names[at - 1] == ' ') && (end == names.size() || names[end] == ' ')) return true;
        }
        return false;
    }
};
constexpr std::array foreign = {
    Foreign{"get cpu numpy asnumpy to_numpy values", "x.copy_to_host() copies it to the host"},
    Foreign{"tolist", "x.copy_to_host().tolist()"},
    Foreign{"tobytes", "x.copy_to_host().tobytes()"},
    Foreign{"set copy_to_device", "x[...] = values, or x.copy_from_host(values)"},
    Foreign{"copy_", "x[...] = y, of an array on the device or the host"},
    Foreign{"fill_", "x.fill(value)"},
    Foreign{"zero_", "x.fill(0)"},
    Foreign{"clone", "x.copy()"},
    Foreign{"to", "x.astype(dtype) converts, x.copy_to_host() copies to the host"},
    Foreign{"cuda", "it lies on a device already"},
    Foreign{"detach", "it has no gradients"},
    Foreign{"is_cuda", "it lies on a device always"},
    Foreign{"data_ptr gpudata device_ctypes_pointer ctypes data", "pass the array itself to a kernel"},
    Foreign{"ptr",
            "pass the array itself to a kernel; its address is x.__cuda_array_interface__[\"data\"][0]"},
    Foreign{"flags", "x.c_contiguous, x.f_contiguous and x.strides"},
    Foreign{"numel", "x.size"},
    Foreign{"dim", "x.ndim"},
    Foreign{"float double half int long", "x.astype(dtype) converts"},
    Foreign{"real imag", "x.view(dtype) of the parts' dtype has the real and the imaginary parts in turn"},
    Foreign{"contiguous", "x.copy() is in C order"},
    Foreign{"flatten", "x.copy().ravel()"},
    Foreign{"permute swapaxes", "x.transpose(...)"},
    Foreign{"squeeze unsqueeze", "x.reshape(shape) adds and removes axes of one element"},
    Foreign{"free", "its memory is freed when nothing refers to it: del x"},
    Foreign{"sum prod mean std var max min any all dot argmax argmin argsort cumsum clip round conj sort",
            ""},
};

/// Reads an attribute. The error for a missing one names the replacement. `hasattr` still returns False.
PyObject* get_attribute(PyObject* self, PyObject* name) {
    PyObject* const found = PyObject_GenericGetAttr(self, name);
    if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    const char* const text = PyUnicode_AsUTF8(name);
    const std::string_view wanted = text != nullptr ? text : "";
    const auto row = std::ranges::find_if(foreign, [&](const Foreign& each) { return each.has(wanted); });
    if (row == foreign.end()) return nullptr;
    PyErr_Clear();
    return guarded([&]() -> py::object {
        throw py::attribute_error(
            fmt::format("'bascule.DeviceArray' object has no attribute '{}': {}.", wanted,
                        row->cure.empty() ? fmt::format("use {}, or write a kernel", array_with_arithmetic())
                                          : row->cure));
    });
}

/// Refuses NumPy's ufuncs, such as numpy.add(x, 1) and numpy.sum(x).
PyObject* refuse_ufunc(PyObject*, PyObject* arguments, PyObject*) {
    std::string name = "numpy";
    if (PyTuple_GET_SIZE(arguments) > 0) {
        PyObject* const function = PyTuple_GET_ITEM(arguments, 0);
        if (Py_TYPE(function)->tp_name == std::string_view("numpy.ufunc")) {
            name += "." + py::str(py::handle(function).attr("__name__")).cast<std::string>();
        }
    }
    return refuse_arithmetic(name.c_str());
}

/// NumPy functions that have a replacement here.
constexpr std::array own_functions = {
    Foreign{"copy", "x.copy()"},
    Foreign{"reshape", "x.reshape(shape)"},
    Foreign{"ravel", "x.ravel()"},
    Foreign{"zeros_like", "bascule.zeros_like(x)"},
    Foreign{"ones_like", "bascule.full(x.shape, 1, x.dtype)"},
    Foreign{"full_like", "bascule.full(x.shape, value, x.dtype)"},
    Foreign{"empty_like", "bascule.device_array_like(x)"},
    Foreign{"copyto", "x.copy_to_host(out), or y[...] = x"},
};

/// Handles NumPy's other functions: calls those that read no elements, and refuses all others. Without this, NumPy
/// would try to convert the array, which raises, and numpy.array_equal(x, x) would return False because of that.
PyObject* refuse_function(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    static constexpr std::array<std::string_view, 7> that_work = {
        "shape", "ndim", "size", "transpose", "iscomplexobj", "isrealobj", "result_type"};
    return guarded([&]() -> py::object {
        if (count != 4)
            reject(ErrorKind::type, "__array_function__ takes a function, types, a tuple and a dict.");
        const py::handle function = arguments[0];
        const std::string name = py::str(function.attr("__name__"));
        if (std::ranges::find(that_work, name) != that_work.end()) {
            return function.attr("_implementation")(*py::reinterpret_borrow<py::args>(arguments[2]),
                                                    **py::reinterpret_borrow<py::kwargs>(arguments[3]));
        }
        const auto own = std::ranges::find(own_functions, name, &Foreign::names);
        if (own != own_functions.end())
            reject(ErrorKind::type, "numpy.{} takes no DeviceArray: write {}.", name, own->cure);
        reject(ErrorKind::type, "{}.{} takes no DeviceArray: use {}, or write a kernel.",
               std::string(py::str(function.attr("__module__"))), name, array_with_arithmetic());
    });
}

}  // namespace

void bind_array_refusals(ArrayClass& type) {
    auto* const python_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    PyNumberMethods& number = *python_type->tp_as_number;
    refuse_operators(number, std::make_index_sequence<std::tuple_size_v<decltype(operators)>>());
    number.nb_bool = &refuse_truth;
    python_type->tp_as_sequence->sq_contains = &refuse_search;
    python_type->tp_iter = &refuse_iteration;
    python_type->tp_richcompare = &compare;
    PyType_Modified(python_type);
    python_type->tp_getattro = &get_attribute;
    // NumPy would otherwise treat the array as a scalar, element by element.
    static PyMethodDef ufunc{"__array_ufunc__", as_method(&refuse_ufunc), METH_VARARGS | METH_KEYWORDS,
                             nullptr};
    type.attr("__array_ufunc__") = owned(PyDescr_NewMethod(python_type, &ufunc));
    static PyMethodDef function{"__array_function__", as_method(&refuse_function), METH_FASTCALL, nullptr};
    type.attr("__array_function__") = owned(PyDescr_NewMethod(python_type, &function));
}

}  // namespace bascule::python

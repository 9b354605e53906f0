#include "arrays/array_refusals.hpp"

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>

namespace py = pybind11;

namespace bascule::python {
namespace {

[[noreturn]] void refuse(const std::string& message) {
    throw ArgumentError(ArgumentError::Kind::type, message);
}

[[noreturn]] void refuse_arithmetic(const char* operation) {
    refuse(fmt::format(
        "a DeviceArray has no arithmetic ({}). Use CuPy, where cupy.asarray(x) views it without a "
        "copy, or write a kernel.",
        operation));
}

/// Each with the name of its method: "__add__" is `+`.
struct Operator {
    const char* name;
    const char* method;
};

constexpr Operator with_reflected[] = {
    {"+", "add"}, {"-", "sub"},     {"*", "mul"},     {"/", "truediv"},    {"//", "floordiv"},
    {"%", "mod"}, {"**", "pow"},    {"@", "matmul"},  {"&", "and"},        {"|", "or"},
    {"^", "xor"}, {"<<", "lshift"}, {">>", "rshift"}, {"divmod", "divmod"}};
constexpr Operator comparisons[] = {{"<", "__lt__"}, {"<=", "__le__"}, {">", "__gt__"}, {">=", "__ge__"}};
constexpr Operator unary[] = {{"-x", "__neg__"}, {"+x", "__pos__"}, {"~x", "__invert__"}, {"abs", "__abs__"}};

void bind_binary(ArrayClass& type, const std::string& method, const char* name) {
    type.def(method.c_str(), [name](const ArrayObject&, const py::object&) { refuse_arithmetic(name); });
}

}  // namespace

void bind_array_refusals(ArrayClass& type) {
    for (const Operator& op : with_reflected) {
        for (const char* prefix : {"__", "__r", "__i"}) {
            if (prefix == std::string("__i") && op.method == std::string("divmod")) continue;
            bind_binary(type, fmt::format("{}{}__", prefix, op.method), op.name);
        }
    }
    for (const Operator& op : comparisons) bind_binary(type, op.method, op.name);
    for (const Operator& op : unary) {
        const char* name = op.name;
        type.def(op.method, [name](const ArrayObject&) { refuse_arithmetic(name); });
    }
    // Without this NumPy would treat the array as a scalar, element by element.
    type.attr("__array_ufunc__") = py::none();
    type.def("__iter__", [](const ArrayObject&) {
        refuse(
            "a DeviceArray is not iterable, because each element would be a separate transfer: iterate over "
            "x.copy_to_host().");
    });
    type.def(
        "__contains__",
        [](const ArrayObject&, const py::object&) {
            refuse(
                "`in` is not supported for a DeviceArray, because it would copy the array to the host: search "
                "x.copy_to_host().");
        },
        py::arg("value"));
    type.def("__bool__", [](const ArrayObject&) {
        refuse(
            "a DeviceArray has no truth value, because it would be copied to the host: use x.size, or "
            "bool(x.copy_to_host()).");
    });
}

}  // namespace bascule::python

#include "types/tensor_state.hpp"

#include <bascule/interface/errors/rejection.hpp>

#include "support/cpython.hpp"
#include "support/names.hpp"

namespace bascule::python {
namespace {

using detail::StateObstacle;

// DLPack's codes of element types.
constexpr std::uint8_t floating_code = 2;
constexpr std::uint8_t complex_code = 5;

bool is_true(PyObject* answer) {
    const auto owned = py::reinterpret_steal<py::object>(answer);
    const int truth = owned ? PyObject_IsTrue(owned.ptr()) : -1;
    if (truth < 0) throw py::error_already_set();
    return truth != 0;
}

/// Calls the type's getter directly if there is one, as reading the attribute would.
bool requires_grad(PyObject* object, const TensorState& state) {
    return is_true(into_python([&] {
        const auto getter = py::reinterpret_borrow<py::object>(state.requires_grad_getter);
        if (!getter) return PyObject_GetAttr(object, names().requires_grad);
        return Py_TYPE(getter.ptr())
            ->tp_descr_get(getter.ptr(), object, reinterpret_cast<PyObject*>(Py_TYPE(object)));
    }));
}

bool says(PyObject* object, PyObject* method) {
    return is_true(into_python([&] { return PyObject_CallMethodNoArgs(object, method); }));
}

/// Indexed by StateObstacle.
constexpr struct {
    const char* field;
    const char* why;
    const char* cure;
} obstacles[] = {
    {"", "", ""},
    {"requires_grad", "requires a gradient, and the kernel may write to it, which autograd would not notice",
     "x.detach(), or declare the parameter const"},
    {"is_conj",
     "is conjugated when PyTorch reads it (is_conj() is True), and a kernel reads what lies in memory",
     "x.resolve_conj()"},
    {"is_neg", "is negated when PyTorch reads it (is_neg() is True), and a kernel reads what lies in memory",
     "x.resolve_neg()"},
};

[[noreturn]] void fail(StateObstacle obstacle) {
    const auto& [field, why, cure] = obstacles[static_cast<std::size_t>(obstacle)];
    reject_field(ErrorKind::value, field, "the tensor {}. Pass {}.", why, cure);
}

}  // namespace

TensorState find_tensor_state(PyTypeObject* type, py::object& getter) {
    const auto has = [&](PyObject* name) { return static_cast<bool>(class_attribute(type, name)); };
    TensorState state;
    getter = class_attribute(type, names().requires_grad);
    state.has_requires_grad = static_cast<bool>(getter);
    state.has_is_conj = has(names().is_conj);
    state.has_is_neg = has(names().is_neg);
    state.any = state.has_requires_grad || state.has_is_conj || state.has_is_neg;
    const bool is_getter =
        getter && (Py_TYPE(getter.ptr()) == &PyGetSetDescr_Type || Py_TYPE(getter.ptr()) == &PyProperty_Type);
    if (is_getter && type->tp_getattro == PyObject_GenericGetAttr) state.requires_grad_getter = getter.ptr();
    return state;
}

StateObstacle detail::find_obstacle(PyObject* object, const TensorState& state, std::uint8_t code,
                                    bool may_write) {
    const TensorState known = state;  // Python code that runs may replace the remembered type
    if (may_write && known.has_requires_grad && requires_grad(object, known))
        return StateObstacle::requires_grad;
    const bool complex = code == complex_code;
    if (complex && known.has_is_conj && says(object, names().is_conj)) return StateObstacle::conjugated;
    // The imaginary part of a conjugated tensor is a negated view of real elements.
    const bool floating = complex || code == floating_code;
    if (floating && known.has_is_neg && says(object, names().is_neg)) return StateObstacle::negated;
    return StateObstacle::none;
}

void require_plain_state(PyObject* object, const TensorState& state, const ArrayView& view, bool may_write) {
    if (!state.any) [[likely]]
        return;
    const std::uint8_t code = view.dtype.kind == DType::Kind::complex    ? complex_code
                              : view.dtype.kind == DType::Kind::floating ? floating_code
                                                                         : 0;
    const StateObstacle obstacle = detail::find_obstacle(object, state, code, may_write);
    if (obstacle != StateObstacle::none) fail(obstacle);
}

void require_writable_state(PyObject* object, const TensorState& state) {
    const TensorState known = state;  // Python code that runs may replace the remembered type
    if (known.has_requires_grad && requires_grad(object, known)) fail(StateObstacle::requires_grad);
}

}  // namespace bascule::python

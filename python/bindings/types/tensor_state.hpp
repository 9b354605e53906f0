// What PyTorch's exchange table does not tell of a tensor: that autograd watches it, and that its elements are conjugated or
// negated when they are read. Sources: PyTorch 2.10, toDLPackNonOwning; the documentation of torch.Tensor.
#pragma once

#include <cstdint>

#include <bascule/interface/arrays/array_interface.hpp>

#include "support/gil.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// How the objects of a type tell.
struct TensorState {
    PyObject* requires_grad_getter = nullptr;  ///< kept by who remembers this; null: by the attribute
    bool has_requires_grad = false;
    bool has_is_conj = false;
    bool has_is_neg = false;
    bool any = false;  ///< one of these
};

/// None for types that have no such state. `getter` keeps the one that the result borrows.
TensorState find_tensor_state(PyTypeObject* type, pybind11::object& getter);

namespace detail {

enum class StateObstacle : std::uint8_t { none, requires_grad, conjugated, negated };

/// `code` is DLPack's for the elements. Runs the type's own code. Throws: what that raised.
StateObstacle find_obstacle(PyObject* object, const TensorState& state, std::uint8_t code, bool may_write);

}  // namespace detail

/// Whether a kernel may use the memory as it is: always, but for types with such a state.
[[gnu::always_inline]] inline bool is_plain_state(PyObject* object, const TensorState& state,
                                                  std::uint8_t code, bool may_write) {
    if (!state.any) [[likely]]
        return true;
    return detail::find_obstacle(object, state, code, may_write) == detail::StateObstacle::none;
}

/// Throws: ArgumentError, with PyTorch's own cure, unless a kernel may use the memory as it is; what the type's code raised.
void require_plain_state(PyObject* object, const TensorState& state, const ArrayView& view, bool may_write);

/// Throws: the same where a gradient is required: a kernel may write to the memory.
void require_writable_state(PyObject* object, const TensorState& state);

}  // namespace bascule::python

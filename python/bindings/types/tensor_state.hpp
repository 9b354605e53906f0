// Tensor states that PyTorch's exchange table does not report: that autograd watches a tensor, and that its elements
// are conjugated or negated when read. Sources: PyTorch 2.10, toDLPackNonOwning; the documentation of torch.Tensor.
#pragma once

#include <cstdint>

#include <bascule/interface/arrays/array_interface.hpp>

#include "support/gil.hpp"

namespace bascule::python {

/// The states that objects of a type may have.
struct TensorState {
    PyObject* requires_grad_getter = nullptr;  ///< owned by the RememberedType; null: read the attribute
    bool has_requires_grad = false;
    bool has_is_conj = false;
    bool has_is_neg = false;
    bool any = false;  ///< at least one of them
};

/// Finds which of these states a type has; none for most types. `getter` keeps the getter that the result borrows.
TensorState find_tensor_state(PyTypeObject* type, py::object& getter);

namespace detail {

enum class StateObstacle : std::uint8_t { none, requires_grad, conjugated, negated };

/// Returns the first state that keeps a kernel from using the memory as it is. `code` is DLPack's code of the element
/// type. Runs code of the type. Throws: its exception.
StateObstacle find_obstacle(PyObject* object, const TensorState& state, std::uint8_t code, bool may_write);

}  // namespace detail

/// Whether a kernel may use the memory as it is. Always true for types without such states.
[[gnu::always_inline]] inline bool is_plain_state(PyObject* object, const TensorState& state,
                                                  std::uint8_t code, bool may_write) {
    if (!state.any) [[likely]]
        return true;
    return detail::find_obstacle(object, state, code, may_write) == detail::StateObstacle::none;
}

/// Throws: ArgumentError with PyTorch's own remedy unless a kernel may use the memory as it is; exceptions of the type's code.
void require_plain_state(PyObject* object, const TensorState& state, const ArrayView& view, bool may_write);

/// Throws: ArgumentError, with PyTorch's own remedy, if the tensor requires a gradient, because a kernel may write to
/// the memory; exceptions of the type's code.
void require_writable_state(PyObject* object, const TensorState& state);

}  // namespace bascule::python

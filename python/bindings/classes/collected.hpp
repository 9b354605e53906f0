// Garbage collection support for classes whose C++ value holds Python objects.
#pragma once

#include <type_traits>
#include <utility>

#include "support/pybind.hpp"

namespace bascule::python {

/// Passed to a value's `visit_references`, which calls it once for each reference that only the value holds. The
/// garbage collector either traverses these references, or clears them when the object is unreachable.
class ReferenceVisitor {
  public:
    ReferenceVisitor(visitproc visit, void* argument) noexcept : visit_(visit), argument_(argument) {}
    static ReferenceVisitor that_clears() noexcept { return {nullptr, nullptr}; }

    /// A cleared reference becomes None, so that the object can still be used.
    void operator()(py::object& held) {
        if (visit_ != nullptr) {
            only_look_at(held.ptr());
        } else if (held) {
            const py::object released = std::exchange(held, py::none());
        }
    }
    /// Visits a reference that lives as long as the value. Ignores null.
    void only_look_at(PyObject* held) {
        if (visit_ != nullptr && held != nullptr && result_ == 0) result_ = visit_(held, argument_);
    }
    int result() const noexcept { return result_; }

  private:
    visitproc visit_;  // null: clear the references
    void* argument_;
    int result_ = 0;
};

namespace detail {

/// Visits the value that an object owns. Borrowed and uninitialised values hold nothing.
template <class T, class Holder>
int visit_instance(PyObject* self, ReferenceVisitor visitor) {
    const py::detail::value_and_holder value =
        reinterpret_cast<py::detail::instance*>(self)->get_value_and_holder();
    if (!value.holder_constructed()) return 0;
    if constexpr (std::is_void_v<Holder>) {
        value.value_ptr<T>()->visit_references(visitor);
    } else {
        value.holder<Holder>().visit_references(visitor);
    }
    return visitor.result();
}

}  // namespace detail

/// Lets the garbage collector find cycles through the objects of a class. For py::class_<T>, T has
/// `visit_references(ReferenceVisitor&)`; for py::class_<T, Holder>, Holder has it.
template <class T, class Holder = void>
py::custom_type_setup collected() {
    return py::custom_type_setup([](PyHeapTypeObject* heap_type) {
        PyTypeObject& type = heap_type->ht_type;
        type.tp_flags |= Py_TPFLAGS_HAVE_GC;
        type.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
            Py_VISIT(Py_TYPE(self));
            return detail::visit_instance<T, Holder>(self, {visit, arg});
        };
        type.tp_clear = [](PyObject* self) {
            return detail::visit_instance<T, Holder>(self, ReferenceVisitor::that_clears());
        };
    });
}

}  // namespace bascule::python

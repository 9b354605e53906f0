// DLPack tensors that keep their memory alive, and the capsules that pass them between libraries.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>

#include "support/owners.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// The capsule names for each form of tensor. A consumer renames the capsule, so that the capsule's destructor does not
/// delete the tensor.
template <class Form>
struct CapsuleNames {
    static constexpr bool versioned = std::is_same_v<Form, dlpack::ManagedVersioned>;
    static constexpr const char* fresh = versioned ? "dltensor_versioned" : "dltensor";
    static constexpr const char* used = versioned ? "used_dltensor_versioned" : "used_dltensor";
};

/// Calls the tensor's deleter, if it has one. Preserves a Python error that is set.
template <class Form>
void free_managed(Form* managed) noexcept {
    if (managed->deleter == nullptr) return;
    const py::error_scope pending;
    managed->deleter(managed);
}

/// An owner that keeps a Python object for a tensor. The tensor may be deleted on any thread, without the GIL, and
/// after the interpreter has ended; the reference is then leaked.
inline Owner kept_object(PyObject* object) noexcept {
    Py_INCREF(object);
    return {object, [](void* const* kept, std::size_t count) noexcept {
                if (Py_IsInitialized() != 0) release_references(kept, count);
            }};
}

namespace detail {

template <class Form>
struct Exported {
    Form form{};
    std::vector<std::int64_t> extents;  // shape, then strides in elements
    Owner owner;
};

template <class Form>
void delete_exported(Form* form) noexcept {
    auto* exported = static_cast<Exported<Form>*>(form->context);
    const Owner owner = exported->owner;
    delete exported;
    release(owner);
}

template <class Form>
void destroy_capsule(PyObject* capsule) noexcept {
    static constexpr const char* fresh = CapsuleNames<Form>::fresh;
    if (PyCapsule_IsValid(capsule, fresh) == 0) return;  // consumed
    free_managed(static_cast<Form*>(PyCapsule_GetPointer(capsule, fresh)));
}

template <class Form>
void destroy_holder(PyObject* capsule) noexcept {
    free_managed(static_cast<Form*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))));
}

}  // namespace detail

/// Makes a managed tensor with these extents (shape, then strides in elements). It releases `owner` when it is deleted,
/// on any thread, with or without the GIL. Takes the owner, also when it throws.
template <class Form>  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved from below
Form* make_managed(const dlpack::Tensor& tensor, std::vector<std::int64_t> extents, Owner owner,
                   std::uint64_t flags) {
    detail::Exported<Form>* exported = nullptr;
    try {
        exported = new detail::Exported<Form>;
    } catch (...) {
        release(owner);
        throw;
    }
    exported->extents = std::move(extents);
    exported->owner = owner;
    Form& form = exported->form;
    form.tensor = tensor;
    form.tensor.shape = exported->extents.data();
    form.tensor.strides = exported->extents.data() + tensor.ndim;
    form.context = exported;
    form.deleter = &detail::delete_exported<Form>;
    if constexpr (requires { form.flags; }) {
        form.version = dlpack::version;
        form.flags = flags;
    }
    return &form;
}

/// Makes a new capsule, which deletes the tensor unless a library consumes it. Takes the tensor, also when it throws.
template <class Form>
py::object make_capsule(Form* managed) {
    PyObject* capsule = PyCapsule_New(managed, CapsuleNames<Form>::fresh, &detail::destroy_capsule<Form>);
    if (capsule == nullptr) {
        free_managed(managed);
        throw py::error_already_set();
    }
    return py::reinterpret_steal<py::object>(capsule);
}

/// Makes a Python object that deletes the tensor when it is destroyed. An array that views the tensor keeps it. Takes
/// the tensor unless it throws.
template <class Form>
py::object make_holder(Form* managed) {
    return owned(PyCapsule_New(managed, "bascule.dlpack_tensor", &detail::destroy_holder<Form>));
}

}  // namespace bascule::python

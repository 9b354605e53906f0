#include "launch/module_attributes.hpp"

#include <cstdint>
#include <utility>

#include "classes/simple_value.hpp"
#include "launch/known_launchers.hpp"
#include "parts.hpp"
#include "support/cpython.hpp"

namespace bascule::python {
namespace {

getattrofunc general_attribute = nullptr;

std::uint64_t hash_of_name(PyObject* name) noexcept { return reinterpret_cast<std::uintptr_t>(name) >> 4; }

/// Caches a kernel, unless the class has an attribute of that name.
void remember_kernel(KnownObjects& kernels, PyObject* self, PyObject* name, PyObject* found) {
    if (Py_TYPE(found) != detail::kernel_type || PyUnicode_CHECK_INTERNED(name) == 0) return;
    if (class_attribute(Py_TYPE(self), name)) return;
    auto& kernel = *simple_value<KernelObject>(found);
    kernel.attribute = py::reinterpret_borrow<py::object>(name);
    kernel.module_version = version_tag(Py_TYPE(self));
    if (kernel.module_version == 0) return;  // version 0 would not reveal changes of the class
    kernels.put(hash_of_name(name), py::reinterpret_borrow<py::object>(found), [](PyObject*) {});
}

PyObject* module_attribute(PyObject* self, PyObject* name) noexcept {
    const auto* holder = simple_holder<ModuleHolder<Module>>(self);
    if (holder == nullptr) return general_attribute(self, name);
    const auto is_it = [&](PyObject* known) {
        const auto& kernel = *simple_value<KernelObject>(known);
        return kernel.attribute.ptr() == name && kernel.module_version == version_tag(Py_TYPE(self));
    };
    if (PyObject* const known = holder->kernels().find(hash_of_name(name), is_it)) return known;
    PyObject* const found = general_attribute(self, name);
    if (found != nullptr) remember_kernel(holder->kernels(), self, name, found);
    return found;
}

}  // namespace

void find_known_kernels_first(const py::module_& module) {
    auto* const type = reinterpret_cast<PyTypeObject*>(module.attr("Module").ptr());
    general_attribute = std::exchange(type->tp_getattro, &module_attribute);
}

}  // namespace bascule::python

// `get_global` of bascule.Kernel and bascule.Module: variables of device code as arrays.
#include <bascule/runtime/kernels/global.hpp>

#include "arrays/array_object.hpp"
#include "context/device_object.hpp"
#include "launch/known_launchers.hpp"
#include "parts.hpp"
#include "support/toolkit.hpp"

namespace bascule::python {
namespace {

const Kernel& of(const KernelObject& object) { return object.kernel; }
const Module& of(const Module& object) { return object; }

/// The array keeps `self` alive, which keeps the memory.
template <class Object>
py::object get_global(const py::object& self, const std::string& name) {
    const auto& object = of(self.cast<const Object&>());
    const Device device = current_device();
    prepare_toolkit();
    const Global global = without_gil([&] { return find_global(object, name, device); });
    return make_array(global.view(), device, self);
}

}  // namespace

void bind_globals(py::module_& module) {
    add_method(
        module.attr("Kernel"), "get_global", &get_global<KernelObject>, "name"_a,
        R"(A `__device__`, `__constant__` or `__managed__` variable of this kernel's code, as a DeviceArray that views it.

name : "table", "ns::table", or "scale<float>" for an instance of a variable template.

Shape and dtype are the declared ones: `float table[4][8]` is (4, 8) float32, a vector type such as float4 is one more axis, a
pointer an integer. A struct is opaque bytes, also one whose type has no name: `struct { float a, b; int n; } cfg` has dtype V12. View
what is read through a NumPy dtype; write a structured scalar or array, or bytes, of the same size.

`copy_to_host` reads it and `copy_from_host` writes it, in the order of a stream; a launch does not know which variables its kernel
uses, so do both on one stream. A `__constant__` variable is filled and assigned like any array; kernels take it where they declare
const elements, and other libraries get it read-only, since no kernel can write it. All kernels of a module, and all instances of its templates, use one
variable on each device.)");
    add_method(
        module.attr("Module"), "get_global", &get_global<Module>, "name"_a,
        R"(A `__device__`, `__constant__` or `__managed__` variable, as a DeviceArray: see Kernel.get_global.

Kernels that are compiled later use the same memory. They read a `__constant__` variable as global memory then, which is slower where all
threads read one element: name the kernels with it when compiling, `name_expressions=["scale<float>", "table<float>"]`, so that they are compiled
together.)");
}

}  // namespace bascule::python

// What makes `kernel[grid, block](...)` in a loop as cheap as a launcher that was kept: a kernel knows the launchers that it
// made last, by what was in the brackets and by where they are written. A known launcher holds no Python object, and so no
// stream: a bascule.Stream was lent to it, and when that ends, the launcher is known no more and keeps the stream itself.
#pragma once

#include <memory>

#include <bascule/runtime/kernels/kernel.hpp>

#include "classes/collected.hpp"
#include "classes/known_objects.hpp"
#include "launch/launcher_key.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

struct LaunchPlan;  // launch_plan.hpp

/// The launchers that a kernel knows.
class KnownLaunchers : public KnownObjects {
  public:
    ~KnownLaunchers();
};

namespace detail {
inline PyTypeObject* kernel_type = nullptr;  // set once by find_known_launchers_first, held by the module
}

/// bascule.Kernel.
struct KernelObject {
    Kernel kernel;
    std::unique_ptr<KnownLaunchers> launchers = std::make_unique<KnownLaunchers>();
    pybind11::object attribute{};    ///< its name where it is a module's attribute, interned; else null
    unsigned int module_version{0};  ///< version_tag of the module's type when that had no such attribute

    void visit_references(ReferenceVisitor& each) const {
        launchers->visit_references(each);
        each.only_look_at(attribute.ptr());
    }
};

/// The key by which the kernel can know a launcher with this plan, whose stream is lent to it then; an empty one where it
/// cannot: `key` has no place, or the package's own code runs there, or its stream belongs to another library's object.
LauncherKey lend_stream(const KernelObject& kernel, LaunchPlan& plan, LauncherKey key);
/// From now on the kernel knows a launcher that was made with such a key.
void remember_launcher(const KernelObject& kernel, const pybind11::object& launcher);

}  // namespace bascule::python

// Each kernel caches the launchers that it made last, so that `kernel[grid, block](...)` in a loop costs little more
// than a launcher in a variable. The key is the content of the brackets and the place in the code. A cached launcher
// holds no Python object. It borrows its bascule.Stream; when that is destroyed, the launcher leaves the cache and
// takes ownership of the stream. In the same way each module caches its kernels: `module.scale` returns the same object each
// time, which caches its launchers.
#pragma once

#include <memory>

#include <bascule/runtime/kernels/kernel.hpp>

#include "classes/known_objects.hpp"
#include "launch/launcher_key.hpp"

namespace bascule::python {

struct LaunchPlan;  // launch_plan.hpp

/// The cached launchers of a kernel.
class KnownLaunchers : public KnownObjects {
  public:
    ~KnownLaunchers();
};

namespace detail {
inline PyTypeObject* kernel_type = nullptr;  // set once by find_known_objects_first, held by the module
}

/// The value of a bascule.Kernel.
struct KernelObject {
    Kernel kernel;
    std::unique_ptr<KnownLaunchers> launchers = std::make_unique<KnownLaunchers>();
    py::object attribute{};          ///< its interned name if it is a module's attribute; else null
    unsigned int module_version{0};  ///< version_tag of the module's type, which had no such attribute then

    void visit_references(ReferenceVisitor& each) const {
        launchers->visit_references(each);
        each.only_look_at(attribute.ptr());
    }
};

/// Returns the key by which the kernel can cache a launcher with this plan, and makes the plan borrow its stream.
/// Returns an empty key if it cannot: `key` has no place, Bascule's own Python code is running, or another library's
/// object owns the stream.
LauncherKey lend_stream(const KernelObject& kernel, LaunchPlan& plan, LauncherKey key);
/// Caches a launcher that was made with such a key.
void remember_launcher(const KernelObject& kernel, const py::object& launcher);

/// The holder of a bascule.Module: owns the module and caches the kernels that were looked up. A template, because
/// pybind11 requires that of holders.
template <class T>
class ModuleHolder {
  public:
    explicit ModuleHolder(T* module) : module_(module) {}

    T* get() const noexcept { return module_.get(); }
    KnownObjects& kernels() const noexcept { return *kernels_; }
    void visit_references(ReferenceVisitor& each) const { kernels_->visit_references(each); }

  private:
    std::unique_ptr<T> module_;
    std::unique_ptr<KnownObjects> kernels_ = std::make_unique<KnownObjects>();
};

}  // namespace bascule::python

PYBIND11_DECLARE_HOLDER_TYPE(T, bascule::python::ModuleHolder<T>)

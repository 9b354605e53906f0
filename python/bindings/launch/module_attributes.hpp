// Kernels as attributes of a module. `module.scale` returns the same object each time, which caches its launchers.
#pragma once

#include <memory>

#include <bascule/runtime/kernels/kernel.hpp>

#include "classes/collected.hpp"
#include "classes/known_objects.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

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

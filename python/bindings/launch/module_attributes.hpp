// Kernels that are attributes of a module: once found, `module.scale` is the same object, which knows its launchers.
#pragma once

#include <memory>

#include <bascule/runtime/kernels/kernel.hpp>

#include "classes/collected.hpp"
#include "classes/known_objects.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// The holder in which pybind11 keeps a bascule.Module: it owns the value and the kernels that were looked up. It is a
/// template because pybind11 declares holders as templates.
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

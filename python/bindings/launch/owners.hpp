// Python objects that a launch keeps alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include <Python.h>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>

#include "support/gil.hpp"

namespace bascule::python {

/// Gives up a reference, under the GIL; leaks it when the interpreter is already gone.
inline void release_reference(void* object) noexcept {
    const GilTaken taken;
    if (taken.held()) Py_DECREF(static_cast<PyObject*>(object));
}

/// References taken for one operation; dropped unless handed over. No allocation up to 32.
class OwnerList {
  public:
    OwnerList() = default;
    OwnerList(const OwnerList&) = delete;
    OwnerList& operator=(const OwnerList&) = delete;
    ~OwnerList() {
        for (const Owner& owner : current()) Py_DECREF(static_cast<PyObject*>(owner.object));
    }

    /// `bytes` of memory go with the object.
    void keep(PyObject* object, std::uint64_t bytes) {
        const Owner owner{object, &release_reference, bytes};
        if (count_ < most_inline) {
            new (&inline_[count_ * sizeof(Owner)]) Owner(owner);
        } else {
            if (more_.empty()) more_.assign(first(), first() + count_);
            more_.push_back(owner);
        }
        Py_INCREF(object);
        ++count_;
    }
    void keep(PyObject* object, const ArrayView& view) { keep(object, view.size * view.dtype.itemsize); }

    /// Whoever receives the span now owns the references.
    std::span<const Owner> hand_over() noexcept {
        const std::span<const Owner> owners = current();
        count_ = 0;
        handed_over_ = true;
        return owners;
    }

    /// The references that are held now.
    std::span<const Owner> current() const noexcept {
        if (more_.empty()) return {first(), count_};
        return handed_over_ ? std::span<const Owner>{} : std::span<const Owner>(more_);
    }

  private:
    static constexpr std::size_t most_inline = 32;
    const Owner* first() const noexcept { return std::launder(reinterpret_cast<const Owner*>(inline_)); }

    std::size_t count_ = 0;
    bool handed_over_ = false;
    alignas(
        Owner) std::byte inline_[most_inline * sizeof(Owner)];  // not zeroed: that would be a call's worth
    std::vector<Owner> more_;
};

}  // namespace bascule::python

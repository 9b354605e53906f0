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

/// Gives references up, under the GIL; leaks them when the interpreter is already gone.
inline void release_references(void* const* objects, std::size_t count) noexcept {
    const GilTaken taken;
    if (!taken.held()) return;
    for (std::size_t i = 0; i < count; ++i) Py_DECREF(static_cast<PyObject*>(objects[i]));
}

/// References taken for one operation; dropped unless handed over. No allocation up to 32.
class OwnerList {
  public:
    OwnerList() = default;
    OwnerList(const OwnerList&) = delete;
    OwnerList& operator=(const OwnerList&) = delete;
    ~OwnerList() {
        for (const Owner& owner : hand_over()) Py_DECREF(static_cast<PyObject*>(owner.object));
    }

    /// `bytes` of memory go with the object.
    [[gnu::always_inline]] void keep(PyObject* object, std::uint64_t bytes) {
        if (count_ < most_inline) [[likely]] {
            new (&inline_[count_ * sizeof(Owner)]) Owner{object, &release_references, bytes};
        } else {
            keep_more({object, &release_references, bytes});
        }
        Py_INCREF(object);
        ++count_;
    }
    [[gnu::always_inline]] void keep(PyObject* object, const ArrayView& view) {
        keep(object, view.size * view.dtype.itemsize);
    }

    /// The references that are held now.
    std::span<const Owner> current() const noexcept {
        return count_ <= most_inline ? std::span(first(), count_) : std::span(more_.data(), count_);
    }
    /// Whoever receives the span, which is good until this goes, now owns the references.
    std::span<const Owner> hand_over() noexcept {
        const std::span<const Owner> owners = current();
        count_ = 0;
        return owners;
    }

  private:
    static constexpr std::size_t most_inline = 32;
    const Owner* first() const noexcept { return std::launder(reinterpret_cast<const Owner*>(inline_)); }
    void keep_more(const Owner& owner) {
        if (count_ == most_inline) more_.assign(first(), first() + count_);
        more_.push_back(owner);
    }

    std::size_t count_ = 0;
    std::vector<Owner> more_;  ///< all of them, where they are more than fit here
    alignas(Owner) std::byte inline_[most_inline * sizeof(Owner)];  // not initialised: it would cost a launch
};

}  // namespace bascule::python

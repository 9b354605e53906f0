// Python objects that a launch keeps alive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

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
    OwnerList() noexcept {}
    OwnerList(const OwnerList&) = delete;
    OwnerList& operator=(const OwnerList&) = delete;
    ~OwnerList() {
        const Owners left = hand_over();
        for (std::size_t i = 0; i < left.count; ++i) Py_DECREF(static_cast<PyObject*>(left.objects[i]));
    }

    /// `bytes` of memory go with the object.
    [[gnu::always_inline]] void keep(PyObject* object, std::uint64_t bytes) {
        if (count_ == room_) [[unlikely]]
            grow();
        objects_[count_++] = object;
        bytes_ += bytes;
        Py_INCREF(object);
    }
    [[gnu::always_inline]] void keep(PyObject* object, const ArrayView& view) {
        keep(object, view.size * view.dtype.itemsize);
    }
    /// References to what another list refers to.
    void keep(const Owners& others) {
        for (std::size_t i = 0; i < others.count; ++i) keep(static_cast<PyObject*>(others.objects[i]), 0);
        bytes_ += others.bytes;
    }

    /// The references that are held now.
    Owners current() const noexcept { return {objects_, count_, &release_references, bytes_}; }
    /// The receiver owns the references from now on; the list of them is good until this goes.
    Owners hand_over() noexcept {
        const Owners owners = current();
        count_ = 0;
        bytes_ = 0;
        return owners;
    }

  private:
    [[gnu::cold, gnu::noinline]] void grow() {
        auto larger = std::make_unique<void*[]>(2 * room_);
        std::copy_n(objects_, count_, larger.get());
        more_ = std::move(larger);
        objects_ = more_.get();
        room_ *= 2;
    }

    void** objects_ = inline_;
    std::size_t count_ = 0;
    std::size_t room_ = std::size(inline_);
    std::uint64_t bytes_ = 0;
    std::unique_ptr<void*[]> more_;  ///< where they are more than fit here
    void* inline_[32];               // not initialised: it would cost a launch
};

}  // namespace bascule::python

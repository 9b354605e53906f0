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

/// Releases references under the GIL. Leaks them if the interpreter is already gone.
inline void release_references(void* const* objects, std::size_t count) noexcept {
    const GilAcquired gil;
    if (!gil.held()) return;
    for (std::size_t i = 0; i < count; ++i) Py_DECREF(static_cast<PyObject*>(objects[i]));
}

/// Takes references under the GIL.
inline void take_references(void* const* objects, std::size_t count) noexcept {
    const GilAcquired gil;
    if (!gil.held()) return;
    for (std::size_t i = 0; i < count; ++i) Py_INCREF(static_cast<PyObject*>(objects[i]));
}

/// References taken for one operation; released unless transferred. Allocates nothing for up to 32.
class OwnerList {
  public:
    OwnerList() noexcept {}
    OwnerList(OwnerList&&) = delete;
    ~OwnerList() {
        for (std::size_t i = handed_over_; i < count_; ++i) Py_DECREF(static_cast<PyObject*>(objects_[i]));
    }

    /// Keeps the object until the operation is done. `bytes`: the size of the object's memory.
    [[gnu::always_inline]] void keep(PyObject* object, std::uint64_t bytes) {
        if (count_ == room_) [[unlikely]]
            grow();
        void** const objects = objects_;
        const std::size_t place = lasting_++;
        objects[count_++] = objects[place];
        objects[place] = object;
        bytes_ += bytes;
        Py_INCREF(object);
    }
    /// Keeps an object only during the call, because its memory is freed after the operation in stream order. A graph
    /// that captures the operation keeps it, too.
    [[gnu::always_inline]] void keep_during_call(PyObject* object) {
        if (count_ == room_) [[unlikely]]
            grow();
        objects_[count_++] = object;
        Py_INCREF(object);
    }
    [[gnu::always_inline]] void keep(PyObject* object, const ArrayView& view) {
        keep(object, view.size * view.dtype.itemsize);
    }
    /// Takes references to the objects of another list.
    void keep(const Owners& others) {
        for (std::size_t i = 0; i < others.count; ++i) keep(static_cast<PyObject*>(others.objects[i]), 0);
        bytes_ += others.bytes;
    }

    /// All references that are held now.
    Owners current() const noexcept { return {objects_, count_, &release_references, bytes_}; }
    /// Transfers the references that are kept for the operation to the receiver. The returned list is valid as long as
    /// this object. Call it once.
    Owners transfer() noexcept {
        Owners owners(objects_, lasting_, &release_references, bytes_);
        owners.borrowed = count_ - lasting_;
        owners.retain = &take_references;
        handed_over_ = lasting_;
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
    std::size_t lasting_ = 0;  // number of objects that are kept for the operation
    std::size_t handed_over_ = 0;
    std::size_t count_ = 0;
    std::size_t room_ = std::size(inline_);
    std::uint64_t bytes_ = 0;
    std::unique_ptr<void*[]> more_;  ///< replaces inline_ when that is full
    void* inline_[32];               // not initialised, which would slow down each launch
};

}  // namespace bascule::python

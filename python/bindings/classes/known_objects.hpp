// A small cache of Python objects, found by the values that they were made from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "classes/collected.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {

/// One object per slot: a new one replaces the former one. Thread-safe.
class KnownObjects {
  public:
    KnownObjects() = default;
    KnownObjects(KnownObjects&&) = delete;

    /// Returns a new reference to the object in the slot of `hash`; null if there is none that matches.
    template <class Matches>
    [[gnu::always_inline]] PyObject* find(std::uint64_t hash, const Matches& matches) const noexcept {
        const std::lock_guard lock(mutex_);
        PyObject* const known = objects_[slot_of(hash)].ptr();
        return known != nullptr && matches(known) ? Py_NewRef(known) : nullptr;
    }
    /// Stores an object. First calls `replaces` with the former one, if any. Needs the GIL, as does the destructor.
    template <class Replaces>
    void put(std::uint64_t hash, py::object object, const Replaces& replaces) noexcept {
        const std::lock_guard lock(mutex_);
        py::object& slot = objects_[slot_of(hash)];
        if (slot) replaces(slot.ptr());
        std::swap(slot, object);  // the former object is released after the lock
    }
    /// Removes the objects for which `matches` is true.
    template <class Matches>
    void remove(const Matches& matches) noexcept {
        std::array<py::object, 16> removed;
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < removed.size(); ++i) {
            if (objects_[i] && matches(objects_[i].ptr())) std::swap(objects_[i], removed[i]);
        }
    }
    /// The objects are not cleared: other objects clear all cycles through them.
    void visit_references(ReferenceVisitor& each) const {
        for (const py::object& object : objects_) each.only_look_at(object.ptr());
    }

  private:
    /// Fibonacci hashing: the highest four bits.
    static std::size_t slot_of(std::uint64_t hash) noexcept { return hash * 0x9E3779B97F4A7C15ULL >> 60; }

    mutable GilMutex mutex_;
    std::array<py::object, 16> objects_;
};

}  // namespace bascule::python

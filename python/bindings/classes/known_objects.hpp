// A few objects that were made before, found again by what they were made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "classes/collected.hpp"
#include "support/pybind.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {

/// One object a slot: a new one replaces the one before. Thread-safe.
class KnownObjects {
  public:
    KnownObjects() = default;
    KnownObjects(KnownObjects&&) = delete;

    /// Returns a new reference to the object in the slot of `hash`; null if the slot is empty or its object does not fit.
    template <class Fits>
    [[gnu::always_inline]] PyObject* find(std::uint64_t hash, const Fits& fits) const noexcept {
        const std::lock_guard lock(mutex_);
        PyObject* const known = objects_[slot_of(hash)].ptr();
        return known != nullptr && fits(known) ? Py_NewRef(known) : nullptr;
    }
    /// Calls `replaces(the object that was there)` first, if there was one. Needs the GIL, as the destructor does.
    template <class Replaces>
    void put(std::uint64_t hash, pybind11::object object, const Replaces& replaces) noexcept {
        const std::lock_guard lock(mutex_);
        pybind11::object& slot = objects_[slot_of(hash)];
        if (slot) replaces(slot.ptr());
        std::swap(slot, object);  // what was there goes when the lock is given back
    }
    /// Removes the objects that fit.
    template <class Fits>
    void remove(const Fits& fits) noexcept {
        std::array<pybind11::object, 16> removed;
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < removed.size(); ++i) {
            if (objects_[i] && fits(objects_[i].ptr())) std::swap(objects_[i], removed[i]);
        }
    }
    /// They stay: what they hold leads to no cycle that others do not clear.
    void visit_references(ReferenceVisitor& each) const {
        for (const pybind11::object& object : objects_) each.only_look_at(object.ptr());
    }

  private:
    /// Fibonacci hashing: the highest four bits.
    static std::size_t slot_of(std::uint64_t hash) noexcept { return hash * 0x9E3779B97F4A7C15ULL >> 60; }

    mutable GilMutex mutex_;
    std::array<pybind11::object, 16> objects_;
};

}  // namespace bascule::python

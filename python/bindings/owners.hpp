// Python objects that a launch keeps alive.
#pragma once

#include <array>
#include <span>
#include <vector>

#include <Python.h>

#include <bascule/runtime/lifetime.hpp>

namespace bascule::python {

/// False once the interpreter is on its way out: then its objects are leaked.
inline bool interpreter_lives() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return !Py_IsFinalizing();
#else
    return !_Py_IsFinalizing();
#endif
}

/// Gives up a reference, under the GIL; leaks it when the interpreter is already gone.
inline void release_reference(void* object) noexcept {
    if (!interpreter_lives()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(static_cast<PyObject*>(object));
    PyGILState_Release(state);
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

    void keep(PyObject* object) {
        const Owner owner{object, &release_reference};
        if (count_ < inline_.size()) {
            inline_[count_] = owner;
        } else {
            if (more_.empty()) more_.assign(inline_.begin(), inline_.end());
            more_.push_back(owner);
        }
        Py_INCREF(object);
        ++count_;
    }

    /// Whoever receives the span now owns the references.
    std::span<const Owner> hand_over() noexcept {
        const std::span<const Owner> owners = current();
        count_ = 0;
        handed_over_ = true;
        return owners;
    }

    /// The references that are held now.
    std::span<const Owner> current() const noexcept {
        if (more_.empty()) return {inline_.data(), count_};
        return handed_over_ ? std::span<const Owner>{} : std::span<const Owner>(more_);
    }

  private:
    std::size_t count_ = 0;
    bool handed_over_ = false;
    std::array<Owner, 32> inline_;
    std::vector<Owner> more_;
};

}  // namespace bascule::python

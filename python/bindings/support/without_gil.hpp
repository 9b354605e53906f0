// Locks for free-threaded Python. With a GIL they are empty.
#pragma once
#include "support/pybind.hpp"

namespace bascule::python {

/// Guards a few statements that run no Python code, release no reference and do not wait. With a GIL these are atomic
/// without a lock. Unlike std::mutex, it lets the interpreter stop a thread that waits here.
class GilMutex {
  public:
    constexpr GilMutex() = default;
    GilMutex(const GilMutex&) = delete;
    GilMutex& operator=(const GilMutex&) = delete;
#ifdef Py_GIL_DISABLED
    void lock() noexcept { PyMutex_Lock(&mutex_); }
    void unlock() noexcept { PyMutex_Unlock(&mutex_); }

  private:
    PyMutex mutex_{};
#else
    void lock() noexcept {}
    void unlock() noexcept {}
#endif
};

/// An item of a list that other threads may change; null after the end of the list. With a GIL it is borrowed, and
/// valid until Python code runs.
class ListItem {
  public:
#ifdef Py_GIL_DISABLED
    ListItem(PyObject* list, Py_ssize_t index) noexcept : item_(PyList_GetItemRef(list, index)) {
        if (item_ == nullptr) PyErr_Clear();
    }
    ~ListItem() { Py_XDECREF(item_); }
#else
    ListItem(PyObject* list, Py_ssize_t index) noexcept
        : item_(index < PyList_GET_SIZE(list) ? PyList_GET_ITEM(list, index) : nullptr) {}
#endif
    ListItem(const ListItem&) = delete;
    ListItem& operator=(const ListItem&) = delete;

    PyObject* get() const noexcept { return item_; }

  private:
    PyObject* item_;
};

/// The value of a key in a dict that other threads may change; null if the key is missing.
inline pybind11::object entry_of(PyObject* dict, const char* key) {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* value = nullptr;
    if (PyDict_GetItemStringRef(dict, key, &value) < 0) throw pybind11::error_already_set();
    return pybind11::reinterpret_steal<pybind11::object>(value);
#else
    return pybind11::reinterpret_borrow<pybind11::object>(PyDict_GetItemString(dict, key));
#endif
}

/// A copy of a dict, to iterate over while Python code may change the dict.
inline pybind11::dict copy_of(pybind11::handle dict) {
    return owned<pybind11::dict>(PyDict_Copy(dict.ptr()));
}

}  // namespace bascule::python

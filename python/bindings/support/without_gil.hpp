// Locks for free-threaded Python. With a GIL they are empty.
#pragma once
#include "support/pybind.hpp"

namespace bascule::python {

/// Guards a few statements that run no Python code, release no reference and do not wait. With a GIL these are atomic
/// without a lock. Unlike std::mutex, it lets the interpreter stop a thread that waits here.
class GilMutex {
  public:
    constexpr GilMutex() = default;
    GilMutex(GilMutex&&) = delete;
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
    ListItem(ListItem&&) = delete;

    PyObject* get() const noexcept { return item_; }

  private:
    PyObject* item_;
};

/// The value of a key in a dict that other threads may change; null if the key is missing.
inline py::object entry_of(PyObject* dict, const char* key) {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* value = nullptr;
    if (PyDict_GetItemStringRef(dict, key, &value) < 0) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(value);
#else
    return py::reinterpret_borrow<py::object>(PyDict_GetItemString(dict, key));
#endif
}

/// A copy of a dict, to iterate over while Python code may change the dict.
inline py::dict copy_of(py::handle dict) { return owned<py::dict>(PyDict_Copy(dict.ptr())); }

}  // namespace bascule::python

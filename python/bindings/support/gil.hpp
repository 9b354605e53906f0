// Python's lock, given up and taken. A thread that asks for it when the interpreter is on its way out stops
// there for good: Python before 3.14 would end it by unwinding its stack, and destructors cannot be unwound
// through.
#pragma once

#include <cxxabi.h>
#include <unistd.h>

#include <Python.h>

namespace bascule::python {

/// False once the interpreter is on its way out: then its objects are leaked.
inline bool interpreter_lives() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return !Py_IsFinalizing();
#else
    return !_Py_IsFinalizing();
#endif
}

/// For daemon threads that the interpreter's end finds inside of us: the process ends around them.
[[noreturn]] inline void stop_this_thread() noexcept {
    for (;;) pause();
}

/// Calls into Python, where any code may run: what Python's end would unwind must not reach our frames.
template <class Call>
auto into_python(const Call& call) {
    try {
        return call();
    } catch (const abi::__forced_unwind&) {
        stop_this_thread();
    }
}

/// Gives the lock up for as long as it lives. In the place of py::gil_scoped_release.
class GilReleased {
  public:
    GilReleased() noexcept : state_(PyEval_SaveThread()) {}
    ~GilReleased() {
        try {
            PyEval_RestoreThread(state_);
        } catch (const abi::__forced_unwind&) {
            stop_this_thread();
        }
    }
    GilReleased(const GilReleased&) = delete;
    GilReleased& operator=(const GilReleased&) = delete;

  private:
    PyThreadState* state_;
};

/// Takes the lock, from a thread that may have it or not, unless the interpreter is gone: ask `held`.
class GilTaken {
  public:
    GilTaken() noexcept : held_(interpreter_lives()) {
        if (!held_) return;
        try {
            state_ = PyGILState_Ensure();
        } catch (const abi::__forced_unwind&) {
            stop_this_thread();
        }
    }
    ~GilTaken() {
        if (held_) PyGILState_Release(state_);
    }
    GilTaken(const GilTaken&) = delete;
    GilTaken& operator=(const GilTaken&) = delete;

    bool held() const noexcept { return held_; }

  private:
    bool held_;
    PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

}  // namespace bascule::python

// Releasing and acquiring the GIL, which no call of the driver is made with. A thread that acquires it while the
// interpreter is finalizing stops there forever: Python before 3.14 would end it by unwinding its stack, which
// destructors do not survive.
#pragma once

#include <cxxabi.h>
#include <exception>
#include <unistd.h>

#include "support/cpython.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// False once the interpreter is finalizing: then its objects are leaked.
inline bool interpreter_lives() noexcept { return !is_finalizing(); }

/// For daemon threads that are inside Bascule when the interpreter ends.
[[noreturn]] inline void stop_this_thread() noexcept {
    for (;;) pause();
}

/// Calls into Python, where any code may run: Python's end must not unwind our frames.
template <class Call>
[[gnu::always_inline]] inline auto into_python(const Call& call) {
    try {
        return call();
    } catch (const abi::__forced_unwind&) {
        stop_this_thread();
    }
}

/// Calls into Python from a function that cannot raise; what is raised goes to sys.unraisablehook, as of `place`. Needs the GIL.
template <class Call>
void call_unraisable(const char* place, const Call& call) noexcept {
    try {
        try {
            into_python(call);
        } catch (pybind11::error_already_set& error) {
            into_python([&] { error.discard_as_unraisable(place); });
        }
    } catch (const std::exception&) {  // no memory for a report
    }
}

/// PyGILState_Check says yes to everybody once there was a subinterpreter.
inline bool holds_gil() noexcept {
    const PyThreadState* current = attached_thread_state();
    return current != nullptr && current == PyGILState_GetThisThreadState();
}

/// Takes the GIL back that PyEval_SaveThread has released.
inline void restore_gil(PyThreadState* state) noexcept {
    try {
        PyEval_RestoreThread(state);
    } catch (const abi::__forced_unwind&) {
        stop_this_thread();
    }
}

/// Releases the GIL for its lifetime. Use it instead of py::gil_scoped_release.
class GilReleased {
  public:
    GilReleased() noexcept : state_(PyEval_SaveThread()) {}
    ~GilReleased() { restore_gil(state_); }
    GilReleased(const GilReleased&) = delete;
    GilReleased& operator=(const GilReleased&) = delete;

  private:
    PyThreadState* state_;
};

/// Calls what may enter the driver.
template <class Call>
decltype(auto) without_gil(const Call& call) {
    const GilReleased released;
    return call();
}

/// Acquires the GIL, from a thread that may hold it or not, unless the interpreter is gone: then `held` is false.
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

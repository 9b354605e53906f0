// Releases and acquires the GIL. No driver function is called with the GIL. A thread that acquires it while the interpreter is
// finalizing blocks forever: Python before 3.14 would unwind its stack, which the destructors in Bascule do not survive.
#pragma once

#include <cxxabi.h>
#include <exception>
#include <unistd.h>

#include "support/cpython.hpp"

namespace bascule::python {

/// Blocks forever. For daemon threads that are inside Bascule when the interpreter ends.
[[noreturn]] inline void stop_this_thread() noexcept {
    for (;;) pause();
}

/// Calls into Python, where any code may run. Blocks the thread if the end of the interpreter would unwind its stack.
template <class Call>
[[gnu::always_inline]] inline auto into_python(const Call& call) {
    try {
        return call();
    } catch (const abi::__forced_unwind&) {
        stop_this_thread();
    }
}

/// True if this thread holds the GIL. PyGILState_Check always returns true after a subinterpreter was created.
inline bool holds_gil() noexcept {
    const PyThreadState* current = attached_thread_state();
    return current != nullptr && current == PyGILState_GetThisThreadState();
}

/// Reacquires the GIL that PyEval_SaveThread has released.
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
    GilReleased(GilReleased&&) = delete;

  private:
    PyThreadState* state_;
};

/// Calls a function that may call the driver, without the GIL.
template <class Call>
decltype(auto) without_gil(const Call& call) {
    const GilReleased released;
    return call();
}

/// Acquires the GIL in a thread that may already hold it. If the interpreter is gone, `held` is false.
class GilAcquired {
  public:
    GilAcquired() noexcept : held_(interpreter_lives()) {
        if (!held_) return;
        try {
            state_ = PyGILState_Ensure();
        } catch (const abi::__forced_unwind&) {
            stop_this_thread();
        }
    }
    ~GilAcquired() {
        if (held_) PyGILState_Release(state_);
    }
    GilAcquired(GilAcquired&&) = delete;

    bool held() const noexcept { return held_; }

  private:
    bool held_;
    PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

}  // namespace bascule::python

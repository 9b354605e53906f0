// What the main thread does for Python while it waits for a device or for NVRTC: it handles Ctrl-C and other signals, and writes the
// output of device printf in notebooks, whose cells show only what is written to Python's sys.stdout.
#pragma once

#include <string>

#include <bascule/runtime/services.hpp>

#include "support/gil.hpp"

namespace bascule::python {

/// Runs Python's signal handlers while the main thread waits for the device. If a handler raises (KeyboardInterrupt),
/// the wait ends; on the emulated device the awaited work ends too. The driver must be loaded. Needs the GIL.
void run_signal_handlers_while_waiting();

/// Call this before anything is compiled, in any thread: only Python's main thread can be interrupted. Needs the GIL.
void find_main_thread();

/// With these, Python's signal handlers run while the main thread waits: for a compile, which goes on in its own
/// thread, or for a GPU. `bascule._progress` shows compiles that take long.
extern const CompileWatch compile_watch;
extern const WaitWatch wait_watch;

/// Redirects output of kernels on the emulated device to sys.stdout if that belongs to a notebook. Otherwise, and on a
/// GPU, it still goes to the process's standard output. The driver must be loaded. Needs the GIL.
void redirect_device_output();

/// Raises the exception of a signal handler that ran during the call that is ending, with `note` added. Returns false
/// without an exception. Needs the GIL. If this is not called, the interpreter raises the exception soon.
bool raise_interruption(const std::string& note);

/// Raises the exception in the program as soon as possible, for code that Bascule calls itself: Python runs signal handlers
/// in any code of the main thread. Returns false in other threads and while the interpreter is finalizing. Needs the GIL.
bool keep_for_the_program(const py::error_already_set& exception) noexcept;

/// Calls Python code for Bascule itself, from a function that cannot raise. Exceptions go to sys.unraisablehook, with
/// `place` as their origin; but the program gets those that are no Exception, such as KeyboardInterrupt. Needs the GIL.
template <class Call>
void call_unraisable(const char* place, const Call& call) noexcept {
    try {
        try {
            into_python(call);
        } catch (py::error_already_set& error) {
            if (!error.matches(PyExc_Exception) && keep_for_the_program(error)) return;
            into_python([&] { error.discard_as_unraisable(place); });
        }
    } catch (const std::exception&) {  // out of memory for a report
    }
}

/// Notes that the interpreter is about to end. From now on only the main thread and daemon threads exist.
void end_of_program() noexcept;

/// Does not return in a daemon thread after `end_of_program`. The thread's work is dropped, and its error is not read.
/// Needs the GIL.
void stop_daemon_thread_at_end() noexcept;

}  // namespace bascule::python

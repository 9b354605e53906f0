#include "support/interruption.hpp"

#include <atomic>
#include <optional>

#include <pybind11/pybind11.h>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>

#include "support/gil.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

std::atomic<unsigned long> main_thread{0};
std::atomic<bool> is_ending{false};

/// What a handler raised, until it is raised in the program. Used by the main thread only; never destroyed, because
/// the interpreter may be gone then.
std::optional<py::error_already_set>& raised() {
    static auto& exception = *new std::optional<py::error_already_set>;
    return exception;
}

/// PyGILState_Check says yes to everybody once there was a subinterpreter.
bool holds_gil() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    const PyThreadState* current = PyThreadState_GetUnchecked();
#else
    const PyThreadState* current = _PyThreadState_UncheckedGet();
#endif
    return current != nullptr && current == PyGILState_GetThisThreadState();
}

int raise_in_the_program(void*) { return raise_interruption("") ? -1 : 0; }

}  // namespace

/// The emulated device asks this, in any thread, with no lock held.
extern "C" int bascule_python_interrupted() noexcept {
    if (PyThread_get_thread_ident() != main_thread.load(std::memory_order_relaxed)) {
        // The main thread may need the GIL to answer, while this one waits for it.
        if (interpreter_lives() && holds_gil()) const GilReleased for_a_moment;
        return 0;
    }
    const GilTaken gil;
    if (!gil.held()) return 0;
    if (raised()) return 1;
    const py::error_scope keeps_error;  // the thread may be destroying objects because of one
    if (into_python([] { return PyErr_CheckSignals(); }) == 0) return 0;
    raised().emplace();
    Py_AddPendingCall(&raise_in_the_program, nullptr);
    return 1;
}

void run_signal_handlers_while_waiting() {
    const Driver* driver = Driver::existing();
    if (driver == nullptr || driver->emulated_functions() == nullptr) return;
    const py::object thread = py::module_::import("threading").attr("main_thread")();
    main_thread = thread.attr("ident").cast<unsigned long>();
    driver->emulated_functions()->set_interrupt(&bascule_python_interrupted);
}

void end_of_program() noexcept { is_ending = true; }

void stop_daemon_thread_at_end() noexcept {
    if (!is_ending || PyThread_get_thread_ident() == main_thread.load(std::memory_order_relaxed)) return;
    const GilReleased released;
    stop_this_thread();
}

bool raise_interruption(const std::string& note) {
    if (!raised() || PyThread_get_thread_ident() != main_thread.load(std::memory_order_relaxed)) return false;
    try {
        if (!note.empty()) raised()->value().attr("add_note")(note);
    } catch (const py::error_already_set&) {  // an exception class of the program's own
    }
    raised()->restore();
    raised().reset();
    return true;
}

}  // namespace bascule::python

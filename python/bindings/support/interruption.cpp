#include "support/interruption.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>

namespace bascule::python {
namespace {

/// Output of kernels that has not been written to sys.stdout. Kernels run on threads that must not wait for the GIL,
/// because its holder may be waiting for the kernel.
struct Printed {
    std::mutex mutex;
    std::string text;
    bool is_scheduled = false;  ///< a pending call of the interpreter will write it
};

Printed& printed() { return never_destroyed<Printed>(); }  // kernels may print until the process ends

/// Writes the output of kernels so far. Called in the main thread, with the GIL: by the interpreter between bytecode
/// instructions, and while the thread waits for a kernel.
void write_device_output() noexcept {
    std::string text;
    {
        Printed& shared = printed();
        const std::lock_guard lock(shared.mutex);
        text.swap(shared.text);
        shared.is_scheduled = false;
    }
    if (text.empty()) return;
    call_unraisable("device printf",
                    [&] { py::module_::import("sys").attr("stdout").attr("write")(to_readable(text)); });
}

extern "C" void bascule_python_print(const char* text, std::size_t length) {
    Printed& shared = printed();
    const std::lock_guard lock(shared.mutex);
    shared.text.append(text, length);
    if (shared.is_scheduled) return;
    const auto write = [](void*) {
        write_device_output();
        return 0;
    };
    shared.is_scheduled = Py_AddPendingCall(write, nullptr) == 0;
}

bool stdout_is_a_notebooks() {
    const py::object out = py::module_::import("sys").attr("stdout");
    const auto module = py::str(py::type::of(out).attr("__module__")).cast<std::string>();
    return module == "ipykernel.iostream";
}

std::atomic<unsigned long> main_thread{0};
std::atomic<bool> is_ending{false};

/// The exception that a handler raised, until it is raised in the program. Used only by the main thread. Never
/// destroyed, because the interpreter may be gone by then.
std::optional<py::error_already_set>& raised() {
    static auto& exception = *new std::optional<py::error_already_set>;
    return exception;
}

int raise_in_the_program(void*) { return raise_interruption("") ? -1 : 0; }

bool is_main_thread() noexcept {
    return PyThread_get_thread_ident() == main_thread.load(std::memory_order_relaxed);
}

/// Called by the emulated device in any thread, with no lock held; and by the main thread while it waits for a GPU or
/// for a compile. Returns 1 if a signal handler raised, so that the wait ends.
extern "C" int bascule_python_interrupted() noexcept {
    if (!is_main_thread()) {
        // The main thread may need the GIL to answer, while this thread waits for it.
        if (interpreter_lives() && holds_gil()) const GilReleased for_a_moment;
        return 0;
    }
    const GilAcquired gil;
    if (!gil.held()) return 0;
    if (raised()) return 1;
    const py::error_scope keeps_error;  // the thread may be destroying objects because of an exception
    write_device_output();
    if (into_python([] { return PyErr_CheckSignals(); }) == 0) return 0;
    keep_for_the_program(py::error_already_set());
    return 1;
}

/// Errors of the display are not errors of the compilation.
template <class... Arguments>
void call_progress(const char* function, const Arguments&... arguments) {
    call_unraisable("bascule._progress",
                    [&] { py::module_::import("bascule._progress").attr(function)(arguments...); });
}

/// Most compilations finish before this.
constexpr std::chrono::milliseconds shown_after{500};

bool progress_is_shown = false;  // used only by the main thread

void show_compile(const std::string& what, std::chrono::milliseconds waited) {
    const py::error_scope keeps_error;
    progress_is_shown = true;
    call_progress("show", what, std::chrono::duration<double>(waited).count());
}

void hide_compile() {
    const py::error_scope keeps_error;
    progress_is_shown = false;
    // Python code that runs now would get the exception that is meant for the program.
    const auto interruption = std::exchange(raised(), std::nullopt);
    call_progress("hide");
    if (interruption) keep_for_the_program(*interruption);
}

bool is_compile_interrupted(const std::string& what, std::chrono::milliseconds waited) noexcept {
    const GilAcquired gil;
    if (!gil.held()) return false;
    if (bascule_python_interrupted() != 0) return true;
    if (waited < shown_after) return false;
    try {
        show_compile(what, waited);
    } catch (const std::exception&) {  // out of memory
    }
    return raised().has_value();
}

void end_of_compile() noexcept {
    if (!progress_is_shown) return;
    const GilAcquired gil;
    if (!gil.held()) return;
    try {
        hide_compile();
    } catch (const std::exception&) {  // out of memory
    }
}

bool watches_this_thread() noexcept { return is_main_thread() && interpreter_lives(); }

/// The emulated device interrupts its own waits.
bool watches_gpu_waits() noexcept {
    const Driver* const driver = Driver::existing();
    return driver != nullptr && !driver->emulated() && watches_this_thread();
}

}  // namespace

constinit const CompileWatch compile_watch{&watches_this_thread, &is_compile_interrupted, &end_of_compile};
constinit const WaitWatch wait_watch{&watches_gpu_waits,
                                     []() noexcept { return bascule_python_interrupted() != 0; }};

void find_main_thread() {
    const py::object thread = py::module_::import("threading").attr("main_thread")();
    main_thread = thread.attr("ident").cast<unsigned long>();
}

void run_signal_handlers_while_waiting() {
    const Driver* driver = Driver::existing();
    if (driver == nullptr) return;
    find_main_thread();
    if (driver->emulated_functions() != nullptr)
        driver->emulated_functions()->set_interrupt(&bascule_python_interrupted);
}

void redirect_device_output() {
    const EmulatedFunctions* emulated = Driver::get().emulated_functions();
    if (emulated != nullptr && stdout_is_a_notebooks()) emulated->set_print(&bascule_python_print);
}

bool keep_for_the_program(const py::error_already_set& exception) noexcept {
    if (!watches_this_thread()) return false;
    raised().emplace(exception);
    Py_AddPendingCall(&raise_in_the_program, nullptr);
    return true;
}

void end_of_program() noexcept { is_ending = true; }

void stop_daemon_thread_at_end() noexcept {
    if (!is_ending || is_main_thread()) return;
    const GilReleased released;
    stop_this_thread();
}

bool raise_interruption(const std::string& note) {
    if (!is_main_thread() || !raised()) return false;
    try {
        if (!note.empty()) raised()->value().attr("add_note")(note);
    } catch (const py::error_already_set&) {  // add_note of the program's own exception class failed
    }
    raised()->restore();
    raised().reset();
    return true;
}

}  // namespace bascule::python

#include "support/device_output.hpp"

#include <exception>
#include <mutex>
#include <string>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>

#include "support/gil.hpp"
#include "support/pybind.hpp"

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

void write_printed() {
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

int write_scheduled(void*) {
    write_device_output();
    return 0;
}

extern "C" void bascule_python_print(const char* text, std::size_t length) {
    Printed& shared = printed();
    const std::lock_guard lock(shared.mutex);
    shared.text.append(text, length);
    if (!shared.is_scheduled) shared.is_scheduled = Py_AddPendingCall(&write_scheduled, nullptr) == 0;
}

bool stdout_is_a_notebooks() {
    const py::object out = py::module_::import("sys").attr("stdout");
    const auto module = py::str(py::type::of(out).attr("__module__")).cast<std::string>();
    return module == "ipykernel.iostream";
}

}  // namespace

void redirect_device_output() {
    const EmulatedFunctions* emulated = Driver::get().emulated_functions();
    if (emulated != nullptr && stdout_is_a_notebooks()) emulated->set_print(&bascule_python_print);
}

void write_device_output() noexcept {
    try {
        write_printed();
    } catch (const std::exception&) {  // out of memory
    }
}

}  // namespace bascule::python

// Messages about compiles for Python's `logging`.
#include <string>

#include <bascule/jit/process/services.hpp>

#include "parts.hpp"
#include "support/gil.hpp"
#include "support/pybind.hpp"

namespace bascule::python {
namespace {

constexpr int level_number(LogLevel level) noexcept { return level == LogLevel::debug ? 10 : 20; }

/// Null unless the program has imported `logging`: without that, no logger is configured, and `logging` need not be
/// imported for this.
py::object logger_of(const char* name) {
    const auto logging = py::reinterpret_steal<py::object>(PyImport_GetModule(py::str("logging").ptr()));
    if (!logging) {
        PyErr_Clear();
        return {};
    }
    return logging.attr("getLogger")(name);
}

/// Calls `use` with the logger, from a thread that compiles. Exceptions of handlers are reported as unraisable.
template <class Use>
void with_logger(const char* name, const Use& use) noexcept {
    const GilAcquired gil;
    if (!gil.held()) return;
    call_unraisable("bascule's log", [&] {
        if (const py::object logger = logger_of(name)) use(logger);
    });
}

bool wants_log(const char* name, LogLevel level) noexcept {
    bool wanted = false;
    with_logger(name, [&](const py::object& logger) {
        wanted = logger.attr("isEnabledFor")(level_number(level)).cast<bool>();
    });
    return wanted;
}

/// The message may contain bytes that are not UTF-8, from names of files and kernels.
void write_log(const char* name, LogLevel level, const std::string& message) noexcept {
    with_logger(name, [&](const py::object& logger) {
        logger.attr("log")(level_number(level), "%s", to_readable(message));
    });
}

}  // namespace

constinit const LogHandler python_log{&wants_log, &write_log};

}  // namespace bascule::python

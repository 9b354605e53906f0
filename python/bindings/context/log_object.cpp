// Messages about what is compiled, through Python's logging.
#include <string>

#include <pybind11/pybind11.h>

#include <bascule/jit/process/log.hpp>

#include "parts.hpp"
#include "support/gil.hpp"
#include "support/unraisable.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

constexpr int level_number(LogLevel level) noexcept { return level == LogLevel::debug ? 10 : 20; }

/// Null before the program has imported `logging`: then no logger is configured, and it is not imported for this.
py::object logger_of(const char* name) {
    const auto logging = py::reinterpret_steal<py::object>(PyImport_GetModule(py::str("logging").ptr()));
    if (!logging) {
        PyErr_Clear();
        return {};
    }
    return logging.attr("getLogger")(name);
}

/// Calls `use` with the logger, from a thread that compiles; what a handler raises is reported as unraisable.
template <class Use>
void with_logger(const char* name, const Use& use) noexcept {
    const GilTaken taken;
    if (!taken.held()) return;
    call_unraisable("bascule's log", [&] {
        if (const py::object logger = logger_of(name)) use(logger);
    });
}

bool wants(const char* name, LogLevel level) noexcept {
    bool wanted = false;
    with_logger(name, [&](const py::object& logger) {
        wanted = logger.attr("isEnabledFor")(level_number(level)).cast<bool>();
    });
    return wanted;
}

/// As bytes that need not be UTF-8: names of files and of the text's kernels.
void write(const char* name, LogLevel level, const std::string& message) noexcept {
    with_logger(name, [&](const py::object& logger) {
        logger.attr("log")(level_number(level), "%s", to_readable(message));
    });
}

}  // namespace

void log_by_python() noexcept {
    static constexpr LogHandler handler{&wants, &write};
    set_log_handler(handler);
}

}  // namespace bascule::python

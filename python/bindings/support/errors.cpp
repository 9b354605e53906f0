#include "support/errors.hpp"

#include <exception>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/jit/process/compile_watch.hpp>
#include <bascule/runtime/streams/wait_watch.hpp>

#include "parts.hpp"
#include "support/interruption.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {
namespace {

/// Raises the error as the class of this name, with the attributes that the class documents.
void raise(const char* class_name, const Error& error) {
    const py::object type = py::module_::import("bascule._errors").attr(class_name);
    const py::object raised = type(error.what());
    for (const ErrorAttribute& each : error.attributes())
        py::setattr(raised, each.name, py::cast(each.value));
    PyErr_SetObject(type.ptr(), raised.ptr());
}

void raise_cuda_error(const CudaError& error) {
    stop_daemon_thread_at_end();
    const bool lost = loses_context(static_cast<CUresult>(error.code()));
    if (!raise_interruption(lost ? error.what() : error.details().report)) raise(error.name(), error);
}

void raise_interrupted(const char* what) {
    if (!raise_interruption(what)) PyErr_SetObject(PyExc_KeyboardInterrupt, to_str(what).ptr());
}

void translate(std::exception_ptr exception) {
    try {
        std::rethrow_exception(std::move(exception));
    } catch (const CudaError& error) {
        raise_cuda_error(error);
    } catch (const CompileInterrupted& error) {
        raise_interrupted(error.what());
    } catch (const WaitInterrupted& error) {
        raise_interrupted(error.what());
    } catch (const Error& error) {
        raise(error.name(), error);
    }
}

/// Whether a log occurs for the first time. Logs about different texts differ, because they name the text.
bool is_first(const std::string& log) {
    static std::set<std::string>& issued = *new std::set<std::string>;
    static GilMutex mutex;
    const std::lock_guard lock(mutex);
    return issued.insert(log).second;
}

}  // namespace

void register_errors() { py::register_exception_translator(&translate); }

void raise_missing_attribute(const CompileError& error) {
    raise("KernelAttributeError", error);
    throw py::error_already_set();
}

void raise_buffer_error(const std::string& message) {
    raise("ArgumentBufferError", Error(message));
    throw py::error_already_set();
}

void issue_compile_warnings(const Image& image, const Source& source) {
    if (image.log.empty() || !is_first(image.log)) return;
    std::vector<Diagnostic> warnings;
    for (Diagnostic& diagnostic : at_user_places(parse_log(image.log), source)) {
        if (diagnostic.severity != Diagnostic::Severity::warning) continue;
        if (diagnostic.file.empty()) {  // from ptxas, which reports no lines
            diagnostic.file = source.name;
            diagnostic.line = source.first_line;
        }
        warnings.push_back(std::move(diagnostic));
    }
    if (warnings.empty()) return;
    py::module_::import("bascule._errors").attr("issue_warnings")(py::cast(std::move(warnings)));
}

void warn(const char* class_name, const std::string& message) {
    const py::module_ errors = py::module_::import("bascule._errors");
    errors.attr("warn")(message, errors.attr(class_name));
}

void set_python_error() noexcept {
    try {
        translate(std::current_exception());
    } catch (py::error_already_set& error) {
        error.restore();
    } catch (const py::builtin_exception& error) {
        error.set_error();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetObject(PyExc_RuntimeError, to_str(error.what()).ptr());
    } catch (...) {
        PyErr_SetString(PyExc_SystemError, "an unknown C++ exception reached Python");
    }
}

}  // namespace bascule::python

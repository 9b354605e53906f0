#include "support/errors.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/jit/process/compile_watch.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/streams/wait_watch.hpp>

#include "parts.hpp"
#include "support/interruption.hpp"
#include "support/without_gil.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

/// Raises `class_name(message)` with the attributes that the class documents.
void raise(const char* class_name, const std::string& message, const py::dict& attributes = {}) {
    const py::object type = py::module_::import("bascule._errors").attr(class_name);
    const py::object error = type(message);
    for (const auto& [name, value] : attributes) py::setattr(error, name, value);
    PyErr_SetObject(type.ptr(), error.ptr());
}

constexpr std::pair<ArgumentError::Kind, const char*> argument_errors[] = {
    {ArgumentError::Kind::type, "ArgumentTypeError"},
    {ArgumentError::Kind::value, "ArgumentValueError"},
    {ArgumentError::Kind::overflow, "ArgumentOverflowError"},
    {ArgumentError::Kind::missing_key, "ArgumentKeyError"},
    {ArgumentError::Kind::index, "ArgumentIndexError"},
    {ArgumentError::Kind::not_supported, "ArgumentNotImplementedError"},
};

void raise_argument_error(const ArgumentError& error) {
    const ArgumentError::Details& details = error.details();
    const auto* const known =
        std::ranges::find(argument_errors, error.kind(), [](const auto& each) { return each.first; });
    raise(known->second, error.what(),
          py::dict("index"_a = details.index, "name"_a = details.name, "field"_a = details.field,
                   "expected"_a = details.expected, "got"_a = details.got));
}

void raise_compile_error(const CompileError& error, const char* class_name = "CompileError") {
    const CompileError::Details& details = error.details();
    raise(class_name, error.what(),
          py::dict("log"_a = details.log, "name_expression"_a = details.name_expression,
                   "options"_a = details.options, "architecture"_a = details.architecture,
                   "diagnostics"_a = details.diagnostics));
}

void raise_library_error(const LibraryError& error) {
    const LibraryError::Details& details = error.details();
    raise("LibraryError", error.what(),
          py::dict("library"_a = details.library, "paths_tried"_a = details.paths_tried,
                   "loader_message"_a = details.loader_message));
}

void raise_cuda_error(const CudaError& error) {
    const CudaError::Details& details = error.details();
    stop_daemon_thread_at_end();
    const bool lost = loses_context(static_cast<CUresult>(details.code));
    if (raise_interruption(lost ? error.what() : details.report)) return;
    const bool out_of_memory = details.code == CUDA_ERROR_OUT_OF_MEMORY;
    raise(out_of_memory ? "OutOfMemoryError" : "CudaError", error.what(),
          py::dict("code"_a = details.code, "code_name"_a = details.code_name, "call"_a = details.call,
                   "doing"_a = details.doing, "report"_a = details.report, "launch"_a = details.launch));
}

void raise_interrupted(const char* what) {
    if (!raise_interruption(what)) PyErr_SetObject(PyExc_KeyboardInterrupt, to_str(what).ptr());
}

void translate(std::exception_ptr exception) {
    try {
        std::rethrow_exception(std::move(exception));
    } catch (const ArgumentError& error) {
        raise_argument_error(error);
    } catch (const CompileError& error) {
        raise_compile_error(error);
    } catch (const LibraryError& error) {
        raise_library_error(error);
    } catch (const CudaError& error) {
        raise_cuda_error(error);
    } catch (const FileError& error) {
        raise(error.code() == ENOENT ? "MissingFileError" : "FileError", error.what(),
              py::dict("errno"_a = error.code(), "filename"_a = error.path()));
    } catch (const CompileInterrupted& error) {
        raise_interrupted(error.what());
    } catch (const WaitInterrupted& error) {
        raise_interrupted(error.what());
    } catch (const RaceError& error) {
        raise("RaceError", error.what(), py::dict("races"_a = error.races()));
    } catch (const Error& error) {
        raise("Error", error.what());
    }
}

/// Whether a log occurs for the first time. It contains the canonical name of the text.
bool is_first(const std::string& log) {
    static std::set<std::string>& issued = *new std::set<std::string>;
    static GilMutex mutex;
    const std::lock_guard lock(mutex);
    return issued.insert(log).second;
}

}  // namespace

void register_errors() { py::register_exception_translator(&translate); }

void raise_missing_attribute(const CompileError& error) {
    raise_compile_error(error, "KernelAttributeError");
    throw py::error_already_set();
}

void raise_buffer_error(const std::string& message) {
    raise("ArgumentBufferError", message);
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

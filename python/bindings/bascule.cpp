// The extension module bascule._bascule. Only the package imports it.

#include <bascule/runtime/services.hpp>

#include "parts.hpp"
#include "support/interruption.hpp"
#include "support/names.hpp"

namespace {

using namespace bascule::python;

bool in_main_interpreter() noexcept { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

constexpr const char* only_in_main =
    "bascule can be imported in the main interpreter only, because its devices, streams and caches are the "
    "process's. Use threads or processes instead of subinterpreters.";

// --- Messages about compiles for Python's `logging`

constexpr int level_number(bascule::LogLevel level) noexcept {
    return level == bascule::LogLevel::debug ? 10 : 20;
}

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

bool wants_log(const char* name, bascule::LogLevel level) noexcept {
    bool wanted = false;
    with_logger(name, [&](const py::object& logger) {
        wanted = logger.attr("isEnabledFor")(level_number(level)).cast<bool>();
    });
    return wanted;
}

/// The message may contain bytes that are not UTF-8, from names of files and kernels.
void write_log(const char* name, bascule::LogLevel level, const std::string& message) noexcept {
    with_logger(name, [&](const py::object& logger) {
        logger.attr("log")(level_number(level), "%s", to_readable(message));
    });
}

// --- Services

/// What Python provides to the layers below.
bascule::Services python_services{
    .jit = {.language = bascule::Language::python,
            .log = {&wants_log, &write_log},
            .compile_watch = compile_watch},
    // Lets destructors of the runtime, which Python may run anywhere, call the driver without the GIL.
    .lock = {[]() noexcept -> void* { return holds_gil() ? PyEval_SaveThread() : nullptr; },
             [](void* state) noexcept { restore_gil(static_cast<PyThreadState*>(state)); }},
    .wait_watch = wait_watch,
};

}  // namespace

PYBIND11_MODULE(bascule_in_main_interpreter, module, py::mod_gil_not_used(),
                py::multiple_interpreters::not_supported()) {
    // From Python 3.13 on, the function below runs in the main interpreter even if another one imports the module.
    if (!in_main_interpreter()) throw py::import_error(only_in_main);
    check_cpython();
    names();  // made here, so that no other thread has to wait for it
    const py::str own_name = module.attr("__name__");
    module.attr("__name__") =
        "bascule";  // where users find the classes; messages and signatures use this name
    module.attr("__version__") = BASCULE_VERSION;
    register_errors();
    check_calls_of_driver(module, python_services);
    bascule::install(python_services);
    bind_devices(module);
    bind_streams(module);
    bind_dtypes(module);
    bind_arrays(module);
    bind_dlpack_import(module);
    bind_cuda_arrays(module);
    bind_textures(module);
    bind_tensor_maps(module);
    bind_arguments(module);
    bind_interface_reader(module);
    bind_producer_streams(module);
    bind_kernels(module);
    bind_globals(module);
    bind_linking(module);
    bind_cache(module);
    bind_emulated(module);
    bind_graphs(module);
    bind_debug(module);
    bind_pickling(module);
    bind_traces(module);
    bind_public_functions(module);
    describe_call_errors(module);
    find_known_objects_first(module);
    module.attr("__name__") = own_name;
}

/// Called by Python on import. Checks the interpreter first, because pybind11 blocks forever in a subinterpreter before
/// Python 3.12.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): Python composes the name
extern "C" PYBIND11_EXPORT PyObject* PyInit__bascule() {
    if (in_main_interpreter()) return PyInit_bascule_in_main_interpreter();
    PyErr_SetString(PyExc_ImportError, only_in_main);
    return nullptr;
}

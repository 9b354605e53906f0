// The extension module bascule._bascule. Nobody imports it but the package.
#include <pybind11/pybind11.h>

#include <bascule/interface/errors/language.hpp>

#include "arrays/array_class.hpp"
#include "classes/display.hpp"
#include "classes/public_function.hpp"
#include "classes/uninitialised.hpp"
#include "context/cache_object.hpp"
#include "context/debug_object.hpp"
#include "context/device_object.hpp"
#include "context/emulated_object.hpp"
#include "context/graph_object.hpp"
#include "context/log_object.hpp"
#include "context/stream_object.hpp"
#include "context/trace_object.hpp"
#include "exchange/dlpack_import.hpp"
#include "exchange/interface_reader.hpp"
#include "exchange/interface_sync.hpp"
#include "exchange/producer_streams.hpp"
#include "kernels/global_object.hpp"
#include "kernels/kernel_object.hpp"
#include "kernels/pickling.hpp"
#include "launch/arguments.hpp"
#include "support/call_errors.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"
#include "support/gil_check.hpp"
#include "support/names.hpp"
#include "values/dtype_object.hpp"

namespace py = pybind11;

namespace {

bool in_main_interpreter() noexcept { return PyInterpreterState_Get() == PyInterpreterState_Main(); }

constexpr const char* only_in_main =
    "bascule can be imported in the main interpreter only, because its devices, streams and caches are the "
    "process's. Use threads or processes instead of subinterpreters.";

}  // namespace

PYBIND11_MODULE(bascule_in_main_interpreter, module, py::mod_gil_not_used(),
                py::multiple_interpreters::not_supported()) {
    // From Python 3.13 on the function below runs in the main interpreter, whichever imports.
    if (!in_main_interpreter()) throw py::import_error(only_in_main);
    bascule::language_of_advice = bascule::Language::python;
    bascule::python::names();  // made here, where no other thread can wait for it
    const py::str own_name = module.attr("__name__");
    module.attr("__name__") =
        "bascule";  // where users find the classes; messages and signatures name them so
    module.attr("__version__") = BASCULE_VERSION;
    bascule::python::register_errors();
    bascule::python::enter_driver_without_gil();
    bascule::python::check_calls_of_driver(module);
    bascule::python::bind_devices(module);
    bascule::python::bind_streams(module);
    bascule::python::bind_dtypes(module);
    bascule::python::bind_arrays(module);
    bascule::python::bind_dlpack_import(module);
    bascule::python::bind_arguments(module);
    bascule::python::bind_interface_reader(module);
    bascule::python::bind_interface_sync(module);
    bascule::python::bind_producer_streams(module);
    bascule::python::bind_kernels(module);
    bascule::python::bind_globals(module);
    bascule::python::bind_cache(module);
    bascule::python::log_by_python();
    bascule::python::bind_emulated(module);
    bascule::python::bind_graphs(module);
    bascule::python::bind_debug(module);
    bascule::python::bind_pickling(module);
    bascule::python::bind_traces(module);
    bascule::python::bind_public_functions(module);
    bascule::python::bind_display(module);
    bascule::python::describe_call_errors(module);
    bascule::python::bind_reduction(module);
    bascule::python::refuse_uninitialised_objects(module);
    module.attr("__name__") = own_name;
}

/// What Python calls at the import. The check comes first: before Python 3.12 pybind11 waits for ever in a
/// subinterpreter.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): Python composes the name
extern "C" PYBIND11_EXPORT PyObject* PyInit__bascule() {
    if (in_main_interpreter()) return PyInit_bascule_in_main_interpreter();
    PyErr_SetString(PyExc_ImportError, only_in_main);
    return nullptr;
}

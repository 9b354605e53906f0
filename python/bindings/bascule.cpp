// The extension module bascule._bascule. Nobody imports it but the package.
#include <pybind11/pybind11.h>

#include "arguments.hpp"
#include "array_object.hpp"
#include "cache_object.hpp"
#include "debug_object.hpp"
#include "device_object.hpp"
#include "dlpack_import.hpp"
#include "dtype_object.hpp"
#include "emulated_object.hpp"
#include "errors.hpp"
#include "global_object.hpp"
#include "graph_object.hpp"
#include "interface_reader.hpp"
#include "kernel_object.hpp"
#include "names.hpp"
#include "producer_streams.hpp"
#include "stream_object.hpp"

namespace py = pybind11;

PYBIND11_MODULE(_bascule, module, py::mod_gil_not_used()) {
    bascule::python::names();  // made here, where no other thread can wait for it
    module.attr("__version__") = BASCULE_VERSION;
    bascule::python::register_errors();
    bascule::python::bind_devices(module);
    bascule::python::bind_streams(module);
    bascule::python::bind_dtypes(module);
    bascule::python::bind_arrays(module);
    bascule::python::bind_dlpack_import(module);
    bascule::python::bind_arguments(module);
    bascule::python::bind_interface_reader(module);
    bascule::python::bind_producer_streams(module);
    bascule::python::bind_kernels(module);
    bascule::python::bind_globals(module);
    bascule::python::bind_cache(module);
    bascule::python::bind_emulated(module);
    bascule::python::bind_graphs(module);
    bascule::python::bind_debug(module);
}

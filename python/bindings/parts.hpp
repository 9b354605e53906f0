// The parts of the extension module: each function adds one. bascule.cpp calls them; the function that makes a class
// calls those that add to it.
#pragma once
#include "support/pybind.hpp"

namespace bascule {
struct Services;
}  // namespace bascule

namespace bascule::python {

struct ArrayObject;
using ArrayClass = py::class_<ArrayObject>;

/// Makes Bascule's exception classes available to all bound functions.
void register_errors();
/// Checks at each driver call that the calling thread does not hold the GIL, if BASCULE_TEST_GIL=1. A function that was
/// called with it is written to stderr once, and counted in `_bascule._calls_with_gil()`, which exists only then.
void check_calls_of_driver(py::module_& module, Services& services);

void bind_devices(py::module_& module);
void bind_streams(py::module_& module);
void bind_graphs(py::module_& module);
void bind_debug(py::module_& module);
void bind_emulated(py::module_& module);
void bind_traces(py::module_& module);
void bind_cache(py::module_& module);

/// Conversions between numpy.dtype and DType; bascule.struct.
void bind_dtypes(py::module_& module);
void bind_launch_config(py::module_& module);
void bind_values(py::module_& module);
void bind_interface_reader(py::module_& module);
void bind_producer_streams(py::module_& module);

void bind_arrays(py::module_& module);
void bind_array_creation(py::module_& module);
void bind_array_elements(ArrayClass& type);
void bind_array_export(py::module_& module, ArrayClass& type);
void bind_array_import(py::module_& module);
void bind_array_refusals(ArrayClass& type);
void bind_array_transfer(ArrayClass& type);
void bind_array_views(ArrayClass& type);
void bind_allocator(py::module_& module);
/// `zeros`, `ones`, `full` and `zeros_like`.
void bind_filled_arrays(py::module_& module);
void bind_masks(py::module_& module, ArrayClass& type);
void bind_pointer_attributes(py::module_& module);
void bind_dlpack_export(ArrayClass& type);
void bind_dlpack_import(py::module_& module);
/// DLPack's exchange table for other libraries' C code: `__dlpack_c_exchange_api__` of the class.
void bind_exchange_table(ArrayClass& type);

/// bascule.CudaArray and its copies; bascule.Texture and bascule.Surface; bascule.TensorMap.
void bind_cuda_arrays(py::module_& module);
void bind_textures(py::module_& module);
void bind_tensor_maps(py::module_& module);

void bind_kernels(py::module_& module);
void bind_known_kernels(py::module_& module);
void bind_arguments(py::module_& module);
void register_launcher(py::module_& module);
void register_bound_launch(py::module_& module);
/// `get_global` of bascule.Kernel and bascule.Module. Call it after bind_kernels and bind_arrays.
void bind_globals(py::module_& module);
/// `bascule.load_module` and `bascule.link`. Call it after bind_kernels.
void bind_linking(py::module_& module);

/// Functions for bascule._pickling.
void bind_pickling(py::module_& module);
/// The decorator `_public`. Its result calls the function and has its name, signature and documentation; as a class
/// attribute it is a method. If the function raises, frames of this package at the top of the traceback are omitted;
/// frames of user code that the package called stay. All frames stay while BASCULE_FULL_TRACEBACK is set to anything
/// but "0". `_public_with(results)` is the same decorator with a dict of results: a call whose only argument is a str
/// in the dict returns the value without calling the function.
void bind_public_functions(py::module_& module);
/// Replaces pybind11's lists of C++ signatures in errors about wrong arguments: every function and method of `module` raises
/// the result of `bascule._call_errors.describe` instead. Using an object made by `__new__` alone, as with old pickle
/// protocols, raises TypeError; pybind11 would allocate memory without a value. Call it after everything is bound.
void describe_call_errors(const py::module_& module);

/// Call this last. It looks for a known launcher or kernel before pybind11's functions are called.
void find_known_objects_first(const py::module_& module);

}  // namespace bascule::python

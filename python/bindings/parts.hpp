// The parts of the extension module: each function adds one. bascule.cpp calls them; the function that makes a class
// calls those that add to it.
#pragma once
#include "support/pybind.hpp"

namespace bascule {
struct Services;
}

namespace bascule::python {

struct ArrayObject;
using ArrayClass = pybind11::class_<ArrayObject>;

/// Makes Bascule's exception classes available to all bound functions.
void register_errors();
/// Checks at each driver call that the calling thread does not hold the GIL, if BASCULE_TEST_GIL=1. A function that was
/// called with it is written to stderr once, and counted in `_bascule._calls_with_gil()`, which exists only then.
void check_calls_of_driver(pybind11::module_& module, Services& services);

void bind_devices(pybind11::module_& module);
void bind_streams(pybind11::module_& module);
void bind_graphs(pybind11::module_& module);
/// Functions for bascule.debug, and for the number of owners that are held.
void bind_debug(pybind11::module_& module);
/// Functions of bascule.emulated: recorded operations (on a GPU too), races and leaks.
void bind_emulated(pybind11::module_& module);
/// Traces, profilers' ranges and launch hooks.
void bind_traces(pybind11::module_& module);
/// The cache for bascule.cache and bascule._remembered. Routes its warnings to Python's `warnings`.
void bind_cache(pybind11::module_& module);

/// Conversions between numpy.dtype and DType; bascule.struct.
void bind_dtypes(pybind11::module_& module);
void bind_launch_config(pybind11::module_& module);
/// CompileOptions, Diagnostic and CacheStatistics.
void bind_values(pybind11::module_& module);
void bind_compile_options(pybind11::module_& module);
void bind_interface_reader(pybind11::module_& module);
void bind_producer_streams(pybind11::module_& module);

/// bascule.DeviceArray, assembled from its parts, and the functions that make arrays.
void bind_arrays(pybind11::module_& module);
void bind_array_creation(pybind11::module_& module);
void bind_array_elements(ArrayClass& type);
void bind_array_export(pybind11::module_& module, ArrayClass& type);
void bind_array_import(pybind11::module_& module);
void bind_array_indexing(ArrayClass& type);
void bind_array_repr(pybind11::module_& module, ArrayClass& type);
/// Operators that arrays do not support, with errors that name alternatives.
void bind_array_refusals(ArrayClass& type);
void bind_array_shape(ArrayClass& type);
void bind_array_transfer(ArrayClass& type);
void bind_allocator(pybind11::module_& module);
/// `zeros`, `ones`, `full` and `zeros_like`.
void bind_filled_arrays(pybind11::module_& module);
void bind_masks(pybind11::module_& module, ArrayClass& type);
void bind_pointer_attributes(pybind11::module_& module);
void bind_dlpack_export(ArrayClass& type);
void bind_dlpack_import(pybind11::module_& module);
/// DLPack's exchange table for other libraries' C code: `__dlpack_c_exchange_api__` of the class.
void bind_exchange_table(ArrayClass& type);

/// bascule.CudaArray and its copies; bascule.Texture and bascule.Surface; bascule.TensorMap.
void bind_cuda_arrays(pybind11::module_& module);
void bind_textures(pybind11::module_& module);
void bind_tensor_maps(pybind11::module_& module);

void bind_kernels(pybind11::module_& module);
void bind_known_kernels(pybind11::module_& module);
void bind_arguments(pybind11::module_& module);
void register_launcher(pybind11::module_& module);
void register_bound_launch(pybind11::module_& module);
/// `get_global` of bascule.Kernel and bascule.Module. Call it after bind_kernels and bind_arrays.
void bind_globals(pybind11::module_& module);
/// `bascule.load_module` and `bascule.link`. Call it after bind_kernels.
void bind_linking(pybind11::module_& module);

/// Functions for bascule._pickling; `__copy__` and `__deepcopy__` of immutable classes. Call it after these are bound.
void bind_pickling(pybind11::module_& module);
/// Gives every class bound so far bascule._pickling's `__reduce__`, which refuses objects that belong to one process.
/// Python's default does not work for pybind11's objects.
void bind_reduction(pybind11::module_& module);
/// The decorator `_public`. Its result calls the function and has its name, signature and documentation; as a class
/// attribute it is a method. If the function raises, frames of this package at the top of the traceback are omitted;
/// frames of user code that the package called stay. All frames stay while BASCULE_FULL_TRACEBACK is set to anything
/// but "0". `_public_with(results)` is the same decorator with a dict of results: a call whose only argument is a str
/// in the dict returns the value without calling the function.
void bind_public_functions(pybind11::module_& module);
/// Gives the classes `_repr_html_` and `_repr_pretty_`, and their instances `__doc__` and `__signature__`. The classes
/// must be bound already. bascule._display is imported when one of these is read.
void bind_display(pybind11::module_& module);
/// Replaces pybind11's lists of C++ signatures in errors about wrong arguments: every function and method of `module` raises
/// the result of `bascule._call_errors.describe` instead. Using an object made by `__new__` alone, as with old pickle
/// protocols, raises TypeError; pybind11 would allocate memory without a value. Call it after everything is bound.
void describe_call_errors(const pybind11::module_& module);

/// Call these last. They look for a known launcher or kernel before pybind11's functions are called.
void find_known_launchers_first(const pybind11::module_& module);
void find_known_kernels_first(const pybind11::module_& module);

}  // namespace bascule::python

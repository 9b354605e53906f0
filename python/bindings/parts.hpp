// The parts of the extension module: each function adds one. bascule.cpp calls them, those of a class's parts the function
// that makes the class.
#pragma once
#include "support/pybind.hpp"

namespace bascule::python {

struct ArrayObject;
using ArrayClass = pybind11::class_<ArrayObject>;

/// Lets every bound function raise ours.
void register_errors();
/// With BASCULE_TEST_GIL=1 every function of the driver's table asks from now on whether the
/// calling thread holds the GIL. Those that were called so are written to stderr, each once, and counted in
/// `_bascule._calls_with_gil()`, which is not there otherwise.
void check_calls_of_driver(pybind11::module_& module);

void bind_devices(pybind11::module_& module);
void bind_streams(pybind11::module_& module);
void bind_graphs(pybind11::module_& module);
/// Owners held, and launches that wait for their kernel.
void bind_debug(pybind11::module_& module);
/// The emulated device's own functions: recorded operations, and races.
void bind_emulated(pybind11::module_& module);
/// Traces, profilers' ranges and launch hooks.
void bind_traces(pybind11::module_& module);
/// The cache for bascule.cache and bascule._remembered. From now on its warnings are Python's, and the loggers
/// "bascule.cache" and "bascule.jit" get the messages about what is compiled.
void bind_cache(pybind11::module_& module);

/// numpy.dtype from and to DType; bascule.struct.
void bind_dtypes(pybind11::module_& module);
/// LaunchConfig, CompileOptions, Diagnostic and CacheStatistics.
void bind_values(pybind11::module_& module);
void bind_interface_reader(pybind11::module_& module);
void bind_producer_streams(pybind11::module_& module);

/// bascule.DeviceArray, put together from its parts, and the functions that make arrays.
void bind_arrays(pybind11::module_& module);
void bind_array_creation(pybind11::module_& module);
void bind_array_elements(ArrayClass& type);
void bind_array_export(pybind11::module_& module, ArrayClass& type);
void bind_array_import(pybind11::module_& module);
void bind_array_indexing(ArrayClass& type);
void bind_array_repr(pybind11::module_& module, ArrayClass& type);
/// Operators that arrays do not have, with errors that name what to use.
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

/// bascule.CudaArray and what copies to it; bascule.Texture and bascule.Surface.
void bind_cuda_arrays(pybind11::module_& module);
void bind_textures(pybind11::module_& module);

void bind_kernels(pybind11::module_& module);
void bind_known_kernels(pybind11::module_& module);
void bind_arguments(pybind11::module_& module);
void register_launcher(pybind11::module_& module);
void register_bound_launch(pybind11::module_& module);
/// `get_global` of bascule.Kernel and bascule.Module; after bind_kernels and bind_arrays.
void bind_globals(pybind11::module_& module);
/// `bascule.load_module` and `bascule.link`; after bind_kernels.
void bind_linking(pybind11::module_& module);

/// After all classes: gives them `__reduce__`, and those that do not change `__copy__` and `__deepcopy__`.
void bind_pickling(pybind11::module_& module);
/// Every class that the module has by now gets bascule._pickling's `__reduce__`, which refuses objects that belong to one
/// process: what Python does without it is not for pybind11's objects.
void bind_reduction(pybind11::module_& module);
/// The decorator `_public`. The result calls the function and has its name, signature and documentation; as a member of a
/// class it is a method. When the function raises, the frames of this package at the top of the traceback are left out;
/// frames of the user's code that the package called stay, and all stay while BASCULE_FULL_TRACEBACK is set and not "0".
/// `_public_with(results)` is the same decorator with a dict of what calls with one str alone return, without calling the
/// function.
void bind_public_functions(pybind11::module_& module);
/// Gives the classes `_repr_html_`, `_repr_pretty_`, and, by instance, `__doc__` and `__signature__`. They must be bound
/// already. bascule._display is imported when one of them is read.
void bind_display(pybind11::module_& module);
/// pybind11 answers a call with wrong arguments with a list of C++ signatures. From here on every function and method of
/// `module` raises what `bascule._call_errors.describe` makes of it. And whatever uses an object that `__new__` alone has
/// made, as pickles of old protocols do, raises TypeError: pybind11 itself would give it memory without a value. Call it
/// after everything is bound.
void describe_call_errors(const pybind11::module_& module);

/// Last: what finds a launcher, or the kernel of a module's attribute, that is known comes before pybind11's functions.
void find_known_launchers_first(const pybind11::module_& module);
void find_known_kernels_first(const pybind11::module_& module);

}  // namespace bascule::python

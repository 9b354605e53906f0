// Queries and settings of kernels and functions.
#include <algorithm>
#include <cstdint>

#include "driver/call.hpp"
#include "driver/code_calls/libraries.hpp"
#include "driver/code_calls/occupancy.hpp"
#include "driver/device_limits.hpp"

namespace emulated::driver {

namespace {

/// The context of a function. For a CUkernel passed as a CUfunction it is the current context, which may be null.
const Context* context_of(const KernelHandle& handle) noexcept {
    return handle.context != nullptr ? handle.context : current_context();
}

int device_of(const KernelHandle& handle) noexcept {
    const Context* context = context_of(handle);
    return context == nullptr ? 0 : context->device;
}

void load_function(const KernelHandle& handle) {
    const Context* context = context_of(handle);
    require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    load_kernel(handle, *context);
}

/// A module's constants are contiguous, and all of them count for each of its kernels.
int constant_bytes(const program::Module& module) noexcept {
    std::uint64_t bytes = 0;
    for (const program::Global& global : module.globals) {
        if (!global.constant) continue;
        const auto alignment = std::max<std::uint64_t>(global.alignment, 1);
        bytes = (bytes + alignment - 1) / alignment * alignment + global.bytes;
    }
    return static_cast<int>(bytes);
}

int attribute(CUfunction_attribute which, const KernelHandle& handle, int device) {
    const program::Kernel& kernel = *handle.kernel;
    if (which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) return static_cast<int>(kernel.max_threads);
    if (which == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) return static_cast<int>(kernel.static_shared_bytes);
    if (which == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) return static_cast<int>(kernel.local_bytes);
    if (which == CU_FUNC_ATTRIBUTE_NUM_REGS) return registers_of(kernel);
    if (which == CU_FUNC_ATTRIBUTE_PTX_VERSION || which == CU_FUNC_ATTRIBUTE_BINARY_VERSION)
        return architecture_limits().number;
    if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return max_dynamic_shared_bytes(handle, device);
    if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return -1;
    if (which == CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)
        return kernel.explicit_cluster && kernel.cluster[0] == 0 ? 1 : 0;
    if (which >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
        which <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)
        return static_cast<int>(kernel.cluster[which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH]);
    if (which == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
        return handle.settings->takes_large_clusters[static_cast<std::size_t>(device)] ? 1 : 0;
    if (which == CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES) return constant_bytes(*handle.library->module);
    return 0;  // CACHE_MODE_CA, and the default cluster scheduling policy
}

void get_attribute(int* value, CUfunction_attribute which, const KernelHandle& handle, int device) {
    require(which >= 0 && which < CU_FUNC_ATTRIBUTE_MAX);
    return answer(value, attribute(which, handle, device));
}

void set_attribute(CUfunction_attribute which, int value, KernelHandle& handle, int device) {
    if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return require(value >= -1 && value <= 100);
    if (which == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED && architecture_limits().clusters) {
        handle.settings->takes_large_clusters[static_cast<std::size_t>(device)] = value != 0;
        return;
    }
    require(which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, CUDA_ERROR_NOT_SUPPORTED);
    const int most =
        architecture_limits().shared_per_block_optin - static_cast<int>(handle.kernel->static_shared_bytes);
    require(value >= 0 && value <= most);
    handle.settings->max_dynamic_shared_bytes[static_cast<std::size_t>(device)] = value;
}

/// The offset as drivers report it: parameters are aligned in constant memory, where the first one is not at 0.
std::size_t reported_offset(const std::vector<program::Kernel::Parameter>& parameters, std::size_t index) {
    const std::size_t start = architecture_limits().parameters_at;
    std::size_t at = start;
    for (std::size_t i = 0;; ++i) {
        const std::size_t alignment = std::max<std::size_t>(parameters[i].alignment, 1);
        at = (at + alignment - 1) / alignment * alignment;
        if (i == index) return at - start;
        at += parameters[i].bytes;
    }
}

void parameter_info(const void* handle, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    const auto found = object_of<KernelHandle>(handle);
    const auto& parameters = found->kernel->parameters;
    require(index < parameters.size());
    if (offset != nullptr) *offset = reported_offset(parameters, index);
    if (bytes != nullptr) *bytes = parameters[index].bytes;
}

void name_of(const char** name, const void* handle) {
    return answer(name, object_of<KernelHandle>(handle)->kernel->name.c_str());
}

}  // namespace

EMULATED_CONTEXT_API(cuKernelGetFunction, 12000, CUfunction* function, CUkernel kernel) {
    const auto handle = object_of<KernelHandle>(kernel);
    load_kernel(*handle, *current_context());
    auto* made = handle_of(handle->library, *handle->kernel, current_context());
    return answer(function, reinterpret_cast<CUfunction>(made));
}

EMULATED_API(cuKernelGetLibrary, 12050, CUlibrary* library, CUkernel kernel) {
    return answer(library, reinterpret_cast<CUlibrary>(object_of<KernelHandle>(kernel)->library.get()));
}

EMULATED_API(cuKernelGetAttribute, 12000, int* value, CUfunction_attribute which, CUkernel kernel,
             CUdevice device) {
    check(device_state(device));
    const auto handle = object_of<KernelHandle>(kernel);
    load_kernel(*handle, Process::get().primary(device));
    return get_attribute(value, which, *handle, device);
}

EMULATED_API(cuKernelSetAttribute, 12000, CUfunction_attribute which, int value, CUkernel kernel,
             CUdevice device) {
    check(device_state(device));
    const auto handle = object_of<KernelHandle>(kernel);
    load_kernel(*handle, Process::get().primary(device));
    return set_attribute(which, value, *handle, device);
}

EMULATED_API(cuKernelSetCacheConfig, 12000, CUkernel kernel, CUfunc_cache, CUdevice device) {
    check(device_state(device));
    object_of<KernelHandle>(kernel);  // a preference without effect
}

EMULATED_API(cuKernelGetParamInfo, 12040, CUkernel kernel, std::size_t index, std::size_t* offset,
             std::size_t* bytes) {
    return parameter_info(kernel, index, offset, bytes);
}

#if CUDA_VERSION >= 13020
EMULATED_API(cuKernelGetParamCount, 13020, CUkernel kernel, std::size_t* count) {
    return answer(count, object_of<KernelHandle>(kernel)->kernel->parameters.size());
}
#endif

EMULATED_API(cuKernelGetName, 12030, const char** name, CUkernel kernel) { return name_of(name, kernel); }

EMULATED_API(cuFuncGetAttribute, 2020, int* value, CUfunction_attribute which, CUfunction function) {
    const auto handle = object_of<KernelHandle>(function);
    load_function(*handle);
    return get_attribute(value, which, *handle, device_of(*handle));
}

EMULATED_API(cuFuncSetAttribute, 9000, CUfunction function, CUfunction_attribute which, int value) {
    const auto handle = object_of<KernelHandle>(function);
    load_function(*handle);
    return set_attribute(which, value, *handle, device_of(*handle));
}

EMULATED_API(cuFuncSetCacheConfig, 3000, CUfunction function, CUfunc_cache) {
    object_of<KernelHandle>(function);  // a preference without effect
}

EMULATED_API(cuFuncGetParamInfo, 12040, CUfunction function, std::size_t index, std::size_t* offset,
             std::size_t* bytes) {
    return parameter_info(function, index, offset, bytes);
}

EMULATED_API(cuFuncGetName, 12030, const char** name, CUfunction function) { return name_of(name, function); }

EMULATED_API(cuFuncGetModule, 11000, CUmodule* module, CUfunction function) {
    return answer(module, reinterpret_cast<CUmodule>(object_of<KernelHandle>(function)->library.get()));
}

EMULATED_API(cuFuncIsLoaded, 12040, CUfunctionLoadingState* state, CUfunction function) {
    const auto handle = object_of<KernelHandle>(function);
    const Context* context = context_of(*handle);
    require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    const bool loaded = is_loaded(*handle->library, handle->kernel, *context);
    return answer(state, loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED);
}

EMULATED_API(cuFuncLoad, 12040, CUfunction function) {
    const auto handle = object_of<KernelHandle>(function);
    return load_function(*handle);
}

}  // namespace emulated::driver

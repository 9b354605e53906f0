// Libraries, modules and their kernels: PTX in, handles out.
#include "driver/code.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "driver/call.hpp"
#include "driver/limits.hpp"

namespace limits = emulated::driver::limits;
using emulated::driver::Context;
using emulated::driver::current_context;
using emulated::driver::KernelHandle;
using emulated::driver::Library;
using emulated::driver::Process;
using emulated::memory::Allocation;

namespace emulated::driver {

const std::vector<memory::DeviceAddress>& globals_of(Library& library, Context& context) {
    const std::lock_guard lock(library.mutex);
    const auto [entry, is_new] = library.globals.try_emplace(&context);
    std::vector<memory::DeviceAddress>& addresses = entry->second;
    if (!is_new) return addresses;
    memory::Heap& heap = Process::get().heap();
    const auto& globals = library.module->globals;
    for (const program::Global& global : globals) {
        const auto bytes = std::max<std::uint64_t>(global.bytes, 1);
        const auto address =
            heap.allocate(context.device, bytes, Allocation::Kind::module_global, global.alignment);
        addresses.push_back(address.value_or(0));
        if (!address) continue;
        if (std::byte* to = heap.host(*address, bytes))
            std::copy(global.initial.begin(), global.initial.end(), to);
        heap.set_name(*address, global.name);
    }
    // Addresses in initialisers are known only once every variable has one.
    for (std::size_t i = 0; i < globals.size(); ++i) {
        for (const program::Global::Relocation& relocation : globals[i].relocations) {
            const std::uint64_t value =
                addresses[relocation.global] + static_cast<std::uint64_t>(relocation.addend);
            if (std::byte* to = heap.host(addresses[i] + relocation.offset, sizeof value)) {
                std::memcpy(to, &value, sizeof value);
            }
        }
        if (globals[i].constant) heap.set_read_only(addresses[i]);
    }
    return addresses;
}

int max_dynamic_shared_bytes(const KernelHandle& handle) noexcept {
    const int set = handle.max_dynamic_shared_bytes.load();
    return set >= 0 ? set : limits::shared_per_block - static_cast<int>(handle.kernel->static_shared_bytes);
}

}  // namespace emulated::driver

namespace {

/// The caller's buffers for messages, out of the JIT options.
struct Log {
    char* text = nullptr;
    std::size_t bytes = 0;

    Log(unsigned int count, const CUjit_option* options, void* const* values, CUjit_option buffer,
        CUjit_option size) {
        for (unsigned int i = 0; i < count; ++i) {
            if (options[i] == buffer) text = static_cast<char*>(values[i]);
            if (options[i] == size) bytes = reinterpret_cast<std::size_t>(values[i]);
        }
    }

    void write(const std::string& message) const {
        if (text != nullptr && bytes > 0) std::snprintf(text, bytes, "%s", message.c_str());
    }
};

bool is_binary(const void* code) noexcept {
    static constexpr unsigned char elf[] = {0x7f, 'E', 'L', 'F'};
    static constexpr unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};
    static constexpr unsigned char wrapper[] = {0xb1, 0x43, 0x62, 0x46};
    return std::memcmp(code, elf, 4) == 0 || std::memcmp(code, fatbin, 4) == 0 ||
           std::memcmp(code, wrapper, 4) == 0;
}

CUresult load(Library** out, const void* code, Context* context, unsigned int count,
              const CUjit_option* options, void* const* values) {
    if (out == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Log errors(count, options, values, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    const auto refuse = [&](CUresult code_of_error, const std::string& message) {
        errors.write(message);
        Process::get().set_report(message);
        return code_of_error;
    };
    if (is_binary(code)) {
        return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU,
                      "this is machine code for a GPU, and the emulated device runs PTX: compile for "
                      "compute_80 and pass the PTX");
    }
    auto loaded = emulated::program::load(static_cast<const char*>(code));
    if (const auto* error = std::get_if<emulated::program::LoadError>(&loaded)) {
        return refuse(CUDA_ERROR_INVALID_PTX, fmt::format("PTX line {}: {}", error->line, error->message));
    }
    auto library = std::make_unique<Library>();
    library->module = std::get<std::shared_ptr<const emulated::program::Module>>(std::move(loaded));
    library->context = context;
    *out = Process::get().add_library(std::move(library));
    return CUDA_SUCCESS;
}

/// The handle of a kernel, made at its first request. `context` is null for a CUkernel.
KernelHandle* handle_of(Library& library, const emulated::program::Kernel& kernel, Context* context) {
    const std::lock_guard lock(library.mutex);
    std::unique_ptr<KernelHandle>& handle = library.kernels[{&kernel, context}];
    if (handle == nullptr) {
        handle = std::make_unique<KernelHandle>();
        handle->kernel = &kernel;
        handle->library = &library;
        handle->context = context;
    }
    return handle.get();
}

CUresult find_kernel(KernelHandle** out, Library* library, const char* name, Context* context) {
    if (!Process::get().knows(library)) return CUDA_ERROR_INVALID_HANDLE;
    const emulated::program::Kernel* kernel = library->module->find_kernel(name);
    if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (!kernel->refusal.empty()) {
        Process::get().set_report(
            fmt::format("the emulated device cannot run kernel '{}': PTX {}", name, kernel->refusal));
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *out = handle_of(*library, *kernel, context);
    return CUDA_SUCCESS;
}

CUresult find_global(CUdeviceptr* address, std::size_t* bytes, Library* library, const char* name,
                     Context* context) {
    if (!Process::get().knows(library)) return CUDA_ERROR_INVALID_HANDLE;
    const auto& globals = library->module->globals;
    const auto global =
        std::find_if(globals.begin(), globals.end(), [&](const auto& each) { return each.name == name; });
    if (global == globals.end()) return CUDA_ERROR_NOT_FOUND;
    const auto& addresses = emulated::driver::globals_of(*library, *context);
    if (address != nullptr) *address = addresses[static_cast<std::size_t>(global - globals.begin())];
    if (bytes != nullptr) *bytes = global->bytes;
    return CUDA_SUCCESS;
}

CUresult unload(Library* library) {
    if (!Process::get().knows(library)) return CUDA_ERROR_INVALID_HANDLE;
    for (auto& [context, addresses] : library->globals) {
        context->graph.synchronize_all();
        for (const auto address : addresses)
            Process::get().heap().free(address, Allocation::Kind::module_global);
    }
    return Process::get().remove_library(library) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult get_attribute(int* value, CUfunction_attribute which, const KernelHandle& handle) {
    const emulated::program::Kernel& kernel = *handle.kernel;
    switch (which) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = static_cast<int>(kernel.max_threads);
            break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            *value = static_cast<int>(kernel.static_shared_bytes);
            break;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
            *value = static_cast<int>(kernel.constant_bytes);
            break;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            *value = static_cast<int>(kernel.local_bytes);
            break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            *value = static_cast<int>(kernel.registers);
            break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            *value = 80;
            break;
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
            *value = 0;
            break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = emulated::driver::max_dynamic_shared_bytes(handle);
            break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            *value = -1;
            break;
        default:
            *value = 0;
            break;
    }
    return CUDA_SUCCESS;
}

CUresult set_attribute(CUfunction_attribute which, int value, KernelHandle& handle) {
    switch (which) {
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            if (value < 0 || value > limits::shared_per_block_optin -
                                         static_cast<int>(handle.kernel->static_shared_bytes)) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            handle.max_dynamic_shared_bytes.store(value);
            return CUDA_SUCCESS;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            return CUDA_SUCCESS;
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult parameter_info(const KernelHandle& handle, std::size_t index, std::size_t* offset,
                        std::size_t* bytes) {
    const auto& parameters = handle.kernel->parameters;
    if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    if (offset != nullptr) *offset = parameters[index].offset;
    if (bytes != nullptr) *bytes = parameters[index].bytes;
    return CUDA_SUCCESS;
}

Library* to_library(CUlibrary handle) noexcept { return reinterpret_cast<Library*>(handle); }
Library* to_library(CUmodule handle) noexcept { return reinterpret_cast<Library*>(handle); }
KernelHandle& to_kernel(CUkernel handle) noexcept { return *reinterpret_cast<KernelHandle*>(handle); }
KernelHandle& to_kernel(CUfunction handle) noexcept { return *reinterpret_cast<KernelHandle*>(handle); }

}  // namespace

EMULATED_API cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options, void** values,
                               unsigned int count, CUlibraryOption*, void**, unsigned int) {
    EMULATED_COUNT("cuLibraryLoadData");
    if (!Process::get().initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    emulated::driver::trace(BASCULE_EMULATED_CREATE, nullptr, nullptr, 0, "cuLibraryLoadData");
    return load(reinterpret_cast<Library**>(library), code, nullptr, count, options, values);
}

EMULATED_API cuLibraryUnload(CUlibrary library) {
    EMULATED_COUNT("cuLibraryUnload");
    emulated::driver::trace(BASCULE_EMULATED_DESTROY, nullptr, nullptr, 0, "cuLibraryUnload");
    return unload(to_library(library));
}

EMULATED_API cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    EMULATED_COUNT("cuLibraryGetKernel");
    return find_kernel(reinterpret_cast<KernelHandle**>(kernel), to_library(library), name, nullptr);
}

EMULATED_API cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
    EMULATED_COUNT("cuLibraryGetKernelCount");
    if (!Process::get().knows(to_library(library))) return CUDA_ERROR_INVALID_HANDLE;
    *count = static_cast<unsigned int>(to_library(library)->module->kernels.size());
    return CUDA_SUCCESS;
}

EMULATED_API cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary library,
                                const char* name) {
    EMULATED_COUNT("cuLibraryGetGlobal");
    EMULATED_NEEDS_CONTEXT();
    return find_global(address, bytes, to_library(library), name, current_context());
}

EMULATED_API cuModuleLoadDataEx(CUmodule* module, const void* code, unsigned int count, CUjit_option* options,
                                void** values) {
    EMULATED_COUNT("cuModuleLoadDataEx");
    EMULATED_NEEDS_CONTEXT();
    return load(reinterpret_cast<Library**>(module), code, current_context(), count, options, values);
}

EMULATED_API cuModuleLoadData(CUmodule* module, const void* code) {
    EMULATED_COUNT("cuModuleLoadData");
    return cuModuleLoadDataEx(module, code, 0, nullptr, nullptr);
}

EMULATED_API cuModuleUnload(CUmodule module) {
    EMULATED_COUNT("cuModuleUnload");
    return unload(to_library(module));
}

EMULATED_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    EMULATED_COUNT("cuModuleGetFunction");
    EMULATED_NEEDS_CONTEXT();
    return find_kernel(reinterpret_cast<KernelHandle**>(function), to_library(module), name,
                       current_context());
}

EMULATED_API cuModuleGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUmodule module, const char* name) {
    EMULATED_COUNT("cuModuleGetGlobal");
    EMULATED_NEEDS_CONTEXT();
    return find_global(address, bytes, to_library(module), name, current_context());
}

EMULATED_API cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    EMULATED_COUNT("cuKernelGetFunction");
    EMULATED_NEEDS_CONTEXT();
    KernelHandle& handle = to_kernel(kernel);
    *function = reinterpret_cast<CUfunction>(handle_of(*handle.library, *handle.kernel, current_context()));
    return CUDA_SUCCESS;
}

EMULATED_API cuKernelGetAttribute(int* value, CUfunction_attribute which, CUkernel kernel, CUdevice) {
    EMULATED_COUNT("cuKernelGetAttribute");
    return get_attribute(value, which, to_kernel(kernel));
}

EMULATED_API cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel, CUdevice) {
    EMULATED_COUNT("cuKernelSetAttribute");
    return set_attribute(which, value, to_kernel(kernel));
}

EMULATED_API cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset,
                                  std::size_t* bytes) {
    EMULATED_COUNT("cuKernelGetParamInfo");
    return parameter_info(to_kernel(kernel), index, offset, bytes);
}

EMULATED_API cuKernelGetName(const char** name, CUkernel kernel) {
    EMULATED_COUNT("cuKernelGetName");
    *name = to_kernel(kernel).kernel->name.c_str();
    return CUDA_SUCCESS;
}

EMULATED_API cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction function) {
    EMULATED_COUNT("cuFuncGetAttribute");
    return get_attribute(value, which, to_kernel(function));
}

EMULATED_API cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
    EMULATED_COUNT("cuFuncSetAttribute");
    return set_attribute(which, value, to_kernel(function));
}

EMULATED_API cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset,
                                std::size_t* bytes) {
    EMULATED_COUNT("cuFuncGetParamInfo");
    return parameter_info(to_kernel(function), index, offset, bytes);
}

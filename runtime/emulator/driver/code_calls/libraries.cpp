// Libraries, modules and their kernels: loads PTX and returns handles.
#include "driver/code_calls/libraries.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "driver/captures.hpp"
#include "driver/code_calls/jit_log.hpp"
#include "driver/code_calls/loadable_code.hpp"
#include "driver/device_limits.hpp"
#include "driver/interruption.hpp"
#include "report/report.hpp"

namespace emulated::driver {
using memory::Allocation;

namespace {

/// Allocates and initialises every variable. Returns null if there is not enough memory.
std::shared_ptr<const Instance> instantiate(const program::Module& module, Context& context) {
    memory::Heap& heap = Process::get().heap();
    auto instance = std::make_shared<Instance>();
    Instance& addresses = *instance;
    for (const program::Global& global : module.globals) {
        const auto bytes = std::max<std::uint64_t>(global.bytes, 1);
        const auto address = heap.allocate(context.device, bytes, Allocation::Kind::module_global,
                                           global.alignment, context.memory.own().space);
        if (!address) {
            for (const auto made : addresses) heap.free(made, Allocation::Kind::module_global);
            return nullptr;
        }
        addresses.push_back(*address);
        std::byte* const end =
            std::copy(global.initial.begin(), global.initial.end(), heap.host(*address, bytes));
        std::memset(end, 0, bytes - global.initial.size());
        heap.set_name(*address, fmt::format("'{}'", global.name));
    }
    // Initialisers that contain addresses are written once every variable has an address.
    for (std::size_t i = 0; i < module.globals.size(); ++i) {
        for (const program::Global::Relocation& relocation : module.globals[i].relocations) {
            const std::uint64_t address =
                addresses[relocation.global] + static_cast<std::uint64_t>(relocation.addend);
            const std::uint64_t value = address >> (8 * relocation.first_byte);
            std::byte* to = heap.host(addresses[i] + relocation.offset, relocation.bytes);
            if (to != nullptr) std::memcpy(to, &value, relocation.bytes);
        }
        if (module.globals[i].constant) heap.set_read_only(addresses[i]);
    }
    for (const auto address : addresses)
        Process::get().own(address, Allocation::Kind::module_global, context);
    return instance;
}

std::string refusal_of(const program::Kernel& kernel) {
    return fmt::format("the emulated device cannot run kernel '{}': {}", report::demangled(kernel.name),
                       kernel.refusal);
}

/// Lists why each refused kernel cannot run, for the log of the function that loads the code.
std::string refusals(const program::Module& module) {
    std::string text;
    for (const auto& kernel : module.kernels) {
        if (!kernel.refusal.empty()) text += refusal_of(kernel) + "\n";
    }
    return text;
}

/// Frees variables of unloaded code if no operation is running. Otherwise leaves them to a later call, because waiting
/// could take for ever. `more`: variables to free in addition to those left so far.
void free_if_idle(const Instance& more = {}) {
    static auto& mutex = *new std::mutex;  // calls may come until the very end
    static auto& addresses = *new Instance;
    {
        const std::lock_guard lock(mutex);
        addresses.insert(addresses.end(), more.begin(), more.end());
    }
    Process& process = Process::get();
    process.scheduler().if_idle([&process] {
        const std::lock_guard lock(mutex);
        for (const auto address : addresses) {
            process.free(address, Allocation::Kind::module_global);
        }
        addresses.clear();
    });
}

void load(void** out, const void* code, Context* context, unsigned int count, const CUjit_option* options,
          void** values) {
    require(out != nullptr && code != nullptr);
    const JitLog errors(count, options, values, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    const JitLog notes(count, options, values, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
    const auto refuse = [&](const CodeRefusal& refusal) {
        errors.write(refusal.message);
        Process::get().set_report(refusal.message);
        const bool lazily = context == nullptr && Process::get().environment().loads_lazily;
        if (!lazily || refusal.code != CUDA_ERROR_INVALID_PTX) throw Failed{refusal.code};
        // Like a driver, records why the PTX was refused and returns the error at lookups in the library.
        auto library = std::make_shared<Library>();
        library->module = std::make_shared<program::Module>();
        library->refusal = refusal.message;
        *out = Process::get().handles().add(std::move(library));
    };
    if (is_machine_code(code)) return refuse(refusal_of_machine_code(code));
    const unsigned most_registers = number_of(CU_JIT_MAX_REGISTERS, count, options, values);
    auto loaded = load_ptx(with_register_limit(static_cast<const char*>(code), most_registers));
    if (const auto* refusal = std::get_if<CodeRefusal>(&loaded)) return refuse(*refusal);
    free_if_idle();
    auto library = std::make_shared<Library>();
    library->module = std::get<std::shared_ptr<const program::Module>>(std::move(loaded));
    library->context = context;
    if (context != nullptr && instance_of(*library, *context) == nullptr) {
        const CUresult error = no_room_for_variables(*library, *context);
        errors.write(Process::get().report());
        throw Failed{error};
    }
    errors.write("");
    notes.write(refusals(*library->module));
    *out = Process::get().handles().add(std::move(library));
    trace(BASCULE_EMULATED_CREATE, nullptr, nullptr, 0, "cuLibraryLoadData");
}

void load_file(void** out, const char* path, Context* context, unsigned int count,
               const CUjit_option* options, void** values) {
    require(path != nullptr);
    std::ifstream file(path, std::ios::binary);
    require(file, CUDA_ERROR_FILE_NOT_FOUND);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return load(out, text.c_str(), context, count, options, values);
}

void refused(const Library& library) {
    if (!library.refusal.empty()) refuse(CUDA_ERROR_INVALID_PTX, library.refusal);
}

void find_kernel(void** out, const void* library_handle, const char* name, Context* context) {
    require(out != nullptr && name != nullptr);
    const auto library = object_of<Library>(library_handle);
    refused(*library);
    const program::Kernel* kernel = library->module->find_kernel(name);
    require(kernel != nullptr, CUDA_ERROR_NOT_FOUND);
    if (!kernel->refusal.empty()) return refuse(CUDA_ERROR_NOT_SUPPORTED, refusal_of(*kernel));
    *out = handle_of(library, *kernel, context);
}

void find_global(CUdeviceptr* address, std::size_t* bytes, const void* library_handle, const char* name) {
    const auto library = object_of<Library>(library_handle);
    require(name != nullptr);
    refused(*library);
    const auto& globals = library->module->globals;
    const auto global = std::ranges::find(globals, std::string_view(name), &program::Global::name);
    require(global != globals.end(), CUDA_ERROR_NOT_FOUND);
    Context& context = library->context == nullptr ? *current_context() : *library->context;
    load_part(*library, nullptr, context);
    const auto instance = instance_of(*library, context);
    if (instance == nullptr) throw Failed{no_room_for_variables(*library, context)};
    if (address != nullptr) *address = (*instance)[static_cast<std::size_t>(global - globals.begin())];
    if (bytes != nullptr) *bytes = global->bytes;
}

/// Unloads a library or module, after a fault too. Does not wait, as drivers need not: unloading code that is still to
/// run is an error.
void unload(const void* handle) {
    Process& process = Process::get();
    check(initialised());
    unsafe_now("unloading code");
    if (ending()) return;
    const auto library = remove<Library>(handle);
    trace(BASCULE_EMULATED_DESTROY, nullptr, nullptr, 0, "cuLibraryUnload");
    library->unloaded = true;
    decltype(library->instances) instances;
    decltype(library->kernels) kernels;
    {
        const std::lock_guard lock(library->mutex);
        instances.swap(library->instances);
        kernels.swap(library->kernels);
    }
    for (const auto& [key, kernel] : kernels) process.handles().remove<KernelHandle>(kernel.get());
    for (const auto& [context, instance] : instances) {
        if (instance != nullptr) free_if_idle(*instance);
    }
}

/// Writes the number of kernels to `out`. `enumerate` writes their handles.
void count(unsigned int* out, const void* handle) {
    return answer(out, static_cast<unsigned int>(object_of<Library>(handle)->module->kernels.size()));
}

template <class Handle>
void enumerate(Handle* out, unsigned int room, const void* handle, Context* context) {
    const auto library = object_of<Library>(handle);
    const auto& kernels = library->module->kernels;
    for (std::size_t i = 0; i < std::min<std::size_t>(room, kernels.size()); ++i) {
        out[i] = reinterpret_cast<Handle>(handle_of(library, kernels[i], context));
    }
}

template <class Handle>
void** slot(Handle* out) noexcept {
    return reinterpret_cast<void**>(out);
}

/// Managed variables are loaded as ordinary ones, and there are no unified functions, so nothing is ever found.
void find_none(const void* library, const void* name) {
    object_of<Library>(library);
    throw Failed{name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND};
}

}  // namespace

std::shared_ptr<const Instance> instance_of(Library& library, Context& context) {
    const std::lock_guard lock(library.mutex);
    std::shared_ptr<const Instance>& instance = library.instances[&context];
    if (instance == nullptr) instance = instantiate(*library.module, context);
    return instance;
}

// Source: the CUDA C++ Programming Guide, "Lazy Loading": kernels are loaded by the first call that needs them.
void load_part(Library& library, const program::Kernel* kernel, const Context& context) {
    if (is_loaded(library, kernel, context)) return;
    const std::lock_guard lock(library.mutex);
    library.loaded.emplace(kernel, &context);
}

void load_kernel(const KernelHandle& handle, const Context& context) {
    load_part(*handle.library, handle.kernel, context);
}

bool is_loaded(Library& library, const program::Kernel* kernel, const Context& context) {
    if (!Process::get().environment().loads_lazily) return true;
    const std::lock_guard lock(library.mutex);
    return library.loaded.contains({kernel, &context});
}

CUresult no_room_for_variables(const Library& library, const Context& context) {
    std::uint64_t bytes = 0;
    for (const program::Global& global : library.module->globals) bytes += global.bytes;
    const memory::Heap& heap = Process::get().heap();
    return out_of_memory(fmt::format(
        "the __device__ and __constant__ variables of this module need {} bytes, and {} of the device's {} "
        "are free",
        bytes, heap.capacity(context.device) - heap.used(context.device), heap.capacity(context.device)));
}

int max_dynamic_shared_bytes(const KernelHandle& handle, int device) noexcept {
    const int set = handle.settings->max_dynamic_shared_bytes[static_cast<std::size_t>(device)].load();
    return set >= 0 ? set : limits::shared_per_block - static_cast<int>(handle.kernel->static_shared_bytes);
}

KernelHandle* handle_of(const std::shared_ptr<Library>& library, const program::Kernel& kernel,
                        Context* context) {
    const std::lock_guard lock(library->mutex);
    std::shared_ptr<KernelHandle>& handle = library->kernels[{&kernel, context}];
    if (handle == nullptr) {
        auto made = std::make_shared<KernelHandle>();
        made->kernel = &kernel;
        made->library = library;
        made->context = context;
        // Settings of a CUkernel also hold for its CUfunctions.
        const auto same = std::ranges::find_if(library->kernels, [&](const auto& entry) {
            return entry.first.first == &kernel && entry.second != nullptr;
        });
        made->settings = same == library->kernels.end() ? std::make_shared<KernelHandle::Settings>()
                                                        : same->second->settings;
        handle = made;
        Process::get().handles().add(std::move(made));
    }
    return handle.get();
}

EMULATED_DRIVER_API(cuLibraryLoadData, 12000, CUlibrary* library, const void* code, CUjit_option* options,
                    void** values, unsigned int count, CUlibraryOption*, void**, unsigned int) {
    return load(slot(library), code, nullptr, count, options, values);
}

EMULATED_DRIVER_API(cuLibraryLoadFromFile, 12000, CUlibrary* library, const char* path, CUjit_option* options,
                    void** values, unsigned int count, CUlibraryOption*, void**, unsigned int) {
    return load_file(slot(library), path, nullptr, count, options, values);
}

EMULATED_API(cuLibraryUnload, 12000, CUlibrary library) { return unload(library); }

EMULATED_API(cuLibraryGetKernel, 12000, CUkernel* kernel, CUlibrary library, const char* name) {
    return find_kernel(slot(kernel), library, name, nullptr);
}

EMULATED_API(cuLibraryGetKernelCount, 12040, unsigned int* out, CUlibrary library) {
    return count(out, library);
}

EMULATED_API(cuLibraryEnumerateKernels, 12040, CUkernel* kernels, unsigned int room, CUlibrary library) {
    return enumerate(kernels, room, library, nullptr);
}

EMULATED_CONTEXT_API(cuLibraryGetGlobal, 12000, CUdeviceptr* address, std::size_t* bytes, CUlibrary library,
                     const char* name) {
    return find_global(address, bytes, library, name);
}

/// Returns the library's own handle, which is its module in every context and "should not be unloaded".
EMULATED_CONTEXT_API(cuLibraryGetModule, 12000, CUmodule* module, CUlibrary handle) {
    const auto library = object_of<Library>(handle);
    require(library->context == nullptr, CUDA_ERROR_INVALID_HANDLE);
    return answer(module, reinterpret_cast<CUmodule>(library.get()));
}

EMULATED_API(cuLibraryGetManaged, 12000, CUdeviceptr*, std::size_t*, CUlibrary library, const char* name) {
    return find_none(library, name);
}

EMULATED_API(cuLibraryGetUnifiedFunction, 12000, void**, CUlibrary library, const char* name) {
    return find_none(library, name);
}

EMULATED_CONTEXT_API(cuModuleLoadDataEx, 2010, CUmodule* module, const void* code, unsigned int count,
                     CUjit_option* options, void** values) {
    return load(slot(module), code, current_context(), count, options, values);
}

EMULATED_CONTEXT_API(cuModuleLoadData, 2000, CUmodule* module, const void* code) {
    return load(slot(module), code, current_context(), 0, nullptr, nullptr);
}

EMULATED_CONTEXT_API(cuModuleLoadFatBinary, 2000, CUmodule* module, const void* code) {
    return load(slot(module), code, current_context(), 0, nullptr, nullptr);
}

EMULATED_CONTEXT_API(cuModuleLoad, 2000, CUmodule* module, const char* path) {
    return load_file(slot(module), path, current_context(), 0, nullptr, nullptr);
}

EMULATED_API(cuModuleUnload, 2000, CUmodule module) {
    const auto library = find_object<Library>(module);
    const bool of_library = library != nullptr && library->context == nullptr;  // from cuLibraryGetModule
    require(!of_library, CUDA_ERROR_NOT_PERMITTED);
    unload(module);
}

EMULATED_CONTEXT_API(cuModuleGetFunction, 2000, CUfunction* function, CUmodule module, const char* name) {
    return find_kernel(slot(function), module, name, current_context());
}

EMULATED_API(cuModuleGetFunctionCount, 12040, unsigned int* out, CUmodule module) {
    return count(out, module);
}

EMULATED_CONTEXT_API(cuModuleEnumerateFunctions, 12040, CUfunction* functions, unsigned int room,
                     CUmodule module) {
    return enumerate(functions, room, module, current_context());
}

EMULATED_CONTEXT_API(cuModuleGetGlobal, 3020, CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                     const char* name) {
    return find_global(address, bytes, module, name);
}

EMULATED_API(cuModuleGetLoadingMode, 11070, CUmoduleLoadingMode* mode) {
    const bool lazy = Process::get().environment().loads_lazily;
    return answer(mode, lazy ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING);
}

}  // namespace emulated::driver

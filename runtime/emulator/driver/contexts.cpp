// Contexts: primary ones, created ones, the calling thread's stack, limits.
#include "driver/captures.hpp"
#include "driver/memory_pool.hpp"

namespace emulated::driver {
namespace {

CUcontext to(Context* context) noexcept { return reinterpret_cast<CUcontext>(context); }

/// Defaults of the limits. A limit without a row is not supported.
struct Limit {
    CUlimit which;
    std::size_t bytes;
};
constexpr Limit default_limits[] = {
    {CU_LIMIT_STACK_SIZE, 1024},
    {CU_LIMIT_PRINTF_FIFO_SIZE, std::size_t{1} << 20},
    {CU_LIMIT_MALLOC_HEAP_SIZE, heap::KernelHeap::default_limit},
    {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
    {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0},
};

const Limit* default_limit(CUlimit which) noexcept { return find_row(default_limits, &Limit::which, which); }

}  // namespace

EMULATED_API(cuDevicePrimaryCtxRetain, 7000, CUcontext* context, CUdevice device) {
    check(device_state(device));
    require(context != nullptr);
    require(!Process::get().is_busy(device), CUDA_ERROR_DEVICE_UNAVAILABLE);
    Context& primary = Process::get().primary(device);
    if (primary.references.fetch_add(1) == 0) {
        primary.alive = true;
        trace(BASCULE_EMULATED_CREATE, nullptr, nullptr, 0, "cuDevicePrimaryCtxRetain");
    }
    *context = to(&primary);
}

/// The last release destroys what the context holds; a later retain gives the same handle, empty.
EMULATED_API(cuDevicePrimaryCtxRelease, 11000, CUdevice device) {
    check(device_state(device));
    Context& primary = Process::get().primary(device);
    require(primary.references.load() > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (primary.references.fetch_sub(1) > 1) return;
    Process::get().destroy_context(primary);
    primary.alive = false;
    trace(BASCULE_EMULATED_DESTROY, nullptr, nullptr, 0, "cuDevicePrimaryCtxRelease");
}

EMULATED_API(cuDevicePrimaryCtxReset, 11000, CUdevice device) {
    check(device_state(device));
    Process::get().destroy_context(Process::get().primary(device));
}

EMULATED_API(cuDevicePrimaryCtxSetFlags, 11000, CUdevice device, unsigned int flags) {
    check(device_state(device));
    Process::get().primary(device).flags = flags;
}

EMULATED_API(cuDevicePrimaryCtxGetState, 7000, CUdevice device, unsigned int* flags, int* active) {
    check(device_state(device));
    *flags = Process::get().primary(device).flags;
    *active = Process::get().primary(device).alive ? 1 : 0;
}

EMULATED_API(cuCtxCreate, 12050, CUcontext* context, CUctxCreateParams* parameters, unsigned int flags,
             CUdevice device) {
    check(device_state(device));
    require(context != nullptr);
    const bool plain = parameters == nullptr ||
                       (parameters->execAffinityParams == nullptr && parameters->cigParams == nullptr);
    require(plain, CUDA_ERROR_NOT_SUPPORTED);
    require(!Process::get().is_busy(device), CUDA_ERROR_DEVICE_UNAVAILABLE);
    Context& made = Process::get().create_context(device);
    made.flags = flags;
    if (!context_stack().push(&made)) throw Failed{out_of_memory()};
    *context = to(&made);
    trace(BASCULE_EMULATED_CREATE, nullptr, nullptr, 0, "cuCtxCreate");
}

EMULATED_DRIVER_API(cuCtxDestroy, 4000, CUcontext handle) {
    Context* context = find_context(handle);
    require(context != nullptr && context->alive && !context->primary, CUDA_ERROR_INVALID_CONTEXT);
    Process::get().destroy_context(*context);
    context->alive = false;
    // The context may still be current in other threads. Their calls then return CUDA_ERROR_CONTEXT_IS_DESTROYED.
    if (current_context() == context) context_stack().pop();
    trace(BASCULE_EMULATED_DESTROY, nullptr, nullptr, 0, "cuCtxDestroy");
}

EMULATED_DRIVER_API(cuCtxGetCurrent, 4000, CUcontext* context) {
    return answer(context, to(current_context()));
}

EMULATED_DRIVER_API(cuCtxSetCurrent, 4000, CUcontext context) {
    if (context != nullptr && context == to(current_context())) return;
    Context* found = find_context(context);
    require(context == nullptr || found != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    context_stack().pop();
    if (found != nullptr) context_stack().push(found);
}

EMULATED_DRIVER_API(cuCtxPushCurrent, 4000, CUcontext context) {
    Context* found = find_context(context);
    require(found != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    if (!context_stack().push(found)) throw Failed{out_of_memory()};
}

EMULATED_DRIVER_API(cuCtxPopCurrent, 4000, CUcontext* context) {
    require(!context_stack().empty(), CUDA_ERROR_INVALID_CONTEXT);
    if (context != nullptr) *context = to(current_context());
    context_stack().pop();
}

EMULATED_DRIVER_API(cuCtxGetDevice, 2000, CUdevice* device) {
    require(current_context() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    return answer(device, current_context()->device);
}

EMULATED_CONTEXT_API(cuCtxGetFlags, 7000, unsigned int* flags) {
    return answer(flags, current_context()->flags);
}

EMULATED_CONTEXT_API(cuCtxSetFlags, 12010, unsigned int flags) { current_context()->flags = flags; }

EMULATED_DRIVER_API(cuCtxGetId, 12000, CUcontext handle, unsigned long long* id) {
    const Context* context = handle == nullptr ? current_context() : find_context(handle);
    require(context != nullptr && context->alive, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return answer(id, context->id);
}

EMULATED_API(cuCtxGetApiVersion, 3020, CUcontext handle, unsigned int* version) {
    const Context* context = handle == nullptr ? current_context() : find_context(handle);
    require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    return answer(version, 13000);
}

EMULATED_API(cuCtxSynchronize, 2000) {
    const streams::DueDestructors due;
    check(ready());
    question_now(*current_context(), "cuCtxSynchronize");
    trace(BASCULE_EMULATED_SYNCHRONIZE, nullptr, nullptr, 0, "cuCtxSynchronize");
    Context* context = current_context();
    context->graph.synchronize_all();
    release_unused_pool_memory();
    check(context->take_error());
}

EMULATED_CONTEXT_API(cuCtxGetStreamPriorityRange, 5050, int* least, int* greatest) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
}

EMULATED_CONTEXT_API(cuCtxGetLimit, 3010, std::size_t* value, CUlimit which) {
    const Limit* known = default_limit(which);
    require(known != nullptr, CUDA_ERROR_UNSUPPORTED_LIMIT);
    return answer(value, current_context()->limit(which, known->bytes));
}

/// Later launches use the sizes of the stack and of the malloc heap; other limits are only stored. "Setting
/// CU_LIMIT_MALLOC_HEAP_SIZE must be performed before launching any kernel that uses the malloc() or free() device
/// system calls".
EMULATED_CONTEXT_API(cuCtxSetLimit, 3010, CUlimit which, std::size_t value) {
    require(default_limit(which) != nullptr, CUDA_ERROR_UNSUPPORTED_LIMIT);
    unsafe_now("cuCtxSetLimit");
    Context& context = *current_context();
    require(which != CU_LIMIT_MALLOC_HEAP_SIZE || !context.kernel_heap.opened());
    const std::lock_guard lock(context.mutex);
    context.limits[which] = value;
}

EMULATED_CONTEXT_API(cuCtxGetCacheConfig, 3020, CUfunc_cache* config) {
    return answer(config, CU_FUNC_CACHE_PREFER_NONE);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // deprecated in <cuda.h>

EMULATED_CONTEXT_API(cuCtxGetSharedMemConfig, 4020, CUsharedconfig* config) {
    return answer(config, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
}

/// The configuration is a preference and has no effect here.
EMULATED_CONTEXT_API(cuCtxSetSharedMemConfig, 4020, CUsharedconfig config) {
    require(config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
}

/// The usage count is one, because cuCtxAttach, which raises it, is refused.
EMULATED_API(cuCtxDetach, 2000, CUcontext context) { check(cuCtxDestroy(context)); }

#pragma GCC diagnostic pop

/// A preference without effect here.
EMULATED_CONTEXT_API(cuCtxSetCacheConfig, 3020, CUfunc_cache) {}

EMULATED_CONTEXT_API(cuCtxResetPersistingL2Cache, 11000) {}

}  // namespace emulated::driver

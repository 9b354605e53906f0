// Contexts: primary ones, created ones, the calling thread's stack.
#include "driver/call.hpp"

using emulated::driver::Context;
using emulated::driver::context_stack;
using emulated::driver::current_context;
using emulated::driver::Process;

namespace {

CUresult device_state(CUdevice device) noexcept {
    if (!Process::get().initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    return device >= 0 && device < Process::get().devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

Context* from(CUcontext handle) noexcept { return reinterpret_cast<Context*>(handle); }
CUcontext to(Context* context) noexcept { return reinterpret_cast<CUcontext>(context); }

}  // namespace

EMULATED_API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    EMULATED_COUNT("cuDevicePrimaryCtxRetain");
    const CUresult state = device_state(device);
    if (state != CUDA_SUCCESS) return state;
    Context& primary = Process::get().primary(device);
    if (primary.references.fetch_add(1) == 0) {
        emulated::driver::trace(BASCULE_EMULATED_CREATE, nullptr, nullptr, 0, "cuDevicePrimaryCtxRetain");
    }
    *context = to(&primary);
    return CUDA_SUCCESS;
}

EMULATED_API cuDevicePrimaryCtxRelease(CUdevice device) {
    EMULATED_COUNT("cuDevicePrimaryCtxRelease");
    const CUresult state = device_state(device);
    if (state != CUDA_SUCCESS) return state;
    Context& primary = Process::get().primary(device);
    if (primary.references.load() == 0) return CUDA_ERROR_INVALID_CONTEXT;
    primary.references.fetch_sub(1);
    return CUDA_SUCCESS;
}

EMULATED_API cuDevicePrimaryCtxReset(CUdevice device) {
    EMULATED_COUNT("cuDevicePrimaryCtxReset");
    const CUresult state = device_state(device);
    if (state != CUDA_SUCCESS) return state;
    Process::get().primary(device).error.store(CUDA_SUCCESS);
    return CUDA_SUCCESS;
}

EMULATED_API cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
    EMULATED_COUNT("cuDevicePrimaryCtxGetState");
    const CUresult state = device_state(device);
    if (state != CUDA_SUCCESS) return state;
    *flags = Process::get().primary(device).flags;
    *active = Process::get().primary(device).references.load() > 0 ? 1 : 0;
    return CUDA_SUCCESS;
}

EMULATED_API cuCtxGetCurrent(CUcontext* context) {
    EMULATED_COUNT("cuCtxGetCurrent");
    if (!Process::get().initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    *context = to(current_context());
    return CUDA_SUCCESS;
}

EMULATED_API cuCtxSetCurrent(CUcontext context) {
    EMULATED_COUNT("cuCtxSetCurrent");
    if (!Process::get().initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    auto& stack = context_stack();
    if (context != nullptr && !Process::get().knows(from(context))) return CUDA_ERROR_INVALID_CONTEXT;
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(from(context));
    return CUDA_SUCCESS;
}

EMULATED_API cuCtxPushCurrent(CUcontext context) {
    EMULATED_COUNT("cuCtxPushCurrent");
    if (!Process::get().initialised()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!Process::get().knows(from(context))) return CUDA_ERROR_INVALID_CONTEXT;
    context_stack().push_back(from(context));
    return CUDA_SUCCESS;
}

EMULATED_API cuCtxPopCurrent(CUcontext* context) {
    EMULATED_COUNT("cuCtxPopCurrent");
    if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = to(current_context());
    context_stack().pop_back();
    return CUDA_SUCCESS;
}

EMULATED_API cuCtxGetDevice(CUdevice* device) {
    EMULATED_COUNT("cuCtxGetDevice");
    if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *device = current_context()->device;
    return CUDA_SUCCESS;
}

EMULATED_API cuCtxGetFlags(unsigned int* flags) {
    EMULATED_COUNT("cuCtxGetFlags");
    if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *flags = current_context()->flags;
    return CUDA_SUCCESS;
}

EMULATED_API cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
    EMULATED_COUNT("cuCtxGetApiVersion");
    if (context == nullptr && current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *version = 13000;
    return CUDA_SUCCESS;
}

EMULATED_API cuCtxSynchronize(void) {
    EMULATED_COUNT("cuCtxSynchronize");
    EMULATED_NEEDS_CONTEXT();
    emulated::driver::trace(BASCULE_EMULATED_SYNCHRONIZE, nullptr, nullptr, 0, "cuCtxSynchronize");
    Context* context = current_context();
    context->graph.synchronize_all();
    return context->error.load();
}

EMULATED_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    EMULATED_COUNT("cuCtxGetStreamPriorityRange");
    EMULATED_NEEDS_CONTEXT();
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
}

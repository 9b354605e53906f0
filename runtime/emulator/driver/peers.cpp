// Access of one device's kernels to another's memory. Copies between devices need none.
#include "driver/call.hpp"

namespace emulated::driver {
namespace {

/// Looks up the context that the current one requests access to, or returns why it cannot have it.
CUresult find_peer(Context*& peer, CUcontext handle) {
    peer = find_context(handle);
    const bool valid = peer != nullptr && peer->alive;
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

EMULATED_API(cuDeviceCanAccessPeer, 4000, int* can, CUdevice device, CUdevice peer) {
    EMULATED_CHECK(device_state(device));
    EMULATED_CHECK(device_state(peer));
    return answer(can, device == peer ? 0 : 1);
}

EMULATED_API(cuDeviceGetP2PAttribute, 8000, int* value, CUdevice_P2PAttribute which, CUdevice device,
             CUdevice peer) {
    EMULATED_CHECK(device_state(device));
    EMULATED_CHECK(device_state(peer));
    EMULATED_REQUIRE(device != peer, CUDA_ERROR_INVALID_DEVICE);
    const bool is_access = which == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
                           which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return answer(value, is_access ? 1 : 0);  // no ranks, and no arrays
}

/// Lets kernels of the current context use every allocation of the peer. Access is one-way. Like a driver it refuses the
/// current context itself, as it refuses other contexts of the same device.
EMULATED_CONTEXT_API(cuCtxEnablePeerAccess, 4000, CUcontext handle, unsigned int flags) {
    EMULATED_REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
    Context* peer = nullptr;
    EMULATED_CHECK(find_peer(peer, handle));
    EMULATED_REQUIRE(peer->device != current_context()->device, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    using Added = DeviceView::Added;
    const Added added = current_context()->memory.add_peer(peer->memory.own());
    return added == Added::now      ? CUDA_SUCCESS
           : added == Added::before ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
                                    : CUDA_ERROR_TOO_MANY_PEERS;
}

EMULATED_CONTEXT_API(cuCtxDisablePeerAccess, 4000, CUcontext handle) {
    Context* peer = nullptr;
    EMULATED_CHECK(find_peer(peer, handle));
    EMULATED_REQUIRE(peer != current_context(), CUDA_ERROR_INVALID_CONTEXT);
    const bool removed = current_context()->memory.remove_peer(peer->memory.own());
    return removed ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // namespace emulated::driver

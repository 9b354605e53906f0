// Access of one device's kernels to another's memory. Copies between devices need no peer access.
#include "driver/call.hpp"

namespace emulated::driver {
namespace {

/// Looks up the context that the current one requests access to.
Context& find_peer(CUcontext handle) {
    Context* peer = find_context(handle);
    require(peer != nullptr && peer->alive, CUDA_ERROR_INVALID_CONTEXT);
    return *peer;
}

}  // namespace

EMULATED_API(cuDeviceCanAccessPeer, 4000, int* can, CUdevice device, CUdevice peer) {
    check(device_state(device));
    check(device_state(peer));
    return answer(can, device == peer ? 0 : 1);
}

EMULATED_API(cuDeviceGetP2PAttribute, 8000, int* value, CUdevice_P2PAttribute which, CUdevice device,
             CUdevice peer) {
    check(device_state(device));
    check(device_state(peer));
    require(device != peer, CUDA_ERROR_INVALID_DEVICE);
    const bool is_access = which == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
                           which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return answer(value,
                  is_access ? 1 : 0);  // the performance rank is 0, and kernels cannot access arrays of peers
}

/// Lets kernels of the current context use every allocation of the peer. Access is one-way. Like a driver it refuses the
/// current context itself, as it refuses other contexts of the same device.
EMULATED_CONTEXT_API(cuCtxEnablePeerAccess, 4000, CUcontext handle, unsigned int flags) {
    require(flags == 0);
    const Context& peer = find_peer(handle);
    require(peer.device != current_context()->device, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    using Added = DeviceView::Added;
    const Added added = current_context()->memory.add_peer(peer.memory.own());
    require(added != Added::before, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    require(added != Added::no_room, CUDA_ERROR_TOO_MANY_PEERS);
}

EMULATED_CONTEXT_API(cuCtxDisablePeerAccess, 4000, CUcontext handle) {
    const Context& peer = find_peer(handle);
    require(&peer != current_context(), CUDA_ERROR_INVALID_CONTEXT);
    require(current_context()->memory.remove_peer(peer.memory.own()), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

}  // namespace emulated::driver

// Device memory of other processes (cuIpcGetMemHandle, cuIpcOpenMemHandle, cuIpcCloseMemHandle): pages of a file that both
// processes map.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <unistd.h>
#include <vector>

#include "driver/captures.hpp"
#include "driver/memory_calls/allocations.hpp"
#include "driver/shared_objects.hpp"

namespace emulated::driver {
namespace {

using memory::Allocation;
using memory::DeviceAddress;

/// The content of a CUipcMemHandle.
struct SharedHandle {
    static constexpr std::uint64_t magic = 0x4261'7363'756c'6531;

    std::uint64_t mark = magic;
    SharedFile file;
    std::uint64_t offset = 0, bytes = 0, serial = 0;
    std::int32_t device = 0;
    std::int32_t unused = 0;

    bool operator==(const SharedHandle&) const = default;
};
static_assert(sizeof(SharedHandle) <= sizeof(CUipcMemHandle));

/// An open handle in a context, with its reference count.
struct Import {
    SharedHandle handle;
    const Context* context = nullptr;
    DeviceAddress address = 0;
    std::uint64_t serial = 0;  ///< of the local allocation, which may have been freed with its context
    int opened = 1;
};

struct Imports {
    std::mutex mutex;  // held while memory is mapped, so that two threads do not map the same handle
    std::vector<Import> all;

    std::vector<Import>::iterator find(const auto& is_wanted) {
        std::erase_if(all, [](const Import& each) {
            const Allocation* here = Process::get().heap().find(each.address);
            return here == nullptr || here->serial != each.serial;
        });
        return std::find_if(all.begin(), all.end(), is_wanted);
    }
};

Imports& imports() {
    static Imports& all = *new Imports;
    return all;
}

/// The access flags with which kernels of both devices can use imported memory. Null if the devices are the same: then
/// the usual rules of access apply.
std::shared_ptr<const memory::PoolAccess> access_between(int device, int other) {
    if (device == other) return nullptr;
    return std::make_shared<const memory::PoolAccess>(1U << device | 1U << other);
}

void open_memory(CUdeviceptr* address, const SharedHandle& handle, Context& context) {
    Process& process = Process::get();
    if (!process.is_device(handle.device))
        return refuse(CUDA_ERROR_MAP_FAILED,
                      "the memory lies on device {} of process {}, and this process has no such device",
                      handle.device, handle.file.process);
    const int file = handle.file.open();
    require(file >= 0, CUDA_ERROR_MAP_FAILED);
    const bool is_own_device = handle.device == context.device;
    const auto made = process.heap().import(handle.device, {file, handle.offset, handle.bytes, handle.serial},
                                            is_own_device ? context.memory.own().space : 0,
                                            access_between(handle.device, context.device));
    close(file);  // the mapping stays valid
    require(made.has_value(), CUDA_ERROR_MAP_FAILED);
    process.own(*made, Allocation::Kind::device, context);
    imports().all.push_back({handle, &context, *made, process.heap().find(*made)->serial});
    trace(BASCULE_EMULATED_ALLOCATE, nullptr, nullptr, handle.bytes, "cuIpcOpenMemHandle");
    return answer(address, *made);
}

}  // namespace

/// "Takes a pointer to the base of an existing device memory allocation created with cuMemAlloc".
EMULATED_CONTEXT_API(cuIpcGetMemHandle, 4010, CUipcMemHandle* out, CUdeviceptr address) {
    require(out != nullptr);
    Process& process = Process::get();
    const Allocation* allocation = process.heap().find(address);
    if (allocation == nullptr || allocation->base != address || !can_be_exported(*allocation))
        return refuse(CUDA_ERROR_INVALID_VALUE,
                      "{:#x} cannot be shared with other processes: it is {}. What cuMemAlloc returned can",
                      address, process.heap().describe(address, 1));
    const auto place = process.scheduler().exclusively([&] { return process.heap().share(address); });
    require(place.has_value(), CUDA_ERROR_MAP_FAILED);
    SharedHandle handle;
    handle.file = SharedFile::of(place->file);
    handle.offset = place->offset;
    handle.bytes = place->bytes;
    handle.serial = place->serial;
    handle.device = allocation->device;
    *out = {};
    std::memcpy(out, &handle, sizeof handle);
}

/// "If the memory handle has already been opened by the current context, the reference count on the handle is incremented
/// by 1 and the existing device pointer is returned."
EMULATED_CONTEXT_API(cuIpcOpenMemHandle, 11000, CUdeviceptr* address, CUipcMemHandle given,
                     unsigned int flags) {
    require(address != nullptr && flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    SharedHandle handle;
    std::memcpy(static_cast<void*>(&handle), &given, sizeof handle);
    require(handle.mark == SharedHandle::magic && handle.bytes > 0, CUDA_ERROR_INVALID_HANDLE);
    if (handle.file.is_own())
        return refuse(CUDA_ERROR_INVALID_CONTEXT,
                      "the memory is this process's own: a handle is for other processes");
    Context& context = *current_context();
    const std::lock_guard lock(imports().mutex);
    const auto known =
        imports().find([&](const Import& each) { return each.context == &context && each.handle == handle; });
    if (known == imports().all.end()) return open_memory(address, handle, context);
    ++known->opened;
    return answer(address, known->address);
}

/// "When the reference count reaches 0, this API unmaps the memory."
EMULATED_CONTEXT_API(cuIpcCloseMemHandle, 4010, CUdeviceptr address) {
    Process& process = Process::get();
    {
        const std::lock_guard lock(imports().mutex);
        const auto known = imports().find([&](const Import& each) { return each.address == address; });
        if (known == imports().all.end())
            return refuse(CUDA_ERROR_INVALID_VALUE, "{:#x} cannot be closed: it is {}", address,
                          process.heap().describe(address, 1));
        if (--known->opened > 0) return;
        imports().all.erase(known);
    }
    synchronize_implicitly();
    for (Context* each : process.contexts()) each->graph.drain();
    process.scheduler().exclusively([&] {
        if (const Allocation* allocation = process.heap().find(address))
            races::Detector::get().forget(address, allocation->bytes);
        return process.free(address, Allocation::Kind::device);
    });
    trace(BASCULE_EMULATED_FREE, nullptr, nullptr, 0, "cuIpcCloseMemHandle");
    check(current_context()->error.load());
}

}  // namespace emulated::driver

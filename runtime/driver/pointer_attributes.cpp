// Source: the CUDA driver API, "Unified Addressing", cuPointerGetAttributes.
#include <iterator>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/pointer_attributes.hpp>

namespace bascule {

const char* to_string(PointerKind kind) noexcept {
    static constexpr const char* names[] = {"device", "pool", "pinned", "mapped", "managed"};
    return names[static_cast<std::size_t>(kind)];
}

std::optional<PointerAttributes> pointer_attributes(std::uint64_t address, Device device, const char* doing) {
    const Driver& driver = Driver::get();
    const ContextGuard guard(device.context_for_questions());
    unsigned int memory_type = 0;
    unsigned int managed = 0;
    int ordinal = 0;
    CUcontext context = nullptr;
    CUdeviceptr device_address = 0;
    CUdeviceptr start = 0;
    void* host = nullptr;
    void* pool = nullptr;
    std::size_t bytes = 0;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER,   CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    void* values[] = {&memory_type, &managed, &ordinal, &context, &device_address,
                      &host,        &start,   &bytes,   &pool};
    const DriverResult code =
        driver.api().cuPointerGetAttributes(std::size(attributes), attributes, values, address);
    if (code == CUDA_ERROR_INVALID_VALUE) return std::nullopt;
    driver.check(code, doing);
    if (memory_type == 0) return std::nullopt;
    PointerAttributes found;
    found.device = ordinal;
    found.context = reinterpret_cast<std::uintptr_t>(context);
    found.device_address = device_address != 0 ? device_address : address;
    found.allocation_address = start;
    found.allocation_bytes = bytes;
    const auto host_address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(host));
    if (host != nullptr) found.host_address = host_address;
    if (managed != 0) {
        found.kind = PointerKind::managed;
    } else if (memory_type == CU_MEMORYTYPE_HOST) {
        found.kind = host_address == found.device_address ? PointerKind::pinned : PointerKind::mapped;
    } else if (pool != nullptr) {
        found.kind = PointerKind::pool;
    }
    return found;
}

}  // namespace bascule

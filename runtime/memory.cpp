// Device memory, and copies that are ordered as launches are.
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include <bascule/runtime/driver.hpp>
#include <bascule/runtime/memory.hpp>
#include <bascule/runtime/ordering.hpp>

namespace bascule {
namespace {

bool is_pinned(const Driver& driver, const void* host) noexcept {
    unsigned int type = 0;
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void* value = &type;
    const auto address = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(host));
    return driver.api().cuPointerGetAttributes(1, &attribute, &value, address) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_HOST;
}

[[noreturn]] void fail_allocation(const Driver& driver, CUresult code, std::size_t bytes) {
    std::string doing = fmt::format("allocating {} bytes", bytes);
    std::size_t available = 0;
    std::size_t total = 0;
    if (driver.api().cuMemGetInfo(&available, &total) == CUDA_SUCCESS) {
        doing += fmt::format(" of device memory, of which {} of {} are free,", available, total);
    }
    driver.check(code, "cuMemAlloc", doing);
    std::abort();  // check throws: `code` is no success
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::size_t bytes, Device device) : bytes_(bytes), device_(device) {
    if (bytes == 0) return;
    const Driver& driver = Driver::get();
    const ContextGuard context(device.context());
    CUdeviceptr address = 0;
    const CUresult code = driver.api().cuMemAlloc(&address, bytes);
    if (code != CUDA_SUCCESS) fail_allocation(driver, code, bytes);
    address_ = address;
}

DeviceBuffer::~DeviceBuffer() {
    if (address_ == 0) return;
    const Driver& driver = *Driver::existing();
    forget_pointer(address_, bytes_);
    try {
        const ContextGuard context(device_.context());
        driver.report(driver.api().cuMemFree(address_), "cuMemFree", "freeing device memory");
    } catch (...) {  // the driver is gone, and the memory with it
    }
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)),
      device_(other.device_) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    return *this;
}

void copy_to_device(StreamRef stream, std::uint64_t destination, const void* source, std::size_t bytes,
                    std::span<const Producer> producers, std::span<const Owner> owners) {
    const OwnersKept kept(stream, owners);
    if (bytes == 0) return;
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    wait_for_producers(stream, producers);
    driver.check(driver.api().cuMemcpyHtoDAsync(destination, source, bytes, stream.native()),
                 "cuMemcpyHtoDAsync", "copying to the device");
    order_producers_after(stream, producers);
}

void copy_to_host(StreamRef stream, void* destination, std::uint64_t source, std::size_t bytes,
                  std::span<const Producer> producers, std::span<const Owner> owners) {
    OwnersKept kept(stream, owners);
    if (bytes == 0) return;
    const Driver& driver = Driver::get();
    const ContextGuard context(stream.context());
    wait_for_producers(stream, producers);
    driver.check(driver.api().cuMemcpyDtoHAsync(destination, source, bytes, stream.native()),
                 "cuMemcpyDtoHAsync", "copying to the host");
    order_producers_after(stream, producers);
    // Drivers fill pageable memory before they return or need not, by version: asking for it costs nothing
    // then.
    if (is_pinned(driver, destination)) return;
    stream.synchronize();
    kept.finished();
}

}  // namespace bascule

#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/runtime/driver/pointer_attributes.hpp>
#include <bascule/runtime/memory/memory.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

TEST_CASE("each kind of memory is told by its address, and by one in the middle") {
    const struct {
        MemoryKind made;
        PointerKind told;
    } kinds[] = {{MemoryKind::device, PointerKind::device},
                 {MemoryKind::pinned, PointerKind::pinned},
                 {MemoryKind::managed, PointerKind::managed}};
    for (const auto& [made, told_as] : kinds) {
        const PointerKind told = told_as;
        CAPTURE(to_string(told));
        const DeviceBuffer buffer(4096, Device::current(), made);
        const auto found = pointer_attributes(buffer.address() + 100);
        REQUIRE(found.has_value());
        CHECK(found->kind == told);
        CHECK(found->device == 0);
        CHECK(found->device_address == buffer.address() + 100);
        CHECK(found->allocation_address == buffer.address());
        CHECK(found->allocation_bytes >= 4096);
        CHECK(found->host_address.has_value() == (made != MemoryKind::device));
    }
}

TEST_CASE("host memory that no device uses, and freed memory, are not told") {
    const int local = 0;
    CHECK_FALSE(pointer_attributes(reinterpret_cast<std::uintptr_t>(&local)).has_value());
    std::uint64_t freed = 0;
    {
        const DeviceBuffer buffer(64);
        freed = buffer.address();
    }
    CHECK_FALSE(pointer_attributes(freed).has_value());
}

TEST_CASE("the host writes pinned and managed memory where the device reads it") {
    const Stream stream;
    for (const MemoryKind kind : {MemoryKind::pinned, MemoryKind::managed}) {
        const DeviceBuffer buffer(64 * sizeof(float), Device::current(), kind);
        const std::vector<float> values = counting(64);
        REQUIRE(buffer.host() != nullptr);
        std::memcpy(buffer.host(), values.data(), buffer.bytes());
        CHECK(on_host(stream, buffer) == values);
    }
    CHECK(DeviceBuffer(64).host() == nullptr);
}

TEST_CASE("memory of somebody else's is given back to its owner, once") {
    int given_back = 0;
    const auto owner = [&] {
        return std::shared_ptr<void>(&given_back, [](void* count) { ++*static_cast<int*>(count); });
    };
    const std::uint64_t frees = calls_of("cuMemFree", [&] {
        DeviceBuffer first(0x1000, 16, Device::current(), owner());
        DeviceBuffer second = std::move(first);
        CHECK(second.address() == 0x1000);
        CHECK(given_back == 0);
    });
    CHECK(given_back == 1);
    CHECK(frees == 0);
}

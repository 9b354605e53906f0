// Memory of a device's pool: when it is freed in the order of its stream, and when the host waits first.
#include <vector>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/memory/device_array.hpp>
#include <bascule/runtime/memory/pool_memory.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "support.hpp"

using namespace bascule;
using namespace bascule::testing;

namespace {

std::uint64_t calls(const char* function) { return Driver::get().emulated_functions()->call_count(function); }

}  // namespace

TEST_CASE("an array is allocated and freed in the order of its stream") {
    const Stream stream;
    { const DeviceBuffer warm(64, stream); }
    const std::uint64_t frees = calls("cuMemFreeAsync");
    const std::uint64_t waits = calls("cuMemFree");
    { const DeviceArray<float> x(16, stream); }
    CHECK(calls("cuMemFreeAsync") == frees + 1);
    CHECK(calls("cuMemFree") == waits);
}

TEST_CASE("memory whose address was given away is freed by the next synchronisation") {
    synchronize();
    const std::uint64_t before = MemoryPool::of(Device::current())->use().used;
    {
        const DeviceArray<float> x(1024);
        CHECK(x.data() != nullptr);
    }
    CHECK(MemoryPool::of(Device::current())->use().used >= before + 4096);
    synchronize();
    CHECK(MemoryPool::of(Device::current())->use().used <= before);
}

TEST_CASE("the driver's stream lives as long as memory that is freed in its order") {
    const std::uint64_t destroyed = calls("cuStreamDestroy");
    {
        auto stream = std::make_unique<Stream>();
        const DeviceBuffer buffer(64, *stream);
        stream.reset();
        CHECK(calls("cuStreamDestroy") == destroyed);
    }
    CHECK(calls("cuStreamDestroy") == destroyed + 1);
}

TEST_CASE("a moved buffer frees its memory once") {
    const Stream stream;
    const std::uint64_t frees = calls("cuMemFreeAsync");
    {
        DeviceBuffer first(64, stream);
        DeviceBuffer second = std::move(first);
        first = DeviceBuffer(32, stream);
        second.share();
        first = std::move(second);
        CHECK(first.bytes() == 64);
    }
    synchronize();
    CHECK(calls("cuMemFreeAsync") == frees + 1);  // that of 32 bytes; the other was shared
}

// Memory of a device's pool: when it is freed in the order of its stream, and when the host waits first.
#include <thread>
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

TEST_CASE("memory whose address was given away is freed behind the work of blocking streams") {
    synchronize();
    const Stream stream;
    const std::uint64_t waits = calls("cuMemFree");
    const std::uint64_t before = MemoryPool::of(Device::current())->use().used;
    for (int i = 0; i < 100; ++i) {
        const DeviceArray<float> x(1024, i % 2 == 0 ? StreamRef::legacy_default() : stream.ref());
        CHECK(x.data() != nullptr);
    }
    synchronize();
    CHECK(MemoryPool::of(Device::current())->use().used <= before);
    CHECK(calls("cuMemFree") == waits);
}

TEST_CASE("memory for all streams is there when it is asked for, and given back at once") {
    const std::uint64_t frees = calls("cuMemFree");
    { const DeviceBuffer buffer(64, StreamRef::legacy_default(), false); }
    CHECK(calls("cuMemFree") == frees);  // freed in the order of the default stream, which outlives it
    {
        const DeviceBuffer buffer(64, StreamRef::per_thread_default());
        CHECK(buffer.order() == DeviceBuffer::no_order);
    }
    CHECK(calls("cuMemFree") == frees);  // freed in the order of this thread's default stream
    DeviceBuffer of_a_thread(64, StreamRef::legacy_default());
    std::thread([&] { of_a_thread = DeviceBuffer(64, StreamRef::per_thread_default()); }).join();
    of_a_thread = DeviceBuffer(0, StreamRef::legacy_default());
    synchronize();
    CHECK(calls("cuMemFree") == frees + 1);
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
    CHECK(calls("cuMemFreeAsync") == frees + 2);
}
